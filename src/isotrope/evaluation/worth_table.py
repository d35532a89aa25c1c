"""The final table of a run as values and as words: its rows, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from isotrope.evaluation.lexical import TITLE
from isotrope.measures.intervals import Interval

START, RUN, BUILTIN = "start", "this run", "builtin"
SIDES = {  # by the origin of the pairs: what is searched for, and what the table is made of
    "pairs": ("the other text of a held-out pair", "held-out pairs"),
    "neighbours": ("the next sentence of a held-out document", "held-out pairs of neighbours"),
    "halves": ("the other half of a held-out sentence", "held-out sentences, cut in two"),
}


NOT_PAID = "Training did not pay"  # how the sentence begins
CHOSEN_HERE = (
    "The checkpoint was chosen on these records too, as they are too few to be parted: this run's figures are a little "
    "too good. Give eval_data to choose by, or more text."
)
OTHERWISE = "try a lower learning rate, more or other text, or another method"
UNCHANGED = Interval(0.0, 0.0)  # how far a run that kept its start is ahead of it


@dataclass(frozen=True)
class WorthRow:
    """MRR and first place, × 100. ``ahead``: how far this run's MRR lies above the row's, as a paired 95 % interval."""

    name: str
    mrr: float
    first: float
    interval: Interval
    ahead: Interval | None


@dataclass(frozen=True)
class Footing:
    """What was compared. ``judged``: whether the method trains what the measure asks for; ``from_builtin``: whether the
    method could start from ``builtin``; ``chose``: whether the checkpoint was chosen on the same records,
    ``others_chose``: whether on other held-out ones."""

    method: str
    start: str
    data: str
    origin: str
    judged: bool
    from_builtin: bool
    chose: bool = False
    others_chose: bool = False


@dataclass(frozen=True)
class Worth:
    """Whether a run is better than what was there without it.

    ``paid`` is None where nothing can be said. ``left_out``: rows that could not be computed, with the reason.
    """

    measure: str
    records: int
    rows: list[WorthRow]
    left_out: dict[str, str]
    paid: bool | None
    sentences: list[str]

    @classmethod
    def of(cls, footing: Footing, records: int, rows: Sequence[WorthRow], left_out: Mapping[str, str]) -> Worth:
        searched, made_of = SIDES[footing.origin]
        apart = "; others chose the checkpoint" if footing.others_chose else ""
        measure = f"finding {searched} among {records:,} ({made_of}{apart})"
        by_name = {row.name: row for row in rows}
        if RUN not in by_name:
            paid, sentences = None, [f"Nothing can be said of this run: {left_out[RUN]}."]
        elif not footing.judged:
            said = f"{footing.method} trains another task than {searched}: read the figures of its own task first."
            paid, sentences = None, [said]
        else:
            paid, sentences = judged(footing, by_name)
            kept_start = START in by_name and by_name[START].ahead == UNCHANGED
            sentences += [CHOSEN_HERE] if footing.chose and not kept_start else []
        return cls(measure, records, list(rows), dict(left_out), paid, sentences)

    @classmethod
    def read(cls, found: Any) -> Worth | None:
        """What ``to_dict`` wrote into run.json, or None where that is something else."""
        try:
            rows = [
                WorthRow(
                    **{**row, "interval": Interval(*row["interval"]), "ahead": row["ahead"] and Interval(*row["ahead"])}
                )
                for row in found["rows"]
            ]
            return cls(**{**found, "rows": rows})
        except (KeyError, TypeError):
            return None

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON; an interval is (low, high)."""
        return asdict(self)

    def lines(self) -> list[dict[str, str]]:
        """The rows of the printed table."""
        return [
            {
                "": row.name,
                "MRR": f"{row.mrr:.1f}",
                "95 % interval": str(row.interval),
                "first place": f"{row.first:.1f} %",
                "this run minus it": "" if row.ahead is None else signed(row.ahead),
            }
            for row in self.rows
        ]

    def remarks(self) -> list[str]:
        """What stands under the table."""
        return [*(f"no row for {name}: {why}" for name, why in self.left_out.items() if self.rows), *self.sentences]


def judged(footing: Footing, rows: Mapping[str, WorthRow]) -> tuple[bool | None, list[str]]:
    """Did training pay? It did where the run is above its start and above ``builtin``, beyond chance."""
    rivals = [rows[name] for name in (BUILTIN, START) if name in rows]
    unbeaten = [row for row in rivals if row.ahead is not None and row.ahead.low <= 0]
    sentences = []
    if unbeaten:
        sentences.append(_not_paid(footing, max(unbeaten, key=lambda row: row.mrr), rows[RUN]))
    words = rows.get(TITLE)
    if words is not None and words.ahead is not None and words.ahead.high < 0:
        sentences.append(
            f"Shared words find more: {_figures(footing, TITLE, words, rows[RUN])}; search this text by words, or by "
            "words and vectors together."
        )
    return (not unbeaten if rivals else None), sentences


def _not_paid(footing: Footing, best: WorthRow, run: WorthRow) -> str:
    assert best.ahead is not None
    if best.ahead == UNCHANGED:
        return f"{NOT_PAID}: the model is the start, unchanged, because no evaluation was better; {OTHERWISE}."
    name = "`builtin` as it is" if best.name == BUILTIN else f"the start, {footing.start},"
    figures = _figures(footing, name, best, run)
    if best.ahead.high < 0:
        return f"{NOT_PAID}: {figures}; {_advice(footing, best.name)}."
    unclear = f"the difference, {signed(best.ahead)} in MRR, may be chance"
    return f"{NOT_PAID} measurably: {figures}; {unclear}; {_advice(footing, best.name)}."


def _figures(footing: Footing, name: str, row: WorthRow, run: WorthRow) -> str:
    searched = SIDES[footing.origin][0]
    return (
        f"{name} finds {searched} in {row.first:.1f} % of cases (MRR {row.mrr:.1f}), this run in {run.first:.1f} % "
        f"({run.mrr:.1f})"
    )


def _advice(footing: Footing, best: str) -> str:
    if best == START:
        return f"keep the start, or {OTHERWISE}"
    if footing.from_builtin:
        return f"start from builtin: isotrope train {footing.method} {footing.data} --model builtin"
    return "use builtin, or train a method that can start from it"


def signed(ahead: Interval) -> str:
    """An interval of differences, with their signs."""
    return f"{ahead.low:+.1f} to {ahead.high:+.1f}".replace("-", "−")
