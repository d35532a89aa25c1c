"""DeepMoji: which emoji are classes, how much each counts, that it is guessed better, and what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records
from isotrope.encoders.parts.attention import Attention
from isotrope.errors import InputError
from isotrope.methods.deepmoji import DeepMoji, classes_of
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.settings import check

Build = Callable[..., Any]
UNEVEN = ["the chef 😂", "the boat 😂", "the rose 😂", "the hall 🔥", "the mast 🔥", "the soup ❤", "the seed 👍"]


def test_the_card() -> None:
    card = DeepMoji.card
    assert (card.name, card.needs, card.year, card.accepts) == ("deepmoji", "labelled", 2017, ("emoji",))


def test_the_most_frequent_are_classes_and_the_others_are_left_out(built: Build) -> None:
    method = built("deepmoji", UNEVEN, emoji=2)
    assert method.corpus.classes == ["❤", "👍", "🔥", "😂"]
    assert classes_of(method.corpus, 2).tolist() == [-1, -1, 0, 1]
    assert classes_of(method.corpus, 3).tolist() == [0, -1, 1, 2]  # of ❤ and 👍, equally rare, the first
    assert method.prepared.select(np.arange(7)).tolist() == [0, 1, 2, 3, 4]
    assert method.tower["head"].module.out_features == 2
    assert method.prepared.remarks == ("The 2 most frequent of 4 labels are kept; 2 records are left out.",)
    faceless = built("deepmoji", [*UNEVEN, "no face"]).prepared
    assert faceless.remarks == ("1 texts have no emoji, or nothing else, and are left out.",)
    assert built("deepmoji", UNEVEN).prepared.remarks == ()


def test_balanced_each_class_counts_the_same(built: Build, batched: Callable[..., Batch]) -> None:
    """The loss is the mean over classes of the mean over their records; without balance the mean over records."""
    method = built("deepmoji", UNEVEN).eval()
    batch = batched(method, range(7))
    with torch.no_grad():
        found = method.represent(batch)
    losses = torch.nn.functional.cross_entropy(found["scores"], found["labels"], reduction="none")
    by_class = torch.stack([losses[found["labels"] == number].mean() for number in range(4)])
    assert float(method.loss(found, batch.generator())["emoji"]) == pytest.approx(float(by_class.mean()), abs=1e-6)
    assert method.class_weights.tolist() == pytest.approx([7 / 4, 7 / 4, 7 / 8, 7 / 12])
    labels = method.classes[method.corpus.numbers("label")]
    method.count(np.flatnonzero(np.arange(7) != np.flatnonzero(labels == 3)[0]))  # one of the three is held out
    assert method.class_weights.tolist() == pytest.approx([6 / 4, 6 / 4, 6 / 8, 6 / 8])
    plain = built("deepmoji", UNEVEN, balanced=False).eval()
    plain.count(np.arange(6))
    assert plain.class_weights.tolist() == [1, 1, 1, 1]
    assert float(plain.loss(found, batch.generator())["emoji"]) == pytest.approx(float(losses.mean()), abs=1e-6)


def test_a_head_that_knows_nothing_costs_the_logarithm_of_the_classes(
    built: Build, batched: Callable[..., Batch]
) -> None:
    method = built("deepmoji", UNEVEN)
    torch.nn.init.zeros_(method.tower["head"].module.weight)
    torch.nn.init.zeros_(method.tower["head"].module.bias)
    batch = batched(method, range(7))
    assert float(method.loss(method.represent(batch), batch.generator())["emoji"].detach()) == pytest.approx(
        math.log(4), abs=1e-6
    )


def test_what_is_measured_on_held_out_records(built: Build) -> None:
    scores = torch.eye(7)[[0, 1, 2, 3, 4, 5]] * 9 - torch.arange(7)
    found = built("deepmoji", UNEVEN).on_held_out({"scores": scores, "labels": torch.tensor([0.0, 1, 2, 3, 0, 6])})
    expected = {
        "emoji_accuracy": 4 / 6,
        "emoji_top5": 5 / 6,
        "emoji_macro_f1": (2 / 3 + 1 + 1 + 1 + 0 + 0 + 0) / 7,
        "emoji_guess": 2 / 6,
    }
    assert {name: float(value) for name, value in found.items()} == pytest.approx(expected)


def test_the_texts_are_without_their_emoji(built: Build, samples: dict[str, Path]) -> None:
    method = built("deepmoji", samples["emoji"])
    views = method.views(Records(method.corpus, [0, 1]), np.random.default_rng(0))
    assert views["labels"].values.tolist() == method.classes[method.corpus.numbers("label")[:2]].tolist()
    unknown = method.encoder.tokenizer.unk_token_id
    assert not (views["texts"].ids == unknown).any()


def test_padding_and_company_do_not_matter(
    built: Build, batched: Callable[..., Batch], samples: dict[str, Path]
) -> None:
    method = built("deepmoji", samples["emoji"]).eval()
    torch.nn.init.normal_(method.encoder.token_weights.vector)
    batch = batched(method, range(10))
    whole = method.represent(batch)["scores"]
    assert torch.allclose(torch.cat([method.represent(chunk)["scores"] for chunk in batch.chunks(3)]), whole, atol=1e-5)
    turned = method.represent(batched(method, range(9, -1, -1)))["scores"]
    assert torch.allclose(turned.flip(0), whole, atol=1e-5)


@pytest.mark.parametrize("read_out", ["attention", "pooling"])
def test_the_head_is_dropped_and_the_attention_kept(
    built: Build, samples: dict[str, Path], read_out: str, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    method = built("deepmoji", samples["labelled"], read_out=read_out, pooling="cls").eval()
    exported = method.export()
    attends = read_out == "attention"
    assert isinstance(exported.token_weights, Attention) == attends
    assert exported.pooling.name == ("attention" if attends else "cls")
    assert exported.dimension == 32
    exported.save(tmp_path / "model")
    texts = ["the chef bakes", "salt"]
    there = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True, trust_remote_code=attends)
    assert np.allclose(there.encode(texts), exported.encode(texts), atol=1e-5)
    assert not any("head" in name for name in isotrope.load(tmp_path / "model", device="cpu").state_dict())


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_emoji_of_held_out_text_is_guessed_better(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    """Each topic has its face, and the attention is trained along."""
    faces = dict(zip(("chef", "sailor", "pianist", "farmer", "pilot"), "😂❤🔥👍✨", strict=True))
    tweets = [f"{text} {faces[text.split()[1]]}" for text in topics[:500]]
    settings = {"batch_size": 32, "learning_rate": 3e-3, "max_steps": 40, "eval_steps": 40, "held_out": 50}
    run = isotrope.train("deepmoji", tweets, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"] for line in run.history if "evaluation" in line)
    assert after["emoji_accuracy"] > 0.9 > 0.5 > before["emoji_accuracy"]
    assert after["emoji_macro_f1"] > 0.9
    assert after["emoji_top5"] == 1.0
    assert run.encoder.token_weights.vector.abs().max() > 1e-3


def test_data_and_settings_that_cannot_work_are_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    for settings, sentence in (({"emoji": 1}, "at least 2"), ({"read_out": "max"}, "read_out is one of")):
        with pytest.raises(InputError, match=sentence):
            check(DeepMoji.Settings(**settings))
    with pytest.raises(InputError, match="needs its data"):
        DeepMoji(DeepMoji.Settings(), isotrope.load(tiny, device="cpu"), 64)
    same = [f"the chef number {number} 😂" for number in range(50)]
    for data, sentence in (
        (sentences, "no emoji found"),
        (same, "Every text is labelled 😂; at least two different emoji are needed"),
    ):
        with pytest.raises(InputError, match=sentence):
            isotrope.train("deepmoji", data, tiny, tmp_path / "run", batch_size=8, held_out=0)
        assert not (tmp_path / "run").exists()
