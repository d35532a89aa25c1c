"""A small decoder that exists only while training: it writes a text from the encoder's states or the sentence vector.

    p(x_t | x_<t, memory) = softmax(scores(decoder(x_<t, memory)))

Use it where a paper reconstructs text. A memory of one vector is a bottleneck: everything the decoder knows must be in
the sentence vector (TSDAE, Skip-Thought); a memory of all states (BART, MASS) trains the states instead.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.encoders.quiet import quiet
from isotrope.errors import InputError
from isotrope.views.masking import Masked

HEAD_WIDTH = 64  # of one attention head
SPREAD = 0.02


class Vocabulary(nn.Module):
    """The encoder's token table and language head: ids to vectors, states to scores.

    ``extra`` tokens come after its last id and exist only while training: the encoder's own table keeps its length.
    """

    def __init__(self, encoder: Encoder, extra: int = 0) -> None:
        super().__init__()
        if encoder.language_model is None:
            raise InputError("A decoder needs a model with a language head.")
        table = encoder.backbone.get_input_embeddings()
        if not isinstance(table, nn.Embedding):
            raise InputError(f"A {type(encoder.backbone).__name__} has no table of tokens that a decoder could share.")
        self.table = table
        self._scores, self.head = vocabulary_scores(encoder.language_model)
        self.extra = nn.Embedding(extra, table.embedding_dim) if extra else None
        self.extra_scores = nn.Linear(int(encoder.backbone.config.hidden_size), extra) if extra else None
        for part in (self.extra, self.extra_scores):
            if part is not None:
                nn.init.normal_(part.weight, std=SPREAD)

    def embed(self, ids: Tensor) -> Tensor:
        known = self.table.num_embeddings
        if self.extra is None:
            return self.table(ids)
        beyond = self.extra((ids - known).clamp(min=0))
        return torch.where((ids >= known).unsqueeze(-1), beyond, self.table(ids.clamp(max=known - 1)))

    def forward(self, states: Tensor) -> Tensor:
        """Scores [n, vocabulary] of states [n, width]."""
        scores = self._scores(states)
        return scores if self.extra_scores is None else torch.cat([scores, self.extra_scores(states)], dim=1)


class Decoder(nn.Module):
    """Layers with a causal mask that also attend to a memory: the encoder's states of a text, or its vector alone.

    With a BERT or RoBERTa it shares the embeddings, and its layers begin as copies of the encoder's first ones; with
    ``tied`` they are the encoder's own, cross-attention excepted. With other backbones it shares the token table, and
    the rest is drawn at random.
    """

    def __init__(self, encoder: Encoder, layers: int | None, memory_width: int, tied: bool = False) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        config: Any = encoder.backbone.config
        width = int(config.hidden_size)
        alike = bert_layers(encoder.backbone)
        if tied and not alike:
            raise InputError(
                f"The weights of a {type(encoder.backbone).__name__} cannot be tied to a decoder's; "
                "take a BERT or RoBERTa, or set tie_weights false: the decoder then has weights of its own."
            )
        with quiet():
            self.model = BertModel(
                BertConfig(
                    vocab_size=1,  # the table is the encoder's
                    hidden_size=width,
                    num_hidden_layers=layers or config.num_hidden_layers,
                    num_attention_heads=config.num_attention_heads if alike else max(width // HEAD_WIDTH, 1),
                    intermediate_size=config.intermediate_size if alike else 4 * width,
                    hidden_act=config.hidden_act if alike else "gelu",
                    layer_norm_eps=getattr(config, "layer_norm_eps", 1e-12),
                    hidden_dropout_prob=getattr(config, "hidden_dropout_prob", 0.1),
                    attention_probs_dropout_prob=getattr(config, "attention_probs_dropout_prob", 0.1),
                    max_position_embeddings=encoder.max_length + 1,
                    pad_token_id=None,
                    is_decoder=True,
                    add_cross_attention=True,
                    use_cache=False,
                ),
                add_pooling_layer=False,
            )
        if alike:
            self.model.embeddings = encoder.backbone.embeddings
        else:
            self.model.embeddings.word_embeddings = None
        for mine, theirs in zip(self.model.encoder.layer, alike, strict=False):
            mine.load_state_dict(theirs.state_dict(), strict=False)  # cross-attention has no counterpart
            if tied:
                tie(mine, theirs)
        behind = getattr(self.model.embeddings.position_embeddings, "padding_idx", None)
        self.first = 0 if behind is None else behind + 1  # RoBERTa starts counting behind the padding index
        table_width = int(encoder.backbone.get_input_embeddings().weight.shape[1])
        self.enter, self.into = (
            nn.Identity() if size == width else nn.Linear(size, width) for size in (table_width, memory_width)
        )

    def forward(
        self,
        words: Vocabulary,
        target: Masked,
        memory: Tensor,
        mask: Tensor | None = None,
        places: Tensor | None = None,
    ) -> Tensor:
        """States [asked, width] of the tokens of ``target`` that are to be predicted from.

        ``memory`` [rows, length, memory_width] with its ``mask``. ``places`` [rows]: position of each row's first
        token, 0 if not given. Padding needs no mask: it is at the end, and no token looks ahead.
        """
        ids = target.tokens.ids
        positions = torch.arange(ids.shape[1], device=ids.device) + self.first
        states = self.model(
            inputs_embeds=self.enter(words.embed(ids)),
            position_ids=positions.expand_as(ids) if places is None else positions + places.unsqueeze(1),
            encoder_hidden_states=self.into(memory),
            encoder_attention_mask=mask,
        ).last_hidden_state
        return states.flatten(0, 1)[target.asked]


def bert_layers(backbone: Any) -> list[Any]:
    """The layers of a BERT-like backbone; an empty list where they are built otherwise."""
    layers = list(getattr(getattr(backbone, "encoder", None), "layer", []))
    parts = ("attention.self.query", "attention.output.dense", "intermediate.dense", "output.LayerNorm")
    try:
        return layers if all(isinstance(layers[0].get_submodule(part), nn.Module) for part in parts) else []
    except (AttributeError, IndexError):
        return []


def tie(mine: Any, theirs: Any) -> None:
    """Share every weight of an encoder layer with a decoder layer, except its cross-attention."""
    for name in ("query", "key", "value"):
        setattr(mine.attention.self, name, getattr(theirs.attention.self, name))
    mine.attention.output, mine.intermediate, mine.output = theirs.attention.output, theirs.intermediate, theirs.output
