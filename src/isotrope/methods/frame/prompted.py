"""Two templates as a capability: an anchor in the template that inference reads, its positive in another one.

The first template belongs to the encoder's read-out (pooling ``mask``, encoders/mask_read_out.py); the second exists
while training. ``max_length`` counts the template's tokens, as it counts [CLS] and [SEP]. An encoder under another
read-out has no [MASK] to read: its texts then stand in no template, in training as in ``encode``, and its two views
differ by dropout alone; a run says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar

from isotrope.data.corpus import Corpus
from isotrope.encoders.mask_read_out import is_at_mask
from isotrope.methods.frame.headed_contrast import ContrastSettings, HeadedContrast
from isotrope.methods.frame.method import Prepared
from isotrope.methods.frame.settings import OneOf
from isotrope.tokens.padded import Tokens
from isotrope.tokens.template import MASK, TEXT, Template, templated
from isotrope.tokens.text_tokenizer import TextTokenizer

AUTO = "auto"


@dataclass(frozen=True)
class PromptSettings(ContrastSettings):
    """The template of the second view, and the head behind [MASK]."""

    second_template: Annotated[
        str, f"Template of the second view, with {TEXT} for the text and {MASK} for its vector; auto: the paper's"
    ] = AUTO
    head: Annotated[
        str,
        OneOf("auto", "train-only", "none"),
        "Linear + tanh head while training; auto: on the mask read-out with nothing after it, as in the paper",
    ] = "auto"

    def rules(self) -> None:
        super().rules()
        if self.second_template != AUTO:
            Template.parse(self.second_template)


C = TypeVar("C", bound=PromptSettings)


class PromptedContrast(HeadedContrast[C]):
    """An encoder read out at [MASK], and two frames for a text. Subclasses name the paper's second templates."""

    shared_views = ("first",)  # in the template that inference reads
    plain_template: str  # of the second view, for word pieces
    spaced_template: str  # the same for byte pairs, where a blank belongs to the word behind it

    def prepare(self, corpus: Corpus) -> Prepared:
        if self.prompted:
            return Prepared()
        return Prepared(
            remarks=(
                f"The encoder is read out by {self.encoder.pooling.name}, not at the [MASK] of a template, so no "
                "template is used and the two views differ by dropout alone; pooling mask has the paper's read-out.",
            )
        )

    @property
    def prompted(self) -> bool:
        """Whether the encoder is read out at the mask of a template."""
        return is_at_mask(self.encoder)

    @cached_property
    def second(self) -> TextTokenizer:
        """The tokenizer with the second template around each text; the encoder's own where it has no template."""
        first = self.encoder.text_tokenizer
        if not self.prompted:
            return first
        written = self.settings.second_template
        if written == AUTO:
            written = self.spaced_template if first.blanks_count else self.plain_template
        return TextTokenizer(templated(first.tokenizer, Template.parse(written)), first.prompt)

    def second_frame(self, sequences: Sequence[Any]) -> Tokens:
        """As ``frame``, in the second template."""
        most = min(self.max_length or self.encoder.max_length, self.encoder.max_length)
        return self.second.frame(sequences, most)

    def _head(self) -> str:
        if self.settings.head != "auto":
            return self.settings.head
        return "train-only" if self.prompted and not len(self.encoder.parts) else "none"
