"""Child-Tuning: which weights are updated, by how much, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.tactics import child_tuning
from isotrope.training.tactics.child_tuning import ChildTuning, ChildTuningSettings, fisher, largest
from isotrope.training.tactics.tactic import BLOCK

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 6,
    "logging_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def child_of(module: nn.Module, share: float, seed: int) -> ChildTuning:
    settings = ChildTuningSettings(child_tuning="F", child_p=share)
    return ChildTuning(settings, module, LoopSettings(seed=seed), 1)  # type: ignore[arg-type]


def one(values: list[float]) -> nn.Module:
    module = nn.Module()
    module.weight = nn.Parameter(torch.tensor(values))
    return module


def test_f_keeps_the_mean_and_has_the_variance_of_the_formula() -> None:
    module, share, draws = one([1.0, -2.0, 3.0]), 0.3, 20_000
    gradient = torch.tensor([1.0, -2.0, 3.0])
    child = child_of(module, share, seed=1)
    found = []
    for step in range(draws):
        module.weight.grad = gradient.clone()
        child.change_gradients(step)
        found.append(module.weight.grad)
    seen = torch.stack(found)
    error = 4 * gradient.abs() * ((1 - share) / (share * draws)) ** 0.5
    assert ((seen.mean(0) - gradient).abs() < error).all()
    assert torch.allclose(seen.var(0), gradient**2 * (1 - share) / share, rtol=0.05)


def test_golden_values_of_adamw_under_given_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    module = one([0.5, 0.5, 0.5])
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.01, eps=1e-6)
    child = child_of(module, 0.3, seed=1)
    draws = iter([torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])])
    monkeypatch.setattr(torch, "rand", lambda *args, **kwargs: next(draws))
    for step, expected in enumerate([(0.489951, 0.49995, 0.489951), (0.483202, 0.507341, 0.479903)]):
        module.weight.grad = torch.tensor([1.0, -2.0, 3.0])
        child.change_gradients(step)
        optimiser.step()
        assert module.weight.tolist() == pytest.approx(expected, abs=2e-6)


def test_masks_differ_by_step_and_are_the_same_again() -> None:
    module = one([1.0] * 1000)

    def masked(seed: int, step: int) -> Tensor:
        module.weight.grad = torch.ones(1000)
        child_of(module, 0.3, seed).change_gradients(step)
        return module.weight.grad

    assert torch.equal(masked(1, 5), masked(1, 5))
    assert not torch.equal(masked(1, 5), masked(1, 6))
    assert not torch.equal(masked(1, 5), masked(2, 5))


def test_gradients_are_clipped_before_they_are_thinned_out(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the optimiser sees a longer one than the clip allows, by about 1/√p, as in the released code."""
    plain, norms = ChildTuning.change_gradients, []

    def norm(module: nn.Module) -> float:
        return float(torch.stack([p.grad.norm() for p in module.parameters() if p.grad is not None]).norm())

    def watched(self: ChildTuning, step: int) -> None:
        before = norm(self.combined)
        plain(self, step)
        norms.append((before, norm(self.combined)))

    monkeypatch.setattr(ChildTuning, "change_gradients", watched)
    settings = {**SHORT, "child_tuning": "F", "child_p": 0.25, "max_grad_norm": 0.01}
    isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=8, **settings)
    assert [before for before, _ in norms] == pytest.approx([0.01] * 8, rel=1e-3)
    assert sum((after / before) ** 2 for before, after in norms) / 8 > 2  # 4 in the mean


@pytest.mark.parametrize("kind", ["F", "D"])
def test_a_child_of_all_weights_is_plain_training(tiny: Path, sentences: Path, tmp_path: Path, kind: str) -> None:
    plain = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "plain", max_steps=6, **SHORT)
    child = isotrope.train(
        "simcse", sentences, model=tiny, output=tmp_path / "child", max_steps=6, child_tuning=kind, child_p=1, **SHORT
    )
    first, second = weights(plain.folder), weights(child.folder)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_d_leaves_the_others_bit_identical_and_trains_the_share(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "child_tuning": "D", "child_p": 0.2, "child_samples": 64, "weight_decay": 0.0}
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=6, **settings)
    start, end = load_file(tiny / "model.safetensors"), weights(run.folder)
    blocks = [name for name in end if BLOCK.search(f".{name}")]
    names = {name: next(known for known in start if known.endswith(name)) for name in end}
    moved = sum(int((end[name] != start[names[name]]).sum()) for name in blocks)
    total = sum(end[name].numel() for name in blocks)
    assert 0.9 * 0.2 * total < moved <= round(0.2 * total)
    assert not torch.equal(end["embeddings.word_embeddings.weight"], start[names["embeddings.word_embeddings.weight"]])


@pytest.mark.parametrize("kind", ["F", "D"])
def test_resume_equals_uninterrupted(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    settings = {**SHORT, "eval_steps": 3, "child_tuning": kind, "child_samples": 64}
    whole = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "whole", max_steps=6, **settings)

    steps = iter(range(1, 10))

    def fall_at_four(self: Combined, representations: dict[str, Tensor]) -> None:
        if next(steps) == 4:
            raise RuntimeError("the power fails")

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", fall_at_four)
        with pytest.raises(RuntimeError, match="the power fails"):
            isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "cut", max_steps=6, **settings)
    again = isotrope.train(
        "simcse", sentences, model=tiny, output=tmp_path / "cut", max_steps=6, resume=True, **settings
    )
    first, second = weights(whole.folder), weights(again.folder)
    assert whole.selected_step == again.selected_step
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_queue_that_fisher_information_looked_at_is_filled_again_by_resume(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tactic prepares itself with the start, before the checkpoint is read."""
    settings = {**SHORT, "eval_steps": 3, "child_tuning": "D", "child_samples": 64, "queue": 40, "pooling": "cls"}
    whole = isotrope.train("esimcse", sentences, model=tiny, output=tmp_path / "whole", max_steps=6, **settings)
    steps, follow = iter(range(1, 10)), Combined.after_update

    def fall_at_four(self: Combined, representations: dict[str, Tensor]) -> None:
        follow(self, representations)
        if next(steps) == 4:
            raise RuntimeError("the power fails")

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", fall_at_four)
        with pytest.raises(RuntimeError, match="the power fails"):
            isotrope.train("esimcse", sentences, model=tiny, output=tmp_path / "cut", max_steps=6, **settings)
    again = isotrope.train(
        "esimcse", sentences, model=tiny, output=tmp_path / "cut", max_steps=6, resume=True, **settings
    )
    first, second = ([line["loss"] for line in run.history if "loss" in line] for run in (whole, again))
    assert first == second


def test_the_largest_are_taken_over_all_tensors_and_ties_by_order() -> None:
    masks = largest({"a": torch.tensor([[0.0, 5.0], [1.0, 1.0]]), "b": torch.tensor([1.0, 7.0])}, 0.5)
    assert masks["a"].tolist() == [[False, True], [True, False]]
    assert masks["b"].tolist() == [False, True]
    assert sum(int(mask.sum()) for mask in largest({"a": torch.rand(1000)}, 0.123).values()) == 123
    with pytest.raises(InputError, match="zero or not finite"):
        largest({"a": torch.zeros(4)}, 0.5)


class Logistic(nn.Module):
    """−log σ(y·w·x): a method with one weight vector, in what stands for a block."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList([nn.Linear(2, 1, bias=False)])
        self.encoder.backbone = nn.Module()
        self.encoder.backbone.layer = self.encoder.layer
        with torch.no_grad():
            self.encoder.layer[0].weight.copy_(torch.tensor([[0.3, -0.2]]))

    def represent(self, batch: Any) -> dict[str, Tensor]:
        return {"score": batch.label * self.encoder.layer[0](batch.x)}

    def loss(self, representations: dict[str, Tensor], generator: Any) -> dict[str, Tensor]:
        return {"loss": nn.functional.softplus(-representations["score"]).mean()}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        return terms["loss"]


POINTS = [(torch.tensor([[1.0, 2.0]]), 1.0), (torch.tensor([[-1.0, 0.5]]), -1.0), (torch.tensor([[0.0, 3.0]]), 1.0)]


def logistic() -> Logistic:
    method = Logistic()
    method.encoder.named_parameters = lambda: iter([("backbone.layer.0.weight", method.encoder.layer[0].weight)])  # type: ignore[method-assign]
    return method


def batches_of(points: list[tuple[Tensor, float]]) -> list[Any]:
    batches = []
    for x, label in points:
        batch = SimpleNamespace(x=x, label=label, seed=0, generator=torch.Generator)
        batch.to = lambda device, batch=batch: batch
        batches.append(batch)
    return batches


def closed_form() -> Tensor:
    weight = torch.tensor([0.3, -0.2])
    squares = [((torch.sigmoid(label * (x[0] @ weight)) - 1) * label * x[0]) ** 2 for x, label in POINTS]
    return torch.stack(squares).mean(0)


def test_fisher_of_a_logistic_regression_is_the_closed_form() -> None:
    from accelerate import Accelerator

    (found,) = fisher(logistic(), batches_of(POINTS), Accelerator(cpu=True)).values()  # type: ignore[arg-type]
    assert torch.allclose(found[0], closed_form())


def test_fisher_is_the_mean_over_records_also_where_a_process_has_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes one after the other: the second adds what the first had."""
    from accelerate import Accelerator

    sent: list[Tensor] = []
    monkeypatch.setattr(child_tuning, "processes", lambda: 2)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: sent.append(tensor.clone()))
    fisher(logistic(), batches_of(POINTS[2:]), Accelerator(cpu=True))  # type: ignore[arg-type]
    waiting = iter(sent)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: tensor.add_(next(waiting)))
    (found,) = fisher(logistic(), batches_of(POINTS[:2]), Accelerator(cpu=True)).values()  # type: ignore[arg-type]
    assert torch.allclose(found[0], closed_form())


def test_a_process_without_a_record_has_no_batches(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    """One record for two processes; what the decision for single records rests on is the same for both."""
    from accelerate import Accelerator

    from isotrope.training.building import build
    from isotrope.training.opening import open_plan
    from isotrope.training.plan import make_plan

    settings = {**SHORT, "child_tuning": "D", "child_samples": 1, "max_steps": 2}
    plan = make_plan("mlm", sentences, tiny, tmp_path / "run", **settings)
    accelerator = Accelerator(cpu=True)
    built = build(plan, open_plan(plan, accelerator), accelerator)
    (tactic,) = built.tactics
    shares = []
    for process in range(2):
        built.feed.accelerator = SimpleNamespace(
            num_processes=2, process_index=process, device=accelerator.device, autocast=accelerator.autocast
        )
        shares.append(len(list(tactic._batches(built.feed))))
    assert shares == [1, 0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"child_p": 0}, "must lie between 0 and 1"),
        ({"child_p": 1.5}, "must lie between 0 and 1"),
        ({"child_tuning": "f"}, "one of none, F, D"),
    ],
)
def test_bad_settings_are_refused(
    tiny: Path, sentences: Path, tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()
