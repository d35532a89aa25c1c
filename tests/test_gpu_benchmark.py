"""The parts of the GPU's benchmark that need no GPU: records of every type, parts of the list, the table."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from pathlib import Path
from types import ModuleType

import pytest

from isotrope.data.sources import find_records
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method_registry import find, registry

ROOT = Path(__file__).parents[1]
NEEDED = sorted({find(name).card.needs for name in registry() if not issubclass(find(name), FromScratch)})


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gpu_methods

    return gpu_methods


@pytest.fixture
def runs(methods: ModuleType) -> ModuleType:
    return sys.modules["gpu_runs"]


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "txt.xz"])
def test_sentences_are_read_from_a_text_however_it_is_packed(methods, ending, tmp_path):
    import gpu

    file = tmp_path / f"text.{ending}"
    opened = {"gz": gzip.open, "xz": lzma.open}.get(ending[4:], open)
    with opened(file, "wt", encoding="utf-8") as lines:
        lines.write("short\na sentence of the corpus\n\na sentence of the corpus\nanother sentence of it\n")
    assert gpu.read(file, 10) == ["a sentence of the corpus", "another sentence of it"]


@pytest.mark.parametrize("needed", NEEDED)
def test_there_are_records_of_every_type_that_a_method_needs(runs, needed, tmp_path):
    sentences = [f'the "cat" number {number}\twalks home' for number in range(96)]
    found = find_records(runs.records(needed, sentences, tmp_path), [needed], None, False)
    records = [record for record in found.records if record.texts[0]]
    assert len(records) >= 32
    assert found.record_type.name == needed
    assert len({record.document for record in records}) == 12 or needed not in ("documents", "dialogues")
    assert records[0].texts[0] == 'the "cat" number 0 walks home'


def test_parts_make_up_the_list(methods):
    names = [f"m{number}" for number in range(11)]
    parts = [methods.part(names, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    with pytest.raises(SystemExit):
        methods.part(names, "4/3")


def test_the_table_has_the_last_line_of_each_method(methods, tmp_path):
    rates = {"before": 1000, "plain": 2000, "graphs": 4000}
    good = {"task": "methods", "method": "simcse", "needs": "sentences", "records_per_second": rates, "gain": 4.0}
    lines = [
        {"task": "methods", "method": "simcse", "failed": "no"},
        good,
        {"task": "methods", "method": "cut", **good, "records_per_second": {"before": 5}, "gain": 1.0}
        | {"method": "cut"},
        {"task": "methods", "method": "lre", "skipped": "no transformer"},
        {"task": "other"},
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert methods.table(file).splitlines()[2:] == [
        "| cut | sentences | 5 |  |  | 1.00 |",
        "| simcse | sentences | 1,000 | 2,000 | 4,000 | 4.00 |",
        "",
        "- lre: no transformer",
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_forward", "attention"),
        ("_backward", "attention"),
        ("_normed", "elementwise"),
        ("_normed_backward", "elementwise"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "products"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>", "products"),
        ("triton_per_fused__to_copy_add_native_layer_norm_native_dropout_5", "elementwise"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimiser"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("void at::native::vectorized_elementwise_kernel<4>", "elementwise"),
    ],
)
def test_kernels_have_the_right_kind(methods, name, kind):
    import gpu_profile

    assert gpu_profile.kind_of(name) == kind
