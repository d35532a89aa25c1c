"""Layer × pooling: every cell is what evaluating with that pooling gives, and one pass is enough for all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import isotrope
from isotrope.cli import main
from isotrope.encoders.causal import make_causal
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.evaluation.layer_cosines import pair_cosines, read_outs
from isotrope.evaluation.layer_suite import sweep_layers
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.suite import find_suite

SPLITS = ("dev", "test")


@pytest.fixture(scope="module")
def data(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    (folder / "sts").mkdir()
    for number, split in enumerate(SPLITS):
        rows = [
            f"all\t{topics[i]}\t{topics[i + step]}\t{5 - step / 4}"
            for i in range(40 * number, 40 * number + 40)
            for step in (1, 3, 8, 15)
        ]
        text = "\n".join(["subset\tsentence1\tsentence2\tscore", *rows]) + "\n"
        (folder / "sts" / f"stsb.{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def pairs_of(data: Path, split: str) -> ScoredPairs:
    return read_pairs(data / "sts" / f"stsb.{split}.tsv")


@pytest.fixture(scope="module")
def results(tiny: Path, data: Path):
    return isotrope.evaluate(tiny, suite="layers", data_dir=data)


def test_each_cell_is_what_encoding_with_that_pooling_gives(results, tiny, data):
    found = results.scores["layers"]
    layers = isotrope.load(tiny).backbone.config.num_hidden_layers
    assert len(found["cells"]) == 3 * (layers + 1) + 3
    for cell in found["cells"]:
        if cell["name"] == "layer:0:cls":
            assert cell["spearman"] == {"dev": None, "test": None}  # [CLS] has seen nothing yet
            continue
        encoder = isotrope.load(tiny, pooling=cell["name"])
        for split in SPLITS:
            pairs = pairs_of(data, split)
            a, b = (encoder.encode(side).astype(float) for side in (pairs.first, pairs.second))
            cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
            expected = 100 * stats.spearmanr(cosines, pairs.gold).statistic
            assert cell["spearman"][split] == pytest.approx(expected, abs=0.05), cell["name"]


def test_the_best_is_chosen_by_dev_and_marked(results, data):
    found = results.scores["layers"]
    known = [cell for cell in found["cells"] if cell["spearman"]["dev"] is not None]
    best = max(known, key=lambda cell: cell["spearman"]["dev"])
    assert found["best"] == best
    assert found["chosen_by"] == "dev"
    low, high = found["interval"]
    assert low < best["spearman"]["test"] < high
    table = results.table()
    assert f"*{best['spearman']['dev']:.2f}" in table
    assert table.count("*") == len(SPLITS)
    assert results.protocol["best"] == f"{best['name']}, by dev"
    assert found["pairs"] == {"dev": 160, "test": 160}


def test_every_text_runs_through_the_model_once(tiny, data):
    encoder = isotrope.load(tiny)
    pairs = pairs_of(data, "dev")
    seen = []
    encoder.backbone.register_forward_pre_hook(
        lambda module, inputs, named: seen.append(len(named["input_ids"])), with_kwargs=True
    )
    cosines = pair_cosines(encoder, pairs.first, pairs.second)
    assert sum(seen) == 2 * len(pairs.gold)
    assert set(cosines) == {one.name for one in read_outs(encoder)}


def test_what_follows_the_pooling_does_not_reach_the_layers(tiny, data, topics):
    whitened = isotrope.fit_space("whitening", isotrope.load(tiny), topics[:200])
    splits = {"dev": pairs_of(data, "dev")}
    assert sweep_layers(whitened, splits).cells == sweep_layers(isotrope.load(tiny), splits).cells


def test_a_model_without_a_first_token_is_read_at_its_last(tiny, data):
    encoder = isotrope.load(tiny, language_head=True)
    make_causal(encoder)
    modes = {one.mode for one in read_outs(encoder)}
    assert modes == {"lasttoken", "mean", "max"}
    sweep = sweep_layers(encoder, {"test": pairs_of(data, "test")})
    assert sweep.poolings == ["lasttoken", "mean", "max"]
    assert sweep.chosen_by == "test"


def test_a_table_of_words_has_one_layer(tiny, data):
    tokenizer = isotrope.load(tiny).tokenizer
    table = StaticVectors(torch.randn(len(tokenizer), 8, generator=torch.Generator().manual_seed(0)))
    found = sweep_layers(Encoder(table, tokenizer), {"dev": pairs_of(data, "dev")})
    scores = {cell.name: cell.spearman["dev"] for cell in found.cells}
    assert {cell.layer for cell in found.cells} == {0}
    assert scores["cls"] is None
    assert found.best.name == max(("mean", "max"), key=scores.__getitem__)


def test_missing_pairs_and_foreign_options_are_refused_before_a_model_is_loaded(tmp_path):
    (tmp_path / "sts").mkdir()
    with pytest.raises(InputError, match=r"stsb\.dev\.tsv\.gz and stsb\.test\.tsv\.gz are missing"):
        isotrope.evaluate("no/such/model", suite="layers", data_dir=tmp_path)
    with pytest.raises(InputError, match="The layers suite takes no texts"):
        isotrope.evaluate("no/such/model", suite="layers", data_dir=tmp_path, texts=["a"])


def test_the_command_writes_json_for_programs(tiny, data, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(
            ["evaluate", str(tiny), "--suite", "layers", "--data-dir", str(data), "--json", str(tmp_path / "out.json")]
        )
    assert stop.value.code == 0
    assert "Mixes of layers" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert kept["protocol"]["protocol"] == "layers-stsb-v1"
    assert {"name", "layer", "pooling", "spearman"} == set(kept["scores"]["layers"]["best"])


def test_a_collapsed_model_ranks_nothing_and_is_said_to(tiny: Path, data: Path) -> None:
    encoder = isotrope.load(tiny)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.zero_()
    results = isotrope.evaluate(encoder, suite="layers", data_dir=data)
    suite = find_suite("layers")()
    assert suite.summary(results) == {"sts_b_best_read_out": 0.0}
    assert suite.main_scores(results) == {"best": ("spearman", 0.0)}
    assert results.scores["layers"]["interval"] == [0.0, 0.0]


def test_a_best_that_its_own_pairs_chose_is_marked(tiny: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts" / "stsb.test.tsv").write_bytes((data / "sts" / "stsb.test.tsv").read_bytes())
    both, alone = (isotrope.evaluate(tiny, suite="layers", data_dir=place) for place in (data, tmp_path))
    assert both.protocol["best"].endswith(", by dev")
    assert alone.protocol["best"].endswith(", by test, whose pairs flatter it")
