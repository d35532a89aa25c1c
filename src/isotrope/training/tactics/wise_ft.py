"""Interpolation with the start (Wortsman et al. 2022): at the end a share of what training changed is taken back.

    θ = share · trained + (1 − share) · start        for every weight of the encoder

Training and the choice of a checkpoint do not see it. Of several shares the one is kept that the judge of the run
finds best; share 1 is the checkpoint as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from torch import Tensor

from isotrope.errors import InputError
from isotrope.methods.frame.classifying import Classifying
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Card
from isotrope.progress import say
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.state import Judgement, KeptLine
from isotrope.training.step_folder import put_weights, weights_of
from isotrope.training.tactics.tactic import Tactic, TacticSettings

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.feeds import CorpusFeed


@dataclass(frozen=True)
class WiseFtSettings(TacticSettings):
    kept_share: Annotated[
        str, "Share of the change by training that is kept; of several, as in 0.6,0.8,1, the one that is judged best"
    ] = "1"

    @property
    def active(self) -> bool:
        return self.shares != (1.0,)

    @property
    def shares(self) -> tuple[float, ...]:
        """The largest first: of shares that are judged alike it is kept."""
        try:
            found = tuple(sorted({float(word) for word in self.kept_share.split(",")}, reverse=True))
        except ValueError:
            found = ()
        if not found or not all(0 < share <= 1 for share in found):
            raise InputError(
                "kept_share is a number above 0 and at most 1, or several such as 0.6,0.8,1; "
                f"'{self.kept_share}' was given."
            )
        return found

    def rules(self) -> None:
        _ = self.shares


class WiseFt(Tactic[WiseFtSettings]):
    """Keeps a second copy of the encoder's weights, those of the start.

    When to use it: a finished encoder is adapted to one domain and must stay good at others. What goes wrong: held-out
    text of the domain seldom asks for a small share; give one, or eval_data of the other text. Sibling: the moving
    average of weights, which is a mean over the updates of a run.
    """

    card = Card(
        name="wise-ft",
        title="Interpolation with the start, for any method",
        paper="Wortsman, Ilharco, Kim, Li, Kornblith, Roelofs, Gontijo-Lopes, Hajishirzi, Farhadi, Namkoong, Schmidt. "
        "Robust fine-tuning of zero-shot models. CVPR 2022",
        year=2022,
        needs="what the method needs",
        family="generative",
        kind="optimiser",
    )
    Settings = WiseFtSettings

    def __init__(self, settings: WiseFtSettings, combined: Combined, loop: LoopSettings, steps: int) -> None:
        super().__init__(settings, combined, loop, steps)
        if reason := _obstacle(combined):
            raise InputError(f"kept_share goes back towards the start, and {combined.method.card.name} {reason}.")
        if len(settings.shares) > 1 and combined.keeps == "last":
            raise InputError(
                f"{combined.method.card.name} keeps its last weights, as no score says which are better, so none can "
                f"choose among the shares {settings.kept_share}; give kept_share one."
            )

    def prepare(self, feed: CorpusFeed, accelerator: Accelerator) -> None:
        self.start, self.speaks = _copied(self.combined), accelerator.is_main_process

    def change_kept(self, judge: Callable[[], Judgement]) -> KeptLine:
        trained = _copied(self.combined)
        found: dict[float, Judgement] = {}
        for share in self.settings.shares:
            put_weights(self.combined.encoder, between(self.start, trained, share))
            found[share] = judge()
            self._say(f"share {share:g} of the change: {found[share].said}")
        numbers = {share: one.score for share, one in found.items() if one.score == one.score}
        kept = max(numbers, key=lambda share: numbers[share], default=self.settings.shares[0])
        put_weights(self.combined.encoder, between(self.start, trained, kept))
        self._say(f"share {kept:g} is kept")
        shares = {f"{share:g}": one.measures for share, one in found.items()}
        return {"kept_share": kept, "kept": found[kept].measures, "shares": shares}

    def _say(self, sentence: str) -> None:
        if self.speaks:
            say(sentence)


def between(start: dict[str, Tensor], trained: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """``share`` · trained + (1 − ``share``) · start; what is no floating-point number stays as trained."""
    if share == 1:
        return trained
    return {
        name: (share * tensor.double() + (1 - share) * start[name].double()).to(tensor.dtype)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in trained.items()
    }


def _copied(combined: Combined) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in weights_of(combined.encoder).items()}


def _obstacle(combined: Combined) -> str | None:
    """What of the kept model the start lacks, as the end of a sentence that begins with the method's name."""
    method = combined.method
    if isinstance(method, FromScratch):
        return "initialises its encoder from the data; leave kept_share out"
    if combined.further():
        return "keeps a second encoder; set towers shared"
    online = {id(tensor) for tensor in combined.encoder.parameters()}
    if any(id(tensor) not in online for tensor in combined.export().parameters()):
        return "keeps a head that the start lacks; set head none or train-only"
    if isinstance(method, Classifying) and method.classifier() is not None:
        return "keeps a classifier that reads the vectors as trained; leave kept_share out"
    return None
