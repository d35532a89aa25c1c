"""Our own word lists and rules against libraries that do the same: agreement, quality and speed on real text.

    pip install nltk lemminflect inflect inflection textblob HanTa emoji pysbd syntok blingfire
    python benchmarks/own_code.py wordnet|inflection|tags|emoji|sentences --data-dir DATA [--nltk-wordnet FOLDER]

A library that is not installed is left out. ``DATA`` is laid out as docs/guides/data.md says. ``wordnet`` reads
the folder of
the package wordnet-base; nltk's reader needs a folder that also holds ``lexnames`` and ``index.sense`` and lies under
``$NLTK_DATA``. What was found is written down in docs/notes/own_code.md.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from isotrope.data.emoji import EMOJI
from isotrope.data.readers import column, read
from isotrope.data.record_types import record_type_named
from isotrope.data.sentences import split_sentences
from isotrope.lexicon.inflection import EnglishInflection
from isotrope.lexicon.relations import related_words
from isotrope.lexicon.wordnet import ADJECTIVE, NOUN, VERB, WordNet, wordnet_folder

CORPORA = ("wiki_docs", "wikinews_docs", "forum_docs", "transcripts_docs", "books_docs")
WORD = re.compile(r"[a-z]+")


def library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        print(f"{name}: not installed")
        return None


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def lines(data: Path, count: int) -> Iterator[str]:
    """The first ``count`` lines of each corpus."""
    for name in CORPORA:
        records = read(data / "corpora" / f"{name}.txt.xz", record_type_named("sentences"))
        yield from (record.texts[0] for record in islice(records, count))


def wordnet(data: Path, folder: str) -> None:
    """Synonyms, hypernyms and antonyms of the first sense of every word."""
    ours, seconds = timed(lambda: related_words(WordNet(wordnet_folder()), 1))
    print(f"ours: {len(ours):,} words in {seconds:.1f} s")
    if library("nltk") is None or not folder:
        return
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    def theirs() -> dict[tuple[int, str], tuple[set[str], ...]]:
        reader, found = WordNetCorpusReader(folder, None), {}
        for part, letter in enumerate("nvar"):
            for lemma in reader.all_lemma_names(letter):
                first = reader._lemma_pos_offset_map[lemma][letter][0]
                synset = reader.synset_from_pos_and_offset(letter, first)
                if lemma in synset.lemma_names():
                    above = synset.hypernyms() + synset.instance_hypernyms()
                    own = next(each for each in synset.lemmas() if each.name() == lemma)
                    groups = (synset.lemma_names(), (n for s in above for n in s.lemma_names()))
                    opposites = (other.name() for other in own.antonyms())
                    key = part, lemma.replace("_", " ")
                    found[key] = tuple({n.replace("_", " ") for n in group} for group in (*groups, opposites))
        return found

    nltk, seconds = timed(theirs)
    same = sum(
        set(mine.synonyms) | set(mine.hypernyms) | set(mine.antonyms) <= set().union(*nltk.get(key, ((),)))
        for key, mine in ours.items()
    )
    print(f"nltk: {len(nltk):,} words in {seconds:.1f} s; of our {len(ours):,} words it has all relations of {same:,}")


def inflection(data: Path, folder: str) -> None:
    """Which form real text has where ours and a library's differ; base forms of the 20,000 most frequent."""
    wordnet = WordNet(wordnet_folder())
    seen = Counter(word for line in lines(data, 40_000) for word in WORD.findall(line.lower()))
    bases = [key for key, _ in wordnet.counts().most_common(20_000) if key[1].isalpha() and key[0] != 3]
    tags = {NOUN: ("NN", "NNS"), VERB: ("VB", "VBZ", "VBG", "VBD", "VBN"), ADJECTIVE: ("JJ", "JJR", "JJS")}
    rules = EnglishInflection(wordnet)
    libraries: dict[str, Callable[[int, str], Iterable[str | None]]] = {}
    if lemminflect := library("lemminflect"):
        libraries["lemminflect"] = lambda part, base: [
            next(iter(lemminflect.getInflection(base, tag)), None) for tag in tags[part]
        ]
    if inflect := library("inflect"):
        engine = inflect.engine()
        libraries["inflect (plurals)"] = lambda part, base: (base, engine.plural_noun(base)) if part == NOUN else ()
    if plurals := library("inflection"):
        libraries["inflection (plurals)"] = lambda part, base: (base, plurals.pluralize(base)) if part == NOUN else ()
    mine, seconds = timed(lambda: {key: rules.forms(*key) for key in bases})
    print(f"ours: {len(bases):,} base forms in {seconds:.2f} s")
    met = wordnet.counts()
    for name, forms in libraries.items():
        theirs, seconds = timed(lambda forms=forms: {key: tuple(forms(*key)) for key in bases})  # type: ignore[misc]
        pairs = [
            (key, a, b)
            for key in bases
            for a, b in list(zip(mine[key], theirs[key], strict=bool(theirs[key])))[1:]
            if a and b and b != key[1]  # a mass noun is its own plural to some
        ]
        differ = [(a, b) for _, a, b in pairs if a != b]
        weight = sum(met[key] for key, a, b in pairs if a != b) / sum(met[key] for key, _, _ in pairs)
        better = sum(seen[a] > seen[b] for a, b in differ), sum(seen[b] > seen[a] for a, b in differ)
        print(
            f"{name}: {seconds:.2f} s; {len(differ):,} of {len(pairs):,} forms differ ({weight:.2%} by frequency); "
            f"the text has ours more often in {better[0]:,} and theirs in {better[1]:,}"
        )
        print("   ", differ[:: max(len(differ) // 8, 1)][:8])


def tags(data: Path, folder: str) -> None:
    """Part of speech of the words that may have several, in the examples of WordNet that the table was not made of."""
    import numpy as np

    from isotrope.lexicon import replacements
    from isotrope.lexicon.english import ENGLISH, WORD

    wordnet = WordNet(wordnet_folder())
    counts, rules = wordnet.counts(), EnglishInflection(wordnet)
    readings = replacements._readings(related_words(wordnet, 1), counts, rules, ENGLISH)
    asked = []  # (example, word, its part of speech)
    for part, synsets in enumerate(wordnet.synsets):
        for offset, synset in synsets.items():
            if int(offset) % 2:
                examples, wordnet.synsets[part][offset] = synset.examples, _without_examples(synset)
                for example in examples:
                    for word in WORD.findall(example.lower()):
                        known = readings.get(word, {})
                        if len(known) > 1 and part in known and known[part].base in synset.words:
                            asked.append((example, word, part))
    random.Random(0).shuffle(asked)
    del asked[5000:]
    replacements.WordNet = lambda _: wordnet  # type: ignore[assignment,misc]
    table = replacements.make_lexicon(wordnet_folder())

    def ours(text: str) -> list[tuple[str, int]]:
        words = WORD.findall(text.lower())
        numbers = np.array([table.number.get(word, len(table.words)) for word in words])
        return list(zip(words, (table.slots(numbers, np.zeros_like(numbers)) % 4).tolist(), strict=True))

    taggers: dict[str, Callable[[str], list[tuple[str, int]]]] = {"ours": ours}
    letters = {"N": 0, "V": 1, "J": 2, "R": 3, "A": 2}
    if library("textblob"):
        from textblob.en.taggers import PatternTagger

        pattern = PatternTagger()
        taggers["textblob (pattern)"] = lambda text: [
            (word.lower(), letters.get(tag[0], -1)) for word, tag in pattern.tag(text)
        ]
    if library("HanTa"):
        from HanTa.HanoverTagger import HanoverTagger

        hanover = HanoverTagger("morphmodel_en.pgz")
        taggers["HanTa"] = lambda text: [
            (word.lower(), letters.get(tag[0], -1))
            for word, _, tag in hanover.tag_sent(re.findall(r"\w+|[^\w\s]", text))
        ]
    for name, tagger in taggers.items():
        right, seconds = timed(lambda tag=tagger: sum((w, part) in tag(text) for text, w, part in asked))  # type: ignore[misc]
        print(
            f"{name}: {right / len(asked):.1%} of {len(asked):,} ambiguous words, {len(asked) / seconds:,.0f} texts/s"
        )


def _without_examples(synset: Any) -> Any:
    return type(synset)(synset.words, synset.above, synset.opposites, ())


def emoji(data: Path, folder: str) -> None:
    """Emoji of Unicode's list that are found whole, and characters of real text that are called emoji."""
    package = library("emoji")
    if package is None:
        return
    known = [text for text, facts in package.EMOJI_DATA.items() if facts["status"] <= package.STATUS["fully_qualified"]]
    missing = [text for text in known if not EMOJI.fullmatch(text)]
    print(f"ours finds {len(known) - len(missing):,} of Unicode's {len(known):,} emoji whole; not {missing[:8]}")
    sets = [data / "emotion" / f"tweeteval_{name}.train.tsv.gz" for name in ("emotion", "irony", "emoji")]
    tweets = [text for file in sets for text in column(file, "sentence")]
    for name, texts in {"tweets": tweets, "corpora": list(lines(data, 20_000))}.items():
        mine, our_time = timed(lambda texts=texts: [EMOJI.findall(text) for text in texts])  # type: ignore[misc]
        listed, their_time = timed(lambda texts=texts: [package.emoji_list(text) for text in texts])  # type: ignore[misc]
        theirs = [[found["emoji"] for found in each] for each in listed]
        differ = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
        print(
            f"{name}: {len(texts):,} texts, {sum(map(len, mine)):,} emoji (package: {sum(map(len, theirs)):,}), "
            f"{len(differ):,} texts differ; {len(texts) / our_time:,.0f} against {len(texts) / their_time:,.0f} texts/s"
        )
        print("   ", differ[:8])


def sentences(data: Path, folder: str) -> None:
    """Borders between sentences: the annotated ones of GUM, and pairs of STS-B."""
    gum = data / "entity" / "gum_wikified_mentions.tsv.gz"
    rows = list(zip(column(gum, "document"), column(gum, "sentence"), strict=True))
    texts = {"GUM": [list(dict.fromkeys(text for _, text in group)) for _, group in groupby(rows, lambda row: row[0])]}
    pairs = [column(data / "sts" / "stsb.train.tsv.gz", name) for name in ("sentence1", "sentence2")]
    texts["STS-B"] = [[a, b] for a, b in zip(*pairs, strict=True) if a.endswith((".", "!", "?", '"'))]
    plain = [" ".join(block) for block in zip(*[lines(data, 2000)] * 20, strict=False)]
    splitters: dict[str, Callable[[str], list[str]]] = {"ours": split_sentences}
    if pysbd := library("pysbd"):
        splitters["pysbd"] = pysbd.Segmenter(language="en", clean=False).segment
    if library("syntok"):
        from syntok import segmenter

        splitters["syntok"] = lambda text: [
            "".join(token.spacing + token.value for token in sentence)
            for paragraph in segmenter.process(text)
            for sentence in paragraph
        ]
    if blingfire := library("blingfire"):
        splitters["blingfire"] = lambda text: blingfire.text_to_sentences(text).split("\n")
    if library("nltk"):
        from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

        trainer = PunktTrainer()  # nltk's own model is a download
        for document in plain:
            trainer.train(document, finalize=False)
        splitters["nltk punkt, trained here"] = PunktSentenceTokenizer(trainer.get_params()).tokenize
    for name, split in splitters.items():
        scores = " ".join(f"{label} F1 {f1(split, wanted):.3f}" for label, wanted in texts.items())
        _, seconds = timed(lambda split=split: [split(text) for text in plain])  # type: ignore[misc]
        print(f"{name}: {scores}; {sum(map(len, plain)) / seconds / 1e6:.2f} million characters/s")


def f1(split: Callable[[str], list[str]], documents: list[list[str]]) -> float:
    """Of the inner borders, counted in characters that are not white space."""
    right = found = wanted = 0
    for document in documents:
        borders = [set(_ends(parts)[:-1]) for parts in (document, split(" ".join(document)))]
        right, wanted, found = right + len(borders[0] & borders[1]), wanted + len(borders[0]), found + len(borders[1])
    return 2 * right / (found + wanted)


def _ends(parts: list[str]) -> list[int]:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len("".join(part.split())))
    return ends[1:]


SECTIONS = {section.__name__: section for section in (wordnet, inflection, tags, emoji, sentences)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--nltk-wordnet", default="")
    options = parser.parse_args()
    SECTIONS[options.section](options.data_dir, options.nltk_wordnet)
