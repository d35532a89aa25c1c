"""Masked-language models that put plausible tokens into masked places, for replaced-token detection.

``Generator`` is ELECTRA's: small, trained along, and it shares the embeddings of the encoder. Too large a one makes the
replacements too good: the paper takes a quarter to a half of the encoder's width. ``MaskFiller`` is a finished model.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import NEW_HEAD, NewHeadWarning, vocabulary_scores
from isotrope.encoders.loading import load
from isotrope.encoders.modes import evaluating
from isotrope.encoders.quiet import quiet
from isotrope.errors import InputError

HEAD_WIDTH = 64  # of one attention head
SPREAD = 0.02


class SharedEmbeddings(nn.Module):
    """The embeddings of a backbone, as ELECTRA's layers ask for them, then a projection to their width.

    A backbone that knows positions only in its attention (DeBERTa-v3) has none to share: they are drawn at random.
    """

    def __init__(self, embeddings: nn.Module, width: int, positions: int) -> None:
        super().__init__()
        self.shared = embeddings
        table: nn.Embedding = embeddings.word_embeddings  # type: ignore[assignment]
        with evaluating(embeddings):
            given = int(embeddings(input_ids=torch.zeros(1, 1, dtype=torch.int64, device=table.weight.device)).shape[2])
        self.projection = nn.Identity() if given == width else nn.Linear(given, width)
        own = getattr(embeddings, "position_embeddings", None)
        self.positions = None if isinstance(own, nn.Module) else nn.Embedding(positions, width)
        for part in (self.projection, self.positions):
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, std=SPREAD)

    def forward(self, input_ids: Tensor, **unused: Any) -> Tensor:
        vectors: Tensor = self.projection(self.shared(input_ids=input_ids))
        return vectors if self.positions is None else vectors + self.positions.weight[: input_ids.shape[1]]


class Generator(nn.Module):
    """As deep as the encoder, ``share`` times as wide; embeddings and their norm are the encoder's, then a projection.

    The scores of the vocabulary come from the shared token table too, so it learns from both directions.
    """

    def __init__(self, encoder: Encoder, share: float) -> None:
        super().__init__()
        from transformers import ElectraConfig, ElectraForMaskedLM

        config: Any = encoder.backbone.config
        embeddings: Any = getattr(encoder.backbone, "embeddings", None)
        table = getattr(embeddings, "word_embeddings", None)
        if not isinstance(table, nn.Embedding):
            raise InputError(
                "The generator shares the embeddings of BERT and its kin (RoBERTa, ALBERT, DeBERTa, ELECTRA); "
                f"a {type(encoder.backbone).__name__} keeps them otherwise."
            )
        heads = max(int(share * config.hidden_size) // HEAD_WIDTH, 1)
        width = max(round(share * config.hidden_size) // heads, 1) * heads
        with quiet():
            self.model = ElectraForMaskedLM(
                ElectraConfig(
                    vocab_size=table.num_embeddings,
                    embedding_size=table.embedding_dim,
                    hidden_size=width,
                    num_hidden_layers=config.num_hidden_layers,
                    num_attention_heads=heads,
                    intermediate_size=4 * width,
                    hidden_dropout_prob=getattr(config, "hidden_dropout_prob", 0.1),
                    attention_probs_dropout_prob=getattr(config, "attention_probs_dropout_prob", 0.1),
                )
            )
        self.model.electra.embeddings = SharedEmbeddings(embeddings, width, encoder.max_length)
        self.model.electra.embeddings_project = nn.Identity()  # the shared ones come projected
        self.model.generator_lm_head.weight = table.weight
        self.width = width

    def forward(self, ids: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        """Scores [asked, vocabulary] at the flat positions ``asked`` of rows of ids."""
        states = self.model.electra(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.model.generator_lm_head(self.model.generator_predictions(states.flatten(0, 1)[asked]))


class MaskFiller(nn.Module):
    """A whole masked-language model as a generator: its own embeddings, layers and head. Keep it ``Frozen``."""

    def __init__(self, language_model: Any) -> None:
        super().__init__()
        self.model = language_model

    @classmethod
    def of(cls, encoder: Encoder) -> MaskFiller:
        """A copy of the encoder with its masked-language head, both as they are now."""
        if encoder.language_model is None or getattr(encoder.language_model, NEW_HEAD, False):
            raise InputError(
                "The start holds no trained masked-language head to fill masks with; start from a model that has one, "
                "such as builtin-base, or name another as generator."
            )
        return cls(copy.deepcopy(encoder.language_model))

    @classmethod
    def named(cls, name: str, encoder: Encoder, length: int) -> MaskFiller:
        """A masked-language model by its folder or name, for texts of up to ``length`` tokens of the encoder."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", NewHeadWarning)
            try:
                found = load(name, device=encoder.device, language_head=True)
            except NewHeadWarning as missing:
                raise InputError(
                    f"The generator '{name}' holds no masked-language head; name another model."
                ) from missing
        mine, theirs = (one.tokenizer.get_vocab() for one in (encoder, found))
        if mine != theirs:
            raise InputError(
                f"The generator '{name}' has another vocabulary than the encoder ({len(theirs):,} and {len(mine):,} "
                "tokens), so its tokens would be read as others; name one with the encoder's, or auto."
            )
        if found.max_length < length:
            raise InputError(
                f"The generator '{name}' reads {found.max_length} tokens, fewer than the {length} of a text; lower "
                "max_length."
            )
        return cls(found.language_model)

    def forward(self, ids: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        """Scores [asked, vocabulary] at the flat positions ``asked`` of rows of ids."""
        states = self.model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        scores, _ = vocabulary_scores(self.model)
        return scores(states.flatten(0, 1)[asked])
