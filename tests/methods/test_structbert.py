"""StructBERT: three tasks over one forward, the classes of the pairs, what is asked where."""

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
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.structbert import StructBERT, shuffle_trigrams
from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import Masked, mask_tokens

Build = Callable[..., Any]


@pytest.fixture(scope="module")
def documents(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of sixteen sentences: something follows the first rows that tests take."""
    file = tmp_path_factory.mktemp("documents") / "documents.txt"
    file.write_text("\n\n".join("\n".join(topics[start : start + 16]) for start in range(0, 480, 16)), encoding="utf-8")
    return file


def test_the_card() -> None:
    card = StructBERT.card
    assert (card.name, card.needs, card.year, StructBERT.keeps) == ("structbert", "documents", 2020, "last")
    assert StructBERT.Settings() == StructBERT.Settings(mask_rate=0.15, shuffle_share=0.05)
    assert StructBERT.language_head


def test_classes_are_a_third_each_and_mean_what_they_say(built: Build, documents: Path) -> None:
    """0: B follows A, 1: B precedes A, 2: B is from another document."""
    method = built("structbert", documents, short_share=0.0)
    method.room = 10_000  # nothing is cut
    rows = method.prepared.select(np.arange(len(method.corpus))).tolist()
    records, rng, counts = Records(method.corpus, rows), np.random.default_rng(0), [0, 0, 0]
    for row in rows * 3:
        first, second, label = method.pair(records, row, rng)
        counts[label] += 1
        rest = np.concatenate([method.corpus.tokens(r) for r in range(row, method.corpus.document(row).stop)]).tolist()
        if label == 2:
            assert rest[: len(first)] == first.tolist()
            document = np.asarray(method.corpus.joined(row)).tolist()
            assert second.tolist() not in [document[i : i + len(second)] for i in range(len(document))]
        else:
            sides = (first, second) if label == 0 else (second, first)
            assert np.concatenate(sides).tolist() == rest[: len(first) + len(second)]
    total = sum(counts)
    assert all(abs(count / total - 1 / 3) < 3 * math.sqrt(2 / 9 / total) for count in counts)


def test_masked_and_shuffled_positions_are_apart_and_in_one_text(
    built: Build, documents: Path, batched: Callable[..., Batch]
) -> None:
    batch = batched(built("structbert", documents, shuffle_share=0.3), range(12))
    masked, words = batch["masked"], batch["words"]
    assert masked.tokens is words.tokens
    assert not ((masked.labels >= 0) & (words.labels >= 0)).any()
    assert len(words.asked) > 20
    assert torch.equal(words.tokens.ids[words.labels >= 0].sort().values, words.labels[words.labels >= 0].sort().values)
    assert set(batch.views) == {"masked", "words", "labels"}


def test_the_terms_are_those_of_the_full_softmax_with_equal_weights(
    built: Build, documents: Path, batched: Callable[..., Batch]
) -> None:
    method = built("structbert", documents, shuffle_share=0.3).eval()
    batch = batched(method)
    tokens = batch["masked"].tokens
    given = {"input_ids": tokens.ids, "attention_mask": tokens.mask, "token_type_ids": tokens.segments}
    model = method.encoder.language_model
    terms = method.loss(method.represent(batch), batch.generator())
    assert list(terms) == ["mlm", "words", "sentences"]
    for term, view in (("mlm", "masked"), ("words", "words")):
        assert float(terms[term].detach()) == pytest.approx(
            float(model(**given, labels=batch[view].labels).loss.detach()), rel=1e-5
        )
    scores = method.tower["head"](model.base_model(**given).last_hidden_state[:, 0])
    expected = torch.nn.functional.cross_entropy(scores, batch["labels"].values)
    assert float(terms["sentences"].detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert float(Combined(method).total(terms).detach()) == pytest.approx(
        sum(float(term.detach()) for term in terms.values()), rel=1e-6
    )
    assert scores.shape == (8, 3)


def test_a_batch_without_a_trigram_has_no_word_loss(
    built: Build, documents: Path, batched: Callable[..., Batch]
) -> None:
    method = built("structbert", documents, shuffle_share=1e-9)
    batch = batched(method)
    found = method.represent(batch)
    terms = method.loss(found, batch.generator())
    assert len(found["word_losses"]) == 0
    assert float(terms["words"].detach()) == 0
    Combined(method).total(terms).backward()
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)
    assert set(method.on_held_out(found)) == {
        "structbert_accuracy",
        "structbert_guess",
        "mlm_perplexity",
        "word_order_accuracy",
    }


def test_all_heads_learn_and_only_the_sentence_head_is_dropped(
    built: Build, documents: Path, batched: Callable[..., Batch], tiny: Path, tmp_path: Path
) -> None:
    method = built("structbert", documents, shuffle_share=0.3)
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert set(method.tower) == {"head", "language_head"}
    for tower in method.tower.values():
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in tower.parameters())
    exported = method.export()
    assert np.array_equal(exported.encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"))
    exported.save(tmp_path / "kept")
    assert isotrope.load(tmp_path / "kept", language_head=True).language_model is not None


def test_the_three_classes_of_sentences_can_be_learned(
    built: Build, documents: Path, batched: Callable[..., Batch]
) -> None:
    method = built("structbert", documents).eval()  # no dropout: one batch is memorised
    batch = batched(method)
    optimiser = torch.optim.Adam([weight for weight in method.parameters() if weight.requires_grad], lr=3e-3)
    losses = []
    for _ in range(60):
        loss = method.loss(method.represent(batch), batch.generator())["sentences"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss))
    assert losses[0] == pytest.approx(np.log(3), abs=0.2)
    assert losses[-1] < 0.3


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_losses_of_words(tiny: Path, documents: Path, tmp_path: Path) -> None:
    settings = {
        "batch_size": 32,
        "learning_rate": 3e-3,
        "max_steps": 30,
        "eval_steps": 30,
        "logging_steps": 5,
        "held_out": 40,
    }
    run = isotrope.train("structbert", documents, tiny, tmp_path / "run", **settings)
    lines = [line for line in run.history if "loss" in line]
    assert lines[-1]["mlm"] < 0.85 * lines[0]["mlm"]
    assert lines[-1]["words"] < 0.85 * lines[0]["words"]
    before, after = (line["evaluation"] for line in run.history if "evaluation" in line)
    assert after["mlm_perplexity"] < before["mlm_perplexity"]
    assert after["word_order_accuracy"] > before["word_order_accuracy"]


def test_text_without_documents_is_refused(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(topics[:200]), encoding="utf-8")
    with pytest.raises(InputError, match="one document, and structbert needs several"):
        isotrope.train("structbert", file, tiny, tmp_path / "run", max_steps=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"shuffle_share": 0.0}, "shuffle_share"),
        ({"shuffle_share": 1.1}, "shuffle_share"),
        ({"mask_rate": 1.0}, "mask_rate"),
        ({"short_share": 2.0}, "short_share"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(StructBERT.Settings(**bad))


def rows_of(tokenizer: TextTokenizer, *lengths: int) -> Tokens:
    """Rows in which no token stands twice."""
    return tokenizer.frame([np.arange(10, 10 + length) for length in lengths], 200)


def unasked(tokens: Tokens) -> Masked:
    return Masked.of(tokens, torch.full_like(tokens.ids, -100))


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_labels_are_a_permutation_of_what_stands_there_and_nothing_else_changes(
    tokenizer: TextTokenizer, share: float
) -> None:
    tokens = rows_of(tokenizer, 90, 40, 9)
    found = shuffle_trigrams(unasked(tokens), tokenizer, np.random.default_rng(0), share)
    asked = found.labels >= 0
    assert torch.equal(found.tokens.ids[~asked], tokens.ids[~asked])
    assert torch.equal(found.labels[asked], tokens.ids[asked])
    for row in range(3):
        places = asked[row].nonzero().flatten().tolist()
        assert len(places) % 3 == 0
        while places:  # neighbouring trigrams are told apart from the left
            run, places = places[:3], places[3:]
            assert run[2] - run[0] == 2
            assert (
                sorted(found.tokens.ids[row, run].tolist())
                == found.labels[row, run].tolist()
                != found.tokens.ids[row, run].tolist()
            )


def test_masked_and_special_tokens_keep_their_places(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.frame_pairs([np.arange(10, 50)] * 20, [np.arange(50, 90)] * 20)
    masked = mask_tokens(tokens, tokenizer, np.random.default_rng(0))
    found = shuffle_trigrams(masked, tokenizer, np.random.default_rng(1), 1.0)
    asked, before = found.labels >= 0, masked.labels >= 0
    assert asked.any()
    assert not (asked & before).any()
    assert torch.equal(found.tokens.ids[before], masked.tokens.ids[before])
    special = torch.isin(tokens.ids, torch.tensor(sorted(tokenizer.specials)))
    assert not (asked & special).any()
    # Nothing wanders from one segment into the other.
    sides = [
        torch.sort(torch.where(tokens.segments == side, view.ids, 0)).values
        for side in (0, 1)
        for view in (found.tokens, masked.tokens)
    ]
    assert torch.equal(sides[0], sides[1])
    assert torch.equal(sides[2], sides[3])
    assert found.tokens.segments is tokens.segments


def test_the_share_is_that_of_the_trigrams(tokenizer: TextTokenizer) -> None:
    tokens = rows_of(tokenizer, *([102] * 200))
    found = shuffle_trigrams(unasked(tokens), tokenizer, np.random.default_rng(0), 0.005)
    trigrams = int((found.labels >= 0).sum()) / 3
    assert trigrams / (200 * 100) == pytest.approx(0.005, abs=3 * np.sqrt(0.005 / 20_000))


def test_all_five_wrong_orders_come_up(tokenizer: TextTokenizer) -> None:
    found = shuffle_trigrams(unasked(rows_of(tokenizer, *([3] * 200))), tokenizer, np.random.default_rng(0), 1.0)
    orders = {tuple(row) for row in found.tokens.ids[:, 1:4].tolist()}
    assert len(orders) == 5
    assert (10, 11, 12) not in orders


def test_short_rows_have_nothing_to_shuffle(tokenizer: TextTokenizer) -> None:
    found = shuffle_trigrams(unasked(rows_of(tokenizer, 0, 1, 2)), tokenizer, np.random.default_rng(0), 1.0)
    assert len(found.asked) == 0


def test_a_prompt_keeps_its_order(tokenizer: TextTokenizer) -> None:
    prompted = TextTokenizer(tokenizer.tokenizer, "the old cat walks the dog ")
    tokens = prompted.frame([np.arange(10, 30)] * 20, 200)
    before = len(prompted.prefix)
    assert before > 3
    found = shuffle_trigrams(unasked(tokens), prompted, np.random.default_rng(0), 1.0)
    assert torch.equal(found.tokens.ids[:, :before], tokens.ids[:, :before])
    assert (found.labels[:, before:] >= 0).any()
