"""Answer ranking: are the sentences that answer a question nearer to it than the other candidates?

    MAP, MRR    over the questions with at least one right answer, by the cosine of question and sentence
    AUC         over all pairs: the chance that a right pair has the larger cosine than a wrong one

The flow paper (Li et al. 2020, section 4.2) takes the AUC on QNLI's dev part, entailment as right, without training.
WikiQA, as the data folder has it, asks the same of natural questions; a QNLI file of your own goes in as ``texts``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from isotrope.data.sentence_files import Texts
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation import bm25, lexical
from isotrope.evaluation.benchmark_files import data_folder, find_task
from isotrope.evaluation.bm25 import bm25_scores
from isotrope.evaluation.items import Items
from isotrope.evaluation.lexical import lexical_cosines
from isotrope.evaluation.linear import LabelledSource, read_labelled
from isotrope.evaluation.results import ENCODER, Results, read_out
from isotrope.evaluation.retrieval_files import FOLDER
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.intervals import Interval, percentile_interval
from isotrope.measures.ranking_measures import Floats, average_precision

PROTOCOL = "answers-cosine-v1"
TASK, COLUMNS = "wikiqa.test", ("question", "answer_sentence", "label")
RIGHT, WRONG = ("1", "entailment", "true", "yes"), ("0", "not_entailment", "false", "no")
DIGITS = 6  # to which cosines are told apart
HEADS = ("ranked by", "MAP", "95 % interval", "MRR", "95 % interval", "AUC", "95 % interval")


@dataclass(frozen=True)
class Candidates:
    """Row i: a question, a sentence, and whether it answers; ``groups``: the rows of each question."""

    questions: list[str]
    sentences: list[str]
    right: npt.NDArray[np.bool_]
    groups: list[npt.NDArray[np.int64]]

    def answered(self) -> list[int]:
        """The groups with a right answer: the questions that MAP and MRR are taken over."""
        return [number for number, rows in enumerate(self.groups) if self.right[rows].any()]


@dataclass(frozen=True)
class Measure:
    """× 100, with its 95 % interval."""

    value: float
    low: float
    high: float


class Answers(Suite):
    """Does a question find the sentence that answers it among a few? WikiQA, or a labelled file of your own.

    As ``retrieval`` with a handful of candidates each, all from one page, so shared words help less. The order of the
    candidates in the file says nothing here: of equal cosines the wrong sentence counts as first.
    """

    card = SuiteCard(
        name="answers",
        title="Sentences ranked as answers to questions",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "seeds", "resamples", "baselines"),
    )
    row_titles = {"answers": ENCODER}

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        read_candidates(_source(options), options.columns)

    def run(self, encoder: Encoder, options: Options) -> Results:
        """MAP, MRR and AUC × 100 of the encoder, TF-IDF and BM25; 95 % intervals by a bootstrap of the questions.

        BM25's scores of different questions do not compare, so it has no AUC. Items are average precisions.
        """
        source, baselines = _source(options), options.baselines
        seed, resamples = options.seed, options.resamples
        found = read_candidates(source, options.columns)
        vectors = TextVectors.encoded(encoder, (*found.questions, *found.sentences), normalize=True)
        first, second = (vectors.of(side).astype(np.float64) for side in (found.questions, found.sentences))
        cosines = (first * second).sum(axis=1)
        scores = {"encoder": score(found, cosines, seed, resamples)}
        if baselines:
            others = {lexical.TITLE: lexical_cosines, bm25.TITLE: bm25_scores}
            for title, compared in others.items():
                scores[title] = score(found, compared(found.questions, found.sentences), seed, resamples)
            del scores[bm25.TITLE]["auc"]
        answered = len(found.answered())
        protocol = {
            "protocol": PROTOCOL,
            "text": Path(source).name if isinstance(source, str | os.PathLike) else "the given list",
            "MAP, MRR": f"{answered:,} of {len(found.groups):,} questions, those with a right answer; ties lose",
            "AUC": f"all {len(found.right):,} pairs, {int(found.right.sum()):,} of them right",
            "interval": f"95 % bootstrap of questions, {resamples} resamples, seed {seed}",
            **({lexical.TITLE: lexical.DESCRIPTION, bm25.TITLE: bm25.DESCRIPTION} if baselines else {}),
            **read_out(encoder),
        }
        nested = {name: {measure: asdict(value) for measure, value in each.items()} for name, each in scores.items()}
        own = {"encoder": nested.pop("encoder")}
        sizes = {"questions": answered, "pairs": len(found.right)}
        whole = {"answers": {**own, **({"baselines": nested} if baselines else {}), **sizes}}
        rows = [_row(title, measures) for title, measures in scores.items()]
        return Results(whole, protocol, HEADS, rows, items={"answers": Items(precisions(found, cosines))})

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["answers"]["encoder"]
        return {f"answers_{name}": found[name]["value"] for name in ("map", "mrr", "auc")}

    def main_scores(self, results: Results) -> dict[str, tuple[str, float]]:
        return {"answers": ("map", results.scores["answers"]["encoder"]["map"]["value"])}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        return {"answers": read_candidates(_source(options), options.columns).questions}


def read_candidates(source: Texts, columns: Sequence[str] | None = None) -> Candidates:
    """Rows of question, sentence and label; a question is its text, wherever its rows stand."""
    given = cast(LabelledSource, source)  # from Python also a list of (question, sentence, label)
    (questions, sentences), labels = read_labelled(given, columns or _columns(source), "labelled-pairs")
    right = np.array([_is_right(label, source) for label in labels])
    if right.all() or not right.any():
        raise InputError(f"{source}: every row has the label '{labels[0]}'; right and wrong answers are needed.")
    rows: dict[str, list[int]] = {}
    for row, question in enumerate(questions):
        rows.setdefault(question, []).append(row)
    return Candidates(questions, sentences, right, [np.array(group) for group in rows.values()])


def score(found: Candidates, cosines: Floats, seed: int, resamples: int) -> dict[str, Measure]:
    """Every measure with its interval. Questions are drawn, each with all its candidates."""
    answered, precision = found.answered(), precisions(found, cosines)
    reciprocal = np.array([1 / (1 + ranking.argmax()) for ranking in _rankings(found, cosines)])
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(answered), size=(resamples, len(answered)))
    areas = [
        area(cosines[rows], found.right[rows])
        for _ in range(resamples)
        if found.right[rows := _drawn(found.groups, rng)].any() and not found.right[rows].all()
    ]
    whole = {"map": precision.mean(), "mrr": reciprocal.mean(), "auc": area(cosines, found.right)}
    draws = {"map": precision[drawn].mean(axis=1), "mrr": reciprocal[drawn].mean(axis=1), "auc": np.array(areas)}
    return {
        name: Measure(100 * float(value), *percentile_interval(draws[name]).times(100)) for name, value in whole.items()
    }


def precisions(found: Candidates, cosines: Floats) -> Floats:
    """[questions with a right answer]: the average precision of each."""
    return np.array([average_precision(ranking) for ranking in _rankings(found, cosines)])


def area(scores: Floats, right: npt.NDArray[np.bool_]) -> float:
    """AUC: the share of (right, wrong) pairs in which the right one scores higher; ties count half."""
    from scipy.stats import rankdata

    hits = int(right.sum())
    above = rankdata(scores)[right].sum() - hits * (hits + 1) / 2
    return float(above / (hits * (len(right) - hits)))


def _rankings(found: Candidates, cosines: Floats) -> Iterator[npt.NDArray[np.bool_]]:
    """Right or wrong, best first, of each question with a right answer; of equal cosines the wrong one is first."""
    for number in found.answered():
        rows = found.groups[number]
        order = np.lexsort((found.right[rows], -np.round(cosines[rows], DIGITS)))
        yield found.right[rows][order]


def _source(options: Options) -> Texts:
    return options.texts if options.texts is not None else find_task(data_folder(options.data_dir) / FOLDER, TASK)


def _drawn(groups: Sequence[npt.NDArray[np.int64]], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return np.concatenate([groups[number] for number in rng.integers(len(groups), size=len(groups))])


def _columns(source: Texts) -> tuple[str, ...] | None:
    """WikiQA's names, where the file has them; else those that labelled pairs go by."""
    from isotrope.data.tables import header_of

    header = header_of(source) if isinstance(source, str | os.PathLike) else None
    known = [COLUMNS, ("question", "sentence", "label")]
    return next((names for names in known if header is not None and set(names) <= set(header)), None)


def _is_right(label: str, source: Texts) -> bool:
    word = label.strip().lower()
    if word not in (*RIGHT, *WRONG):
        raise InputError(f"{source}: the label '{label}' says neither right ({', '.join(RIGHT)}) nor wrong.")
    return word in RIGHT


def _row(title: str, measures: Mapping[str, Measure]) -> tuple[str, ...]:
    cells = [(f"{each.value:.2f}", str(Interval(each.low, each.high))) for each in measures.values()]
    cells += [("", "")] * (3 - len(cells))
    return (title, *(cell for pair in cells for cell in pair))
