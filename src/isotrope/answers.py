"""What the public verbs return where no room has a type for it: plain facts, as a dictionary and as table rows.

``to_dict`` gives JSON values for programs, ``rows`` one dictionary a line of the table that the command line prints.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.methods.frame.method import Card


class OneRow:
    """An answer whose table has one row: itself."""

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        return [self.to_dict()]


@dataclass(frozen=True)
class EncodedFile(OneRow):
    """The vectors that ``encode`` wrote: one row a sentence, in the order of the file, without the empty ones.

    ``cut`` counts the sentences that are longer than the model reads. ``left_out``: a file with the numbers of the
    lines that were left out because they are empty, one a line; None where there are none. Where the work was shared,
    ``output`` may be the folder of ``shards``; ``made`` of them are this process's own.
    """

    output: Path
    sentences: int
    dimension: int
    empty_left_out: int
    precision: str = "float32"
    cut: int = 0
    left_out: Path | None = None
    shards: int | None = None
    made: int = 0

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "output": str(self.output),
            "rows": self.sentences,
            "dimension": self.dimension,
            "empty_left_out": self.empty_left_out,
            "cut": self.cut,
            **({} if self.left_out is None else {"left_out": str(self.left_out)}),
        }
        if self.shards is not None:
            facts |= {"shards": self.shards, "made_here": self.made}
        return facts if self.precision == "float32" else {**facts, "precision": self.precision}


@dataclass(frozen=True)
class ExportedModel(OneRow):
    """The folder that ``export`` wrote, and how far its vectors are from the model's own."""

    output: Path
    precision: str
    megabytes: float
    drift: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        facts = {"output": str(self.output), "precision": self.precision, "megabytes": self.megabytes}
        return {**facts, **self.drift}


@dataclass(frozen=True)
class FittedSpace(OneRow):
    """The space that ``fit_space`` wrote. ``encoder`` is None for sne and t-sne: they have points, and no map."""

    space: str
    output: Path
    texts: int
    dimension: int
    encoder: Encoder | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {"space": self.space, "output": str(self.output), "texts": self.texts, "dimension": self.dimension}


@dataclass(frozen=True)
class DistilledModel(OneRow):
    """The student that ``distil`` wrote."""

    student: str
    output: Path
    texts: int
    vocabulary: int
    dimension: int
    encoder: Encoder = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        facts = {"student": self.student, "output": str(self.output), "texts": self.texts}
        return {**facts, "vocabulary": self.vocabulary, "dimension": self.dimension}


@dataclass(frozen=True)
class ParaphrasedFile(OneRow):
    """The pairs that ``paraphrase`` wrote; a sentence without a word that can be replaced is left out.

    ``reasons`` says of a round trip why sentences are left out: unchanged, empty, too_long.
    """

    output: Path
    pairs: int
    left_out: int
    reasons: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"output": str(self.output), "pairs": self.pairs, "left_out": self.left_out, **self.reasons}


@dataclass(frozen=True)
class SettingDescription:
    """A setting of ``owner`` (a method, a space, an auxiliary loss, a tactic or the loop), for people.

    ``default`` is the one that holds for this method.
    """

    name: str
    default: Any
    range: str
    meaning: str
    owner: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "setting": self.name.replace("_", "-"),
            "default": self.default,
            "range": self.range,
            "meaning": self.meaning,
            "of": self.owner,
        }


@dataclass(frozen=True)
class MethodDescription:
    """A method's card and its settings: its own first, then those of the loop."""

    card: Card
    settings: list[SettingDescription]

    def to_dict(self) -> dict[str, Any]:
        return {"card": asdict(self.card), "settings": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        return [setting.to_dict() for setting in self.settings]
