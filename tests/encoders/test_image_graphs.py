"""Recorded augmentation and networks: the images, vectors, gradients and statistics of the plain ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from isotrope.encoders.image_encoder import ImageEncoder, fresh_image_encoder
from isotrope.encoders.image_graphs import graphs_of
from isotrope.encoders.shared_batch_norm import batch_norms, set_groups
from isotrope.encoders.speed import Speed, at_speed, forgetting_graphs
from isotrope.views.augmentations import draw_all, parse_augmentations
from isotrope.views.image_views import ImageView

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
GRAPHS = Speed(graphs=True)


def view(number: int, names: str = "simclr-large") -> ImageView:
    rng, steps = np.random.default_rng(number), parse_augmentations(names)
    pixels = torch.from_numpy(rng.integers(0, 256, (16, 36, 36, 3), dtype=np.uint8))
    return ImageView(pixels, steps, draw_all(steps, 16, 36, rng), 32)


@pytest.fixture
def encoder() -> ImageEncoder:
    return fresh_image_encoder("conv:8", 32, seed=0).train()


class TestWithoutAGPU:
    def test_nothing_is_recorded(self, encoder: ImageEncoder) -> None:
        with at_speed(Speed(compiled=True, graphs=True)):
            (found,) = encoder.embed(view(0))
        assert torch.equal(found, copy.deepcopy(encoder).embed(view(0))[0])
        assert graphs_of(encoder.backbone).found == {}

    def test_a_view_comes_back_from_its_tensors(self) -> None:
        one, other = view(0), view(1)
        assert torch.equal(one.with_tensors(other.tensors()).images(), other.images())

    def test_hues_by_mask_and_by_rows_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A GPU turns all hues and keeps some; a CPU turns some."""
        from isotrope.views import colours

        images = torch.rand(12, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        (drawn,) = draw_all(parse_augmentations("jitter:0.4:0.4:0.4:0.1:1"), 12, 8, np.random.default_rng(0))

        class Elsewhere:
            type = "elsewhere"

        by_rows = colours.jittered(images, drawn["factors"], drawn["order"])
        monkeypatch.setattr(Tensor, "device", Elsewhere, raising=False)
        by_mask = colours.jittered(images, drawn["factors"], drawn["order"])
        assert torch.equal(by_rows, by_mask)

    def test_a_run_forgets_what_it_recorded(self, encoder: ImageEncoder) -> None:
        graphs_of(encoder.backbone).found["a key"] = None
        with pytest.raises(ZeroDivisionError), forgetting_graphs():
            raise ZeroDivisionError
        assert graphs_of(encoder.backbone).found == {}


@needs_gpu
class TestOnAGPU:
    def test_images_are_those_of_the_view(self, encoder: ImageEncoder) -> None:
        graphs = graphs_of(encoder.cuda().backbone)
        for number in range(3):
            one = view(number).to(torch.device("cuda"))
            with at_speed(GRAPHS):
                assert torch.allclose(graphs.images(one), one.images(), atol=1e-5)
        assert len(graphs.found) == 1
        graphs.clear()

    @pytest.mark.parametrize("groups", [1, 4])
    @pytest.mark.parametrize("compiled", [False, True])
    def test_vectors_gradients_and_statistics(self, encoder: ImageEncoder, groups: int, compiled: bool) -> None:
        plain, fast = encoder.cuda(), copy.deepcopy(encoder).cuda()
        for one in (plain, fast):
            set_groups(one, groups)
        for number in range(4):
            one = view(number).to(torch.device("cuda"))
            expected = gradients(plain, one, Speed())
            found = gradients(fast, one, Speed(compiled, graphs=True))
            for here, there in zip(found, expected, strict=True):
                # The compiler keeps in float32 what the plain path rounds to bfloat16 between two operators.
                assert (here - there).norm() <= 0.05 * there.norm() + 1e-6
        for here, there in zip(batch_norms(fast), batch_norms(plain), strict=True):
            assert torch.allclose(here.running_var, there.running_var, rtol=0.02)  # type: ignore[arg-type]
            assert torch.allclose(here.running_mean, there.running_mean, atol=0.01)  # type: ignore[arg-type]
            assert not torch.allclose(here.running_mean, torch.zeros_like(here.running_mean))  # type: ignore[arg-type]
            assert int(here.num_batches_tracked) == int(there.num_batches_tracked)  # type: ignore[arg-type]
        graphs_of(fast.backbone).clear()

    def test_keys_without_gradient(self, encoder: ImageEncoder) -> None:
        plain, fast = encoder.cuda(), copy.deepcopy(encoder).cuda()
        for number in range(3):
            one = view(number).to(torch.device("cuda"))
            with torch.no_grad():
                expected = plain.embed(one)[0]
                with at_speed(GRAPHS):
                    found = fast.embed(one)[0]
            assert torch.allclose(found, expected, atol=1e-3)  # convolutions may round to TF32
        graphs_of(fast.backbone).clear()

    def test_an_evaluation_is_not_recorded(self, encoder: ImageEncoder) -> None:
        encoder.cuda().eval()
        with torch.no_grad(), at_speed(GRAPHS):
            encoder(torch.rand(4, 3, 32, 32, device="cuda"))
        assert graphs_of(encoder.backbone).found == {}


def gradients(encoder: ImageEncoder, one: ImageView, speed: Speed) -> list[Tensor]:
    with at_speed(speed), torch.autocast("cuda", torch.bfloat16):
        (vectors,) = encoder.embed(one)
    nn.functional.normalize(vectors.float(), dim=1).std(dim=0).sum().backward()
    found = [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]
    encoder.zero_grad(set_to_none=True)
    return [vectors.detach().float().clone(), *found]
