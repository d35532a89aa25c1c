"""Round trips over tiny Marian models with random weights: what they write, and what is no translator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.encoders import translation
from isotrope.encoders.translation import Decoding, RoundTrip, Translator
from isotrope.errors import InputError

WORDS = "the cat dog river stone bread old small walks eats sees under over near house garden".split()
CPU = torch.device("cpu")
TEXTS = ["the cat sees bread", "dog", "the old small house near the river walks over stone", "garden under stone"]


def write_marian(folder: Path, seed: int, positions: int = 24) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["</s>", "<unk>", *WORDS, "<pad>"])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 0)])
    pad = vocabulary["<pad>"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="</s>", unk_token="<unk>", pad_token="<pad>", model_max_length=positions
    )
    torch.manual_seed(seed)
    shape = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in
             (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=16, max_position_embeddings=positions, pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, init_std=1.0, **shape,
    )  # fmt: skip
    model = MarianMTModel(config)
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("translators")
    return [write_marian(folder / name, seed) for seed, name in enumerate(["there", "back", "there2", "back2"])]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS * 3) + "\n", encoding="utf-8")
    return path


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def greedy(translator: Translator, text: str) -> str:
    """The likeliest token, one after another, without cache, padding or batch."""
    ids = torch.tensor([translator.tokenizer(text)["input_ids"]])
    pad, room = translator.tokenizer.pad_token_id, translator.positions - 1
    written = [pad]
    with torch.inference_mode():
        while len(written) <= room:
            scores = translator.model(input_ids=ids, decoder_input_ids=torch.tensor([written])).logits[0, -1]
            scores[pad] = -torch.inf
            written.append(int(scores.argmax()))
            if written[-1] == 0:
                break
    if len(written) > room:
        written[-1] = 0  # forced end
    return translator.tokenizer.decode(written, skip_special_tokens=True).strip()


def test_one_beam_is_the_naive_loop(models: list[Path]) -> None:
    translator = Translator(models[0], CPU)
    assert translator.translate(TEXTS, Decoding(beams=1)) == [greedy(translator, text) for text in TEXTS]


@pytest.mark.parametrize("beams", [1, 3])
def test_beam_search_does_not_depend_on_the_batch(
    models: list[Path], beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, back = (Translator(model, CPU) for model in models[:2])
    whole = list(RoundTrip(there, back, Decoding(beams)).texts(TEXTS * 3))
    assert whole == [next(RoundTrip(there, back, Decoding(beams)).texts([text])) for text in TEXTS * 3]
    monkeypatch.setattr(translation, "BLOCK", 5)
    monkeypatch.setitem(translation.TOKEN_BUDGET, "cpu", 16)
    assert list(RoundTrip(there, back, Decoding(beams)).texts(TEXTS * 3)) == whole


def test_what_is_sampled_repeats_by_the_seed_and_leaves_the_global_generator(models: list[Path]) -> None:
    there, back = (Translator(model, CPU) for model in models[:2])
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    draws = [list(RoundTrip(there, back, Decoding(temperature=1.0, seed=seed)).texts(TEXTS)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_texts_beyond_the_positions_and_empty_ones(models: list[Path]) -> None:
    translator = Translator(models[0], CPU)
    found = translator.translate(["cat " * 30, "", None, "cat"], Decoding())
    assert (found[0], found[1], found[2]) == (None, "", None)
    assert found[3]


def test_pairs_of_a_sentence_and_what_came_back(models: list[Path], text: Path, tmp_path: Path) -> None:
    text.write_text("\n".join([*TEXTS, "cat " * 30]) + "\n", encoding="utf-8")
    written = isotrope.paraphrase(text, tmp_path / "pairs.tsv", round_trip=models[:2])
    rows = rows_of(tmp_path / "pairs.tsv")
    there, back = (Translator(model) for model in models[:2])
    returned = back.translate(there.translate(TEXTS, Decoding()), Decoding())
    kept = [[text, other] for text, other in zip(TEXTS, returned, strict=True) if other and other != text]
    assert rows == [["anchor", "positive"], *kept]
    assert written.pairs == len(kept)
    assert written.reasons["too_long"] == 1
    assert written.left_out == sum(written.reasons.values()) == 5 - len(kept)


def test_pairs_of_two_round_trips(models: list[Path], text: Path, tmp_path: Path) -> None:
    isotrope.paraphrase(text, tmp_path / "p.tsv", round_trip=models[:2], second_round_trip=models[2:], temperature=1.0)
    ways = [
        list(RoundTrip.between(pair, Decoding(4, 1.0, seed)).texts(TEXTS * 3))
        for pair, seed in ((models[:2], 42), (models[2:], 43))
    ]
    expected = [[a, b] for a, b in zip(*ways, strict=True) if a and b and a != b]
    assert rows_of(tmp_path / "p.tsv")[1:] == expected


def test_where_everything_comes_back_unchanged_nothing_is_written(
    models: list[Path], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"no sentence came back as another one \(12 unchanged\)"):
        isotrope.paraphrase(text, tmp_path / "p.tsv", round_trip=models[:2], second_round_trip=models[:2])
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_the_command(models: list[Path], text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["paraphrase", str(text), "--output", str(tmp_path / "p.tsv"), "--json", "--beams", "2"]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--round-trip", str(models[0]), str(models[1])])
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"output", "pairs", "left_out", "unchanged", "empty", "too_long"}
    assert len(rows_of(tmp_path / "p.tsv")) == 1 + said["pairs"]
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--second-round-trip", str(models[0]), str(models[1])])
    assert "need a round_trip" in capsys.readouterr().err


def test_what_is_no_translator(models: list[Path], bert: Path, text: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    said = f"{bert} is a BERT model and cannot translate; give a seq2seq model such as Helsinki-NLP/opus-mt-en-de."
    refused: list[tuple[list[Path | str], str]] = [
        ([bert, models[1]], said),
        ([models[0], bert], said),
        (["builtin-base", models[1]], "builtin-base is a BERT model and cannot translate"),
        ([empty, models[1]], "no config.json"),
        ([text, models[1]], "this is a file"),
        ([models[0]], "round_trip takes two models"),
    ]
    for trip, sentence in refused:
        with pytest.raises(InputError) as caught:
            isotrope.paraphrase(text, tmp_path / "p.tsv", round_trip=trip)
        assert sentence in str(caught.value)
        assert not (tmp_path / "p.tsv").exists()


def test_a_translator_without_its_weights(tmp_path: Path, text: Path) -> None:
    folder = write_marian(tmp_path / "half", 0)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="the translator cannot be loaded"):
        isotrope.paraphrase(text, tmp_path / "p.tsv", round_trip=[folder, folder])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"beams": 0}, "beams must be at least 1"),
        ({"temperature": -1.0}, "temperature must lie between 0 and 10"),
        ({"share": 0.3}, "model and share are for replaced words"),
    ],
)
def test_settings_that_cannot_be(
    models: list[Path], text: Path, tmp_path: Path, settings: dict[str, float], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.paraphrase(text, tmp_path / "p.tsv", round_trip=models[:2], **settings)  # type: ignore[arg-type]


def test_round_trip_settings_need_a_round_trip(text: Path, tmp_path: Path) -> None:
    call: Callable[..., object] = isotrope.paraphrase
    for settings in ({"beams": 2}, {"temperature": 1.0}, {"second_round_trip": ["a", "b"]}):
        with pytest.raises(InputError, match="need a round_trip"):
            call(text, tmp_path / "p.tsv", **settings)
