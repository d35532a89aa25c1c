"""The encoder: text in, vectors out, the same vectors whatever the batch.

Where a backbone, a pooling and the parts after it meet. Folders are read and written by loading.py and saving.py.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from isotrope.encoders.encoder_uses import PROMPT_POOLED, EncoderUses
from isotrope.encoders.finite_vectors import check_finite, check_given
from isotrope.encoders.first_token import check_first_token
from isotrope.encoders.gpu_encoding import half_precision
from isotrope.encoders.late_backbone import LateBackbone
from isotrope.encoders.mask_read_out import at_mask
from isotrope.encoders.modes import evaluating
from isotrope.encoders.parts.part import VectorPart
from isotrope.encoders.parts.token_weights import TokenWeighting
from isotrope.encoders.pooling import Pooling, is_masked
from isotrope.encoders.truncation import check_count, check_width
from isotrope.encoders.unpadded import Unpadded, unpadded
from isotrope.encoders.vector_groups import TOKEN_BUDGET, is_mean_of_rows, plan, vectors_of
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.progress import bar
from isotrope.tokens.padded import Tokens, join
from isotrope.tokens.text_tokenizer import TextTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Vectors = npt.NDArray[np.float32]
UNLIMITED = 512  # tokens of a text where neither the model nor its folder names a number
GRADIENT_BUDGET = 512  # tokens in one forward on a CPU with gradient: a step has few rows, and padding is paid thrice


def _checked(texts: str | Iterable[str]) -> list[str]:
    """The texts as a list, or a refusal that names the item which is none."""
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        raise InputError(f"encode takes a text or a list of texts, not {type(texts).__name__}.")
    if isinstance(texts, np.ndarray) and not texts.ndim:
        raise InputError("encode takes a text or a list of texts, not an array without dimensions.")
    rows = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise InputError(f"encode takes texts; item {number} is {type(text).__name__}.")
        if not text.isascii() and _is_halved(text):
            raise InputError(
                f"encode takes texts; item {number} holds half a character (a lone surrogate), which is not text."
            )
    return rows


def _is_halved(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


class Encoder(EncoderUses, LateBackbone, nn.Module):
    """A backbone, a pooling and the parts after it: text → token states → one vector a text.

        v = part_n(… part_1(pooling(backbone(tokens))))

    The backbone is a Hugging Face model or a table of word vectors. ``token_weights`` make a mean a weighted one.
    ``parts`` are modules from vectors to vectors; those of encoders/parts can be saved. ``load`` gives one ready to
    use; build one by hand only over a backbone of your own.
    """

    token_weights: TokenWeighting | None

    def __init__(
        self,
        backbone: PreTrainedModel | StaticVectors,
        tokenizer: PreTrainedTokenizerBase,
        pooling: Pooling | str = "mean",
        parts: Sequence[nn.Module] = (),
        max_length: int | None = None,
        prompt: str = "",
        facts: dict[str, Any] | None = None,
        language_model: PreTrainedModel | None = None,
        token_weights: TokenWeighting | None = None,
    ) -> None:
        super().__init__()
        self.backbone = cast("PreTrainedModel", backbone)  # a table has the shape of one
        self.pooling = (
            Pooling.named(pooling, backbone.config.num_hidden_layers) if isinstance(pooling, str) else pooling
        )
        if is_masked(self.pooling.name) and token_weights is None:
            tokenizer, token_weights = at_mask(tokenizer, self.pooling.name)
        self.tokenizer = tokenizer
        self.text_tokenizer = TextTokenizer(tokenizer, prompt)
        check_first_token(self.pooling, backbone, self.text_tokenizer)
        self.register_module("token_weights", token_weights)  # one that comes later takes the same place
        self.parts = nn.ModuleList(parts)
        self.max_length = self._longest(max_length)
        self.facts = dict(facts or {})
        self._language_model = (language_model,)  # in a tuple: its backbone is ours already

    def with_parts(self, parts: Sequence[nn.Module]) -> Encoder:
        """A new encoder over the same backbone and read-out, with other modules after the pooling."""
        return Encoder(
            self.network,
            self.text_tokenizer.tokenizer,
            self.pooling,
            parts,
            self.max_length,
            self.prompt,
            self.facts,
            self.language_model,
            self.token_weights,
        )

    def with_prompt(self, prompt: str) -> Encoder:
        """An encoder over the same modules that puts ``prompt`` before each text; itself where it does so already."""
        if prompt == self.prompt:
            return self
        other = self.with_parts(list(self.parts))
        other.prompt = prompt
        return other

    @property
    def prompt(self) -> str:
        """What stands before each text, in training as in ``encode``; it is pooled with the text."""
        return self.text_tokenizer.prompt

    @prompt.setter
    def prompt(self, prompt: str) -> None:
        if prompt and not self.facts.get(PROMPT_POOLED, True):
            raise InputError(
                "This model leaves its prompt out of the pooling, which isotrope does not do; encode without a prompt.",
                setting="prompt",
            )
        self.text_tokenizer = TextTokenizer(self.text_tokenizer.tokenizer, prompt)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def width(self) -> int:
        """Width of the pooled vector, before the parts."""
        return int(self.network.config.hidden_size) * len(self.pooling.modes)

    @property
    def dimension(self) -> int:
        """Width of the vectors that ``encode`` gives."""
        width = self.width
        for part in self.parts:
            width = part.output_width(width) if isinstance(part, VectorPart) else width
        return width

    @property
    def language_model(self) -> PreTrainedModel | None:
        """The backbone with its masked-language head, where it was loaded with it."""
        return self._language_model[0]

    def _longest(self, asked: int | None) -> int:
        """The tokens of a text that are read: as many as are asked for, as far as the model has positions for them."""
        limit = int(getattr(self.network.config, "max_position_embeddings", 0) or 0)
        if limit <= 0:  # a model that knows distances alone reads on
            return asked or UNLIMITED
        positions = limit - self._first_position
        return min(asked or positions, positions)

    @property
    def _first_position(self) -> int:
        """RoBERTa and its kin start counting behind the padding index."""
        table = getattr(getattr(self.network, "embeddings", None), "position_embeddings", None)
        behind = getattr(table, "padding_idx", None)
        return behind + 1 if behind is not None else 0

    @property
    def takes_positions(self) -> bool:
        """Whether tokens may stand at positions that they are given."""
        absolute = bool(getattr(self.backbone.config, "position_biased_input", True))  # False: DeBERTa's newer ones
        return absolute and "position_ids" in inspect.signature(self.backbone.forward).parameters

    def _inputs(self, tokens: Tokens) -> dict[str, torch.Tensor]:
        """Segments and positions go along only where there are some: not every backbone knows them."""
        inputs = {"input_ids": tokens.ids, "attention_mask": tokens.mask}
        if tokens.segments is not None:
            inputs["token_type_ids"] = tokens.segments
        if tokens.positions is not None:
            inputs["position_ids"] = tokens.positions + self._first_position
        return inputs

    def fingerprint(self) -> str:
        """A short name for everything that decides the vectors: weights, config, tokenizer, read-out, prompt."""
        from isotrope.encoders.content_fingerprint import fingerprint

        return fingerprint(self)

    @property
    def causal(self) -> bool:
        """Whether the backbone reads from left to right only."""
        return bool(getattr(self.network.config, "is_decoder", False))

    def layers(self, tokens: Tokens) -> tuple[torch.Tensor, ...]:
        """H_0 … H_L of one padded forward, each [rows, width, d]."""
        if bare := self._bare(tokens):
            return bare.all_layers(tokens)
        return tuple(self.network(**self._inputs(tokens), output_hidden_states=True).hidden_states)

    def states(self, tokens: Tokens) -> torch.Tensor:
        """H_L of one padded forward, [rows, width, d]."""
        if bare := self._bare(tokens):
            return bare.states(tokens)
        last: torch.Tensor = self.network(**self._inputs(tokens)).last_hidden_state
        return last

    def states_at(self, tokens: Tokens, places: torch.Tensor) -> torch.Tensor:
        """H_L at some flat places of the padded rows, none twice, [places, d]; on a GPU the last layer computes little
        else."""
        if bare := self._bare(tokens):
            return bare.states_at(tokens, places)
        # Gathered: the backward of an index would sort the places on a GPU.
        states = self.states(tokens).flatten(0, 1)
        return states.gather(0, places.unsqueeze(1).expand(-1, states.shape[-1]))

    def _bare(self, tokens: Tokens) -> Unpadded | None:
        """The forward without padding; on a CPU nobody asks for transformers' model because of it."""
        return unpadded(self.backbone, tokens.ids.device) if tokens.ids.device.type == "cuda" else None

    def pooled(self, tokens: Tokens) -> torch.Tensor:
        """[rows, width]: pooled states, before the parts."""
        alone = self.pooling.modes == ("cls",) and not self.pooling.needs_all_layers and self.token_weights is None
        if alone and (bare := self._bare(tokens)) and tokens.lengths.all():
            return bare.first_states(tokens)
        return self._pool(self._pooled_layers(tokens), tokens)

    def states_and_vectors(self, tokens: Tokens) -> tuple[torch.Tensor, torch.Tensor]:
        """H_L of one padded forward, [rows, width, d], and the vectors that ``encode`` would give."""
        layers = self._pooled_layers(tokens)
        return layers[-1], self.finish(self._pool(layers, tokens))

    def _pooled_layers(self, tokens: Tokens) -> Sequence[torch.Tensor]:
        return self.layers(tokens) if self.pooling.needs_all_layers else (self.states(tokens),)

    def _pool(self, layers: Sequence[torch.Tensor], tokens: Tokens) -> torch.Tensor:
        return self.pooling(
            layers, tokens.mask, None if self.token_weights is None else self.token_weights(tokens, layers[-1])
        )

    def embed(self, *views: Tokens) -> tuple[torch.Tensor, ...]:
        """Vectors of each view, as ``encode`` gives them, all views together, with gradient.

        Rows run in groups of like length where one forward would be mostly padding: rows do not see each other, so this
        only saves work. A table is looked up once: each group would have a gradient as large as all of it.
        """
        tokens = join(views, self.text_tokenizer.pad)
        on_cpu = tokens.ids.device.type == "cpu"
        if on_cpu and is_mean_of_rows(self):
            table = cast(StaticVectors, self.network)
            return self.finish(table.means(*tokens.unpadded())).split([len(view) for view in views])
        if self._bare(tokens):
            return self(tokens).split([len(view) for view in views])
        groups = list(plan(tokens.lengths, GRADIENT_BUDGET if on_cpu else TOKEN_BUDGET["cuda"]))
        if on_cpu or len(groups) > 1:
            vectors = torch.cat([self(tokens.rows(rows)) for rows in groups])
            vectors = vectors[torch.from_numpy(np.argsort(np.concatenate(groups), kind="stable"))]
        else:
            vectors = self(tokens)
        return vectors.split([len(view) for view in views])

    def forward(self, tokens: Tokens) -> torch.Tensor:
        return self.finish(self.pooled(tokens))

    def finish(self, vectors: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            vectors = part(vectors)
        return vectors

    def frame(self, sequences: Sequence[npt.NDArray[Any]], max_length: int | None = None) -> Tokens:
        """Token ids → a padded view, the prompt before each, on the host."""
        return self.text_tokenizer.frame(sequences, min(max_length or self.max_length, self.max_length))

    def frame_pairs(self, firsts: Sequence[npt.NDArray[Any]], seconds: Sequence[npt.NDArray[Any]]) -> Tokens:
        """Pairs of segments → a padded view, on the host; with segment ids where the model has embeddings for them."""
        tokens = self.text_tokenizer.frame_pairs(firsts, seconds)
        typed = int(getattr(self.network.config, "type_vocab_size", 0) or 0) > 1
        return tokens if typed else replace(tokens, segments=None)

    def tokenize(self, texts: list[str], max_length: int | None = None) -> Tokens:
        """Texts → a padded view, the prompt before each, on the host.

        Use it where no corpus has the ids: for a tower with another vocabulary than the corpus, or a handful of texts.
        """
        flat, lengths = self.text_tokenizer.flat([self.prompt + text for text in texts])
        ends = np.cumsum(lengths)
        rows = [flat[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]
        return self.text_tokenizer.rows(rows, min(max_length or self.max_length, self.max_length))

    def encode(
        self,
        texts: str | Sequence[str],
        batch_size: int | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        processes: int = 1,
        half: bool = False,
    ) -> Any:
        """Vectors of ``texts``, float32, in the order given; one text gives one vector.

        Everything is tokenized first, sorted by true length and cut into batches of about equal work; ``batch_size``
        only caps the rows of one. The result does not depend on batch or order beyond rounding (1e-5). A model whose
        vectors are NaN or infinite is refused at the first batch that has one. ``truncate_dim`` keeps the leading
        dimensions, before a vector is normalized. ``prompt``, or one of ``prompts`` by its name, takes the place of the
        model's own. ``processes`` share the texts, on a CPU; see ``isotrope.encoders.process_pool``. ``half``: a GPU
        multiplies in float16, several times as fast; ``isotrope.encoders.gpu_encoding.half_cost`` measures what it
        changes.
        """
        if batch_size is not None:
            check_count("batch_size", batch_size)
        width = self.dimension if truncate_dim is None else check_width(truncate_dim, self.dimension)
        if prompt_name is not None or prompt is not None:
            wanted = self.prompt_named(prompt_name) if prompt is None and prompt_name is not None else prompt
            if not isinstance(wanted, str):
                raise InputError(f"prompt must be a text, not {type(wanted).__name__}.", setting="prompt")
            options = (batch_size, normalize_embeddings, show_progress_bar, convert_to_numpy, convert_to_tensor)
            return self.with_prompt(wanted).encode(texts, *options, truncate_dim, processes=processes, half=half)
        single = isinstance(texts, str)
        rows = _checked(texts)
        if processes != 1 and not single:
            from isotrope.encoders.process_pool import encode_in_processes

            found = encode_in_processes(
                self, rows, processes, batch_size, normalize_embeddings, show_progress_bar, truncate_dim
            )
            return torch.from_numpy(found) if convert_to_tensor or not convert_to_numpy else found
        vectors = np.empty((len(rows), width), dtype=np.float32)
        prompted = [self.prompt + text for text in rows] if self.prompt else rows
        show = len(rows) > 2000 and None if show_progress_bar is None else show_progress_bar
        faster = half_precision(self.device, half)
        with evaluating(self), faster, bar("encoding", len(rows), show=show) as advance:
            for group, found in vectors_of(self, prompted, batch_size, width, normalize_embeddings):
                vectors[group] = found
                check_finite([rows[i] for i in group.tolist()], found)
                advance(len(group))
        result = vectors[0] if single else vectors
        return torch.from_numpy(result) if convert_to_tensor or not convert_to_numpy else result

    @property
    def token_budget(self) -> int:
        """Tokens that one forward takes at its best speed."""
        return TOKEN_BUDGET.get(self.device.type, TOKEN_BUDGET["cuda"])

    def similarity(self, a: Any, b: Any) -> npt.NDArray[np.float32]:
        """Cosines [rows of a, rows of b]; both are texts or vectors."""
        left, right = (self._unit(side) for side in (a, b))
        if left.shape[1] != right.shape[1]:
            raise InputError(
                f"similarity takes vectors of one width; {left.shape[1]} and {right.shape[1]} dimensions were given."
            )
        return left @ right.T

    def _unit(self, side: Any) -> npt.NDArray[np.float32]:
        if isinstance(side, torch.Tensor):
            side = side.detach().cpu()
        elif not isinstance(side, str) and isinstance(side, Iterable) and not isinstance(side, np.ndarray):
            side = list(side)
        is_text = isinstance(side, str) or (
            isinstance(side, list | np.ndarray) and all(isinstance(item, str) for item in side)
        )
        try:
            vectors = np.array(self.encode(side) if is_text else side, dtype=np.float32, order="C", ndmin=2)
        except (TypeError, ValueError) as error:
            raise InputError(f"similarity takes texts or vectors ({error}).") from error
        if vectors.ndim != 2:
            raise InputError(f"similarity takes vectors, one a row; an array of shape {vectors.shape} was given.")
        check_given(vectors)
        return nn.functional.normalize(torch.from_numpy(vectors), dim=1).numpy()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the sentence-transformers layout; see ``isotrope.encoders.saving``."""
        from isotrope.encoders.saving import save

        save(self, folder)
