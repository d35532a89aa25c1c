"""word2vec (Mikolov et al. 2013): words that predict their neighbours; a sentence is their weighted mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.data.record_types import Record
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.vector_groups import TOKEN_BUDGET, plan
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import Count, Draws, OneOf, Settings, Weight, Width
from isotrope.objectives.sampling import windowed_sampling
from isotrope.tokens.padded import Tokens
from isotrope.tokens.word_vocabulary import SPECIALS, learn_words, too_few_words
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.word_stream import draw_noise, keep_rates, keep_words


@dataclass(frozen=True)
class Word2VecSettings(Settings):
    """The sizes of the released code. Noise words are shared by the pairs of a text; ``smoothing`` is SIF's a."""

    form: Annotated[
        str,
        OneOf("skip-gram", "cbow"),
        "skip-gram: a word predicts each neighbour; cbow: the mean of the neighbours predicts the word",
    ] = "skip-gram"
    dimension: Annotated[Width, "Dimension of a word's vector"] = 100
    window: Annotated[Draws, "Neighbours on each side; one at distance δ counts (window + 1 − δ) / window"] = 5
    negatives: Annotated[Draws, "Noise words that a pair counts against"] = 5
    noise_words: Annotated[Draws, "Noise words drawn for a text and shared by its pairs"] = 16
    noise_power: Annotated[Weight, "Noise is drawn in proportion to a word's count to this power"] = 0.75
    threshold: Annotated[Weight, "Words more frequent than this share of the text are thinned out; 0: none"] = 1e-3
    thinning: Annotated[
        str, OneOf("paper", "released"), "paper: keep a word with √(t/f); released: with √(t/f) + t/f, as the C code"
    ] = "paper"
    min_count: Annotated[Count, "Words with fewer occurrences are left out"] = 5
    smoothing: Annotated[
        Weight, "a of the weight a/(a + p) in a sentence's mean, p the share of the word; 0: the plain mean"
    ] = 1e-3


class Word2Vec(Method[Word2VecSettings], FromScratch[Word2VecSettings], OwnTask):
    """ℓ = −log σ(u_w·v_c) − Σ_{k noise words n} log σ(−u_w·v_n), mean over pairs of a word w and a neighbour c.

    u and v are two tables; only u is kept. When to use it: a fast baseline without a model, or a language for which
    there is none. What goes wrong: a word has one vector whatever its sense, and order within a sentence is lost. A
    noise word that is the neighbour itself does not count. The radius of a window is not drawn from 1 … window: a pair
    counts by how often it would be inside, which is the same in the mean. Siblings: ``lre`` is the other table that is
    learned from scratch; ``distil`` makes a table of words from a trained encoder.
    """

    card = Card(
        name="word2vec",
        title="word2vec with negative sampling",
        paper="Mikolov, Sutskever, Chen, Corrado, Dean. Distributed Representations of Words and Phrases. NIPS 2013",
        year=2013,
        needs="sentences",
        family="contrastive",
    )
    keeps = "last"
    # Adagrad leaves a row that had no gradient as it is.
    defaults: ClassVar[dict[str, Any]] = {
        "optimiser": "adagrad",
        "batch_size": 512,
        "learning_rate": 0.3,
        "epochs": 5.0,
        "max_length": 1000,
        "warmup_ratio": 0.0,
        "weight_decay": 0.0,
    }
    Settings = Word2VecSettings

    @classmethod
    def initialise(cls, settings: Word2VecSettings, records: Iterable[Record], seed: int) -> Encoder:
        tokenizer = learn_words((text for record in records for text in record.texts), settings.min_count)
        vectors = torch.rand(len(tokenizer), settings.dimension, generator=torch.Generator().manual_seed(seed)) - 0.5
        vectors[: len(SPECIALS)] = 0.0
        return Encoder(StaticVectors(vectors / settings.dimension), tokenizer)

    def prepare(self, corpus: Corpus) -> Prepared:
        self.every = np.bincount(corpus.ids, minlength=self.encoder.text_tokenizer.vocabulary)
        self.count(np.arange(len(corpus)))
        return self.prepared

    def count(self, rows: Rows) -> None:
        """Of the words of the training text: shares, thinning and noise. A word of the held-out text that is too rare
        in it is left out like any other."""
        assert self.corpus is not None
        stays = np.zeros(len(self.corpus), dtype=np.bool_)
        stays[rows] = True
        hidden = Records(self.corpus, np.flatnonzero(~stays).tolist()).tokens()
        counts = self.every.astype(np.float64)
        if hidden:
            counts -= np.bincount(np.concatenate(hidden), minlength=len(counts))
        chosen = self.settings
        self.share = counts / max(counts.sum(), 1)
        self.known = (counts >= chosen.min_count) & (np.arange(len(counts)) >= len(SPECIALS))
        found = int(self.known.sum())
        if found < 2:
            raise InputError(too_few_words(found, chosen.min_count))
        known = np.where(self.known, counts, 0.0)
        rates = keep_rates(known / known.sum(), chosen.threshold, chosen.thinning == "released")
        self.keep = np.where(self.known, rates, 0.0)
        self.noise_ends = np.cumsum(np.where(self.known, known**chosen.noise_power, 0.0))
        said = (
            f"{found:,} different words stand {chosen.min_count} times or more; "
            f"rarer ones, {self.share[~self.known].sum():.1%} of the text, are left out."
        )
        self.prepared = Prepared(remarks=(said,) if self.share[~self.known].any() else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("word2vec needs its data at the start: noise is drawn by the count of a word.")
        table = torch.zeros(encoder.text_tokenizer.vocabulary, self.settings.dimension)
        return {"contexts": Trained(nn.Embedding.from_pretrained(table, freeze=False))}

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
        budget = 4 * TOKEN_BUDGET["cpu"] if noise.device.type == "cpu" else TOKEN_BUDGET["cuda"]
        groups = list(plan(words.lengths, budget))
        order = torch.from_numpy(np.concatenate(groups)).to(noise.device, non_blocking=True)
        parts, noise = [words.rows(rows) for rows in groups], noise[order]
        flat = torch.cat([part.ids.flatten() for part in parts])
        inputs = self.encoder.backbone.get_input_embeddings()(flat)
        outputs, drawn = self.tower["contexts"](torch.cat([flat, noise.flatten()])).split([len(flat), noise.numel()])
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
        """[rows] each. The scores of all words of a text with all others are one product; ``pairs`` says which count,
        and how much.
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

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"negative_sampling": mean_over_pairs(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"pair_loss": mean_over_pairs(representations)}

    def export(self) -> Encoder:
        """The table u, each row times its weight in a sentence; words that were left out are zeros, as unknown ones."""
        known = torch.from_numpy(self.known).to(self.encoder.device)
        table = self.encoder.backbone.get_input_embeddings().weight.detach()
        backbone = StaticVectors(table.masked_fill(~known.unsqueeze(1), 0.0))
        if self.settings.smoothing:
            weights = self.settings.smoothing / (self.settings.smoothing + self.share)
            backbone.weigh(torch.from_numpy(weights).float().to(self.encoder.device))
        return Encoder(backbone, self.encoder.tokenizer)


def mean_over_pairs(representations: dict[str, Tensor]) -> Tensor:
    return representations["pair_losses"].sum() / representations["pairs"].sum().clamp(min=1.0)
