"""A template around every text, kept in the tokenizer itself: [CLS] This sentence : " text " means [MASK] . [SEP].

A template is written with [X] where the text stands and [MASK] where the vector is read: This sentence : "[X]" means
[MASK]. Its tokens become part of the frame that the tokenizer puts around a text, as [CLS] and [SEP] are: no view edits
them, a long text is cut and not the template, and tokenizer.json carries them to every program that reads it.

What stands before, the text, and what stands behind are tokenized one by one, so a text has the ids that it has alone.
A blank at the end of what stands before is dropped: byte pairs would make a token of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.tokens.plain_tokenizer import ROLES, PlainTokenizer
from isotrope.tokens.text_tokenizer import TextTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEXT, MASK = "[X]", "[MASK]"
KEPT = ("model_max_length", "padding_side", "truncation_side", "model_input_names")


@dataclass(frozen=True)
class Template:
    """What stands before and behind a text."""

    before: str
    behind: str

    @classmethod
    def parse(cls, written: str) -> Template:
        if written.count(TEXT) != 1 or written.count(MASK) != 1:
            raise InputError(
                f"A template has one {TEXT} for the text and one {MASK} for its vector, such as "
                f"'This sentence : \"{TEXT}\" means {MASK}.'; '{written}' was given."
            )
        before, _, behind = written.partition(TEXT)
        return cls(before.rstrip(), behind)

    def ids(self, tokenizer: TextTokenizer) -> tuple[list[int], list[int]]:
        """The frame of a text: the tokenizer's own special tokens outside, the template inside."""
        mask = str(tokenizer.tokenizer.mask_token)
        before, behind = (tokenizer.parsed(part.replace(MASK, mask)) for part in (self.before, self.behind))
        opening, closing = outer_frame(tokenizer)
        return [*opening, *before], [*behind, *closing]


def outer_frame(tokenizer: TextTokenizer) -> tuple[list[int], list[int]]:
    """The special tokens at both ends of a row, without the template that may stand inside them."""
    known = tokenizer.tokenizer
    ends = {known.bos_token_id, known.eos_token_id, known.cls_token_id, known.sep_token_id}

    def run(ids: list[int]) -> int:
        return next((place for place, token in enumerate(ids) if token not in ends), len(ids))

    start, behind = tokenizer.start, tokenizer.suffix
    return start[: run(start)], behind[len(behind) - run(behind[::-1]) :]


def templated(tokenizer: Any, template: Template) -> PreTrainedTokenizerBase:
    """A tokenizer with the template around each text; one that has a template gets this one in its place.

    It is transformers' generic class: BERT's own would build the usual frame whatever tokenizer.json says. A text in
    which [MASK] is written has it as plain letters, so every row has the template's mask alone.
    """
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    known = tokenizer.tokenizer() if isinstance(tokenizer, PlainTokenizer) else tokenizer
    backend = getattr(known, "backend_tokenizer", None)
    if known.mask_token_id is None or backend is None:
        what = "no mask token" if backend is not None else "no tokenizer.json"
        raise InputError(f"The pooling mask reads the vector at a mask token in a template, and this model has {what}.")
    usual = TextTokenizer(known)
    own = Tokenizer.from_str(backend.to_str())
    # Two segments in one row stand in no template.
    places = ("before", "behind", "first", "between", "last")
    frames = dict(zip(places, (*template.ids(usual), *usual.pair_frame), strict=True))
    used = {name: ids for name, ids in frames.items() if ids}
    own.post_processor = TemplateProcessing(
        single=[name for name in ("before", "$A", "behind") if name == "$A" or name in used],
        pair=[
            name for name in ("first", "$A", "between", "$B:1", "last:1") if "$" in name or name.split(":")[0] in used
        ],
        special_tokens=[
            {"id": name, "ids": ids, "tokens": [str(own.id_to_token(token)) for token in ids]}
            for name, ids in used.items()
        ],
    )
    _write_out_masks(own, str(known.mask_token))
    roles = {f"{role}_token": getattr(known, f"{role}_token", None) for role in ROLES}
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        split_special_tokens=True,
        **{role: token for role, token in roles.items() if token is not None},
        **{name: getattr(known, name) for name in KEPT},
    )


def _write_out_masks(backend: Any, mask: str) -> None:
    """A unigram model has its mask token among the pieces of words too; a text that says it then has a blank there."""
    from tokenizers.normalizers import Replace, Sequence

    backend.encode_special_tokens = True
    if backend.token_to_id(mask) in backend.encode(mask, add_special_tokens=False).ids:
        usual = backend.normalizer
        backend.normalizer = Sequence(
            [Replace(mask, f"{mask[:1]} {mask[1:]}"), *([usual] if usual is not None else [])]
        )
