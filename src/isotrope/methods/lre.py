"""Linear relational embedding (Paccanaro and Hinton 2001): a vector for each concept, a matrix for each relation."""

from __future__ import annotations

from collections import Counter
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
from isotrope.encoders.word_vectors import Concepts, StaticVectors
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import Positive, Settings, Weight, at_least
from isotrope.objectives.relational import closeness, relational
from isotrope.tokens.word_vocabulary import SPECIALS, name_tokens
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

FIRST = len(SPECIALS)  # the row of the first concept


@dataclass(frozen=True)
class LRESettings(Settings):
    """With a spread of 0 all concepts would stay one point."""

    dimension: Annotated[int, at_least(1, most=4_096), "Dimension of a concept's vector"] = 8
    spread: Annotated[Positive, "Standard deviation of the initial vectors"] = 0.1
    prior: Annotated[Weight, "Strength of the prior that pulls weights to 0; 1: normal with deviation 1; 0: none"] = 1.0


class Matrices(nn.Module):
    """R_r, one [d, d] for each relation."""

    def __init__(self, relations: int, width: int) -> None:
        super().__init__()
        # Of this spread, an image is as long as the concept.
        self.matrices = nn.Parameter(torch.randn(relations, width, width) / width**0.5)

    def forward(self, concepts: Tensor, relations: Tensor) -> Tensor:
        # A sum, because autocast would take a matrix product to half precision.
        return (self.matrices[relations] * concepts.unsqueeze(1)).sum(dim=2)


class LinearRelationalEmbedding(Method[LRESettings], FromScratch[LRESettings], OwnTask):
    """L = −(1/Q) [ Σ (1/K) log softmax_v(−‖R a − v‖²)_b − (λ/2)(Σ‖v‖² + Σ‖R‖²) ] over triples (a, R, b).

    K triples of the training split share the question (a, R), and it has Q questions. All concepts v are candidates. A
    record is two names and a relation. The encoder is the table of concepts; the matrices are saved in the same folder.
    When to use it: facts about names, to be completed. What goes wrong: there is no text encoder, so an unknown name
    has no vector; a relation with one example cannot be learned. Sibling: ``word2vec`` learns its table from text.
    """

    card = Card(
        name="lre",
        title="Linear relational embedding",
        paper="Paccanaro, Hinton. Learning Distributed Representations of Concepts Using Linear Relational Embedding. "
        "IEEE TKDE 2001",
        year=2001,
        needs="relations",
        family="relational",
    )
    keeps = "last"
    chooses = True
    defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.02,
        "max_steps": 1500,
        "warmup_ratio": 0.0,
        "weight_decay": 0.0,
        "eval_steps": 500,
        "logging_steps": 50,
    }
    Settings = LRESettings

    @classmethod
    def initialise(cls, settings: LRESettings, records: Iterable[Record], seed: int) -> Encoder:
        found, uses = set[str](), Counter[str]()
        for record in records:
            if all(record.texts) and record.value:  # the corpus says what is wrong with others
                found.update(record.texts)
                uses[record.value] += 1
        single = sorted(name for name, count in uses.items() if count == 1)
        if single:
            more = f" and {len(single) - 3} others" if len(single) > 3 else ""
            raise InputError(
                f"A relation needs two examples or more, and {', '.join(map(repr, single[:3]))}{more} has one; "
                "bring more, or take it out."
            )
        generator = torch.Generator().manual_seed(seed)
        vectors = settings.spread * torch.randn(FIRST + len(found), settings.dimension, generator=generator)
        vectors[:FIRST] = 0.0
        return Encoder(StaticVectors(vectors), name_tokens(sorted(found)))

    def prepare(self, corpus: Corpus) -> Prepared:
        ends = np.asarray(corpus.ids, dtype=np.int64).reshape(-1, 2) - FIRST  # a name is one token
        self.triples = np.column_stack([ends[:, 0], corpus.numbers("relation"), ends[:, 1]])
        _, self.question = np.unique(self.triples[:, :2], axis=0, return_inverse=True)
        self.count(np.arange(len(self.triples)))
        return Prepared()

    def count(self, rows: Rows) -> None:
        answers = np.bincount(self.question[rows], minlength=int(self.question.max()) + 1)
        self.questions = int(np.count_nonzero(answers))
        self.answers_each = np.maximum(answers, 1)[self.question]

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("lre needs its data at the start: the relations are in it.")
        return {"relations": Trained(Matrices(len(self.corpus.names), self.settings.dimension))}

    @property
    def matrices(self) -> Tensor:
        tower = self.tower["relations"]
        assert isinstance(tower, Trained)
        assert isinstance(tower.module, Matrices)
        return tower.module.matrices

    @property
    def concepts(self) -> Tensor:
        return self.encoder.backbone.get_input_embeddings().weight[FIRST:]

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        rows = np.asarray(records.rows)
        return {
            "triples": Numbers.of(self.triples[rows]),
            "questions": Numbers.of(self.question[rows]),
            "answers_each": Numbers.of(self.answers_each[rows]),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, relation, answers = batch["triples"].values.unbind(dim=1)
        images = self.tower["relations"](self.concepts[first], relation)
        numbers = {name: batch[name].values for name in ("questions", "answers_each")}
        return {"images": images, "answers": answers, **numbers}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        images, answers, each = (representations[name] for name in ("images", "answers", "answers_each"))
        size = self.concepts.pow(2).sum() + self.matrices.pow(2).sum()
        return {"relational": relational(images, self.concepts, answers, each), "prior": size / 2}

    def weights(self) -> dict[str, float]:
        return {"prior": self.settings.prior / self.questions}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(self.concepts)

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """The mean reciprocal rank of the right concept, and how often it is the nearest one.

        Other right answers do not count against it.
        """
        scores = closeness(representations["images"], self.concepts)
        answers = representations["answers"].long()
        own = scores.gather(1, answers.unsqueeze(1))
        right = self.right_answers(representations["questions"].long())
        before = ~(scores < own) & ~right  # a tie, or NaN, is not a success
        ranks = 1.0 + before.sum(dim=1)
        return {"completion_mrr": (1 / ranks).mean(), "completion": (ranks == 1).float().mean()}

    def right_answers(self, questions: Tensor) -> Tensor:
        """[questions, concepts]: what is right according to the whole file."""
        right = np.zeros((int(self.question.max()) + 1, len(self.concepts)), dtype=np.bool_)
        right[self.question, self.triples[:, 2]] = True
        return torch.from_numpy(right[questions.cpu().numpy()]).to(questions.device)

    def export(self) -> Encoder:
        assert self.corpus is not None
        table = self.encoder.backbone.get_input_embeddings().weight.detach().clone()
        return Encoder(Concepts(table, self.corpus.names, self.matrices.detach().clone()), self.encoder.tokenizer)
