"""Several data sets in one run: one source is today's run, shares hold, runs resume, each source has its lines."""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.data.source_turns import turns
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.training import source_building
from isotrope.training.source_building import SourcesFeed
from isotrope.training.state import TrainingWarning

LOOP: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 4,
    "logging_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "max_steps": 8,
}
pytestmark = [  # a handful of steps on a tiny model need not improve anything
    pytest.mark.filterwarnings("ignore:Training did not improve"),
    pytest.mark.filterwarnings("ignore:Accumulating"),
    pytest.mark.filterwarnings("ignore:240 of 240 pairs are longer"),
]


@pytest.fixture
def three(samples: dict[str, Path]) -> list[dict[str, Any]]:
    """Pairs, scores and plain sentences, each with its own method."""
    return [
        {
            "name": "pairs",
            "data": samples["pairs"],
            "method": "simcse-supervised",
            "share": 2,
            "settings": {"temperature": 0.02},
        },
        {"name": "scores", "data": samples["scored-pairs"], "method": "cosent", "share": 1},
        {"name": "text", "data": samples["sentences"], "method": "simcse", "share": 1, "prompt": "the sailor : "},
    ]


def weights(folder: Path, part: str = "model/model.safetensors") -> dict[str, torch.Tensor]:
    return load_file(folder / part)


def assert_equal_weights(first: Path, second: Path) -> None:
    one, other = weights(first), weights(second)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def lines_of(run: isotrope.Run, key: str) -> list[dict[str, Any]]:
    return [line for line in run.history if key in line]


def without_clock(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in ("records_per_second", "seconds")} for line in lines]


@pytest.mark.parametrize(
    ("method", "kind", "own"),
    [
        ("simcse", "sentences", {}),
        ("simcse-supervised", "triples", {"temperature": 0.02}),  # from a raw start with its kept head
        ("cosent", "scored-pairs", {"mlm_weight": 0.1}),
        ("moco", "sentences", {"queue": 32}),
        ("mlm", "sentences", {}),
        ("sg", "sentences", {"projection": 32}),  # freezes embeddings, has a default of the loop
        ("fine-tune", "labelled-pairs", {}),  # selects by its own task
        ("simcse", "documents", {"positive": "next-sentence", "towers": "separate"}),
    ],
)
def test_one_source_is_the_run_of_its_method_bit_for_bit(
    method: str, kind: str, own: dict[str, Any], tiny: Path, samples: dict[str, Path], tmp_path: Path
) -> None:
    plain = isotrope.train(method, samples[kind], model=tiny, output=tmp_path / "plain", **LOOP, **own)
    source = {"data": samples[kind], "method": method, "settings": own}
    mixed = isotrope.train(sources=[source], model=tiny, output=tmp_path / "mixed", **LOOP)
    assert_equal_weights(plain.folder, mixed.folder)
    assert plain.selected_step == mixed.selected_step
    assert without_clock(lines_of(plain, "evaluation")) == without_clock(lines_of(mixed, "evaluation"))
    assert [line["loss"] for line in lines_of(plain, "loss")] == [line["loss"] for line in lines_of(mixed, "loss")]
    towers = [
        sorted(weights(run.folder, f"checkpoints/step-8/{name}").values(), key=lambda t: (t.shape, float(t.sum())))
        for run, name in ((plain, "weights.safetensors"), (mixed, "weights.safetensors"))
    ]
    assert all(torch.equal(one, other) for one, other in zip(*towers, strict=True))  # heads, queues, second towers
    files = {file.relative_to(plain.folder / "model") for file in (plain.folder / "model").rglob("*.safetensors")}
    for file in files:
        assert (plain.folder / "model" / file).read_bytes() == (mixed.folder / "model" / file).read_bytes()


def test_chunks_and_accumulation_of_one_source_are_those_of_its_method(
    tiny: Path, samples: dict[str, Path], tmp_path: Path
) -> None:
    loop = {**LOOP, "chunk_size": 4, "gradient_accumulation_steps": 2, "max_steps": 4}
    plain = isotrope.train("simcse", samples["sentences"], model=tiny, output=tmp_path / "plain", **loop)
    source = {"data": samples["sentences"], "method": "simcse"}
    with pytest.warns(TrainingWarning, match="adds no negatives"):
        mixed = isotrope.train(sources=[source], model=tiny, output=tmp_path / "mixed", **loop)
    assert_equal_weights(plain.folder, mixed.folder)


def test_chunks_give_the_gradient_of_whole_batches(tiny: Path, three: list[dict[str, Any]], tmp_path: Path) -> None:
    """Dropout off, since a chunk draws its own masks."""
    three[0]["settings"]["dropout"], three[2]["settings"] = 0.0, {"dropout": 0.0}
    loop = {**LOOP, "pooling": "mean", "max_steps": 4, "max_grad_norm": None, "optimiser": "sgd"}
    whole = isotrope.train(sources=three, model=tiny, output=tmp_path / "whole", **loop)
    cut = isotrope.train(sources=three, model=tiny, output=tmp_path / "cut", chunk_size=5, **loop)
    first, second = weights(whole.folder), weights(cut.folder)
    assert all(torch.allclose(first[name], second[name], atol=1e-5) for name in first)
    start, text = isotrope.load(tiny, pooling="mean"), "the chef bakes the bread"
    assert not np.allclose(start.encode(text), whole.encoder.encode(text), atol=1e-3)


def test_two_sources_share_one_encoder_that_sentence_transformers_loads(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", pooling="mean", **LOOP)
    texts = ["the chef bakes the bread", "the sailor steers the boat across the windy bay"]
    again = sentence_transformers.SentenceTransformer(str(run.folder / "model"), device="cpu")
    assert np.allclose(again.encode(texts), run.encoder.encode(texts), atol=1e-5)
    assert isotrope.load(run.folder / "model").prompt == ""  # a source's prompt is not the model's
    assert again.prompts["text"] == "the sailor : "
    prompted = again.encode(texts, prompt_name="text")
    assert np.allclose(prompted, run.encoder.encode(["the sailor : " + text for text in texts]), atol=1e-5)


def test_shares_hold_at_every_step() -> None:
    for shares in ([1, 1], [2, 1, 1], [0.7, 0.2, 0.1], [100, 1], [3, 5, 7, 11, 13, 0.5]):
        counts, wanted = np.zeros(len(shares)), np.array(shares) / sum(shares)
        for step, source in enumerate(itertools.islice(turns(shares), 2000), 1):
            counts[source] += 1
            assert np.abs(counts - step * wanted).max() <= 1.0 + 1e-9, (shares, step)
    assert list(itertools.islice(turns([5]), 3)) == [0, 0, 0]


def test_each_batch_is_of_one_source_and_shares_hold(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, set[str]]] = []
    plain = SourcesFeed._make

    def noting(self: SourcesFeed, number: int, turn: Any) -> Any:
        batch = plain(self, number, turn)
        seen.append((turn[0], set(batch.views)))
        assert batch.source == turn[0]
        return batch

    monkeypatch.setattr(SourcesFeed, "_make", noting)
    run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", pooling="mean", **LOOP)
    assert dict(seen) == {
        0: {"anchor", "positive"},
        1: {"first", "second", "scores"},
        2: {"first", "second"},
    }
    assert [source for source, _ in seen[:8]] == [0, 1, 2, 0, 0, 1, 2, 0]
    assert [source.share for source in run.sources] == [0.5, 0.25, 0.25]
    training = [(line["source"], line["training"]["batches"]) for line in lines_of(run, "training")]
    assert {name: sum(count for one, count in training if one == name) for name in ("pairs", "scores", "text")} == {
        "pairs": 4,
        "scores": 2,
        "text": 2,
    }


def test_without_shares_the_sizes_decide_and_an_epoch_is_all_of_them(
    tiny: Path, samples: dict[str, Path], tmp_path: Path
) -> None:
    sources = [
        {"data": samples["pairs"], "method": "simcse-supervised", "settings": {"batch_size": 24}},
        {"data": samples["sentences"], "method": "simcse"},
    ]
    loop = {**LOOP, "max_steps": None, "held_out": 0, "eval_steps": 100}
    run = isotrope.train(sources=sources, model=tiny, output=tmp_path / "run", pooling="mean", **loop)
    assert [source.name for source in run.sources] == ["pairs", "sentences"]
    assert [source.share for source in run.sources] == [10 / 40, 30 / 40]  # 240 records by 24, 480 by 16
    assert max(line["step"] for line in run.history) == 40


def test_every_source_has_lines_for_training_and_for_its_held_out_text(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path
) -> None:
    three[1] = {"name": "masks", "data": three[2]["data"], "method": "mlm", "share": 1}
    run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", pooling="mean", **LOOP)
    written = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert written == run.history
    held = {(line["step"], line["source"]): line["held_out"] for line in lines_of(run, "held_out")}
    assert list(held) == [(step, name) for step in (0, 4, 8) for name in ("pairs", "masks", "text")]
    assert "retrieval_mrr" in held[0, "pairs"]
    assert "mlm_perplexity" in held[8, "masks"] or any("mlm" in name for name in held[8, "masks"])
    for line in lines_of(run, "evaluation"):
        own = [held[line["step"], name]["retrieval_mrr"] for name in ("pairs", "masks", "text")]
        assert line["score"] == pytest.approx(0.5 * own[0] + 0.25 * own[1] + 0.25 * own[2])
        assert line["chosen_by"] == "retrieval_mrr"  # pairs have no other_view
    trained = [line["training"] for line in lines_of(run, "training") if line["source"] == "pairs"]
    assert all({"loss", "contrastive", "candidates"} <= set(line) for line in trained)


def test_sources_of_one_sort_are_judged_by_what_each_alone_would_be(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path
) -> None:
    masks = {"name": "masks", "data": three[2]["data"], "method": "mlm", "share": 1}
    loop = {**LOOP, "pooling": "mean", "max_steps": 1}
    run = isotrope.train(sources=[masks, three[2]], model=tiny, output=tmp_path / "run", **loop)
    held = {line["source"]: line["held_out"]["other_view"] for line in lines_of(run, "held_out") if line["step"] == 0}
    first = lines_of(run, "evaluation")[0]
    assert first["chosen_by"] == "other_view"
    assert first["score"] == pytest.approx(sum(held.values()) / 2)


def test_a_source_of_which_nothing_is_held_out_has_no_say(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path
) -> None:
    three[1]["settings"] = {"held_out": 0}
    loop = {**LOOP, "pooling": "mean", "max_steps": 1}
    with pytest.warns(TrainingWarning, match="Source 'scores': nothing of it is held out"):
        run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", **loop)
    held = {line["source"]: line["held_out"] for line in lines_of(run, "held_out") if line["step"] == 0}
    assert list(held) == ["pairs", "text"]
    mean = (2 * held["pairs"]["retrieval_mrr"] + held["text"]["retrieval_mrr"]) / 3
    assert lines_of(run, "evaluation")[0]["score"] == pytest.approx(mean)


def test_held_out_text_of_one_source_is_trained_on_by_none(
    tiny: Path, samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both files are made of the same texts."""
    kept: list[Any] = []
    plain = source_building.build_sources

    def noting(*given: Any) -> Any:
        kept.append(plain(*given))
        return kept[-1]

    monkeypatch.setattr("isotrope.training.source_run.build_sources", noting)
    sources = [
        {"data": samples["pairs"], "method": "simcse-supervised"},
        {"data": samples["sentences"], "method": "simcse"},
    ]
    isotrope.train(sources=sources, model=tiny, output=tmp_path / "run", pooling="mean", **{**LOOP, "max_steps": 1})
    texts = [
        [
            {opened.corpus.text(row, field) for row in rows for field in opened.corpus.record_type.fields}
            for rows in (built.feed.rows, built.held)
        ]
        for opened, built in zip(kept[0].opened, kept[0].built, strict=True)
    ]
    assert all(len(held) >= 20 for _, held in texts)
    for train, _ in texts:
        for _, held in texts:
            assert not train & held


def test_no_neighbour_is_a_text_that_another_source_holds_out(
    tiny: Path, topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of documents are read with what follows them; both files are made of the same texts."""
    seen: list[Any] = []
    plain = source_building.build_sources
    monkeypatch.setattr(
        "isotrope.training.source_run.build_sources", lambda *given: seen.append(plain(*given)) or seen[-1]
    )
    lines = [f"{text} {number}" for number, text in enumerate(topics[:400])]
    documents, loose = tmp_path / "documents.txt", tmp_path / "loose.txt"
    documents.write_text("\n\n".join("\n".join(lines[at : at + 4]) for at in range(0, 400, 4)), encoding="utf-8")
    loose.write_text("\n".join([*lines[::9], *(f"{line} more" for line in lines)]), encoding="utf-8")
    sources = [
        {"data": documents, "method": "simcse", "settings": {"positive": "next-sentence"}},
        {"data": loose, "method": "simcse"},
    ]
    isotrope.train(sources=sources, model=tiny, output=tmp_path / "run", pooling="mean", **{**LOOP, "max_steps": 1})
    (first, second), (own, other) = seen[0].opened, seen[0].built
    held = {second.corpus.text(row) for row in other.held}
    read = {first.corpus.text(row + step) for row in own.feed.rows for step in (0, 1)}
    assert held & set(lines)
    assert not read & held


@pytest.mark.parametrize("accumulation", [1, 2])
def test_resume_equals_an_uninterrupted_run(
    accumulation: int, tiny: Path, three: list[dict[str, Any]], tmp_path: Path
) -> None:
    three.append({"name": "queue", "data": three[2]["data"], "method": "moco", "share": 1, "settings": {"queue": 24}})
    loop = {**LOOP, "model": tiny, "pooling": "mean", "max_steps": 12, "gradient_accumulation_steps": accumulation}
    whole = isotrope.train(sources=three, output=tmp_path / "whole", **loop)
    stops, taken = Combined.after_update, itertools.count(1)

    def interrupt(self: Combined, representations: Any) -> None:
        stops(self, representations)
        if next(taken) == 6:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt):
            isotrope.train(sources=three, output=tmp_path / "cut", **loop)
    resumed = isotrope.train(sources=three, output=tmp_path / "cut", resume=True, **loop)
    assert_equal_weights(whole.folder, resumed.folder)
    last = "checkpoints/step-12/weights.safetensors"
    first, second = weights(whole.folder, last), weights(resumed.folder, last)
    assert all(torch.equal(first[name], second[name]) for name in first)  # queues and heads too
    assert [line for line in without_clock(whole.history) if "evaluation" in line or "held_out" in line] == [
        line for line in without_clock(resumed.history) if "evaluation" in line or "held_out" in line
    ]


def test_a_run_of_other_sources_is_not_resumed(tiny: Path, three: list[dict[str, Any]], tmp_path: Path) -> None:
    loop = {**LOOP, "model": tiny, "pooling": "mean", "output": tmp_path / "run", "max_steps": 2}
    isotrope.train(sources=three, **loop)
    three[0]["settings"] = {"temperature": 0.5}
    with pytest.raises(InputError, match=r"the mixture differs: pairs: settings: temperature was 0.02 and is 0.5"):
        isotrope.train(sources=three, resume=True, **loop)


def test_a_tower_learns_from_its_own_source_alone(tiny: Path, three: list[dict[str, Any]], tmp_path: Path) -> None:
    """A head that no batch reached is as it was drawn: neither weight decay nor moments move it."""
    three[2] |= {"settings": {"head": "train-only"}, "share": 0.001}
    loop = {**LOOP, "pooling": "mean", "weight_decay": 0.5, "held_out": 0}
    short = isotrope.train(sources=three, model=tiny, output=tmp_path / "short", **{**loop, "max_steps": 1})
    long = isotrope.train(sources=three, model=tiny, output=tmp_path / "long", **{**loop, "max_steps": 6})
    first = weights(short.folder, "checkpoints/step-1/weights.safetensors")
    second = weights(long.folder, "checkpoints/step-6/weights.safetensors")
    heads = [name for name in first if "tower.head" in name]
    assert heads
    assert all(torch.equal(first[name], second[name]) for name in heads)


def test_scored_pairs_choose_the_checkpoint_where_they_are_given(
    tiny: Path, three: list[dict[str, Any]], samples: dict[str, Path], tmp_path: Path
) -> None:
    run = isotrope.train(
        sources=three,
        model=tiny,
        output=tmp_path / "run",
        pooling="mean",
        eval_data=samples["scored-pairs"],
        **{**LOOP, "max_steps": 4},
    )
    last = lines_of(run, "evaluation")[-1]
    assert last["chosen_by"] == "spearman"
    assert last["score"] == last["evaluation"]["spearman"]
    assert all("spearman" not in line["held_out"] for line in lines_of(run, "held_out"))


def test_a_prompt_stands_before_the_texts_of_its_source_alone(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_ids: dict[int, set[tuple[int, ...]]] = {}
    plain = SourcesFeed._make

    def noting(self: SourcesFeed, number: int, turn: Any) -> Any:
        batch = plain(self, number, turn)
        view = next(iter(batch.views.values()))
        first_ids.setdefault(turn[0], set()).update(tuple(row[1:4]) for row in view.ids.tolist())
        return batch

    monkeypatch.setattr(SourcesFeed, "_make", noting)
    run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", pooling="mean", **LOOP)
    prompt = tuple(run.encoder.tokenize(["the sailor :"]).ids[0, 1:4].tolist())
    assert first_ids[2] == {prompt}
    assert prompt not in first_ids[0]


def test_the_final_table_has_a_part_for_each_source(
    tiny: Path, three: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_FINAL_TABLE", "1")
    loop = {**LOOP, "pooling": "mean", "max_steps": 2}
    with pytest.warns(TrainingWarning):
        run = isotrope.train(sources=three, model=tiny, output=tmp_path / "run", **loop)
    written = json.loads((run.folder / "run.json").read_text())["worth"]
    assert list(written) == ["pairs", "scores", "text"]
    assert run.worth is run.sources[0].worth
    assert all(source.worth is not None and source.worth.rows for source in run.sources)


def test_records_in_memory_are_a_source(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    sources = [
        {"data": topics[:300], "method": "simcse"},
        {"data": list(zip(topics[300::2], topics[301::2], strict=True)), "method": "simcse-supervised"},
    ]
    run = isotrope.train(sources=sources, model=tiny, output=tmp_path / "run", pooling="mean", **LOOP)
    assert [source.name for source in run.sources] == ["source 1", "source 2"]
    assert json.loads((run.folder / "run.json").read_text())["sources"] == ["a list in memory"] * 2
