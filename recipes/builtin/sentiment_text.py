"""Texts with the sentiment that two open lexicons see in them, for word_scores.py.

    sentiment_text.py WORK      sentences of WORK/text, titles and questions of WORK/sources → WORK/sentiment.tsv

    pip install --no-deps vaderSentiment==3.3.2 textblob==0.20.1

VADER (MIT; Hutto and Gilbert, ICWSM 2014) gives the shares of negative, neutral and positive words and their sum;
pattern's list of adjectives (public domain, PDDL; De Smedt and Daelemans, JMLR 2012; textblob carries it) the mean
polarity and the mean subjectivity. No labelled review is read. Each word of the lexicons is met in 40 sentences at
most, so that rare ones are learned next to "good"; the other texts are there to keep what search needs.
"""

from __future__ import annotations

import importlib.util
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from label_pairs import lines, write

CORPORA = (
    *(f"{name}_docs" for name in ("forum", "transcripts", "books", "books2", "wikinews", "wiki2", "techdocs")),
    "dialog_sgd",
)
OF_A_CORPUS = 300_000  # lines, at most
WORDS, LONGEST = (4, 50), 40  # words of a sentence that is met, and of one that is kept
EACH_WORD, NEUTRAL = 40, 15_000
POLAR = 0.2  # an adjective counts as one from this polarity on
SEARCH = {"titles": 14_000, "questions": 12_000}  # rows of the sources of search
WITH_QUERY = 0.6  # of these rows the query is a text too
CAPTIONS = 4_000
NEGATIONS = {"not", "n't", "no", "never", "neither", "nor", "without", "cannot", "hardly"}
REVERSED = -0.5  # of the polarity of an adjective with a negation among the three words before it


class Lexicons:
    def __init__(self, vader: Any, adjectives: Path) -> None:
        self.vader = vader
        senses: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for word in ElementTree.parse(adjectives).getroot():
            senses[word.attrib["form"]].append((float(word.attrib["polarity"]), float(word.attrib["subjectivity"])))
        self.adjectives = {word: tuple(map(mean, zip(*values, strict=True))) for word, values in senses.items()}
        polar = {word for word, (polarity, _) in self.adjectives.items() if abs(polarity) > POLAR}
        self.words = polar | set(self.vader.lexicon)

    def label(self, text: str) -> str:
        found, (polarity, subjectivity) = self.vader.polarity_scores(text), self.of_adjectives(text)
        parts = " ".join(f"{found[name]:.2f}" for name in ("neg", "neu", "pos", "compound"))
        return f"{parts} {polarity:.1f} {subjectivity:.1f}"

    def of_adjectives(self, text: str) -> tuple[float, float]:
        words, polarities, subjectivities = re.findall(r"n't|[a-z]+(?=n't)|[a-z'-]+", text.lower()), [], []
        for place, word in enumerate(words):
            if word in self.adjectives:
                polarity, subjectivity = self.adjectives[word]
                negated = not NEGATIONS.isdisjoint(words[max(0, place - 3) : place])
                polarities.append(polarity * (REVERSED if negated else 1))
                subjectivities.append(subjectivity)
        return mean(polarities), mean(subjectivities)


def adjectives_file() -> Path:
    package = importlib.util.find_spec("textblob")
    if package is None or package.origin is None or importlib.util.find_spec("vaderSentiment") is None:
        sys.exit("The lexicons are not installed: pip install --no-deps vaderSentiment==3.3.2 textblob==0.20.1")
    return Path(package.origin).parent / "en" / "en-sentiment.xml"


def mean(values: list[float] | tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else 0.0


def main(work: Path) -> None:
    adjectives = adjectives_file()
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    lexicons = Lexicons(SentimentIntensityAnalyzer(), adjectives)
    sentences = [text for text in polar_sentences(work, lexicons) if len(text.split()) <= LONGEST]
    rng = random.Random(1)
    rows = [(lexicons.label(text), text) for text in (*sentences, *search_texts(work, rng))]
    rng.shuffle(rows)
    write(work / "sentiment.tsv", ("label", "sentence"), rows)


def polar_sentences(work: Path, lexicons: Lexicons) -> list[str]:
    rng, texts = random.Random(0), []
    for name in CORPORA:
        found = [text for text in lines(work / "text" / f"{name}.txt.xz") if WORDS[0] <= len(text.split()) <= WORDS[1]]
        rng.shuffle(found)
        texts += found[:OF_A_CORPUS]
    rng.shuffle(texts)
    met: Counter[str] = Counter()
    kept, neutral = [], 0
    for text in texts:
        words = set(re.findall(r"[a-z'-]+", text.lower())) & lexicons.words
        if all(met[word] >= EACH_WORD for word in words):
            if words or neutral > NEUTRAL:
                continue
            neutral += 1
        met.update(words)
        kept.append(text)
    rng.shuffle(kept)
    return kept


def search_texts(work: Path, rng: random.Random) -> list[str]:
    found = []
    for name, count in SEARCH.items():
        rows = [line.split("\t")[:2] for line in lines(work / "sources" / f"{name}.tsv.xz")][1:]
        rng.shuffle(rows)
        for query, passage in rows[:count]:
            found += [query, passage] if rng.random() < WITH_QUERY else [passage]
    captions = list(lines(work / "text" / "captions.txt.xz"))
    rng.shuffle(captions)
    return found + captions[:CAPTIONS]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
