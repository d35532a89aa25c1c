"""mteb: the adapter is what the package asks for, a task runs through it, and what is missing is said.

The tests with the package are skipped where it is not installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.mteb_tasks import MtebEncoder, evaluate_mteb
from isotrope.evaluation.results import Results
from isotrope.evaluation.suite import find_suite, registry
from isotrope.evaluation.suite_runs import joined_results


def test_without_the_package_the_line_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(InputError, match=r"mteb:STSBenchmark needs the package mteb; pip install 'isotrope\[mteb\]'"):
        isotrope.evaluate("no/such/model", "mteb:STSBenchmark")


def test_a_task_is_a_suite_that_the_registry_does_not_list() -> None:
    found = find_suite("mteb:STSBenchmark")
    assert found.card.name == "mteb:STSBenchmark"
    assert found is find_suite("mteb:STSBenchmark")
    registry.cache_clear()
    assert not any(name.startswith("mteb") for name in registry())
    with pytest.raises(InputError, match="The mteb:STSBenchmark suite takes no data_dir"):
        isotrope.evaluate("no/such/model", "mteb:STSBenchmark", "somewhere")


def test_the_adapter_keeps_the_order_of_the_texts(tiny: Path, topics: list[str]) -> None:
    adapter = MtebEncoder(isotrope.load(tiny))
    texts = [topics[3], topics[0], topics[3], topics[9]]
    batches = [{"text": texts[:3], "title": ["", "", ""]}, {"text": texts[3:]}]
    vectors = adapter.encode(batches, task_metadata=None, hf_split="test", hf_subset="default", prompt_type=None)
    assert vectors == pytest.approx(adapter.encoder.encode(texts, normalize_embeddings=True), abs=1e-5)
    expected = adapter.encoder.similarity(texts, texts)
    assert adapter.similarity(3 * vectors, vectors).numpy() == pytest.approx(expected, abs=1e-5)
    pairs = adapter.similarity_pairwise(vectors, vectors[::-1].copy()).numpy()
    assert pairs == pytest.approx(np.diag(expected[:, ::-1]), abs=1e-5)


def test_mteb_gives_the_scores_of_a_task_of_its_own_class(tiny: Path, topics: list[str]) -> None:
    """A small task on texts of ours, through mteb's own loop: Spearman is that of the cosines."""
    pytest.importorskip("mteb", reason="the extra mteb is not installed")
    datasets = pytest.importorskip("datasets")
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import EncoderProtocol
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    first, second = topics[:40], [topics[number] for number in rng.permutation(400)[:40]]
    gold = rng.uniform(0, 5, 40).tolist()

    class Small(AbsTaskSTS):
        metadata = TaskMetadata(
            name="Small", description="A few pairs.", reference=None, type="STS", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"], main_score="cosine_spearman",
            dataset={"path": "none/none", "revision": "1"}, date=None, domains=None, task_subtypes=None,
            license=None, annotations_creators=None, dialect=None, sample_creation=None, bibtex_citation=None,
        )  # fmt: skip
        min_score, max_score = 0, 5

        def load_data(self, *given: object, **named: object) -> None:
            rows = {"sentence1": first, "sentence2": second, "score": gold}
            self.dataset = {"test": datasets.Dataset.from_dict(rows)}
            self.data_loaded = True

    encoder = isotrope.load(tiny)
    assert isinstance(MtebEncoder(encoder), EncoderProtocol)
    found = evaluate_mteb(encoder, Small())
    cosines = np.diag(encoder.similarity(first, second))
    assert found.scores["mteb"]["Small"]["main_score"] == pytest.approx(100 * spearmanr(cosines, gold)[0], abs=0.01)
    assert "Small" in found.table()
    assert "mteb" in found.protocol


def test_a_task_that_mteb_does_not_know_is_refused() -> None:
    pytest.importorskip("mteb", reason="the extra mteb is not installed")
    with pytest.raises(InputError, match="mteb has no task 'STSBenchmrk'"):
        isotrope.evaluate("no/such/model", "mteb:STSBenchmrk")


def test_the_scores_of_two_tasks_stand_next_to_each_other() -> None:
    found = [(f"mteb:{name}", Results({"mteb": {name: {"main_score": 1.0}}}, {}, ("task",), [])) for name in "AB"]
    assert joined_results(found).scores == {"mteb": {"A": {"main_score": 1.0}, "B": {"main_score": 1.0}}}
    assert found[0][1].scores == {"mteb": {"A": {"main_score": 1.0}}}  # what was given is left as it was
