"""Products of a run through oneDNN: exact, for the length of the run, and only where they pay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from isotrope.training import float32_products
from isotrope.training.float32_products import exact_and_fast, fast_products, processor_vendor, weights_in_products

CPU = torch.device("cpu")


@pytest.fixture
def large() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 1024), nn.Embedding(9, 1024))


@pytest.fixture
def possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float32_products, "exact_and_fast", lambda: True)


@pytest.mark.usefixtures("possible")
def test_the_switch_holds_for_the_block_and_is_set_back_after_an_error(large: nn.Module) -> None:
    within = []

    def run() -> None:
        with fast_products(large, CPU):
            within.append(torch.get_float32_matmul_precision())
            raise KeyError

    with pytest.raises(KeyError):
        run()
    assert within == ["medium"]
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.usefixtures("possible")
def test_small_models_and_other_devices_are_left_alone(large: nn.Module) -> None:
    assert weights_in_products(large) == 1024 * 1024
    for model, device in ((nn.Linear(1024, 1023), CPU), (large, torch.device("meta"))):
        with fast_products(model, device):
            assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.usefixtures("possible")
def test_a_setting_of_the_user_for_this_backend_is_left_alone(large: nn.Module) -> None:
    products = torch.backends.mkldnn.matmul
    products.fp32_precision = "bf16"  # from here on torch refuses to say one word for all backends
    try:
        with fast_products(large, CPU):
            assert products.fp32_precision == "bf16"
        assert products.fp32_precision == "bf16"
    finally:
        products.fp32_precision = "none"


def test_rounded_products_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float32_products, "takes_avx512", lambda: True)
    monkeypatch.setattr(float32_products, "EXACT", 0.0)
    assert not exact_and_fast.__wrapped__()
    assert torch.get_float32_matmul_precision() == "highest"


def test_bfloat16_factors_are_far_from_exact() -> None:
    """The bound tells the two apart with a factor of hundreds on both sides."""
    rows, weights = torch.randn(256, 384), torch.randn(384, 384)
    expected = rows.double() @ weights.double()
    rounded = rows.bfloat16().double() @ weights.bfloat16().double()
    assert (rounded - expected).norm() / expected.norm() > 100 * float32_products.EXACT
    assert ((rows @ weights).double() - expected).norm() / expected.norm() < float32_products.EXACT


@pytest.mark.parametrize(
    ("facts", "vendor"),
    [
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t: 2\n", "AuthenticAMD"),
        ("processor\t: 0\nvendor_id\t: GenuineIntel\n", "GenuineIntel"),
        ("processor\t: 0\nBogoMIPS\t: 243.75\n", ""),
    ],
)
def test_the_vendor_is_read(facts: str, vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text(facts)
    monkeypatch.setattr(float32_products, "CPU_FACTS", tmp_path / "cpuinfo")
    assert processor_vendor() == vendor


def test_a_step_has_the_same_gradient() -> None:
    if not exact_and_fast():
        pytest.skip("float32 products stay with torch's own library on this processor")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
    rows = torch.randn(300, 512)
    gradients = []
    for fast in (True, False):
        model.zero_grad()
        with fast_products(model, CPU if fast else torch.device("meta")):
            model(rows).square().mean().backward()
        gradients.append(torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-7)
