"""Distillation: the student moves to the teacher's geometry, whatever the teacher's width and vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.fresh import fresh_encoder
from isotrope.errors import InputError
from isotrope.methods.frame.method import Method
from isotrope.objectives import imitation
from isotrope.towers.keeping import Frozen

SHORT = {"max_steps": 40, "batch_size": 32, "eval_steps": 40, "learning_rate": 3e-3, "held_out": 50}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A teacher of another width and another vocabulary."""
    folder = tmp_path_factory.mktemp("teacher") / "wide"
    fresh_encoder(topics, vocabulary=200, layers=1, width=48, heads=2, max_length=64, seed=7).save(folder)
    return folder


def agreement(student: isotrope.Encoder, teacher: isotrope.Encoder, texts: list[str]) -> float:
    """Correlation of their cosines over pairs of texts."""
    upper = np.triu_indices(len(texts), 1)
    return float(np.corrcoef(student.similarity(texts, texts)[upper], teacher.similarity(texts, texts)[upper])[0, 1])


def test_imitation_is_half_the_squared_distance_of_unit_vectors() -> None:
    student, teacher = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    units = torch.nn.functional.normalize(student, dim=-1) - torch.nn.functional.normalize(teacher, dim=-1)
    assert float(imitation(student, teacher)) == pytest.approx(float(units.square().sum(-1).mean() / 2), abs=1e-6)
    assert float(imitation(student, 3 * student)) == pytest.approx(0, abs=1e-6)
    with pytest.raises(InputError, match="teacher must be"):
        imitation(student, teacher[:, :4])


@pytest.mark.parametrize("teachers", ["{wide}", "{wide},{tiny}"])
def test_the_student_takes_on_the_teachers_geometry(
    tiny: Path, wide: Path, sentences: Path, tmp_path: Path, teachers: str
) -> None:
    texts = [line for line in sentences.read_text().splitlines() if line][:60]
    teacher, before = isotrope.load(wide), isotrope.load(tiny)
    run = isotrope.train(
        "distil", sentences, tiny, tmp_path / "run", teacher=teachers.format(wide=wide, tiny=tiny), **SHORT
    )
    losses = [line["imitation"] for line in run.history if "imitation" in line]
    assert losses[-1] < 0.5 * losses[0]
    assert agreement(run.encoder, teacher, texts) > agreement(before, teacher, texts) + 0.1
    assert run.encoder.dimension == before.dimension
    assert not any("teacher" in name for name, _ in run.encoder.named_parameters())


def test_the_projection_keeps_the_teachers_cosines(built: Callable[..., Any], wide: Path, sentences: Path) -> None:
    method = built("distil", sentences, teacher=str(wide))
    method.count(np.arange(len(method.corpus)))
    weight = method.tower["projection"].module.weight.detach()
    assert torch.allclose(weight @ weight.T, torch.eye(32), atol=1e-5)
    texts = [line for line in sentences.read_text().splitlines() if line][:50]
    full = torch.from_numpy(isotrope.load(wide).encode(texts, normalize_embeddings=True))
    kept = torch.nn.functional.normalize(full @ weight.T, dim=-1)
    assert torch.allclose(kept @ kept.T, full @ full.T, atol=0.02)


def test_a_student_that_is_one_of_its_teachers_starts_near_them(
    built: Callable[..., Any], tiny: Path, wide: Path, sentences: Path
) -> None:
    """The targets are turned towards the student: without it they would be no nearer than random directions."""
    method = built("distil", sentences, teacher=f"{tiny},{wide}")
    method.count(np.arange(len(method.corpus)))
    texts = [line for line in sentences.read_text().splitlines() if line][:50]
    both = [isotrope.load(name).encode(texts, normalize_embeddings=True) for name in (tiny, wide)]
    weight = method.tower["projection"].module.weight.detach()
    assert torch.allclose(weight @ weight.T, torch.eye(32), atol=1e-5)
    start = torch.from_numpy(isotrope.load(tiny).encode(texts))
    aligned = float(imitation(start, torch.from_numpy(np.concatenate(both, axis=1)) @ weight.T))
    turned = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(0)))[0]
    assert aligned < 0.2
    assert float(imitation(start, torch.from_numpy(np.concatenate(both, axis=1)) @ weight.T @ turned)) > 0.7


def test_the_projection_is_fitted_to_the_rows_that_are_trained_on(
    built: Callable[..., Any], wide: Path, sentences: Path, tmp_path: Path
) -> None:
    """Held-out text stays unseen: the projection is that of a corpus without it."""
    method = built("distil", sentences, teacher=str(wide))
    lines = [method.corpus.text(row) for row in range(60)]
    (tmp_path / "part.txt").write_text("\n".join(lines), encoding="utf-8")
    part = built("distil", tmp_path / "part.txt", teacher=str(wide))
    method.count(np.arange(60))
    part.count(np.arange(60))
    weights = [one.tower["projection"].module.weight.detach() for one in (method, part)]
    assert torch.allclose(*weights, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_the_teacher_never_changes(
    tiny: Path, sentences: Path, tmp_path: Path, updated_methods: list[Method[Any]]
) -> None:
    settings = {**SHORT, "max_steps": 3}
    isotrope.train("distil", sentences, tiny, tmp_path / "run", teacher=str(tiny), dropout=0.1, **settings)
    tower = updated_methods[-1].tower["teacher_0"]
    assert isinstance(tower, Frozen)
    assert tower.module.fingerprint() == isotrope.load(tiny).fingerprint()  # type: ignore[operator]
    assert not tower.module.training


def test_a_narrower_teacher_and_an_empty_name_are_refused(
    tiny: Path, sentences: Path, tmp_path: Path, topics: list[str]
) -> None:
    narrow = tmp_path / "narrow"
    fresh_encoder(topics, vocabulary=200, layers=1, width=16, heads=2, max_length=64).save(narrow)
    with pytest.raises(InputError, match="16 dimensions, fewer than the student's 32"):
        isotrope.train("distil", sentences, tiny, tmp_path / "a", teacher=str(narrow))
    with pytest.raises(InputError, match="teacher is"):
        isotrope.train("distil", sentences, tiny, tmp_path / "b", teacher="x,,y")


@torch.no_grad()
def test_with_a_queue_neighbourhoods_are_imitated(built: Callable[..., Any], tiny: Path) -> None:
    """The loss against loops in float64, over the batch's own teacher vectors and the queue's."""
    method = built("distil", None, teacher=str(tiny), queue=5, student_temperature=0.1, teacher_temperature=0.04)
    student, teacher = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(0)).double()
    found = method.loss({"student": student.float(), "keys": teacher.float()}, torch.Generator())
    candidates = [*teacher, *method.tower["queue"]().double()]

    def distribution(vector: torch.Tensor, temperature: float) -> list[float]:
        scores = [float(torch.cosine_similarity(vector, other, dim=0)) / temperature for other in candidates]
        total = sum(np.exp(score) for score in scores)
        return [float(np.exp(score)) / total for score in scores]

    losses = [
        -sum(p * np.log(q) for p, q in zip(distribution(t, 0.04), distribution(s, 0.1), strict=True))
        for s, t in zip(student, teacher, strict=True)
    ]
    assert float(found["imitation"]) == pytest.approx(float(np.mean(losses)), abs=1e-4)
    before = method.tower["queue"]().clone()
    method.tower["queue"].after_update({"keys": teacher.float()})
    after = method.tower["queue"]()
    assert torch.allclose(after[:3], torch.nn.functional.normalize(teacher.float(), dim=-1))
    assert torch.equal(after[3:], before[3:])


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")  # the teacher is drawn at random
def test_a_student_learns_from_the_queue(tiny: Path, wide: Path, sentences: Path, tmp_path: Path) -> None:
    texts = [line for line in sentences.read_text().splitlines() if line][:60]
    teacher, before = isotrope.load(wide), isotrope.load(tiny)
    run = isotrope.train("distil", sentences, tiny, tmp_path / "run", teacher=str(wide), queue=64, **SHORT)
    assert agreement(run.encoder, teacher, texts) > agreement(before, teacher, texts) + 0.03


def test_a_teacher_that_reads_less_cuts_the_texts_itself(
    built: Callable[..., Any], batched: Callable[..., Any], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    short = isotrope.load(tiny, device="cpu")
    short.max_length = 10
    short.save(tmp_path / "short")
    batch = batched(built("distil", sentences, teacher=str(tmp_path / "short")), range(8))
    assert batch["teacher_0"].ids.shape[1] == 10 < batch["student"].ids.shape[1]
