"""What is known of words: WordNet, inflection, synonyms and antonyms (English)."""
