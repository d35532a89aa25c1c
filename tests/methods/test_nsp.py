"""Next sentence and sentence order prediction: which segments meet, what the labels mean, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.methods.rtd import ReplacedTokenDetection, RTDSettings

BOTH = ("nsp", "sop")
SHORT = {"batch_size": 16, "learning_rate": 1e-3, "logging_steps": 1, "held_out": 40, "eval_steps": 5, "max_steps": 5}
Build = Callable[..., Any]


@pytest.fixture(scope="module")
def documents(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of sixteen sentences: something follows the first rows that tests take."""
    file = tmp_path_factory.mktemp("documents") / "documents.txt"
    file.write_text("\n\n".join("\n".join(topics[start : start + 16]) for start in range(0, 480, 16)), encoding="utf-8")
    return file


def drawn(method: Any, times: int = 8, rows: range | None = None) -> list[tuple[int, list[int], list[int], int]]:
    """(row, first segment, second segment, label) of each record, several times."""
    corpus: Corpus = method.corpus
    records = Records(corpus, list(rows or range(len(corpus))))
    found = []
    for seed in range(times):
        rng = np.random.default_rng(seed)
        for row in records.rows:
            first, second, label = method.pair(records, row, rng)
            found.append((row, first.tolist(), second.tolist(), label))
    return found


def place_of(part: list[int], whole: list[int]) -> int:
    return next((i for i in range(len(whole) - len(part) + 1) if whole[i : i + len(part)] == part), -1)


def test_the_cards() -> None:
    for name, year in zip(BOTH, (2019, 2020), strict=True):
        card = find(name).card
        assert (card.name, card.needs, card.year) == (name, "documents", year)
        assert find(name).keeps == "last"
    assert find("nsp").Settings().random_share == find("sop").Settings().swap_share == 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", BOTH)
def test_segments_are_never_empty_and_fit(name: str, built: Build, documents: Path) -> None:
    method = built(name, documents)
    rows = method.prepared.select(np.arange(len(method.corpus)))
    for _, first, second, _ in drawn(method, 2, rows.tolist()):
        assert min(len(first), len(second)) >= 1
        assert len(first) + len(second) <= 64 - 3 == method.room
    tokens = method.views(Records(method.corpus, rows[:40].tolist()), np.random.default_rng(0))["pairs"]
    assert int(tokens.lengths.max()) <= 64
    for ids, segments, length in zip(tokens.ids, tokens.segments, tokens.lengths, strict=True):
        inside = segments[:length]
        assert int(inside.diff().abs().sum()) == 1  # switches exactly once
        sep = method.encoder.text_tokenizer.suffix[0]
        assert (ids[:length] == sep).nonzero().flatten().tolist() == [int((inside == 0).sum()) - 1, length - 1]


def test_pairs_that_are_next_are_contiguous_and_others_are_from_elsewhere(built: Build, documents: Path) -> None:
    """Label 0: is next. Label 1: from another document."""
    method = built("nsp", documents, short_share=0.0)
    method.room = 10_000  # nothing is cut
    seen = {0: 0, 1: 0}
    for row, first, second, label in drawn(method, 2):
        document = method.corpus.joined(row).tolist()
        rest = [
            token for r in range(row, method.corpus.document(row).stop) for token in method.corpus.tokens(r).tolist()
        ]
        assert rest[: len(first)] == first
        if label == 0:
            assert rest[: len(first) + len(second)] == first + second
        else:
            assert place_of(second, document) == -1
        seen[label] += 1
    assert min(seen.values()) > 100


def test_the_share_of_random_pairs(built: Build, documents: Path) -> None:
    method = built("nsp", documents)
    last = method.corpus.documents[1:] != method.corpus.documents[:-1]
    inner = np.flatnonzero(~np.append(last, True))
    labels = [label for *_, label in drawn(method, 5, inner.tolist())]
    assert np.mean(labels) == pytest.approx(0.5, abs=3 * math.sqrt(0.25 / len(labels)))
    alone = np.flatnonzero(np.append(last, True)).tolist()  # nothing follows them
    assert {label for *_, label in drawn(method, 5, alone)} == {1}
    rare = built("nsp", documents, random_share=0.1)
    assert np.mean([label for *_, label in drawn(rare, 3, inner.tolist())]) == pytest.approx(0.1, abs=0.03)


def test_swapping_changes_the_order_alone(built: Build, documents: Path) -> None:
    """The same dice with another share: the segments are those of the other label, changed over."""
    rarely, often = (built("sop", documents, swap_share=share) for share in (1e-9, 1 - 1e-9))
    rows = rarely.prepared.select(np.arange(100))
    for kept, swapped in zip(drawn(rarely, 2, rows.tolist()), drawn(often, 2, rows.tolist()), strict=True):
        assert (kept[3], swapped[3]) == (0, 1)
        assert (kept[1], kept[2]) == (swapped[2], swapped[1])  # swapped twice is as before
        whole = [
            token
            for r in range(kept[0], rarely.corpus.document(kept[0]).stop)
            for token in rarely.corpus.tokens(r).tolist()
        ]
        assert place_of(kept[2], whole) > place_of(kept[1], whole) >= 0  # 0: in the order of the text
    labels = [label for *_, label in drawn(built("sop", documents), 5, rows.tolist())]
    assert np.mean(labels) == pytest.approx(0.5, abs=3 * math.sqrt(0.25 / len(labels)))


def test_sentences_that_nothing_follows_have_no_order(built: Build, tmp_path: Path, topics: list[str]) -> None:
    path = tmp_path / "uneven.txt"
    path.write_text("\n\n".join("\n".join(part) for part in (topics[:1], topics[1:4], topics[4:6])), encoding="utf-8")
    for name, kept in (("nsp", [0, 1, 2, 3, 4, 5]), ("sop", [1, 2, 4])):
        method = built(name, path)
        assert method.prepared.select(np.arange(6)).tolist() == kept
        (said,) = method.prepared.remarks
        assert said.startswith("1 of 3 documents are a single sentence")


@pytest.mark.parametrize("name", BOTH)
def test_the_loss_is_that_of_a_guess_at_first_and_counts_each_pair(
    name: str, built: Build, batched: Callable[..., Batch], documents: Path
) -> None:
    method = built(name, documents)
    batch = batched(method, range(6))
    found = method.represent(batch)
    scores, labels = found["scores"].detach().double(), found["labels"]
    assert scores.shape == (6, 2)
    expected = sum(
        math.log(sum(math.exp(s) for s in row)) - row[label]
        for row, label in zip(scores.tolist(), labels.tolist(), strict=True)
    )
    assert float(method.loss(found, batch.generator())[name].detach()) == pytest.approx(expected / 6, abs=1e-6)
    guess = {"scores": torch.zeros(6, 2), "labels": labels}
    assert float(method.loss(guess, batch.generator())[name]) == pytest.approx(math.log(2))
    right = method.on_held_out({"scores": torch.nn.functional.one_hot(labels, 2).float(), "labels": labels})
    assert float(right[f"{name}_accuracy"]) == 1
    wrong = method.on_held_out({"scores": 1 - torch.nn.functional.one_hot(labels, 2).float(), "labels": labels})
    assert float(wrong[f"{name}_accuracy"]) == 0


@pytest.mark.parametrize("name", BOTH)
def test_the_head_reads_the_first_token_and_is_dropped(
    name: str, built: Build, batched: Callable[..., Batch], documents: Path, tiny: Path
) -> None:
    method = built(name, documents).eval()
    batch = batched(method)
    tokens = batch["pairs"]
    given = {"input_ids": tokens.ids, "attention_mask": tokens.mask, "token_type_ids": tokens.segments}
    first = method.encoder.backbone(**given).last_hidden_state[:, 0]
    dense, judge = method.tower["head"].module
    expected = judge(torch.tanh(dense.linear(first)))
    assert torch.allclose(method.represent(batch)["scores"], expected, atol=1e-6)
    without = method.encoder.backbone(**{**given, "token_type_ids": None}).last_hidden_state[:, 0]
    assert not torch.allclose(first, without, atol=1e-4)  # segment ids count
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    learned = {
        key.split(".")[0] for key, p in method.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
    }
    assert learned == {"encoder", "tower"}
    assert np.array_equal(method.export().encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"))


def test_a_model_without_token_types_works_too(tiny: Path, documents: Path, tmp_path: Path, built: Build) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    encoder = isotrope.load(tiny)
    config = DistilBertConfig(
        vocab_size=encoder.text_tokenizer.vocabulary,
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
    )
    plain = isotrope.Encoder(DistilBertModel(config), encoder.tokenizer)
    assert plain.frame_pairs([np.array([7])], [np.array([8])]).segments is None
    run = isotrope.train(
        "sop", documents, plain, tmp_path / "run", mlm_weight=0.0, **{**SHORT, "max_steps": 2, "eval_steps": 2}
    )
    assert len(run.history) >= 3


@pytest.mark.parametrize("name", BOTH)
def test_neither_order_nor_padding_nor_chunks_matter(
    name: str, built: Build, batched: Callable[..., Batch], documents: Path
) -> None:
    method = built(name, documents).eval()
    batch = batched(method, range(10))
    whole = method.represent(batch)
    parts = [method.represent(chunk) for chunk in batch.chunks(3)]
    for key, tensor in whole.items():
        assert torch.allclose(torch.cat([part[key] for part in parts]), tensor, atol=1e-5)
    backwards = {key: tensor.flip(0) for key, tensor in whole.items()}
    assert float(method.loss(backwards, batch.generator())[name].detach()) == pytest.approx(
        float(method.loss(whole, batch.generator())[name].detach()), abs=1e-6
    )


@pytest.mark.parametrize("name", BOTH)
def test_chunks_give_the_gradient_of_the_whole_batch(
    name: str, built: Build, chunks_agree: Callable[[Method, Method], None], documents: Path
) -> None:
    chunks_agree(built(name, documents), built(name, documents))


@pytest.mark.parametrize("name", BOTH)
def test_resume_equals_uninterrupted(name: str, resume_agrees: Callable[..., None], documents: Path) -> None:
    resume_agrees(name, documents)


def test_added_mlm_masks_the_pairs_and_keeps_their_segments(
    built: Build, batched: Callable[..., Batch], with_mlm: Callable[..., Combined], documents: Path
) -> None:
    joined = with_mlm(built("nsp", documents, language_head=True), 1.0)
    batch = batched(joined)
    assert set(batch.views) == {"pairs", "labels", "mlm:masked:pairs"}
    assert torch.equal(batch["mlm:masked:pairs"].tokens.segments, batch["pairs"].segments)
    found = joined.represent(batch)
    terms = joined.loss(found, batch.generator())
    assert joined.total(terms).item() == pytest.approx((terms["nsp"] + terms["mlm"]).item())
    assert set(joined.on_held_out(found)) == {"nsp_accuracy", "nsp_guess", "mlm_perplexity"}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_plain_command_has_the_total_of_the_paper(name: str, tiny: Path, documents: Path, tmp_path: Path) -> None:
    """BERT's and ALBERT's total is MLM + the sentence task at equal weights; a weight that is given wins."""
    lines = []
    for weight in ({}, {"mlm_weight": 0.0}):
        run = isotrope.train(name, documents, tiny, tmp_path / f"run{len(weight)}", **SHORT, **weight)
        lines.append(next(line for line in run.history if "loss" in line))
    assert lines[0]["loss"] == pytest.approx(lines[0][name] + lines[0]["mlm"], rel=1e-5)
    assert lines[1]["loss"] == pytest.approx(lines[1][name], rel=1e-5)
    assert "mlm" not in lines[1]
    assert {one.name: one.default for one in isotrope.catalogue.describe_settings(name)}["mlm_weight"] == 1.0


@pytest.mark.parametrize("name", BOTH)
def test_a_start_without_a_language_head_is_refused(name: str, documents: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{name} has masked.* no masked-language head; .* or set mlm_weight 0"):
        isotrope.train(name, documents, "builtin", tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_an_order_that_words_give_away_is_learned_and_measured_on_held_out_text(tiny: Path, tmp_path: Path) -> None:
    said = ("first the chef bakes {} in the kitchen", "then the sailor steers {}", "last the pianist plays {}")
    documents = ["\n".join(line.format(f"the bread number {number}") for line in said) for number in range(200)]
    file = tmp_path / "documents.txt"
    file.write_text("\n\n".join(documents), encoding="utf-8")
    settings = {
        "batch_size": 32,
        "learning_rate": 3e-3,
        "max_steps": 40,
        "eval_steps": 40,
        "held_out": 60,
        "mlm_weight": 0.0,
    }
    run = isotrope.train("sop", file, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"] for line in run.history if "evaluation" in line)
    assert before["sop_accuracy"] < 0.8
    assert after["sop_accuracy"] > 0.95
    assert run.selected_step == 40


@pytest.mark.parametrize("name", BOTH)
def test_text_without_documents_is_refused(name: str, tiny: Path, topics: list[str], tmp_path: Path) -> None:
    for text, named in (
        ("\n".join(topics[:200]), "one document.*empty line"),
        ("\n\n".join(topics[:200]), "single sentence"),
    ):
        file = tmp_path / "text.txt"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=named):
            isotrope.train(name, file, tiny, tmp_path / "run", **SHORT)
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "bad", "named"),
    [
        ("nsp", {"random_share": 0.0}, "random_share"),
        ("nsp", {"random_share": 1.0}, "random_share"),
        ("sop", {"swap_share": 1.0}, "swap_share"),
        ("sop", {"short_share": 1.5}, "short_share"),
        ("nsp", {"short_share": -0.1}, "short_share"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(find(name).Settings(**bad))


def test_a_row_too_short_for_two_segments_is_refused(tiny: Path, documents: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_length must be at least 5"):
        isotrope.train("nsp", documents, tiny, tmp_path / "run", **SHORT, max_length=4)


def test_the_order_of_a_few_pairs_can_be_learned_by_heart(built: Build, documents: Path) -> None:
    """64 fixed pairs whose order shows in nothing but the pairs: whoever cannot do this cannot learn it at all."""
    method = built("sop", documents).train()
    method.room = 29  # short rows, for the clock
    rows = method.prepared.select(np.arange(len(method.corpus)))[:64].tolist()
    batch = Batch(method.views(Records(method.corpus, rows), np.random.default_rng(0)), 64, 0)
    for module in method.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimiser = torch.optim.AdamW(method.parameters(), lr=3e-3)
    for _ in range(100):
        found = method.represent(batch)
        optimiser.zero_grad()
        method.loss(found, batch.generator())["sop"].backward()
        optimiser.step()
    assert method.on_held_out(found)["sop_accuracy"].item() >= 0.95


def test_auxiliary_losses_read_pairs_with_their_segments(
    built: Callable[..., Any], documents: Path, batched: Callable[..., Any]
) -> None:
    """Detection of replaced tokens too: the encoder must see the second segment as such, as the task itself does."""
    own = built("nsp", documents)
    auxiliary = ReplacedTokenDetection(RTDSettings(), own.encoder, 64)
    joined = Combined(own, [Added(auxiliary, 0.1)])
    batch = batched(joined)
    seen: list[Any] = []
    plain = auxiliary.detect
    auxiliary.detect = lambda *given: (seen.append(given[0]), plain(*given))[1]  # type: ignore[method-assign]
    joined.represent(batch)
    assert torch.equal(seen[0].segments, batch["pairs"].segments)
    assert set(seen[0].segments.flatten().tolist()) == {0, 1}
