"""The model and the tokenizer of transformers, made when they are asked for; until then plain ones do the work.

    encoder.network     what computes now: for ``encode`` either will do
    encoder.backbone    transformers' model; the plain one gives way to it, over the same weights

An encoder over any other backbone has the same under both names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from isotrope.encoders.plain_bert import PlainBert
from isotrope.tokens.plain_tokenizer import PlainTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Self

    from isotrope.tokens.text_tokenizer import TextTokenizer


class LateBackbone:
    """Inherited by ``Encoder``, before ``nn.Module``."""

    _modules: dict[str, nn.Module | None]
    _tokenizer: Any
    text_tokenizer: TextTokenizer

    @property
    def network(self) -> Any:
        """The backbone as it is; once another encoder over it has asked for transformers' model, that one."""
        held = self._modules["backbone"]
        if isinstance(held, PlainBert) and held.made is not None:
            self._modules["backbone"] = held = held.made
        return held

    @property
    def backbone(self) -> PreTrainedModel:
        held = self.network
        if isinstance(held, PlainBert):
            self._modules["backbone"] = held = held.model()
        found: PreTrainedModel = held
        return found

    @backbone.setter
    def backbone(self, backbone: PreTrainedModel) -> None:
        self._modules["backbone"] = backbone  # for readers and mypy: nn.Module does the same before it comes here

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Transformers' tokenizer; from the first time on, texts are cut by this very one."""
        if isinstance(self._tokenizer, PlainTokenizer):
            plain, self._tokenizer = self._tokenizer, self._tokenizer.tokenizer()
            if self.text_tokenizer.tokenizer is plain:
                self.text_tokenizer.tokenizer = self._tokenizer
        found: PreTrainedTokenizerBase = self._tokenizer
        return found

    @tokenizer.setter
    def tokenizer(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def train(self, mode: bool = True) -> Self:
        """As of any module; the plain backbone has no dropout, so training asks for transformers' model."""
        if mode:
            _ = self.backbone
        super().train(mode)  # type: ignore[misc]
        return self
