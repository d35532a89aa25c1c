"""The frame is not about text: SimCLR, MoCo and SupCon train images by the same loop and keep the same laws."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from image_samples import shapes
from isotrope.data.corpus import Records
from isotrope.data.image_corpus import open_images
from isotrope.encoders.image_encoder import ImageEncoder, fresh_image_encoder
from isotrope.errors import InputError
from isotrope.evaluation import image_judge
from isotrope.evaluation.image_judge import knn_accuracy
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.towers.shuffled_keys import ShuffledMomentum
from isotrope.training.collapse import ADVICE
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser
from isotrope.training.plan import make_plan

TINY: dict[str, Any] = {
    "model": "conv:4",
    "max_steps": 4,
    "batch_size": 16,
    "eval_steps": 2,
    "logging_steps": 1,
    "learning_rate": 0.05,
    "held_out": 0,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "simclr": ("simclr", {}),
    "moco": ("moco", {"queue": 40}),
    "moco-v1": ("moco", {"queue": 40, "head_layers": 1, "augmentations": "moco-v1"}),
    "memory-bank": ("moco", {"mechanism": "memory-bank", "queue": 30}),
    "end-to-end": ("moco", {"mechanism": "end-to-end"}),
    "supcon": ("supcon", {}),
    "cross-entropy": ("supcon", {"cross_entropy_weight": 1.0, "projection": 0}),
}


def built(name: str, file: Path, **settings: Any) -> tuple[Combined, Any]:
    encoder = fresh_image_encoder("conv:4", 16)
    corpus = open_images(file, "labelled-images", 16)
    torch.manual_seed(0)
    method = find(name)(find(name).Settings(**settings), encoder, None, corpus)
    return Combined(method).train(), corpus


def batch_of(combined: Combined, corpus: Any, rows: range, seed: int = 0) -> Batch:
    return Batch(combined.views(Records(corpus, list(rows)), np.random.default_rng(seed)), len(rows), 5)


@pytest.mark.parametrize("case", CASES)
def test_a_run_saves_what_loads_without_its_head(case: str, image_file: Path, tmp_path: Path) -> None:
    method, settings = CASES[case]
    run = isotrope.train(method, str(image_file), output=tmp_path / "run", **{**TINY, **settings})
    assert run.selected_step == 4
    assert all(np.isfinite(line["loss"]) for line in run.history if "loss" in line)
    assert {"knn", "views", "alignment", "uniformity"} <= set(run.history[-1].get("evaluation", run.history[-2]))
    loaded = isotrope.load(tmp_path / "run" / "model", device="cpu")
    images, _ = shapes(5)
    assert np.allclose(loaded.encode(images), run.encoder.encode(images), atol=1e-6)
    kept = load_file(tmp_path / "run" / "model" / "model.safetensors")
    assert kept.keys() == fresh_image_encoder("conv:4", 16).backbone.network.state_dict().keys()


@pytest.mark.parametrize("case", ["simclr", "moco", "memory-bank"])
def test_a_resumed_run_gives_the_same_weights(
    case: str, image_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.training import loop

    method, settings = CASES[case]
    isotrope.train(method, str(image_file), output=tmp_path / "whole", **{**TINY, **settings})
    update = loop.Updater.update

    def interrupted(self: Any, step: int, source: Any) -> Any:
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, step, source)

    monkeypatch.setattr(loop.Updater, "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        isotrope.train(method, str(image_file), output=tmp_path / "halves", **{**TINY, **settings})
    monkeypatch.setattr(loop.Updater, "update", update)
    isotrope.train(method, str(image_file), output=tmp_path / "halves", resume=True, **{**TINY, **settings})
    whole, halves = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "halves"))
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


def test_training_beats_random_features(image_file: Path, tmp_path: Path) -> None:
    """Stripes and noise of another draw, classified by their nearest training images."""
    images, labels = shapes(60, seed=7)
    other = tmp_path / "other.npz"
    np.savez(other, images=images, labels=labels, classes=np.array(["dots", "rows", "columns"]))
    settings = {**TINY, "max_steps": 150, "eval_steps": 150, "batch_size": 32, "learning_rate": 3e-3, "model": "conv:8"}
    views = "jitter:0.8:0.8:0.8:0.2:1,gray:0.5,crop:0.5:1,flip"
    settings |= {"optimiser": "adamw", "augmentations": views, "temperature": 0.2}
    run = isotrope.train("simclr", str(image_file), output=tmp_path / "run", **settings)
    known, judged = (open_images(file, "labelled-images", 16) for file in (image_file, other))
    start = fresh_image_encoder("conv:8", 16, seed=42).eval()
    assert isinstance(run.encoder, ImageEncoder)
    before, after = (
        knn_accuracy(one, known, np.arange(90), judged, np.arange(60)) for one in (start, run.encoder.cpu())
    )
    assert after > before + 10


def test_a_run_names_the_network_it_began_with_and_its_training_images_are_no_text(
    image_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotrope.training.image_opening.DEFAULT_NETWORK", "conv:4")
    isotrope.train(
        "simclr", str(image_file), output=tmp_path / "run", **{k: v for k, v in TINY.items() if k != "model"}
    )
    assert json.loads((tmp_path / "run" / "run.json").read_text())["model"]["name"] == "conv:4"  # not builtin-base
    results = isotrope.evaluate(tmp_path / "run", "linear", texts=str(image_file))
    assert results.leaks["remarks"] == []


def test_evaluation_leaves_weights_and_statistics_as_they_were(image_file: Path, tmp_path: Path) -> None:
    encoder = fresh_image_encoder("conv:4", 16).train()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    results = isotrope.evaluate(encoder, "linear", texts=str(image_file))
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert encoder.training
    scores = results.scores["linear"]
    assert {"standardised", "as_they_are", "knn", "labels_10"} <= set(scores)
    assert scores["standardised"]["top_1"] > scores["majority"]


def test_keys_are_shuffled_and_their_batch_norms_see_the_batch(image_file: Path) -> None:
    combined, corpus = built("moco", image_file, queue=40)
    tower = combined.method.tower["key"]
    assert isinstance(tower, ShuffledMomentum)
    batch = batch_of(combined, corpus, range(16))
    torch.manual_seed(1)
    first = combined.represent(batch)["keys"]
    torch.manual_seed(1)
    again = combined.represent(batch)["keys"]
    torch.manual_seed(2)
    other = combined.represent(batch)["keys"]
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)  # other groups, other statistics
    assert not first.requires_grad
    combined.eval()
    assert not any(part.training for part in tower.modules())


def test_one_group_undoes_the_shuffling(image_file: Path) -> None:
    """With one group the order cannot matter: what is shuffled is put back."""
    combined, corpus = built("moco", image_file, queue=40, norm_groups=1)
    batch = batch_of(combined, corpus, range(16))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(combined.represent(batch)["keys"])
    assert torch.allclose(found[0], found[1], atol=1e-5)


def test_a_batch_without_groups_is_said_to_give_the_keys_away(image_file: Path) -> None:
    """13 images cannot be cut: queries and keys have the same statistics, and the pretext is easy."""
    for groups, rows, said in ((8, 13, 1), (8, 12, 0), (1, 13, 0)):
        combined, corpus = built("moco", image_file, queue=40, norm_groups=groups)
        found = combined.represent(batch_of(combined, corpus, range(rows)))
        remarks = combined.method.remarks(found)
        assert len(remarks) == said
        assert all("A batch of 13 cannot be cut" in remark and "that 8 divides" in remark for remark in remarks)
    bank, corpus = built("moco", image_file, mechanism="memory-bank", queue=30)
    assert not bank.method.remarks(bank.represent(batch_of(bank, corpus, range(13))))


def test_a_text_method_on_images_and_the_reverse_are_refused(
    image_file: Path, image_folder: Path, sentences: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="simcse is about text"):
        isotrope.train("simcse", str(image_file), output=tmp_path / "a")
    with pytest.raises(InputError, match="The data are text, and the model reads images"):
        isotrope.train("simclr", str(sentences), "conv:4", tmp_path / "b")
    with pytest.raises(InputError, match="reads text"):
        isotrope.train("simclr", str(image_file), "builtin-static", tmp_path / "c")
    with pytest.raises(InputError, match="adds a loss over text"):
        isotrope.train("simclr", str(image_file), "conv:4", tmp_path / "d", mlm_weight=0.1)
    with pytest.raises(InputError, match="batch norm would see a chunk"):
        isotrope.train("simclr", str(image_file), "conv:4", tmp_path / "e", chunk_size=4)
    assert [one.name for one in tmp_path.iterdir()] == [sentences.name]


def test_labels_are_needed_where_the_method_needs_them(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=shapes(40)[0])
    with pytest.raises(InputError, match="the images have no labels"):
        isotrope.train("supcon", str(tmp_path / "a.npz"), output=tmp_path / "run", **TINY)
    run = isotrope.train("simclr", str(tmp_path / "a.npz"), output=tmp_path / "run", **TINY)
    assert "knn" not in next(line["evaluation"] for line in run.history if "evaluation" in line)


def test_images_to_judge_by_need_the_classes_of_the_training_images(image_file: Path, tmp_path: Path) -> None:
    images, labels = shapes(20)
    np.savez(tmp_path / "bare.npz", images=images)
    np.savez(tmp_path / "strange.npz", images=images, labels=labels, classes=np.array(["dots", "rows", "zebra"]))
    for name, said in (("bare", "have no labels"), ("strange", "the class 'zebra'")):
        with pytest.raises(InputError, match=said):
            isotrope.train(
                "simclr", str(image_file), output=tmp_path / "run", eval_data=tmp_path / f"{name}.npz", **TINY
            )
    assert not (tmp_path / "run").exists()


def test_the_default_rate_goes_with_the_batch(image_file: Path, tmp_path: Path) -> None:
    """2.0 at 512 images, as SimCLR's recipe for CIFAR has it; a rate that is given stays."""
    loop = {name: value for name, value in TINY.items() if name != "learning_rate"} | {"max_steps": 1}
    for given, wanted in (({}, 2.0 * 16 / 512), ({"learning_rate": 0.3}, 0.3)):
        run = isotrope.train("simclr", str(image_file), output=tmp_path / str(wanted), **loop, **given)
        facts = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
        assert facts["settings"]["learning_rate"] == pytest.approx(wanted)


def test_the_rate_of_one_optimiser_is_not_taken_for_another(image_file: Path, tmp_path: Path) -> None:
    """2.0 is a rate for LARS; AdamW would throw every weight away with it."""
    with pytest.raises(InputError, match="that of lars, not of adamw; give learning_rate"):
        make_plan("simclr", str(image_file), output=tmp_path / "run", optimiser="adamw")
    for given in ({"optimiser": "lars"}, {"optimiser": "adamw", "learning_rate": 1e-3}):
        assert make_plan("simclr", str(image_file), output=tmp_path / "run", **given).loop.optimiser


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("simclr", {"optimiser": "lars", "weight_decay": 1e-4, "schedule": "cosine", "warmup_ratio": 0.1}),
        ("moco", {"optimiser": "sgd", "weight_decay": 5e-4, "schedule": "cosine", "warmup_ratio": 0.0}),
    ],
)
def test_the_plain_command_has_the_authors_schedule(name: str, wanted: dict[str, Any], image_file: Path) -> None:
    """SimCLR's rate rises for 10 of the 100 epochs, MoCo's does not rise; neither clips."""
    plan = make_plan(name, str(image_file))
    loop = plan.loop
    assert {setting: getattr(loop, setting) for setting in wanted} == wanted
    own = {"simclr": {"temperature": 0.5}, "moco": {"temperature": 0.1, "momentum": 0.99, "norm_groups": 8}}[name]
    assert {setting: getattr(plan.settings, setting) for setting in own} == own
    assert plan.settings.head_layers == 2
    assert (loop.epochs, loop.batch_size, loop.max_grad_norm, loop.sgd_momentum) == (100, 512, None, 0.9)


def test_lars_leaves_norms_and_biases_out(image_file: Path) -> None:
    """Neither decay nor trust for them; both for kernels and for the matrices of the head."""
    combined, _ = built("simclr", image_file)
    settings = LoopSettings(optimiser="lars", learning_rate=2.0, weight_decay=1e-4)
    names = {id(parameter): name for name, parameter in combined.named_parameters()}
    found = {
        names[id(parameter)]: (group["adapts"], group["weight_decay"])
        for group in build_optimiser(combined, settings).param_groups
        for parameter in group["params"]
    }
    kept = {name for name, parameter in combined.named_parameters() if parameter.dim() > 1}
    assert len(kept) == 6  # four convolutions, two maps
    assert found == {name: (True, 1e-4) if name in kept else (False, 0.0) for name in names.values()}
    assert {name.rsplit(".", 1)[1] for name in names.values()} == {"weight", "bias"}


def test_one_image_is_too_few(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=shapes(1)[0])
    with pytest.raises(InputError, match="at least two"):
        isotrope.train("simclr", str(tmp_path / "a.npz"), "conv:4", tmp_path / "run")


def test_no_sentence_on_images_speaks_of_texts(
    image_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from isotrope.cli import main

    run, (one_class, *_) = tmp_path / "run", sorted(image_folder.iterdir())
    alike = shutil.copytree(one_class, tmp_path / "alike" / "only").parent
    loop = "--model conv:4 --max-steps 2 --eval-steps 2 --held-out 0".split()
    calls: dict[str, tuple[list[object], int]] = {  # what is expected in the answer: the words, and how they end
        "30 images, 0 duplicates": (["train", "simclr", image_folder, *loop, "--batch-size", 8, "--output", run], 0),
        "bring more data": (["train", "simclr", image_folder, *loop, "--batch-size", 99, "--output", run / "b"], 2),
        "Every record is labelled 'only'": (
            ["train", "supcon", alike, *loop, "--batch-size", 4, "--output", run / "c"],
            2,
        ),
        "sentences or images should be shown": (["report", run, "--output", tmp_path / "page.html"], 2),
        "a bootstrap of images": (["evaluate", run, "--suite", "linear", "--text", image_folder, "--no-leaks"], 0),
        "Every training record": (["evaluate", run, "--suite", "linear", "--text", alike, "--no-leaks"], 2),
    }
    for wanted, (words, code) in calls.items():
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        told = " ".join((captured.out + captured.err).split())
        assert ended.value.code == code, told
        assert wanted in told
        for word in ("of texts", "every text", " documents", " empty lines", "more text", "training text"):
            assert word not in told, told
    assert "text" not in ADVICE


def test_encode_and_search_by_picture(image_folder: Path, image_file: Path, tmp_path: Path) -> None:
    encoder = fresh_image_encoder("conv:4", 16).eval()
    encoder.save(tmp_path / "model")
    found = isotrope.encode(tmp_path / "model", image_folder, tmp_path / "vectors.npy")
    names = (tmp_path / "vectors.names.txt").read_text(encoding="utf-8").splitlines()
    assert (found.sentences, len(names)) == (30, 30)
    query = image_folder / names[11]
    (hit, *others) = isotrope.search(tmp_path / "model", image_folder, str(query), top=3)
    assert (hit.text, hit.score) == (names[11], pytest.approx(1, abs=1e-5))
    assert len(others) == 2


def test_the_command_line_takes_images(image_folder: Path, image_file: Path, tmp_path: Path) -> None:
    from isotrope.cli import main

    loop = "--model conv:4 --max-steps 1 --batch-size 8 --held-out 0".split()
    for data in (image_folder, image_file):
        for words in (
            ["train", "simclr", str(data), *loop, "--output", str(tmp_path / data.name)],
            ["encode", str(tmp_path / data.name), str(data), "--output", str(tmp_path / f"{data.stem}.npy")],
        ):
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert ended.value.code == 0, words
    assert len(np.load(tmp_path / f"{image_folder.stem}.npy")) == 30


def test_a_report_has_a_map_of_thumbnails_for_each_model(image_file: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        fresh_image_encoder("conv:4", 16, seed).eval().save(tmp_path / f"model{seed}")
    models = [tmp_path / f"model{seed}" for seed in (1, 2)]
    made = isotrope.report(*models, text=image_file, output=tmp_path / "page.html", sentences=20)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") == 20  # each image once
    assert page.count('<svg viewBox="0 0 560 560"') == 2
    assert {"name", "knn", "views", "alignment", "uniformity"} == set(made.rows[0])
    assert "http" not in page.replace("http-equiv", "")
    with pytest.raises(InputError, match="reads text"):
        isotrope.report("builtin-static", text=image_file, output=tmp_path / "b.html")


def test_what_is_judged_of_many_images_is_of_all_classes(
    image_file: Path, image_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder stands class by class, so its first images would be those of one class."""
    encoder = fresh_image_encoder("conv:4", 16)
    corpus = open_images(image_file, "labelled-images", 16)
    seen: list[set[int]] = []

    def judged(one: ImageEncoder, bank: Any, known: Any, other: Any, rows: np.ndarray) -> float:
        assert len(rows) == 9
        seen.append({*other.numbers("label")[rows].tolist()})
        return 0.0

    monkeypatch.setattr(image_judge, "JUDGED", 9)
    monkeypatch.setattr(image_judge, "knn_accuracy", judged)
    judge = image_judge.make_image_judge(corpus, np.arange(20), [image_folder])
    judge(encoder)
    judge(encoder)
    assert seen == [{0, 1, 2}, {0, 1, 2}]
    assert image_judge.some(np.arange(5), 9).tolist() == [0, 1, 2, 3, 4]
