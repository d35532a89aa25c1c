"""PromptBERT: two templates, what the template alone says, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import RobertaConfig, RobertaModel

import isotrope
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.promptbert import PromptBERT, bare_rows
from isotrope.objectives import info_nce
from isotrope.tokens.text_tokenizer import TextTokenizer

Build = Callable[..., Any]
Law = Callable[..., Any]
FIRST = 'This sentence : "[X]" means [MASK].'
TEXTS = ["the chef bakes the bread", "a", "", "the [MASK] steers the boat"]
pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    words = "the old chef bakes fresh bread while sailors steer their boats home".split()
    lines = [f"{' '.join(words[: 2 + number % 7])} {number}" for number in range(60)]  # of several lengths
    sentences.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lambda pooling="mask", **settings: built("promptbert", sentences, pooling=pooling, **settings)


def test_the_card_and_the_papers_values() -> None:
    assert PromptBERT.card.read_out == "mask"
    assert PromptBERT.Settings().temperature == 0.05
    assert PromptBERT.Settings().denoising == "trained"


def test_each_row_has_one_mask_and_the_two_templates_differ(build: Build, batched: Build) -> None:
    method = build()
    batch = batched(method)
    mask = method.encoder.text_tokenizer.mask
    assert all(bool(((batch[name].ids == mask).sum(dim=1) == 1).all()) for name in ("first", "second"))
    tokenizer, second = method.encoder.text_tokenizer, method.second
    assert tokenizer.start != second.start
    sequences = [method.corpus.tokens(row) for row in range(8)]
    for name, frame in (("first", tokenizer), ("second", second)):
        assert torch.equal(batch[name].ids, frame.frame(sequences, method.max_length).ids), name


def test_the_templates_of_word_pieces_and_byte_pairs_are_the_papers(
    build: Build, byte_tokenizer: TextTokenizer, tmp_path: Path
) -> None:
    config = RobertaConfig(
        vocab_size=byte_tokenizer.vocabulary,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(tmp_path / "pairs")
    byte_tokenizer.tokenizer.save_pretrained(tmp_path / "pairs")
    pairs = PromptBERT(PromptBERT.Settings(), load(tmp_path / "pairs", "mask", "cpu"), 32)
    for method, written in (
        (build(), ('This sentence : "', 'This sentence of "')),
        (pairs, ("This sentence : '", "The sentence : '")),
    ):
        first, second = method.encoder.text_tokenizer, method.second
        assert [frame.start[1:] for frame in (first, second)] == [first.parsed(text) for text in written]


def test_equal_templates_without_dropout_give_equal_views(build: Build, batched: Build) -> None:
    method = build(second_template=FIRST, dropout=0.0)
    found = method.represent(batched(method))
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    other = build(dropout=0.0)
    found = other.represent(batched(other))
    assert not torch.allclose(found["first"], found["second"], atol=1e-4)


def test_what_the_template_says_depends_on_the_length_alone(build: Build, batched: Build) -> None:
    """One bare row for each length; its tokens stand where the sentence leaves them."""
    method = build(dropout=0.0)
    view = batched(method, range(40))["first"]
    frame = method.encoder.text_tokenizer
    alone, which = bare_rows(frame, view)
    texts = view.lengths - len(frame.start) - len(frame.suffix)
    assert len(alone) == len(set(texts.tolist())) < len(view)
    for row in range(len(view)):
        positions = alone.positions[which[row]].tolist()
        assert positions[len(frame.start) :] == list(range(len(frame.start) + texts[row], view.lengths[row]))
    vectors = method.encoder(alone)
    assert torch.allclose(vectors, method.encoder(alone), atol=0)
    assert not torch.allclose(vectors[0], vectors[-1], atol=1e-4), "positions count"


def test_the_template_is_subtracted_before_the_head(build: Build, batched: Build) -> None:
    method = build(dropout=0.0)
    batch = batched(method)
    found = method.represent(batch)
    for name, frame in (("first", method.encoder.text_tokenizer), ("second", method.second)):
        alone, which = bare_rows(frame, batch[name])
        left = method.encoder(batch[name]) - method.encoder(alone)[which]
        assert torch.allclose(found[name], method.tower["head"](left), atol=1e-5), name


def test_the_gradient_goes_through_the_template_unless_it_is_frozen(build: Build, batched: Build) -> None:
    """The same loss, another gradient; without denoising another loss."""
    gradients, losses = {}, {}
    for denoising in ("trained", "frozen", "none"):
        method = build(dropout=0.0, denoising=denoising).double()  # in float32 rounding alone would tell them apart
        batch = batched(method)
        total = Combined(method).total(method.loss(method.represent(batch), batch.generator()))
        total.backward()
        losses[denoising] = float(total.detach())
        gradients[denoising] = method.encoder.backbone.embeddings.position_embeddings.weight.grad
    assert losses["trained"] == pytest.approx(losses["frozen"], abs=1e-6)
    assert losses["none"] != pytest.approx(losses["trained"], abs=1e-4)
    change = (gradients["trained"] - gradients["frozen"]).norm() / gradients["trained"].norm()
    assert float(change) > 0.01


def test_the_loss_is_one_way_info_nce(build: Build, batched: Build) -> None:
    method = build(temperature=0.2)
    batch = batched(method)
    found = method.represent(batch)
    loss = method.loss(found, batch.generator())["contrastive"]
    assert float(loss) == pytest.approx(float(info_nce(found["first"], found["second"], 0.2)))
    assert method.candidates(found) == 8


def test_inference_reads_the_mask_without_head_and_subtraction(build: Build, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    method = build()
    with torch.no_grad():
        for parameter in method.encoder.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    kept = method.export().eval()
    assert kept.pooling.name == "mask"
    assert not len(kept.parts)
    vectors = kept.encode(TEXTS)
    tokens = kept.tokenize(TEXTS)
    with torch.no_grad():
        states = kept.states(tokens)
    np.testing.assert_allclose(vectors, states[tokens.ids == kept.text_tokenizer.mask].numpy(), atol=1e-5)
    kept.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model", device="cpu").encode(TEXTS), vectors, atol=1e-6)
    elsewhere = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(elsewhere.encode(TEXTS), vectors, atol=1e-5)


def test_a_run_from_a_raw_model_keeps_the_papers_read_out(tiny_raw: Path, sentences: Path, tmp_path: Path) -> None:
    """And one that goes on from its model keeps that model's."""
    few = {"max_steps": 2, "batch_size": 8, "eval_steps": 2, "held_out": 0, "max_length": 32}
    run = isotrope.train("promptbert", sentences, model=tiny_raw, output=tmp_path / "run", **few)
    assert run.read_out.pooling == "mask"
    again = isotrope.train("simcse", sentences, model=tmp_path / "run" / "model", output=tmp_path / "further", **few)
    assert again.read_out.pooling == "mask"
    saved = isotrope.load(tmp_path / "further" / "model")
    assert saved.text_tokenizer.suffix == run.encoder.text_tokenizer.suffix


@pytest.fixture
def tiny_raw(tiny: Path, tmp_path: Path) -> Path:
    """The tiny encoder as a plain Hugging Face folder, which stores no read-out."""
    encoder = load(tiny, device="cpu")
    encoder.backbone.save_pretrained(tmp_path / "raw")
    encoder.tokenizer.save_pretrained(tmp_path / "raw")
    return tmp_path / "raw"


def test_another_read_out_has_no_template(build: Build, batched: Build) -> None:
    method = build("mean", dropout=0.0)
    batch = batched(method)
    assert not (batch["first"].ids == method.encoder.text_tokenizer.mask).any()
    found = method.represent(batch)
    assert torch.allclose(found["first"], method.encoder(batch["first"]), atol=1e-5), "no head, nothing subtracted"
    assert "read out by mean" in method.prepared.remarks[0]
    assert build().prepared.remarks == ()


def test_a_model_without_positions_needs_denoising_none(built: Build, model_folders: dict[str, Path]) -> None:
    encoder = load(model_folders["deberta-v3"], "mask", "cpu")
    with pytest.raises(InputError, match="shifted positions, and a DebertaV2Model takes none; set denoising none"):
        PromptBERT(PromptBERT.Settings(), encoder, 32)
    PromptBERT(PromptBERT.Settings(denoising="none"), encoder, 32)


def test_settings_are_checked(build: Build) -> None:
    with pytest.raises(InputError, match=r"one \[X\] for the text"):
        build(second_template="nothing")
    with pytest.raises(InputError, match="head is one of auto, train-only, none"):
        build(head="kept")


def test_chunks_give_the_same_gradient(build: Build, chunks_agree: Law, chunks_equal_whole: Law) -> None:
    chunks_agree(build(), build())
    # In float64: what is left of a vector without its template is small here, and rounding is large beside it.
    chunks_equal_whole(build(dropout=0.0).double(), build(dropout=0.0).double())


def test_mlm_can_be_added(build: Build, with_mlm: Law, batched: Build) -> None:
    combined = with_mlm(build(language_head=True), 0.1)
    batch = batched(combined)
    terms = combined.loss(combined.represent(batch), batch.generator())
    assert {"contrastive", "mlm"} <= set(terms)
    assert all(bool(torch.isfinite(term)) for term in terms.values())


def test_a_view_in_parts_keeps_its_positions(build: Build, batched: Build) -> None:
    method = build()
    alone, _ = bare_rows(method.second, batched(method, range(40))["second"])
    part = alone.rows(slice(1, 3))
    assert part.positions is not None
    assert torch.equal(part.positions, alone.positions[1:3])
    assert replace(part, positions=None).positions is None
