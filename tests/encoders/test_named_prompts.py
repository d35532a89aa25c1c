"""Named prompts, other threads and processes: the same vectors as ``encode`` with the prompt in front."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.cut_texts import CutTextWarning, counting_cut

TEXTS = ["the chef bakes the bread", "the sailor steers the boat across the windy bay"]


@pytest.fixture
def prompted(tiny: Path, tmp_path: Path) -> isotrope.Encoder:
    encoder = isotrope.load(tiny)
    encoder.prompts = {"query": "the pilot: ", "document": "the farmer: "}
    encoder.save(tmp_path / "prompted")
    return isotrope.load(tmp_path / "prompted")


def test_a_named_prompt_stands_before_the_text(prompted: isotrope.Encoder) -> None:
    for name, prompt in prompted.prompts.items():
        expected = prompted.encode([prompt + text for text in TEXTS])
        np.testing.assert_allclose(prompted.encode(TEXTS, prompt_name=name), expected, atol=1e-6)
        np.testing.assert_allclose(prompted.encode(TEXTS, prompt=prompt), expected, atol=1e-6)
    assert not np.allclose(prompted.encode_query(TEXTS), prompted.encode(TEXTS), atol=1e-3)


def test_a_file_is_encoded_with_a_prompt(prompted: isotrope.Encoder, tmp_path: Path) -> None:
    """In one file and in shards; two ways to choose it, and one that the model does not have, are refused."""
    text = tmp_path / "texts.txt"
    text.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    ways = {"query": {"prompt_name": "query"}, "document": {"document": True}, "queries": {"query": True}}
    for name, options in ways.items():
        output, expected = tmp_path / f"{name}.npy", prompted.encode_query(TEXTS)
        isotrope.encode(tmp_path / "prompted", text, output, **options)
        expected = prompted.encode_document(TEXTS) if name == "document" else expected
        np.testing.assert_allclose(np.load(output), expected, atol=1e-6)
    isotrope.encode(tmp_path / "prompted", text, tmp_path / "s.npy", shards=tmp_path / "shards", query=True)
    np.testing.assert_allclose(np.load(tmp_path / "s.npy"), prompted.encode_query(TEXTS), atol=1e-6)
    with pytest.raises(isotrope.errors.InputError, match="each choose the prompt"):
        isotrope.encode(prompted, text, tmp_path / "a.npy", query=True, document=True)
    with pytest.raises(isotrope.errors.InputError, match=r"no prompt 'querry'.*query"):
        isotrope.encode(prompted, text, tmp_path / "a.npy", prompt_name="querry")
    assert not (tmp_path / "a.npy").exists()


def test_sentence_transformers_has_the_same_queries_and_documents(prompted: isotrope.Encoder, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tmp_path / "prompted"), device="cpu")
    assert {name: theirs.prompts[name] for name in prompted.prompts} == prompted.prompts
    np.testing.assert_allclose(prompted.encode_query(TEXTS), theirs.encode_query(TEXTS), atol=1e-5)
    np.testing.assert_allclose(prompted.encode_document(TEXTS), theirs.encode_document(TEXTS), atol=1e-5)
    np.testing.assert_allclose(prompted.encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(
        prompted.encode_query(TEXTS, truncate_dim=8), theirs.encode_query(TEXTS, truncate_dim=8), atol=1e-5
    )


def test_without_named_prompts_queries_and_documents_are_texts(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    assert (encoder.encode_query(TEXTS) == encoder.encode(TEXTS)).all()
    assert (encoder.encode_document(TEXTS[0]) == encoder.encode(TEXTS[0])).all()


@pytest.mark.parametrize("names", [(), ("query",), ("document",)])
def test_without_a_prompt_of_their_own_they_have_none_as_in_sentence_transformers(
    names: tuple[str, ...], tiny: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = isotrope.load(tiny).with_prompt("the sailor: ")
    encoder.prompts = {name: f"the {name}: " for name in names}
    encoder.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    for verb in ("encode_query", "encode_document", "encode"):
        np.testing.assert_allclose(getattr(encoder, verb)(TEXTS), getattr(theirs, verb)(TEXTS), atol=1e-5)


def test_a_passage_is_a_document(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.prompts = {"passage": "the farmer: "}
    assert (encoder.encode_document(TEXTS) == encoder.encode(TEXTS, prompt="the farmer: ")).all()


def test_unknown_and_broken_prompts_are_refused(prompted: isotrope.Encoder) -> None:
    with pytest.raises(isotrope.InputError, match="no prompt 'qery'; did you mean 'query'"):
        prompted.encode(TEXTS, prompt_name="qery")
    with pytest.raises(isotrope.InputError, match="prompts maps names to texts"):
        prompted.prompts = {"query": 3}  # type: ignore[dict-item]


def test_prompts_outlive_a_training_run(prompted: isotrope.Encoder, sentences: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = isotrope.train("simcse", sentences, model=prompted, output=tmp_path / "run", max_steps=2, eval_steps=2)
    assert isotrope.load(run.folder / "model").prompts == prompted.prompts


def test_the_folder_of_somebody_else_keeps_its_prompts(tiny: Path, tmp_path: Path) -> None:
    """A default prompt, and prompts that only config_sentence_transformers.json names."""
    isotrope.load(tiny).save(tmp_path / "m")
    file = tmp_path / "m" / "config_sentence_transformers.json"
    facts = {
        **json.loads(file.read_text()),
        "prompts": {"query": "q: ", "passage": "p: "},
        "default_prompt_name": "query",
    }
    file.write_text(json.dumps(facts))
    encoder = isotrope.load(tmp_path / "m")
    assert (encoder.prompt, encoder.prompts) == ("q: ", {"query": "q: ", "passage": "p: "})


def test_async_calls_wait_for_each_other_and_agree(tiny: Path) -> None:
    encoder = isotrope.load(tiny)

    async def both() -> list[np.ndarray]:
        return list(await asyncio.gather(encoder.encode_async(TEXTS), encoder.encode_async(TEXTS[::-1])))

    with counting_cut() as counted:
        forward, backward = asyncio.run(both())
    np.testing.assert_allclose(forward, encoder.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(backward[::-1], forward, atol=1e-5)
    assert counted.texts == 4


def test_two_processes_give_the_vectors_of_one(tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    texts = [*topics[:90], "the chef " * 100]
    with counting_cut() as counted:
        found = encoder.encode(texts, processes=2, normalize_embeddings=True)
    assert (counted.texts, counted.cut) == (91, 1)
    with counting_cut():
        np.testing.assert_allclose(found, encoder.encode(texts, normalize_embeddings=True), atol=1e-5)
    with pytest.raises(isotrope.InputError, match="processes must be at least 1"):
        encoder.encode(texts, processes=0)


def test_a_cut_text_is_said_to_who_did_not_count(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    with pytest.warns(CutTextWarning, match=r"1 of 2 texts are longer than the model reads \(64 tokens\)"):
        encoder.encode(["the chef " * 100, "the boat"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(["the boat"])
