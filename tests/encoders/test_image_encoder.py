"""Image encoders: the same vectors whatever the batch, from files and arrays, saved and loaded; batch norms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import isotrope
from image_samples import shapes
from isotrope.data.image_corpus import open_images
from isotrope.encoders.image_encoder import ImageEncoder, fresh_image_encoder
from isotrope.encoders.shared_batch_norm import SharedBatchNorm, batch_norms, even_groups, set_groups
from isotrope.encoders.vision_networks import put_small_stem
from isotrope.errors import InputError


@pytest.fixture(scope="module")
def encoder() -> ImageEncoder:
    found = fresh_image_encoder("conv:4", 16)
    found.train()
    with torch.no_grad():  # statistics that are not those of a fresh network
        found(torch.rand(32, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    return found.eval()


def test_vectors_do_not_depend_on_the_batch(encoder: ImageEncoder) -> None:
    images, _ = shapes(20)
    whole = encoder.encode(images)
    assert whole.shape == (20, encoder.dimension)
    assert np.allclose(encoder.encode(images[::-1], batch_size=3)[::-1], whole, atol=1e-5)
    assert np.allclose(encoder.encode(images[4]), whole[4], atol=1e-5)
    assert np.allclose(np.linalg.norm(encoder.encode(images, normalize_embeddings=True), axis=1), 1, atol=1e-5)


def test_files_arrays_and_corpora_give_the_same_vectors(
    encoder: ImageEncoder, image_folder: Path, image_file: Path
) -> None:
    corpus = open_images(image_file, "images", 16)
    whole = encoder.encode_rows(corpus, np.arange(30))
    files = sorted(image_folder.rglob("*.png"), key=lambda file: file.name)
    assert np.allclose(encoder.encode(files), whole, atol=1e-5)
    assert np.allclose(encoder.encode(shapes(30)[0] / 255.0), whole, atol=1e-5)
    assert encoder.similarity(str(files[0]), files[:3])[0, 0] == pytest.approx(1, abs=1e-5)


def test_what_is_saved_loads_with_the_same_vectors(encoder: ImageEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "model")
    loaded = isotrope.load(tmp_path / "model", device="cpu")
    images, _ = shapes(6)
    assert isinstance(loaded, ImageEncoder)
    assert np.array_equal(loaded.encode(images), encoder.encode(images))
    assert loaded.fingerprint() == encoder.fingerprint()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="the weights cannot be read"):
        isotrope.load(tmp_path / "model")


def test_a_resnet_of_timm_has_a_small_stem_for_small_images(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", reason="the extra images", exc_type=(ImportError, RuntimeError))
    small, usual = (fresh_image_encoder("timm:resnet18", side) for side in (32, 224))
    stem, large = (one.backbone.network.conv1 for one in (small, usual))
    assert (stem.kernel_size, stem.stride) == ((3, 3), (1, 1))
    assert isinstance(small.backbone.network.maxpool, nn.Identity)
    assert (large.kernel_size, large.stride) == ((7, 7), (2, 2))
    assert all(isinstance(part, SharedBatchNorm) for part in batch_norms(small))
    small.save(tmp_path / "model")
    images = np.zeros((2, 32, 32, 3), np.uint8)
    assert np.array_equal(isotrope.load(tmp_path / "model", device="cpu").encode(images), small.eval().encode(images))
    plain = timm.create_model("resnet18", num_classes=0).state_dict().keys()
    assert usual.backbone.network.state_dict().keys() == plain


def test_the_small_stem_keeps_the_side_of_the_image() -> None:
    """SimCLR's for CIFAR: a 3×3 convolution of stride 1, no pooling behind it."""
    network = nn.Sequential()
    network.conv1 = nn.Conv2d(3, 8, kernel_size=7, stride=2, padding=3, bias=False)
    network.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
    put_small_stem(network, "a network")
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, 8, 32, 32)
    assert network.conv1.weight.shape == (8, 3, 3, 3)
    with pytest.raises(InputError, match="no stem that isotrope knows"):
        put_small_stem(nn.Sequential(nn.Linear(2, 2)), "another")


@pytest.mark.parametrize("name", ["timm", "resnet18", "conv@4", "timm:resnet18@9999"])
def test_names_of_no_network_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        fresh_image_encoder(name, 32)


def test_text_is_refused_with_a_word_on_images(encoder: ImageEncoder) -> None:
    with pytest.raises(InputError, match="reads images, not text"):
        encoder.encode(["A man is playing a guitar."])
    with pytest.raises(InputError, match="takes no text"):
        encoder.tokenize(["A man"])


class TestBatchNorm:
    """Groups are batches of their own; everything else is torch's."""

    @pytest.fixture
    def images(self) -> torch.Tensor:
        return torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))

    def test_one_process_and_one_group_are_torchs(self, images: torch.Tensor) -> None:
        ours, theirs = SharedBatchNorm(3), nn.BatchNorm2d(3)
        for _ in range(2):
            assert torch.equal(ours(images), theirs(images))
        assert torch.equal(ours.running_var, theirs.running_var)
        assert torch.equal(ours.eval()(images), theirs.eval()(images))

    def test_a_group_sees_its_own_images(self, images: torch.Tensor) -> None:
        ours = SharedBatchNorm(3)
        set_groups(ours, 2)
        found = ours(images)
        for group in (slice(4), slice(4, 8)):
            assert torch.allclose(found[group], nn.BatchNorm2d(3)(images[group]), atol=1e-6)

    def test_groups_are_one_operator(self, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
        """One for each group halves the pace of MoCo where nothing is compiled."""
        calls, plain = [], nn.functional.batch_norm
        monkeypatch.setattr(nn.functional, "batch_norm", lambda *given: calls.append(1) or plain(*given))
        ours = SharedBatchNorm(3)
        set_groups(ours, 4)
        ours(images)
        assert len(calls) == 1

    def test_groups_leave_the_channels_last_in_memory(self, images: torch.Tensor) -> None:
        """Otherwise the convolution behind them turns every image round."""
        ours = SharedBatchNorm(3)
        set_groups(ours, 2)
        found = ours(images.contiguous(memory_format=torch.channels_last))
        assert found.is_contiguous(memory_format=torch.channels_last)
        assert torch.allclose(found, ours(images), atol=1e-6)

    def test_statistics_of_groups_are_the_mean_of_theirs(self, images: torch.Tensor) -> None:
        ours = SharedBatchNorm(3)
        set_groups(ours, 2)
        ours(images)
        apart = [nn.BatchNorm2d(3) for _ in range(2)]
        for norm, part in zip(apart, images.chunk(2), strict=True):
            norm(part)
        for name in ("running_mean", "running_var"):
            mean = torch.stack([getattr(norm, name) for norm in apart]).mean(dim=0)
            assert torch.allclose(getattr(ours, name), mean, atol=1e-6)

    def test_written_out_for_a_compiler_it_is_the_same(self, images: torch.Tensor) -> None:
        ours, other = SharedBatchNorm(3), SharedBatchNorm(3)
        set_groups(ours, 2)
        for _ in range(2):
            assert torch.allclose(other._fused(images, 2), ours(images), atol=1e-6)
        assert torch.allclose(other.running_mean, ours.running_mean, atol=1e-6)  # type: ignore[arg-type]
        assert torch.allclose(other.running_var, ours.running_var, atol=1e-6)  # type: ignore[arg-type]

    def test_a_batch_that_groups_do_not_divide_has_fewer(self, images: torch.Tensor) -> None:
        ours = SharedBatchNorm(3)
        set_groups(ours, 8)
        assert torch.allclose(ours(images[:7]), nn.BatchNorm2d(3)(images[:7]), atol=1e-6)
        found = ours(images[:6])  # three of two
        assert torch.allclose(found[2:4], nn.BatchNorm2d(3)(images[2:4]), atol=1e-6)

    def test_the_most_groups_of_equal_size_with_two_images_at_least(self) -> None:
        found = {rows: even_groups(8, rows) for rows in (512, 50, 25, 12, 8, 7, 2, 1)}
        assert found == {512: 8, 50: 5, 25: 5, 12: 6, 8: 4, 7: 1, 2: 1, 1: 1}
