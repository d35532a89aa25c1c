"""RankCSE: what is ranked, who teaches, what stays frozen, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.data.corpus import Records
from isotrope.encoders.fresh import fresh_encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.methods.rankcse import RankCSE
from isotrope.objectives import info_nce, jensen_shannon, ranking_consistency

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
# specs/1, sections 1.9 and 6.6: cosines of the student's two views, and those of a teacher.
C = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]])
TAUGHT = torch.tensor([[1, 0.9, 0.2], [0.9, 1, 0.4], [0.2, 0.4, 1]])
OTHER = torch.tensor([[1, 0.1, 0.6], [0.1, 1, 0.3], [0.6, 0.3, 1]])


@pytest.fixture
def build(built: Build, sentences: Path, tiny: Path) -> Build:
    def make(teacher: Path = tiny, data: Any = sentences, **settings: Any) -> Any:
        return built("rankcse", data, **{"teacher": str(teacher), **settings})

    return make


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A teacher of another width and another vocabulary."""
    folder = tmp_path_factory.mktemp("teacher") / "foreign"
    mirrored = [text[::-1] for text in topics]  # the same letters, other pieces
    fresh_encoder(mirrored, vocabulary=200, layers=1, width=48, heads=2, max_length=64, seed=7).save(folder)
    return folder


@pytest.fixture
def golden() -> dict[str, Tensor]:
    """Views whose cosines are C, teachers whose cosines are TAUGHT and OTHER."""
    second = torch.cat([C, (1 - C.pow(2).sum(dim=0, keepdim=True)).sqrt()]).T
    teachers = {"teacher": torch.linalg.cholesky(TAUGHT), "second_teacher": 3 * torch.linalg.cholesky(OTHER)}
    return {"first": torch.eye(3, 4), "second": second, **teachers}


def test_defaults_are_the_papers() -> None:
    settings: Any = RankCSE.Settings()
    assert (settings.temperature, settings.student_temperature, settings.teacher_temperature) == (0.05, 0.05, None)
    assert (settings.consistency_weight, settings.ranking_weight, settings.teacher_share) == (1.0, 1.0, 0.33)
    assert (settings.ranking, settings.teacher, settings.second_teacher) == ("listmle", "auto", None)
    card = find("rankcse").card
    assert (card.needs, card.year, card.read_out) == ("sentences", 2023, "cls")


@pytest.mark.parametrize(("ranking", "expected"), [("listmle", 0.449630), ("listnet", 0.580634)])
def test_golden_values(build: Build, golden: dict[str, Tensor], ranking: str, expected: float) -> None:
    """τ₃ is half of τ₂ where none is given; each term counts by its weight."""
    weights = {"consistency_weight": 0.5, "ranking_weight": 2.0}
    method = build(temperature=0.5, student_temperature=0.5, ranking=ranking, **weights)
    terms = method.loss(golden, torch.Generator())
    assert float(terms["contrastive"]) == pytest.approx(0.460492, abs=1e-6)
    assert float(terms["ranking"]) == pytest.approx(expected, abs=1e-6)
    consistency = ranking_consistency(golden["first"], golden["second"], 0.5)
    assert float(terms["consistency"]) == pytest.approx(float(consistency), abs=1e-7)
    total = float(terms["contrastive"]) + 0.5 * float(consistency) + 2 * float(terms["ranking"])
    assert float(Combined(method).total(terms)) == pytest.approx(total, abs=1e-6)
    assert method.candidates(golden) == 3


@pytest.mark.parametrize("share", [0.0, 0.33, 1.0])
def test_two_teachers_are_averaged_by_their_cosines(
    build: Build, golden: dict[str, Tensor], foreign: Path, share: float
) -> None:
    method = build(second_teacher=str(foreign), teacher_share=share)
    assert torch.allclose(method.taught(golden), share * TAUGHT + (1 - share) * OTHER, atol=1e-6)


def test_the_consistency_has_the_temperature_of_the_contrast(build: Build, golden: dict[str, Tensor]) -> None:
    """τ₁, and not that of the student's ranking, τ₂."""
    method = build(temperature=0.5, student_temperature=0.05)
    expected = jensen_shannon(C / 0.5, C.T / 0.5)
    assert float(method.loss(golden, torch.Generator())["consistency"]) == pytest.approx(float(expected), rel=1e-4)


def test_the_teachers_similarity_with_itself_is_in_no_list(build: Build, golden: dict[str, Tensor]) -> None:
    """Nor is the student's: the positive is the contrast's alone."""
    for ranking in ("listmle", "listnet"):
        method = build(ranking=ranking)
        lists = C.clone().requires_grad_(), TAUGHT.clone().requires_grad_()
        off = [matrix[~torch.eye(3, dtype=torch.bool)].view(3, 2) for matrix in lists]
        expected = method.rank_loss(*off)
        assert float(method.loss(golden, torch.Generator())["ranking"]) == pytest.approx(
            float(expected.detach()), rel=1e-4
        )
        (gradient,) = torch.autograd.grad(expected, lists[0])
        assert torch.equal(gradient.diagonal(), torch.zeros(3))


def test_without_a_weight_there_is_no_teacher_and_without_either_it_is_simcse(build: Build, batched: Batched) -> None:
    method = build(Path("/nowhere/at/all"), ranking_weight=0.0, consistency_weight=0.0)
    assert "teacher" not in method.tower
    assert RankCSE.needed_run(method.settings) is None
    batch = batched(method)
    found = method.represent(batch)
    assert set(found) == {"first", "second"}
    terms = method.loss(found, batch.generator())
    total = Combined(method).total(terms)
    assert float(total.detach()) == pytest.approx(float(info_nce(found["first"], found["second"]).detach()), abs=1e-6)
    assert float(terms["consistency"].detach()) > 0  # shown, not minimised


def test_auto_asks_for_a_simcse_of_the_same_text_and_a_second_teacher_may_stand_by_it(build: Build) -> None:
    needed = RankCSE.needed_run(RankCSE.Settings(teacher_steps=7, second_teacher="builtin"))
    assert needed is not None
    assert (needed.setting, needed.method, needed.steps) == ("teacher", "simcse", 7)
    assert RankCSE.needed_run(RankCSE.Settings(teacher="builtin")) is None
    with pytest.raises(InputError, match="teacher auto is trained by"):
        build(Path("auto"))


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_run_with_the_defaults_trains_its_teacher_first(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updated_methods: list[Any]
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    loop = {"max_steps": 3, "batch_size": 8, "eval_steps": 3, "learning_rate": 1e-3, "held_out": 0, "max_length": 32}
    isotrope.train("rankcse", sentences, tiny, tmp_path / "run", pooling="cls", **loop)
    assert [method.card.name for method in updated_methods] == ["simcse"] * 3 + ["rankcse"] * 3
    (kept,) = (tmp_path / "cache" / "runs").glob("simcse-*/model")
    teacher = updated_methods[-1].teachers["teacher"]
    assert teacher.fingerprint() == isotrope.load(kept).fingerprint()
    assert teacher.fingerprint() != isotrope.load(tiny, pooling="cls").fingerprint()


def test_teachers_read_their_own_tokens_never_drop_out_and_have_no_gradient(
    build: Build, batched: Batched, tiny: Path, foreign: Path
) -> None:
    method = build(foreign, second_teacher=str(tiny), second_teacher_pooling="cls")
    batch = batched(method)
    first, again = method.represent(batch), method.represent(batch)
    texts = Records(method.corpus, list(range(8))).texts()
    for name, model, pooling in (("teacher", foreign, None), ("second_teacher", tiny, "cls")):
        assert torch.equal(first[name], again[name])
        assert not first[name].requires_grad
        expected = isotrope.load(model, pooling=pooling, device="cpu").encode(texts)
        assert np.allclose(first[name], expected, atol=1e-5)
    assert not torch.equal(first["first"], again["first"])
    method.train()
    assert not any(teacher.training for teacher in method.teachers.values())
    terms = method.loss(first, batch.generator())
    Combined(method).total(terms).backward()
    assert all(p.grad is None for teacher in method.teachers.values() for p in teacher.parameters())


def test_only_the_teachers_order_counts_for_listmle_and_its_scores_for_listnet(
    build: Build, golden: dict[str, Tensor]
) -> None:
    lists = C[:, 1:], TAUGHT[:, 1:]
    method = build(student_temperature=0.5)
    assert float(method.rank_loss(*lists)) == float(method.rank_loss(lists[0], lists[1].exp()))
    method = build(ranking="listnet", student_temperature=0.5)
    assert float(method.rank_loss(*lists)) != pytest.approx(float(method.rank_loss(lists[0], lists[1].exp())))
    given = build(ranking="listnet", student_temperature=0.5, teacher_temperature=0.25)
    assert float(given.rank_loss(*lists)) == float(method.rank_loss(*lists))


@pytest.mark.filterwarnings("ignore:Training did not improve")
@pytest.mark.parametrize("ranking", ["listmle", "listnet"])
def test_training_learns_the_teachers_order_leaves_the_teacher_and_drops_what_is_its_own(
    tiny: Path, foreign: Path, sentences: Path, tmp_path: Path, updated_methods: list[Any], ranking: str
) -> None:
    loop = {"max_steps": 25, "batch_size": 16, "eval_steps": 25, "learning_rate": 3e-3, "held_out": 40}
    more = {"max_length": 32, "logging_steps": 1, "pooling": "mean", "head": "train-only", "ranking": ranking}
    more |= {"teacher_temperature": 0.003}  # an untrained teacher's cosines are all alike
    run = isotrope.train("rankcse", sentences, tiny, tmp_path / "run", teacher=str(foreign), **loop, **more)
    losses = [line["ranking"] for line in run.history if "ranking" in line]
    assert np.mean(losses[-5:]) < 0.97 * np.mean(losses[:2])
    method = updated_methods[-1]
    assert method.teachers["teacher"].fingerprint() == isotrope.load(foreign).fingerprint()
    assert "head" in method.tower
    assert len(run.encoder.parts) == 0
    assert run.encoder.dimension == 32
    assert not any("teacher" in name for name, _ in run.encoder.named_parameters())


def test_a_teacher_that_reads_less_cuts_the_texts_itself(
    build: Build, batched: Batched, tiny: Path, tmp_path: Path
) -> None:
    short = isotrope.load(tiny, device="cpu")
    short.max_length = 10
    short.save(tmp_path / "short")
    method = build(tmp_path / "short")
    found = method.represent(batched(method))["teacher"]
    with pytest.warns(UserWarning, match="longer than the model reads"):
        expected = short.encode(Records(method.corpus, list(range(8))).texts())
    assert np.allclose(found, expected, atol=1e-5)


def test_resume_equals_uninterrupted(tiny: Path, sentences: Path, foreign: Path, resume_agrees: Law) -> None:
    resume_agrees("rankcse", sentences, pooling="mean", teacher=str(tiny), second_teacher=str(foreign))


@pytest.mark.parametrize("ranking", ["listmle", "listnet"])
def test_chunks_give_the_gradient_of_the_whole_batch(
    build: Build, foreign: Path, tiny: Path, chunks_equal_whole: Law, ranking: str
) -> None:
    """A teacher's lists are those of the whole batch, whatever a chunk holds."""
    settings = {"dropout": 0.0, "head": "train-only", "second_teacher": str(tiny), "teacher_temperature": 0.003}
    cut, whole = (build(foreign, ranking=ranking, **settings) for _ in range(2))
    chunks_equal_whole(cut, whole)


def test_chunks_agree_with_dropout(build: Build, chunks_agree: Law) -> None:
    chunks_agree(*(build(head="train-only") for _ in range(2)))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"ranking": "listmax"}, "ranking"),
        ({"ranking_weight": -1.0}, "ranking_weight must not be negative"),
        ({"consistency_weight": float("nan")}, "consistency_weight must"),
        ({"teacher_share": 1.5}, "teacher_share must lie between 0 and 1"),
        ({"student_temperature": 0.0}, "student_temperature must be above 0"),
        ({"teacher_temperature": 0.0}, "teacher_temperature must be above 0"),
        ({"second_teacher": "auto"}, "second_teacher is a model folder, a hub id or builtin; auto is for teacher"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(RankCSE.Settings(**bad))


def test_a_teacher_that_is_not_there_is_refused(build: Build) -> None:
    with pytest.raises(InputError, match="no such model folder"):
        build(second_teacher="/nowhere/at/all")
