"""What is known of words: WordNet, inflection, synonyms and antonyms.

The one thing that other rooms read is a ``WordTable``: arrays that say, for each word and part of speech, what may
stand in its place. ``open_lexicon`` makes one of WordNet's files and of a ``Language``. English is there; another
language brings a ``Language`` of its own (function words and inflection) and a wordnet in the same file format.
"""
