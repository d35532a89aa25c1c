"""Pre-training from scratch: full rows, masks at a fixed count, resume, and sentences for text that will not do."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.data.corpus import Records
from isotrope.data.packing import files_of_documents, held_documents, pack
from isotrope.data.random_streams import keyed_seed
from isotrope.data.sources import read_sentences
from isotrope.encoders.dropout_masks import BitDropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.training.loop import make_accelerator
from isotrope.training.packed_feed import PackedLanguage
from isotrope.training.pretrain_settings import PretrainSettings, pretraining_tasks, with_steps
from isotrope.training.pretrain_tasks import Task, packed_task, paired_task

SMALL: dict[str, Any] = {
    "vocabulary": 300,
    "layers": 2,
    "width": 32,
    "heads": 2,
    "length": 32,
    "batch_size": 16,
    "steps": 12,
    "warmup_steps": 2,
    "save_steps": 6,
    "logging_steps": 3,
    "learning_rate": 3e-3,
}


@pytest.fixture
def text(tmp_path: Path, topics: list[str]) -> Path:
    """A file of 600 documents of two sentences."""
    lines = topics
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("\n".join(lines[i : i + 2]) for i in range(0, 1200, 2)) + "\n", encoding="utf-8")
    return path


def test_the_rate_rises_over_a_tenth_of_a_short_run_and_200_updates_of_a_long_one() -> None:
    assert [PretrainSettings(steps=steps).rising() for steps in (1, 50, 2000, 90_000)] == [0, 5, 200, 200]
    assert PretrainSettings(steps=50, warmup_steps=20).rising() == 20


def test_max_steps_is_another_name_of_steps(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {**SMALL, "steps": None, "max_steps": 1, "warmup_steps": 0}
    flags = [word for name, value in words.items() if value is not None for word in (f"--{name}", str(value))]
    with pytest.raises(SystemExit) as stop:
        main(["pretrain", str(text), "--output", str(tmp_path / "run"), *(word.replace("_", "-") for word in flags)])
    assert stop.value.code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["settings"]["steps"] == 1
    assert with_steps({"max-steps": 7, "steps": "7"}) == {"steps": "7"}
    with pytest.raises(InputError, match=r"steps \(12\) and max_steps \(5\) are two names of one setting; give one"):
        isotrope.pretrain([text], tmp_path / "other", **SMALL, max_steps=5)
    assert not (tmp_path / "other").exists()


def test_rows_are_full_and_hold_the_text_in_order(tiny: Path, text: Path) -> None:
    tokenizer = isotrope.load(tiny).text_tokenizer
    start, stop = tokenizer.prefix[0], tokenizer.suffix[0]
    packed = pack([text], tokenizer, start, stop, 32)
    assert (packed.documents, packed.sentences) == (600, 1200)
    for rows in (packed.train, packed.held):
        assert rows.shape[1] == 32
        assert (rows[:, 0] == start).all()
        assert (rows[:, -1] == stop).all()
        assert tokenizer.pad not in rows
    body = packed.train[:, 1:-1].flatten()
    expected: list[int] = []
    last = -1
    aside = held_documents(files_of_documents([text]))
    assert aside.sum() == 3  # one in 200
    for record in read_sentences([text]):
        if aside[record.document]:
            continue
        if record.document != last:
            expected.append(stop)
            last = record.document
        expected.extend(tokenizer.flat([record.texts[0]])[0].tolist())
    assert body.tolist() == expected[: len(body)]
    assert len(expected) - len(body) < 30  # only what fills no row is left out


def test_rows_that_were_packed_elsewhere_train_as_their_text(
    tiny: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    same = {"model": tiny, "length": 32, "batch_size": 16, "steps": 3, "warmup_steps": 1, "save_steps": 3}
    first = isotrope.pretrain([text], tmp_path / "first", **same)
    (made,) = (tmp_path / "cache" / "packed").iterdir()
    moved = shutil.copytree(made, tmp_path / "moved")
    second = isotrope.pretrain(moved, tmp_path / "second", **same)
    assert np.array_equal(first.encoder.encode("a ship"), second.encoder.encode("a ship"))
    with pytest.raises(InputError, match="packed with another vocabulary or length"):
        isotrope.pretrain(moved, tmp_path / "third", **{**same, "length": 24})
    with pytest.raises(InputError, match="is a folder"):
        isotrope.pretrain([moved, text], tmp_path / "third", **same)
    (moved / "train").write_bytes((moved / "train").read_bytes()[:-2])
    with pytest.raises(InputError, match=r"damaged .*copy it again"):
        isotrope.pretrain(moved, tmp_path / "third", **same)
    assert (moved / "train").exists()


def test_documents_are_numbered_through_several_files(tmp_path: Path) -> None:
    for name, content in (("a.txt", "one\ntwo\n\nthree\n"), ("b.txt", "four\n\nfive\n")):
        (tmp_path / name).write_text(content)
    found = [(record.texts[0], record.document) for record in read_sentences([tmp_path / "a.txt", tmp_path / "b.txt"])]
    assert found == [("one", 0), ("two", 0), ("three", 1), ("four", 2), ("five", 3)]


def test_it_learns_and_the_folder_is_a_plain_masked_language_model(text: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    settings = {**SMALL, "steps": 60, "warmup_steps": 5, "save_steps": 30}
    encoder = isotrope.pretrain([text], tmp_path / "run", **settings).encoder
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    held = [line["evaluation"]["held_out_loss"] for line in lines if "evaluation" in line]
    assert losses[-1] < 0.8 * losses[0]
    assert held[-1] < held[0]
    assert all(line["tokens_per_second"] > 0 for line in lines if "loss" in line)
    again, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert again.config.hidden_dropout_prob == 0.1
    texts = ["the chef bakes the bread", "the pilot lands"]
    assert np.allclose(isotrope.load(tmp_path / "run" / "model").encode(texts), encoder.encode(texts), atol=1e-5)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_run_cut_into_pieces_equals_a_run_in_one(text: Path, tmp_path: Path, optimiser: str) -> None:
    settings = {**SMALL, "optimiser": optimiser}
    whole = isotrope.pretrain([text], tmp_path / "whole", **settings)
    cut = isotrope.pretrain([text], tmp_path / "cut", **{**settings, "minutes": 1e-9})  # out of time after one step
    assert not cut.finished
    assert (tmp_path / "cut" / "model").is_dir()  # what it has learned until then can be used
    resumed = isotrope.pretrain([text], tmp_path / "cut", resume=True, **settings)
    assert whole.finished
    assert resumed.finished
    for (name, first), second in zip(whole.encoder.named_parameters(), resumed.encoder.parameters(), strict=True):
        assert torch.equal(first, second), name


def test_seconds_end_a_run_with_its_rate_at_zero(text: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "steps": 100_000, "warmup_steps": 100, "save_steps": 100_000, "logging_steps": 1}
    made = isotrope.pretrain([text], tmp_path / "run", max_seconds=0.5, **settings)
    rates = [line["learning_rate"] for line in made.history if "learning_rate" in line]
    assert made.finished
    assert 2 < len(rates) < 10_000
    assert max(rates) > 0.5 * PretrainSettings().learning_rate  # the warm-up is a share of the steps that there are
    assert rates[-1] < 0.1 * max(rates)


def test_another_models_vocabulary_can_be_taken(text: Path, tiny: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "vocabulary": 123, "steps": 3, "warmup_steps": 1}
    encoder = isotrope.pretrain([text], tmp_path / "run", tokenizer=tiny, **settings).encoder
    assert encoder.text_tokenizer.fingerprint() == isotrope.load(tiny).text_tokenizer.fingerprint()
    assert encoder.backbone.config.vocab_size == encoder.text_tokenizer.vocabulary


def test_text_that_will_not_do(text: Path, tmp_path: Path, topics: list[str]) -> None:
    one = tmp_path / "one.txt"
    one.write_text("\n".join(topics[:100]) + "\n")
    with pytest.raises(InputError, match="documents"):
        isotrope.pretrain([one], tmp_path / "a", **{**SMALL, "vocabulary": 100})
    with pytest.raises(InputError, match="pieces, and 5,000 were asked for"):
        isotrope.pretrain([text], tmp_path / "v", **{**SMALL, "vocabulary": 5000})
    letters = tmp_path / "letters.txt"
    letters.write_text("a b\n\nb a\n")
    with pytest.raises(InputError, match="too small"):
        isotrope.pretrain([letters], tmp_path / "b", **SMALL)
    with pytest.raises(InputError, match="fewer than batch_size"):
        isotrope.pretrain([text], tmp_path / "c", **{**SMALL, "batch_size": 100_000})


def test_resume_with_another_shape_or_text_is_refused(text: Path, tmp_path: Path) -> None:
    isotrope.pretrain([text], tmp_path / "run", **{**SMALL, "steps": 3, "warmup_steps": 1})
    with pytest.raises(InputError, match="width was 32 and is 64"):
        isotrope.pretrain([text], tmp_path / "run", resume=True, **{**SMALL, "width": 64})
    with pytest.raises(InputError, match="vocabulary was 300 and is 200"):
        isotrope.pretrain(
            [text], tmp_path / "run", resume=True, **{**SMALL, "steps": 3, "warmup_steps": 1, "vocabulary": 200}
        )
    with pytest.raises(InputError, match="no run to resume"):
        isotrope.pretrain([text], tmp_path / "nothing", resume=True, **SMALL)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heads", 3),
        ("mask_rate", 1.0),
        ("warmup_steps", 12),
        ("learning_rate", 0),
        ("length", 4),
        ("steps", 0),
        ("optimiser", 1),
    ],
)
def test_settings_that_cannot_work_are_refused(text: Path, tmp_path: Path, name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        isotrope.pretrain([text], tmp_path / "run", **{**SMALL, name: value})


def lines_of(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if name in line]


def measured(folder: Path) -> list[dict[str, float]]:
    return [line["evaluation"] for line in lines_of(folder, "evaluation")]


def test_ctrl_c_leaves_a_checkpoint_and_resume_goes_on(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle, where no checkpoint was due."""
    whole = isotrope.pretrain([text], tmp_path / "whole", **SMALL)
    after, taken = Combined.after_update, iter(range(1, 1000))

    def interrupt(self: Combined, representations: dict[str, torch.Tensor]) -> None:
        after(self, representations)
        if next(taken) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match="step 4"):
            isotrope.pretrain([text], tmp_path / "cut", **SMALL)
    assert (tmp_path / "cut" / "checkpoints" / "step-4").is_dir()
    resumed = isotrope.pretrain([text], tmp_path / "cut", resume=True, **SMALL)
    for (name, first), second in zip(whole.encoder.named_parameters(), resumed.encoder.parameters(), strict=True):
        assert torch.equal(first, second), name


def test_pretraining_goes_on_with_a_model_and_resumes(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = isotrope.pretrain([text], tmp_path / "first", **SMALL)
    still = isotrope.pretrain(
        [text], tmp_path / "still", model=first.folder / "model", **{**SMALL, "learning_rate": 1e-12}
    )
    for (name, before), after in zip(first.encoder.named_parameters(), still.encoder.parameters(), strict=True):
        assert torch.allclose(before, after, atol=1e-6), name  # it began with these weights
    own = {name: value for name, value in SMALL.items() if name not in ("vocabulary", "layers", "width", "heads")}
    whole = isotrope.pretrain([text], tmp_path / "whole", model=first.folder / "model", **own)
    assert whole.rows()[-1]["held_out_loss"] < first.rows()[-1]["held_out_loss"]
    cut = {**own, "minutes": 0}
    assert not isotrope.pretrain([text], tmp_path / "cut", model=first.folder / "model", **cut).finished
    with pytest.raises(InputError, match="cannot resume"):
        isotrope.pretrain([text], tmp_path / "cut", resume=True, **own)
    resumed = isotrope.pretrain([text], tmp_path / "cut", resume=True, model=first.folder / "model", **own)
    for (name, before), after in zip(whole.encoder.named_parameters(), resumed.encoder.parameters(), strict=True):
        assert torch.equal(before, after), name


def test_a_model_to_go_on_with_brings_its_head_vocabulary_and_shape(text: Path, tmp_path: Path) -> None:
    given = {"steps": 2, "warmup_steps": 0, "length": 32}
    for model, more, message in (
        ("builtin", {}, "no masked-language head"),
        ("builtin-base", {"tokenizer": "builtin-base"}, "not both"),
        ("builtin-base", {"layers": 3}, "layers is 6"),
        ("builtin-base", {"length": 256}, "reads 128 tokens"),
    ):
        with pytest.raises(InputError, match=message):
            isotrope.pretrain([text], tmp_path / "run", model=model, **{**given, **more})
    assert not (tmp_path / "run").exists()


def test_masked_language_modelling_alone_is_bit_for_bit_this_loop(text: Path, tmp_path: Path) -> None:
    """The built-in encoder was made by these lines, written out:

    what else pre-training learns to do must not change them.
    """
    trained = isotrope.pretrain([text], tmp_path / "run", **SMALL).encoder
    encoder = isotrope.load(tmp_path / "run" / "start", device="cpu", language_head=True).train()
    model: Any = encoder.language_model
    tokenizer, length, size, steps = encoder.text_tokenizer, 32, 16, 12
    rows = pack([text], tokenizer, tokenizer.prefix[0], tokenizer.suffix[0], length).train
    norms = {p for part in model.modules() if isinstance(part, torch.nn.LayerNorm) for p in part.parameters()}
    groups: dict[float, list[Any]] = {0.01: [], 0.0: []}
    for parameter in model.parameters():
        groups[0.01 if parameter.dim() > 1 and parameter not in norms else 0.0].append(parameter)
    optimiser = torch.optim.AdamW(
        [{"params": members, "weight_decay": decay} for decay, members in groups.items()], lr=3e-3
    )
    factor = [(step + 1) / 3 if step < 2 else (steps - step) / (steps - 2) for step in range(steps)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: factor[step] if step < steps else 0.0)
    specials = torch.tensor(sorted(tokenizer.specials))
    orders: dict[int, torch.Tensor] = {}
    for step in range(steps):
        torch.manual_seed(keyed_seed("forward", 42, step, 0, 0))
        epoch, place = divmod(step, len(rows) // size)
        if epoch not in orders:
            orders[epoch] = torch.randperm(
                len(rows), generator=torch.Generator().manual_seed(keyed_seed("order", 42, epoch))
            )
        ids = torch.from_numpy(rows[orders[epoch][place * size : (place + 1) * size].numpy()].astype(np.int64))
        dice = torch.rand(ids.shape).masked_fill(torch.isin(ids, specials), 2.0)
        positions = dice.topk(round(0.3 * (length - 2)), largest=False).indices
        targets = ids.gather(1, positions)
        fate = torch.rand(positions.shape)
        drawn = torch.randint(len(specials), 300, positions.shape)
        shown = torch.where(fate < 0.1, targets, torch.where(fate < 0.2, drawn, int(tokenizer.mask or 0)))
        with BitDropout():  # the masks of a CPU
            states = model.bert(input_ids=ids.scatter(1, positions, shown)).last_hidden_state
        chosen = states.gather(1, positions.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
        torch.nn.functional.cross_entropy(model.cls(chosen.flatten(0, 1)), targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    found: Any = trained.language_model
    assert [
        name for name, value in model.state_dict().items() if not torch.equal(value, found.state_dict()[name])
    ] == []


def test_the_forward_compiles_as_one_graph(text: Path, tiny: Path) -> None:
    """On a GPU it is compiled; a break in it would cost the speed that the built-in encoder was made with."""
    task = opened(packed_task, text, tiny, PretrainSettings(length=32, batch_size=8))
    method: Any = task.combined.method
    assert isinstance(method, PackedLanguage)
    ids = next(task.feed.batches(skip=0))[1]["rows"].ids
    found = []
    for losses_of in (method.token_losses, torch.compile(method.token_losses, backend="eager", fullgraph=True)):
        torch.manual_seed(3)
        found.append(losses_of(ids).mean().item())
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def opened(make: Callable[..., Task], text: Path | list[Path], tiny: Path, settings: PretrainSettings) -> Task:
    encoder = isotrope.load(tiny, device="cpu", language_head=True)
    accelerator = make_accelerator(settings.loop())
    texts = text if isinstance(text, list) else [text]
    if make is packed_task:
        return make(texts, encoder, settings, accelerator)
    return make(texts, encoder, settings, pretraining_tasks()[settings.tasks.split(",")[-1]], accelerator)


ORDER = ("first", "then", "later", "finally")
TASKS = ["nsp", "sop", "structbert", "mlm,nsp", "sop, mlm"]


@pytest.fixture
def ordered(tmp_path: Path, topics: list[str]) -> Path:
    """400 documents of four sentences in which words tell the order."""
    path = tmp_path / "ordered.txt"
    texts = [
        f"{word} {topics[(4 * number + place) % len(topics)]}"
        for number in range(400)
        for place, word in enumerate(ORDER)
    ]
    path.write_text("\n\n".join("\n".join(texts[i : i + 4]) for i in range(0, 1600, 4)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("tasks", TASKS)
def test_tasks_are_the_methods_and_resume_equals_a_run_in_one(ordered: Path, tmp_path: Path, tasks: str) -> None:
    """The terms and the figures carry the names that ``isotrope train`` gives them; heads of sentence tasks are not
    kept.
    """
    settings = {**SMALL, "tasks": tasks, "steps": 4, "warmup_steps": 1, "save_steps": 2, "logging_steps": 1}
    whole = isotrope.pretrain([ordered], tmp_path / "whole", **settings)
    assert not isotrope.pretrain([ordered], tmp_path / "cut", **{**settings, "minutes": 1e-9}).finished
    resumed = isotrope.pretrain([ordered], tmp_path / "cut", resume=True, **settings)
    first, second = whole.encoder.state_dict(), resumed.encoder.state_dict()
    assert [name for name, value in first.items() if not torch.equal(value, second[name])] == []
    found = [[line["loss"] for line in lines_of(tmp_path / run, "loss")] for run in ("whole", "cut")]
    assert found[0] == found[1]
    names = {name.strip() for name in tasks.split(",")}
    terms = {"mlm", "words", "sentences"} if "structbert" in names else names
    line, held = lines_of(tmp_path / "whole", "loss")[0], measured(tmp_path / "whole")[-1]
    if len(terms) > 1:
        assert line["loss"] == pytest.approx(sum(line[term] for term in terms), rel=1e-5)  # equal weights
    accuracies = {f"{name}_{figure}" for name in names - {"mlm"} for figure in ("accuracy", "guess")}
    assert accuracies <= set(held)
    assert ("mlm_perplexity" in held) == ("mlm" in terms)
    assert set(isotrope.load(tmp_path / "whole" / "model", language_head=True).state_dict()) == set(first)


def test_a_sentence_task_and_masked_language_modelling_are_both_learned(tmp_path: Path) -> None:
    """Two short sentences a document, and their first words tell the order."""
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "nrst"]
    documents = [
        "\n".join(" ".join([word, word, *rng.choice(words, 2)]) for word in ("first", "then")) for _ in range(1200)
    ]
    (tmp_path / "two.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    settings = {
        **SMALL,
        "tasks": "mlm,sop",
        "vocabulary": 100,
        "length": 24,
        "batch_size": 32,
        "steps": 300,
        "warmup_steps": 5,
        "save_steps": 30,
        "logging_steps": 30,
        "learning_rate": 1e-3,
        "dropout": 0.0,
        "mask_rate": 0.15,
    }
    isotrope.pretrain([tmp_path / "two.txt"], tmp_path / "run", **settings)
    first, *_, last = measured(tmp_path / "run")
    assert last["sop_accuracy"] == 1.0
    assert lines_of(tmp_path / "run", "sop")[-1]["sop"] < 0.2
    assert last["mlm_perplexity"] < 0.7 * first["mlm_perplexity"]


def test_one_forward_answers_both_over_masked_pairs(ordered: Path, tmp_path: Path, tiny: Path) -> None:
    """The figures of mlm,sop are those of the two methods over the same masked rows."""
    task = opened(paired_task, ordered, tiny, PretrainSettings(tasks="mlm,sop", length=32))
    method: Any = task.combined.eval().method
    feed: Any = task.feed
    views = method.views(Records(feed.corpus, feed.rows[:16].tolist()), np.random.default_rng(3))
    batch = Batch(views, 16, 0)
    assert set(views) == {"masked", "labels"}
    assert bool((views["masked"].tokens.segments == 1).any())
    terms = method.loss(method.represent(batch), batch.generator())
    masked = views["masked"]
    alone = Batch({"pairs": masked.tokens, "labels": views["labels"]}, 16, 0)
    assert terms["sop"].item() == pytest.approx(
        method.task.loss(method.task.represent(alone), alone.generator())["sop"].item(), rel=1e-5
    )
    language = Batch({"masked": masked}, 16, 0)
    assert terms["mlm"].item() == pytest.approx(
        method.language.loss(method.language.represent(language), language.generator())["mlm"].item(), rel=1e-5
    )
    assert task.combined.total(terms).item() == pytest.approx(terms["sop"].item() + terms["mlm"].item(), rel=1e-6)
    share = masked.labels.ge(0).sum() / (masked.tokens.mask.sum() - 3 * 16)
    assert float(share) == pytest.approx(0.3, abs=0.08)  # the mask rate of pre-training


def test_held_out_documents_begin_no_pair_of_training(ordered: Path, tiny: Path) -> None:
    task = opened(paired_task, ordered, tiny, PretrainSettings(tasks="nsp", length=32))
    feed: Any = task.feed
    aside, seen = (set(feed.corpus.documents[rows].tolist()) for rows in (task.held, feed.rows))
    assert len(aside) == 2
    assert seen == set(range(400)) - aside


def held_texts(task: Task, tokenizer: Any) -> list[str]:
    return [tokenizer.tokenizer.decode(row) for row in task.held]


@pytest.fixture
def two_files(tmp_path: Path, topics: list[str]) -> list[Path]:
    """300 documents about cooking, and 60 about space."""
    files = []
    for name, topic, count in (("books", "chef", 300), ("news", "pilot", 60)):
        lines = [line for line in topics if topic in line]
        documents = [[lines[(2 * number + k) % len(lines)] for k in range(3)] for number in range(count)]
        files.append(tmp_path / f"{name}.txt")
        files[-1].write_text("\n\n".join("\n".join(each) for each in documents) + "\n", encoding="utf-8")
    return files


def test_held_out_rows_come_from_every_file(two_files: list[Path], tiny: Path, monkeypatch: Any) -> None:
    """Not from the first one alone, although it fills all the rows that are measured."""
    monkeypatch.setattr("isotrope.training.pretrain_tasks.HELD_ROWS", 4)
    tokenizer = isotrope.load(tiny).text_tokenizer
    task = opened(packed_task, two_files, tiny, PretrainSettings(length=16))
    text = " ".join(held_texts(task, tokenizer))
    assert len(task.held) == 4
    assert "chef" in text
    assert "crater" in text
    again = opened(packed_task, two_files, tiny, PretrainSettings(length=16, seed=7))
    assert np.array_equal(task.held, again.held)  # two runs are measured on the same rows
    pairs = opened(paired_task, two_files, tiny, PretrainSettings(tasks="sop", length=32))
    feed: Any = pairs.feed
    assert {feed.corpus.text(row).split()[1] for row in pairs.held.tolist()} == {"chef", "pilot"}


def test_one_document_in_200_of_each_file_is_held_out() -> None:
    files = np.repeat([0, 1, 2, 3], [1000, 30, 1, 2])
    held = held_documents(files)
    assert np.bincount(files[held], minlength=4).tolist() == [5, 1, 0, 1]
    assert np.array_equal(held, held_documents(files))
    assert held[:1000].nonzero()[0].tolist() != list(range(199, 1000, 200))
    with pytest.raises(InputError, match="No document can be held out"):
        held_documents(np.array([0, 1]))


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("tasks", ["mlm,sop", "mlm,nsp", "structbert"])
def test_a_small_text_has_held_out_pairs_too(tasks: str, tmp_path: Path, topics: list[str]) -> None:
    """A document in which no pair begins is never the one that is held out."""
    path = tmp_path / "small.txt"
    documents = [topics[4 * number : 4 * number + (4 if number % 5 == 0 else 1)] for number in range(220)]
    path.write_text("\n\n".join("\n".join(each) for each in documents) + "\n", encoding="utf-8")
    isotrope.pretrain(
        [path], tmp_path / "run", **{**SMALL, "tasks": tasks, "vocabulary": 100, "steps": 3, "warmup_steps": 1}
    )
    assert all(np.isfinite(line["held_out_loss"]) for line in measured(tmp_path / "run"))


def test_held_out_sentences_that_repeat_are_measured(tmp_path: Path, topics: list[str], tiny: Path) -> None:
    """Every document has the same first sentence: the held-out ones fill no batch of all of them."""
    path = tmp_path / "greeting.txt"
    documents = [["good morning", *topics[2 * number : 2 * number + 2]] for number in range(400)]
    path.write_text("\n\n".join("\n".join(document) for document in documents) + "\n", encoding="utf-8")
    task = opened(paired_task, path, tiny, PretrainSettings(tasks="mlm,sop", length=32))
    assert len(task.held) == 4
    assert len(task.held_out()["scores"]) == 3


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ("mlm,sopp", "did you mean 'sop'|sop"),
        ("nsp,sop", "tasks names nsp and sop; choose one"),
        ("", "tasks are"),
        ("simcse", "tasks are"),
    ],
)
def test_tasks_that_do_not_go_together_are_refused(ordered: Path, tmp_path: Path, tasks: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.pretrain([ordered], tmp_path / "run", **{**SMALL, "tasks": tasks})


def test_a_sentence_task_needs_documents(tmp_path: Path, topics: list[str]) -> None:
    """Nothing of the run is left behind."""
    for number, (gap, said) in enumerate(
        (("\n", "The text is one document, and sop needs several"), ("\n\n", "single sentence"))
    ):
        path = tmp_path / f"{number}.txt"
        path.write_text(gap.join(topics[:400]) + "\n", encoding="utf-8")
        with pytest.raises(InputError, match=said):
            isotrope.pretrain([path], tmp_path / "run", **{**SMALL, "vocabulary": 100, "tasks": "mlm,sop"})
    few = tmp_path / "few.txt"
    few.write_text("\n".join(topics[:399]) + "\n\n" + topics[399] + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="No document can be held out"):
        isotrope.pretrain([few], tmp_path / "run", **{**SMALL, "vocabulary": 100, "tasks": "mlm,sop"})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tasks", ["mlm,sop", "structbert"])
def test_the_shares_of_masks_are_those_of_pretraining(ordered: Path, tiny: Path, tasks: str) -> None:
    """All kept: what is asked for stands there as it was."""
    settings = PretrainSettings(tasks=tasks, length=32, keep=1.0, replace=0.0, mask_rate=0.5)
    feed: Any = opened(paired_task, ordered, tiny, settings).feed
    views = feed.combined.views(Records(feed.corpus, feed.rows[:32].tolist()), np.random.default_rng(3))
    masked: Any = views["masked"]
    assert len(masked.asked) > 200
    assert torch.equal(masked.tokens.ids.flatten()[masked.asked], masked.labels.flatten()[masked.asked])
