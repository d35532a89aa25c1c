"""Augmentations of a batch: torchvision's definitions where it is installed, values by hand, and laws."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
import torch

from isotrope.errors import InputError
from isotrope.methods.frame.method_registry import find
from isotrope.views.augmentations import PRESETS, Blur, Crop, Flip, Gray, Jitter, draw_all, parse_augmentations
from isotrope.views.colours import BRIGHTNESS, CONTRAST, HUE, SATURATION, blended, grey_of, jittered, turned
from isotrope.views.image_views import ImageView
from isotrope.views.resampling import blur_weights, crop_weights, mixed

SIDE = 12


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(6, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))


def view(text: str, size: int = SIDE, count: int = 6, seed: int = 3) -> ImageView:
    pixels = torch.randint(
        0, 256, (count, SIDE, SIDE, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )
    steps = parse_augmentations(text)
    return ImageView(pixels, steps, draw_all(steps, count, SIDE, np.random.default_rng(seed)), size)


def test_a_crop_by_hand() -> None:
    """Two pixels, 0 and 1, resized to four: 0, ¼, ¾, 1, as every bilinear resizer has it."""
    weights = crop_weights(torch.tensor([1.0]), torch.tensor([2.0]), side=4, out=4)
    assert torch.allclose(weights[0] @ torch.tensor([9.0, 0.0, 1.0, 9.0]), torch.tensor([0.0, 0.25, 0.75, 1.0]))
    halved = crop_weights(torch.tensor([0.0]), torch.tensor([4.0]), side=4, out=2)  # antialiased: a wider triangle
    assert torch.allclose(halved[0], torch.tensor([[3.0, 3.0, 1.0, 0.0], [0.0, 1.0, 3.0, 3.0]]) / 7)


def test_the_whole_image_at_its_own_side_is_the_identity(images: torch.Tensor) -> None:
    whole = crop_weights(torch.zeros(6), torch.full((6,), float(SIDE)), SIDE, SIDE)
    assert torch.allclose(mixed(images, whole, whole), images, atol=1e-6)
    still = blur_weights(torch.zeros(6), SIDE, 2)
    assert torch.allclose(mixed(images, still, still), images, atol=1e-6)


def test_hue_by_the_standard_library(images: torch.Tensor) -> None:
    shifts = torch.tensor([0.1, -0.2, 0.5, 0.0, 0.31, -0.45])
    found = turned(images, shifts)
    for row in range(6):
        for place in ((0, 0), (3, 7)):
            h, s, v = colorsys.rgb_to_hsv(*images[row, :, place[0], place[1]].tolist())
            wanted = colorsys.hsv_to_rgb((h + float(shifts[row])) % 1, s, v)
            assert found[row, :, place[0], place[1]].tolist() == pytest.approx(wanted, abs=2e-5)
    grey = images.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
    assert torch.allclose(turned(grey, shifts), grey)


def test_brightness_contrast_and_saturation_by_hand() -> None:
    image = torch.tensor([0.2, 0.4, 0.6]).view(1, 3, 1, 1).expand(1, 3, 1, 2).clone()
    image[..., 1] = 1.0
    grey = grey_of(image)[0, 0, 0]
    factor = torch.tensor([1.5])
    for kind, reference in ((BRIGHTNESS, torch.zeros(2)), (CONTRAST, grey.mean().expand(2)), (SATURATION, grey)):
        wanted = (1.5 * image - 0.5 * reference.view(1, 1, 1, 2)).clamp(0, 1)
        assert torch.allclose(blended(image, factor, torch.tensor([kind])), wanted)


def test_each_image_has_its_own_order(images: torch.Tensor) -> None:
    rng = np.random.default_rng(0)
    draws = draw_all([Jitter(0.4, 0.4, 0.4, 0.1, 1.0)], 6, SIDE, rng)[0]
    found = jittered(images, draws["factors"], draws["order"])
    for row in range(6):
        one = images[row : row + 1]
        for kind in draws["order"][row].long().tolist():
            factor = draws["factors"][row : row + 1, kind]
            one = turned(one, factor) if kind == HUE else blended(one, factor, torch.tensor([kind]))
        assert torch.allclose(found[row : row + 1], one, atol=1e-6)
    assert len({tuple(order) for order in draws["order"].tolist()}) > 1


def test_crops_have_the_shares_and_shapes_that_were_asked_for() -> None:
    boxes = Crop(0.2, 1.0).draw(4000, 100, np.random.default_rng(0))["box"]
    top, left, height, width = boxes.T
    assert (top >= 0).all()
    assert (left + width <= 100).all()
    assert (top + height <= 100).all()
    share, shape = height * width / 1e4, width / height
    assert (share > 0.19).all()
    assert share.mean() == pytest.approx(0.55, abs=0.05)  # less than 0.6: oblong crops of nearly all do not fit
    assert ((shape > 0.73) & (shape < 1.37)).all()


@pytest.mark.parametrize("name", [*PRESETS, "none"])
def test_a_view_is_decided_by_its_draws_alone(name: str) -> None:
    made = view(name)
    assert torch.equal(made.images(), made.images())
    assert torch.equal(made.images(), view(name).images())
    assert made.images().shape == (6, 3, SIDE, SIDE)
    assert float(made.images().min()) >= 0
    assert float(made.images().max()) <= 1
    if name != "none":
        assert not torch.equal(made.images(), view(name, seed=4).images())


# Order, strengths and probabilities of the papers' code. For CIFAR, SimCLR halves the colours and does not blur; MoCo's
# notebook takes torchvision's default crop, as SimCLR does; SupCon's code begins at a fifth.
SMALL_COLOURS = (Flip(0.5), Jitter(0.4, 0.4, 0.4, 0.1, 0.8), Gray(0.2))
PUBLISHED = {
    "simclr-large": (Crop(0.08, 1), Flip(0.5), Jitter(0.8, 0.8, 0.8, 0.2, 0.8), Gray(0.2), Blur(0.5)),
    "simclr-small": (Crop(0.08, 1), *SMALL_COLOURS),
    "moco-v1": (Crop(0.2, 1), Gray(0.2), Jitter(0.4, 0.4, 0.4, 0.4, 1.0), Flip(0.5)),
    "moco-v2": (Crop(0.2, 1), Jitter(0.4, 0.4, 0.4, 0.1, 0.8), Gray(0.2), Blur(0.5), Flip(0.5)),
    "moco-v2-small": (Crop(0.08, 1), *SMALL_COLOURS),
    "supcon-small": (Crop(0.2, 1), *SMALL_COLOURS),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_views_are_those_of_the_papers(name: str) -> None:
    assert parse_augmentations(name) == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "views"), [("simclr", "simclr-small"), ("moco", "moco-v2-small"), ("supcon", "supcon-small")]
)
def test_the_plain_command_has_the_views_of_its_paper(name: str, views: str) -> None:
    assert find(name).Settings().augmentations == views  # type: ignore[attr-defined]


def test_draws_have_the_ranges_and_probabilities_of_the_papers() -> None:
    rng, count = np.random.default_rng(0), 20_000
    jitter = Jitter(0.8, 0.8, 0.8, 0.2, 0.8).draw(count, SIDE, rng)
    factors, changed = jitter["factors"], (jitter["factors"] != [1, 1, 1, 0]).any(axis=1)
    assert changed.mean() == pytest.approx(0.8, abs=0.01)
    assert factors.min(axis=0) == pytest.approx([0.2, 0.2, 0.2, -0.2], abs=0.01)
    assert factors.max(axis=0) == pytest.approx([1.8, 1.8, 1.8, 0.2], abs=0.01)
    firsts = np.bincount(jitter["order"][:, 0].astype(int), minlength=4) / count
    assert firsts == pytest.approx([0.25] * 4, abs=0.015)
    deviations = Blur(0.5).draw(count, SIDE, rng)["deviation"]
    blurred = deviations[deviations > 0]
    assert len(blurred) / count == pytest.approx(0.5, abs=0.015)
    assert (blurred.min(), blurred.max()) == pytest.approx((0.1, 2.0), abs=0.01)
    for step, drawn, share in ((Flip(), "flipped", 0.5), (Gray(), "gray", 0.2)):
        assert step.draw(count, SIDE, rng)[drawn].mean() == pytest.approx(share, abs=0.015)


def test_a_blur_has_a_kernel_of_a_tenth_of_the_side() -> None:
    """224 pixels: 11 to each side, as the released code of SimCLR."""
    point = torch.zeros(1, 3, 224, 224)
    point[..., 112, 112] = 1
    found = Blur().apply(point, {"deviation": torch.tensor([2.0])}, 224)[0, 0]
    rows = found.sum(dim=1).nonzero().squeeze(1)
    assert (int(rows.min()), int(rows.max())) == (112 - 11, 112 + 11)


@pytest.mark.parametrize("name", PRESETS)
def test_chunks_of_a_view_are_the_view(name: str) -> None:
    made = view(name, size=8)
    parts = [made.rows(slice(0, 2)), made.rows(slice(2, 6))]
    assert torch.allclose(torch.cat([part.images() for part in parts]), made.images(), atol=1e-6)


@pytest.mark.parametrize(
    "text", ["crop", "crop:0:1", "crop:0.5:0.2", "turn", "flip:2", "jitter:1:1:1:0.9", "gray:x", ""]
)
def test_words_that_are_no_augmentations_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"augmentation"):
        parse_augmentations(text)


class TestTorchvision:
    """The same numbers as torchvision's functions."""

    @pytest.fixture
    def functional(self) -> Any:
        reason = "torchvision, which timm brings, is compared with"
        return pytest.importorskip(
            "torchvision.transforms.v2.functional", reason=reason, exc_type=(ImportError, RuntimeError)
        )

    def test_crops(self, functional: Any, images: torch.Tensor) -> None:
        boxes = Crop(0.08, 1.0).draw(6, SIDE, np.random.default_rng(0))["box"]
        for size in (5, SIDE, 20):
            found = Crop(0.08).apply(images, {"box": torch.from_numpy(boxes)}, size)
            for row in range(6):
                box = [int(number) for number in boxes[row]]
                wanted = functional.resized_crop(images[row : row + 1], *box, [size, size], antialias=True)
                assert torch.allclose(found[row : row + 1], wanted, atol=1e-5)

    def test_colours(self, functional: Any, images: torch.Tensor) -> None:
        pairs = ((BRIGHTNESS, "brightness"), (CONTRAST, "contrast"), (SATURATION, "saturation"))
        for kind, name in pairs:
            wanted = getattr(functional, f"adjust_{name}")(images, 1.3)
            assert torch.allclose(blended(images, torch.full((6,), 1.3), torch.full((6,), kind)), wanted, atol=1e-5)
        assert torch.allclose(turned(images, torch.full((6,), 0.2)), functional.adjust_hue(images, 0.2), atol=1e-4)
        assert torch.allclose(grey_of(images), functional.rgb_to_grayscale(images, 1), atol=1e-5)

    def test_blur(self, functional: Any, images: torch.Tensor) -> None:
        weights = blur_weights(torch.full((6,), 1.3), SIDE, 2)
        wanted = functional.gaussian_blur(images, [5, 5], [1.3, 1.3])
        assert torch.allclose(mixed(images, weights, weights), wanted, atol=1e-5)
