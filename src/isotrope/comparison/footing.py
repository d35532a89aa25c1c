"""The footing of a comparison, for the reader of its table: all that was equal, and what one method had of its own."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from isotrope.comparison.judges import protocol
from isotrope.comparison.line_up import Plan
from isotrope.comparison.method_terms import LENGTHS
from isotrope.evaluation.eval_data import MRR, SPEARMAN, has_scores
from isotrope.version import __version__

CHOSEN_BY = {SPEARMAN: "Spearman on", MRR: "MRR of the queries of"}  # what eval data give, by their columns
SHOWN = ("max_steps", "batch_size", "learning_rate", "max_length")  # under every table, also where they were not given


@dataclass(frozen=True)
class Particulars:
    """A row's method, and the settings that it does not share with the others."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    platform: str = ""
    device: str = ""
    parallel: int = 1


@dataclass(frozen=True)
class Footing:
    """``own`` is by label; ``last`` are the labels of which the last weights are kept, not the best. ``chosen_by``: the
    measure of the eval data; older tables say nothing of it.
    """

    model: str
    settings: dict[str, Any]
    seeds: list[int]
    eval_data: list[str]
    protocol: str
    own: dict[str, Particulars] = field(default_factory=dict)
    fingerprint: str = ""
    last: list[str] = field(default_factory=list)
    version: str = ""
    search: str = ""
    machine: Machine = field(default_factory=Machine)
    chosen_by: str = SPEARMAN

    @classmethod
    def of(cls, plan: Plan, fingerprint: str, device: str) -> Footing:
        terms = plan.terms
        shared = [name for name in dict.fromkeys([*SHOWN, *terms.settings]) if name not in ("seed", "held_out_seed")]
        names = [name for name in shared if not all(name in one.method.given for one in plan.contestants)]
        return cls(
            model=terms.model if terms.pooling is None else f"{terms.model} ({terms.pooling} pooling)",
            settings={name: terms.loop[name] for name in names if name not in LENGTHS or terms.loop[name] is not None},
            seeds=plan.seeds,
            eval_data=list(terms.eval_data),
            protocol=protocol(terms),
            own={
                one.label: Particulars(one.method.name, one.particulars)
                for one in plan.contestants
                if one.particulars or one.label != one.method.name
            },
            fingerprint=fingerprint,
            last=[one.label for one in plan.contestants if one.method.keeps_last],
            version=__version__,
            search="" if plan.search is None else str(plan.search),
            machine=Machine(platform.platform(), device, plan.parallel),
            chosen_by=MRR if terms.eval_data and not has_scores(terms.eval_data[0]) else SPEARMAN,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Footing:
        own = {label: Particulars(**found) for label, found in value["own"].items()}
        return cls(**{**value, "own": own, "machine": Machine(**value.get("machine", {}))})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> list[str]:
        """What stands under the table: how the runs were made, how they were judged, and each row's particulars."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        files = ", ".join(Path(file).name for file in self.eval_data)
        chosen = f"{CHOSEN_BY[self.chosen_by]} {files}" if files else "the label-free score"
        last = f" (of {', '.join(self.last)} the last)" if self.last else ""
        over = "Mean ± standard deviation over seeds" if len(self.seeds) > 1 else "Seed"
        said = [
            f"{over} {', '.join(map(str, self.seeds))}; from {self.model}, {settings}.",
            f"Checkpoints chosen by {chosen}{last}; judged by {self.protocol}; "
            "seconds are those of the training steps.",
            *([self.search] if self.search else []),
        ]
        for label, own in self.own.items():
            if label == " ".join([own.method, *(f"{name}={value}" for name, value in own.settings.items())]):
                continue  # it says so itself
            named = [own.method] if label != own.method else []
            said.append(
                f"{label}: {', '.join([*named, *(f'{name} {value}' for name, value in own.settings.items())])}."
            )
        return said

    def pools_differently(self, label: str) -> bool:
        """Whether a row reads its vectors out in its own way, so that its start is another than everybody's."""
        return label in self.own and "pooling" in self.own[label].settings
