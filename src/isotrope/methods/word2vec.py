"""word2vec (Mikolov et al. 2013): a word must tell the words around it from noise. A sentence is the weighted mean of
its words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.data.record_types import Record
from isotrope.encoders.encoder import TOKEN_BUDGET, Encoder, plan
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, Method, Settings, View
from isotrope.objectives.sampling import windowed_sampling
from isotrope.tokens.padded import Tokens
from isotrope.tokens.word_vocabulary import SPECIALS, UNKNOWN, learn_words
from isotrope.towers.keeping import Role, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.word_stream import draw_noise, keep_rates, keep_words

FORMS = ("skip-gram", "cbow")
RATES = ("paper", "released")


@dataclass(frozen=True)
class Word2VecSettings(Settings):
    form: str = "skip-gram"  # skip-gram: a word finds each neighbour; cbow: the mean of the neighbours finds the word
    dimension: int = 100  # of a word's vector
    window: int = 5  # neighbours on each side; one at distance δ counts (window + 1 − δ) / window
    negatives: int = 5  # noise words that a pair counts against
    noise_words: int = 16  # that are drawn for a text and shared by its pairs
    noise_power: float = 0.75  # noise is drawn by count to this power
    threshold: float = 1e-3  # words more frequent than this share of the text are thinned out; 0: none
    thinning: str = "paper"  # keep by √(t/f); released: by √(t/f) + t/f, as in the C code
    min_count: int = 5  # rarer words are left out
    smoothing: float = (
        1e-3  # a of the weight a/(a + p) in a sentence's mean, p the share of the word; 0: the plain mean
    )


class Word2Vec(Method):
    """ℓ = −log σ(u_w·v_c) − Σ_{k noise words n} log σ(−u_w·v_n), over the pairs of a word w and a neighbour c; mean
    over pairs.

    u and v are two tables; only u is kept. A noise word that is the neighbour itself does not count. The radius of a
    window is not drawn from 1 … window: a pair counts by how often it would be inside, which is the same in the mean.
    """

    name = "word2vec"
    title = "word2vec with negative sampling"
    paper = "Mikolov, Sutskever, Chen, Corrado, Dean. Distributed Representations of Words and Phrases. NIPS 2013"
    year = 2013
    needs = "sentences"
    keeps = "last"
    judges_itself = True
    starts_anew = True
    optimiser = "adagrad"
    loop: ClassVar[dict[str, Any]] = {
        "batch_size": 512, "learning_rate": 0.3, "epochs": 5.0, "max_length": 1000, "warmup_ratio": 0.0, "weight_decay": 0.0
    }  # fmt: skip
    Settings = Word2VecSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        for name, choices in (("form", FORMS), ("thinning", RATES)):
            if getattr(settings, name) not in choices:
                raise InputError(f"{name} is one of {', '.join(choices)}; '{getattr(settings, name)}' was given.")
        for name in ("dimension", "window", "negatives", "noise_words", "min_count"):
            if getattr(settings, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(settings, name)} was given.")
        for name in ("noise_power", "threshold", "smoothing"):
            if not getattr(settings, name) >= 0:
                raise InputError(f"{name} must not be negative; {getattr(settings, name)} was given.")

    @classmethod
    def begin(cls, settings: Any, records: Iterable[Record], seed: int) -> Encoder:
        tokenizer = learn_words((text for record in records for text in record.texts), settings.min_count)
        vectors = torch.rand(len(tokenizer), settings.dimension, generator=torch.Generator().manual_seed(seed)) - 0.5
        vectors[: len(SPECIALS)] = 0.0
        return Encoder(StaticVectors(vectors / settings.dimension), tokenizer)

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        vocabulary = encoder.text_tokenizer.vocabulary
        counts = (
            np.zeros(vocabulary)
            if self.corpus is None
            else np.bincount(self.corpus.ids, minlength=vocabulary).astype(np.float64)
        )
        self.unknown = counts[encoder.tokenizer.convert_tokens_to_ids(UNKNOWN)] / max(counts.sum(), 1)
        self.share = counts / max(counts.sum(), 1)
        known = np.where(np.arange(vocabulary) < len(SPECIALS), 0.0, counts)
        frequency = known / max(known.sum(), 1)
        self.keep = np.where(
            known > 0, keep_rates(frequency, self.settings.threshold, self.settings.thinning == "released"), 0.0
        )
        self.noise_ends = np.cumsum(np.where(known > 0, known**self.settings.noise_power, 0.0))
        contexts = nn.Embedding.from_pretrained(torch.zeros(vocabulary, self.settings.dimension), freeze=False)
        return {"contexts": Trained(contexts)}

    def remarks(self) -> list[str]:
        known, least = int((self.keep > 0).sum()), self.settings.min_count
        told = f"{known:,} different words stand {least} times or more; rarer ones, {self.unknown:.1%} of the text, are left out."
        return [told] if self.unknown else []

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        texts = [text[: self.max_length] for text in records.tokens()]
        noise = draw_noise(self.noise_ends, (len(texts), self.settings.noise_words), rng)
        return {"words": keep_words(texts, self.keep, rng), "noise": Numbers.of(noise)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        """Sums over the pairs of each text, and how many there are: a text's pairs are compared within it.

        Texts of like length go together. Each table is looked up once: every lookup costs its backward a gradient of
        the table's size.
        """
        words, noise = batch["words"], batch["noise"].values
        groups = list(
            plan(words.lengths, 4 * TOKEN_BUDGET["cpu"] if noise.device.type == "cpu" else TOKEN_BUDGET["cuda"])
        )
        order = torch.from_numpy(np.concatenate(groups)).to(noise.device, non_blocking=True)
        parts, noise = [words.rows(rows) for rows in groups], noise[order]
        flat = torch.cat([part.ids.flatten() for part in parts])
        inputs = self.encoder.backbone.get_input_embeddings()(flat)
        outputs, drawn = self.role["contexts"](torch.cat([flat, noise.flatten()])).split([len(flat), noise.numel()])
        sizes, rows = [part.ids.numel() for part in parts], [len(part) for part in parts]
        per_part = (
            *(table.split(sizes) for table in (inputs, outputs)),
            drawn.view(*noise.shape, -1).split(rows),
            noise.split(rows),
        )
        found = [self.compared(part, *given) for part, *given in zip(parts, *per_part, strict=True)]
        back = torch.argsort(order)
        losses, pairs = (torch.cat(each)[back] for each in zip(*found, strict=True))
        return {"pair_losses": losses, "pairs": pairs}

    def compared(
        self, words: Tokens, inputs: Tensor, outputs: Tensor, drawn: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """[rows] each.

        The scores of all words of a text with all others are one product; ``pairs`` says which count, and how much.
        """
        window, present = self.settings.window, words.mask.float()
        place = torch.arange(words.ids.shape[1], device=noise.device)
        distance = (place.unsqueeze(1) - place).abs()
        near = ((window + 1 - distance) / window).clamp(min=0.0).fill_diagonal_(0.0)  # [width, width]
        pairs = near * present.unsqueeze(2) * present.unsqueeze(1)  # [rows, width, width]
        anchors, partners = (vectors.view(*words.ids.shape, -1) for vectors in (inputs, outputs))  # [rows, width, d]
        if self.settings.form == "cbow":
            total = pairs.sum(dim=2, keepdim=True)
            anchors = (pairs @ anchors) / total.clamp(min=1 / window)
            pairs = torch.diag_embed((total.squeeze(2) > 0).float())
        other = words.ids.unsqueeze(2) != noise.unsqueeze(1)  # [rows, width, noise words]
        return windowed_sampling(anchors, partners, drawn, pairs, other, self.settings.negatives), pairs.sum(dim=(1, 2))

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"negative_sampling": mean_over_pairs(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"pair_loss": mean_over_pairs(representations)}

    def export(self) -> Encoder:
        """The table u, each row times its weight in a sentence."""
        backbone = StaticVectors(self.encoder.backbone.get_input_embeddings().weight.detach().clone())
        if self.settings.smoothing:
            weights = self.settings.smoothing / (self.settings.smoothing + self.share)
            backbone.weigh(torch.from_numpy(weights).float().to(self.encoder.device))
        return Encoder(backbone, self.encoder.tokenizer)


def mean_over_pairs(representations: dict[str, Tensor]) -> Tensor:
    return representations["pair_losses"].sum() / representations["pairs"].sum().clamp(min=1.0)
