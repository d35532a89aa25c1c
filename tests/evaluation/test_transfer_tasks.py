"""Further tasks of transfer: what they are read from, what the table says of them, and encoders that know nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.suite import Options, find_suite
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer import evaluate_transfer, features_of
from isotrope.evaluation.transfer_tasks import find_tasks

SOME = ("SST5", "SICK-E", "SNLI", "SICK-R")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """SST5, SICK and SNLI without its training part; the class of a text is its topic, of a pair that of the first."""
    root = tmp_path_factory.mktemp("data")
    for folder in ("transfer", "sts", "nli"):
        (root / folder).mkdir()
    rows = list(enumerate(topics[:120]))
    labels = ("contradiction", "entailment", "neutral", "neutral", "neutral")
    sst = [f"{row // 8 % 5}\t{text}" for row, text in rows]
    sick = [f"s\t{text}\t{topics[row + 1]}\t{1 + row % 5}\t{labels[row // 8 % 5]}" for row, text in rows]
    snli = [f"{labels[row // 8 % 5]}\t{text}\t{topics[row + 1]}" for row, text in rows]
    for part in ("train", "dev", "test"):
        _write(root / f"transfer/sst5.{part}.tsv", "label\tsentence", sst)
        _write(root / f"nli/{'cad_' * (part == 'train')}snli.{part}.tsv", "label\tpremise\thypothesis", snli)
    for part in ("train", "trial", "test"):
        _write(root / f"sts/sick.{part}.tsv", "subset\tsentence1\tsentence2\tscore\tentailment", sick)
    return root


def _write(file: Path, header: str, rows: list[str]) -> None:
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("protocol", ["transfer-logistic-v2", "senteval", "senteval-mlp", "senteval-fast"])
def test_every_protocol_judges_the_further_tasks(tiny: Path, tables: Path, protocol: str) -> None:
    found = isotrope.evaluate(tiny, "transfer", tables, tasks=SOME, protocol=protocol)
    scores = found.scores["transfer"]
    assert list(scores) == list(SOME)  # and no average of seven
    assert found.protocol["protocol"].startswith(protocol)
    assert found.protocol["SNLI trained on"] == "cad_snli.train"
    assert "SNLI (trained on cad_snli.train)" in found.table()
    assert "average of seven" not in found.table()
    for task in SOME:
        assert len(found.items[task]) == 120
        measure = "spearman" if task == "SICK-R" else "accuracy"
        assert found.items[task].score() == pytest.approx(scores[task][measure])
    assert scores["SST5"]["majority"] == pytest.approx(20)


def test_the_judged_texts_are_those_of_the_test_part(tables: Path, topics: list[str]) -> None:
    found = find_suite("transfer").judged_texts(Options(tables, tasks=SOME))
    assert list(found) == list(SOME)
    assert found["SST5"] == topics[:120]
    assert found["SICK-R"] == found["SNLI"] == [*topics[:120], *topics[1:121]]


def test_snli_of_its_own_training_part_says_nothing(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "nli").mkdir()
    for file in (tables / "nli").iterdir():
        (tmp_path / "nli" / file.name.replace("cad_", "")).write_bytes(file.read_bytes())
    assert find_tasks(tmp_path, ["SNLI"])["SNLI"].trained_on == "snli.train"


def test_the_features_of_snli() -> None:
    vectors = TextVectors(["a", "b"], np.array([[1, -2], [3, 4]], dtype=np.float32))
    assert features_of(vectors, (["a"], ["b"]), both=True).tolist() == [[1, -2, 3, 4, 3, -8, 2, 6]]


class Fixed:
    """An encoder whose vectors are given by a function of the texts."""

    def __init__(self, encoder: Any, make: Any) -> None:
        self.encoder, self.make = encoder, make

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode(self, texts: Any, *given: Any, **more: Any) -> Any:
        return self.make(self.encoder.encode(texts, *given, **more))


@pytest.mark.parametrize("protocol", ["transfer-logistic-v2", "senteval", "senteval-fast"])
def test_an_encoder_that_knows_nothing_gets_the_commonest_class(tiny: Path, tables: Path, protocol: str) -> None:
    encoder: Any = Fixed(isotrope.load(tiny), lambda vectors: np.full_like(vectors, 0.3))
    scores = evaluate_transfer(encoder, tables, protocol=protocol, tasks=SOME).scores["transfer"]
    assert scores["SST5"]["accuracy"] == pytest.approx(20)
    assert scores["SICK-E"]["accuracy"] == pytest.approx(60)
    assert scores["SICK-R"]["spearman"] == scores["SICK-R"]["pearson"] == 0


def test_vectors_that_are_no_numbers_are_refused(tiny: Path, tables: Path) -> None:
    encoder: Any = Fixed(isotrope.load(tiny), lambda vectors: np.full_like(vectors, np.nan))
    for task in ("SST5", "SICK-R"):
        with pytest.raises(InputError, match="NaN"):
            evaluate_transfer(encoder, tables, tasks=[task])


def test_one_class_and_an_empty_file_are_one_sentence(tiny: Path, tables: Path, tmp_path: Path) -> None:
    (tmp_path / "transfer").mkdir()
    for part in ("train", "dev", "test"):
        _write(tmp_path / f"transfer/sst5.{part}.tsv", "label\tsentence", ["1\ta b", "1\tc d"])
    with pytest.raises(InputError, match="at least two classes are needed"):
        isotrope.evaluate(tiny, "transfer", tmp_path, tasks=["SST5"])
    (tmp_path / "transfer/sst5.test.tsv").write_text("")
    with pytest.raises(InputError, match=r"sst5\.test"):
        isotrope.evaluate(tiny, "transfer", tmp_path, tasks=["SST5"])


def test_what_is_refused_before_a_model_is_loaded(tables: Path) -> None:
    with pytest.raises(InputError, match="Unknown protocol 'senteva'; did you mean 'senteval'"):
        isotrope.evaluate("no/such/model", "transfer", tables, protocol="senteva")
    with pytest.raises(InputError, match="Unknown task 'SST-5'; did you mean 'SST5'"):
        isotrope.evaluate("no/such/model", "transfer", tables, tasks=["SST-5"])
    with pytest.raises(InputError, match=r"stsb\.train\.tsv\.gz is missing"):
        isotrope.evaluate("no/such/model", "transfer", tables, tasks=["STS-B"])
    with pytest.raises(
        InputError, match="The sts suite takes no protocol; leave it out, or choose probing or transfer"
    ):
        isotrope.evaluate("no/such/model", "sts", tables, protocol="senteval")
