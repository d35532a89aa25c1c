"""CLINE: three sentences, what is asked of each, what does not count, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.errors import InputError
from isotrope.methods.cline import CLINE
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.objectives import synonym_antonym
from isotrope.tokens.padded import Tokens

Build = Callable[..., Any]
Batched = Callable[..., Batch]
PLAIN = "of the and to and of the"


def test_the_card_and_the_papers_values() -> None:
    assert (CLINE.card.name, CLINE.card.year, CLINE.card.needs) == ("cline", 2021, "sentences")
    chosen = CLINE.Settings()
    assert (chosen.mask_rate, chosen.synonym_share, chosen.antonym_share) == (0.15, 0.4, 0.2)
    assert (chosen.detection_weight, chosen.contrast_weight, chosen.contrast) == (1.0, 1.0, "dot")


@pytest.fixture
def method(built: Build, sentences: Path) -> Any:
    return built("cline", sentences)


def test_labels_say_which_tokens_were_put_in(method: Any, batched: Batched) -> None:
    """Outside of the labelled tokens the text is the original; special tokens and padding are not asked for."""
    batch = batched(method)
    originals = method.corpus
    for name in ("synonyms", "antonyms"):
        view = batch[name]
        assert (view.labels == 1).any(dim=1).all()
        for row in range(8):
            end = int(view.tokens.lengths[row])
            assert view.labels[row, 0] == view.labels[row, end - 1] == -100
            assert (view.labels[row, end:] == -100).all()
            kept = view.tokens.ids[row][view.labels[row] == 0].tolist()
            whole = iter(originals.tokens(row).tolist())
            assert all(token in whole for token in kept)  # in their order
    assert batch["changed"].values.tolist() == [1] * 8
    assert batch["masked"].labels.shape == batch["masked"].tokens.ids.shape


def test_one_forward_gives_what_three_would(method: Any, batched: Batched) -> None:
    method.eval()
    batch = batched(method)
    calls: list[int] = []
    method.encoder.backbone.register_forward_hook(lambda *_: calls.append(1))
    found = method.represent(batch)
    assert len(calls) == 1
    for name, view in (("original", "masked"), ("synonym", "synonyms"), ("antonym", "antonyms")):
        (expected,) = method.encoder.embed(batch[view].tokens)
        assert torch.allclose(found[name], expected, atol=1e-5)
    scores = [
        method.tower["detector"](method.encoder.states(batch[name].tokens)).squeeze(-1)
        for name in ("synonyms", "antonyms")
    ]
    asked = [each[batch[name].labels >= 0] for each, name in zip(scores, ("synonyms", "antonyms"), strict=True)]
    assert torch.allclose(found["detection_scores"], torch.cat(asked), atol=1e-5)
    labels = torch.cat([batch[name].labels[batch[name].labels >= 0] for name in ("synonyms", "antonyms")])
    assert found["replaced"].tolist() == labels.tolist()


def given(count: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    vectors = {
        name: torch.randn(count, 4, generator=generator, dtype=torch.float64)
        for name in ("original", "synonym", "antonym")
    }
    scores = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    return {
        **vectors,
        "detection_scores": scores,
        "replaced": torch.tensor([1, 0, 0]),
        "changed": torch.tensor([1, 0, 1]),
        "token_losses": torch.tensor([1.0, 3.0]),
    }


def test_the_loss_is_the_formula(built: Build, sentences: Path) -> None:
    method = built("cline", sentences, detection_weight=2.0, contrast_weight=3.0)
    parts = given()
    terms = method.loss(parts, torch.Generator())
    probability = 1 / (1 + np.exp(-parts["detection_scores"].numpy()))
    assert terms["detection"].item() == pytest.approx(-(np.log(probability[0]) + np.log(1 - probability[1:]).sum()) / 3)
    o, s, a = (parts[name].numpy() for name in ("original", "synonym", "antonym"))
    each = np.log1p(np.exp((o * a).sum(1) - (o * s).sum(1)))
    assert terms["synonym_antonym"].item() == pytest.approx((each[0] + each[2]) / 2)  # the second was not changed
    assert terms["mlm"].item() == 2.0
    assert Combined(method).total(terms).item() == pytest.approx(
        2.0 + 2 * terms["detection"].item() + 3 * terms["synonym_antonym"].item(), rel=1e-6
    )
    measured = method.measures(parts)
    assert measured["replaced_f1"].item() == pytest.approx(2 / 3)
    assert measured["synonym_nearer"].item() == ((o * s).sum(1) > (o * a).sum(1))[[0, 2]].mean()


def test_the_released_contrast_is_an_option_with_a_pooler(built: Build, sentences: Path, batched: Batched) -> None:
    plain, released = built("cline", sentences), built("cline", sentences, contrast="released")
    assert "pooler" in released.tower
    assert "pooler" not in plain.tower
    parts = given()
    o, s, a = (parts[name] for name in ("original", "synonym", "antonym"))
    yes, no = ((o * other).mean(1).sigmoid() for other in (s, a))
    each = -(yes.log() + (1 - no).log()) / 2
    assert released.loss(parts, torch.Generator())["synonym_antonym"].item() == pytest.approx(
        float(each[[0, 2]].mean())
    )
    found = released.eval().represent(batched(released))
    assert float(found["original"].detach().abs().max()) <= 1


def test_a_text_without_words_to_replace_asks_nothing(built: Build, tmp_path: Path, batched: Batched) -> None:
    """Neither detection nor contrast; a whole batch of such gives 0, not nan."""
    file = tmp_path / "plain.txt"
    lines = [*(f"{PLAIN} {number}" for number in range(8)), "the warm kitchen behind the old house on day 3"]
    file.write_text("\n".join(lines), encoding="utf-8")
    method = built("cline", file)
    batch = batched(method)
    for name in ("synonyms", "antonyms"):
        assert (batch[name].labels == -100).all()
        assert [
            row[1 : end - 1].tolist()
            for row, end in zip(batch[name].tokens.ids, batch[name].tokens.lengths, strict=True)
        ] == [method.corpus.tokens(row).tolist() for row in range(8)]
    terms = method.loss(method.represent(batch), batch.generator())
    assert terms["detection"].item() == terms["synonym_antonym"].item() == 0
    Combined(method).total(terms).backward()
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)
    assert batched(method, range(1, 9))["changed"].values.tolist() == [0] * 7 + [1]


def test_a_sentence_without_an_antonym_is_detected_in_and_not_contrasted(
    built: Build, tmp_path: Path, batched: Batched
) -> None:
    """ "boat" and "house" have synonyms and no antonym: x⁻ is x, and there is nothing to prefer x⁺ to."""
    file = tmp_path / "nouns.txt"
    lines = [*(f"the boat of the house and {number}" for number in range(7)), "the warm boat"]
    file.write_text("\n".join(lines), encoding="utf-8")
    method = built("cline", file, random_words=False, synonym_share=0.9).eval()
    batch = batched(method)
    assert (batch["synonyms"].labels[:7] == 1).any()
    assert batch["changed"].values.tolist() == [0] * 7 + [1]
    found = method.represent(batch)
    only = synonym_antonym(*(found[name][7:] for name in ("original", "synonym", "antonym")))
    assert method.loss(found, batch.generator())["synonym_antonym"].item() == pytest.approx(only.item(), rel=1e-5)


def test_padding_and_order_do_not_matter(method: Any, batched: Batched) -> None:
    """A longer neighbour widens the rows; the terms of the others stay."""
    method.eval()
    batch = batched(method)
    plain = method.loss(method.represent(batch), batch.generator())

    def widened(view: Any) -> Any:
        ids, mask = (
            torch.nn.functional.pad(t, (0, 5), value=v) for t, v in ((view.tokens.ids, 0), (view.tokens.mask, 0))
        )
        return type(view).of(
            Tokens(ids, mask, view.tokens.lengths), torch.nn.functional.pad(view.labels, (0, 5), value=-100)
        )

    wide = {name: widened(view) if name != "changed" else view for name, view in batch.views.items()}
    order = [5, 2, 7, 0, 1, 3, 4, 6]
    mixed = {
        name: type(view).of(view.tokens.rows(np.array(order)), view.labels[order]) if name != "changed" else view
        for name, view in batch.views.items()
    }
    for views in (wide, mixed):
        found = method.loss(method.represent(Batch(views, 8, 7)), batch.generator())
        assert all(torch.allclose(found[name], plain[name], atol=1e-5) for name in plain)


def test_training_improves_all_three_tasks_and_the_heads_are_dropped(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    settings = {
        "max_steps": 40,
        "batch_size": 16,
        "learning_rate": 5e-3,
        "eval_steps": 40,
        "held_out": 40,
        "antonym_share": 0.4,
    }
    run = isotrope.train("cline", sentences, model=tiny, output=tmp_path / "run", **settings)
    first, last = (line["evaluation"] for line in run.history if "evaluation" in line)
    assert last["mlm_perplexity"] < 0.5 * first["mlm_perplexity"]
    assert last["replaced_f1"] > 0.7
    assert last["detection_loss"] < 0.7 * first["detection_loss"]
    assert last["synonym_nearer"] > max(0.8, first["synonym_nearer"])
    assert run.selected_step == 40
    kept = {id(p) for p in run.encoder.parameters()}
    saved = set(isotrope.load(run.folder / "model").state_dict())
    assert not any("detector" in name or "pooler.module" in name for name in saved)
    assert len(kept) == len(list(isotrope.load(tiny).parameters()))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"synonym_share": 0.0}, "synonym_share"),
        ({"antonym_share": 1.5}, "antonym_share"),
        ({"senses": 0}, "senses"),
        ({"detection_weight": -1.0}, "detection_weight"),
        ({"contrast": "cosine"}, "dot, released"),
        ({"mask_rate": 1.0}, "mask_rate"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(CLINE.Settings(**settings))


def test_without_wordnet_the_package_is_named(
    tiny: Path, sentences: Path, small_wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_WORDNET", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"data\.noun is missing.*package wordnet-base.*ISOTROPE_WORDNET"):
        isotrope.train("cline", sentences, model=tiny, output=tmp_path / "run", max_steps=1)
    assert not (tmp_path / "run").exists()


def test_a_text_in_another_language_is_refused(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "foreign.txt"
    file.write_text("\n".join(f"der Koch {number} und das Brot {number}" for number in range(40)), encoding="utf-8")
    with pytest.raises(InputError, match="WordNet, which is English"):
        isotrope.train("cline", file, model=tiny, output=tmp_path / "run", max_steps=1, batch_size=8, held_out=0)
    assert not (tmp_path / "run").exists()
