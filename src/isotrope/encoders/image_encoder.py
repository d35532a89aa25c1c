"""The image encoder: images in, vectors out. The loop, the methods and the judge use it as any other encoder.

    v = network((pixels / 255 − mean) / std)

The projection head of SimCLR, MoCo and SupCon is a tower and is dropped; what is kept is the network up to its global
pooling. ``load`` opens a folder that ``save`` wrote (image_folder.py); ``fresh_image_encoder`` makes a new one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from isotrope.data.image_corpus import ImageCorpus
from isotrope.data.pictures import NotAnImageError, Pixels, decoded, from_array, seen
from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.finite_vectors import check_finite
from isotrope.encoders.image_graphs import graphs_of
from isotrope.encoders.modes import evaluating
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.truncation import check_width
from isotrope.encoders.vision_networks import VisionConfig, VisionNetwork, config_named
from isotrope.errors import InputError
from isotrope.progress import bar
from isotrope.tokens.padded import moved
from isotrope.views.image_views import ImageView, centred

ROWS = {"cpu": 64, "cuda": 1024}  # images in one forward
LARGEST = 10**9


class NoTokens:
    """Stands where a text encoder has its tokenizer: images are framed by nothing."""

    start: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    prompt = ""

    def fingerprint(self) -> str:
        return "images"


class ImageEncoder(Encoder):
    """A network of ``vision_networks`` and the parts after it."""

    def __init__(
        self, backbone: VisionNetwork, parts: Sequence[nn.Module] = (), facts: Mapping[str, Any] | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.backbone = backbone
        self.tokenizer = None
        self.text_tokenizer = NoTokens()  # type: ignore[assignment]
        self.pooling = Pooling("mean", ("mean",))
        self.register_module("token_weights", None)
        self.parts = nn.ModuleList(parts)
        self.max_length = LARGEST  # images have no length
        self.facts = dict(facts or {})
        self._language_model = (None,)

    @property
    def config(self) -> VisionConfig:
        config: VisionConfig = self.backbone.config
        return config

    @property
    def size(self) -> int:
        """The side of the images that the network sees."""
        return self.config.size

    def with_parts(self, parts: Sequence[nn.Module]) -> ImageEncoder:
        return ImageEncoder(self.backbone, parts, self.facts)

    def with_prompt(self, prompt: str) -> ImageEncoder:
        return self if not prompt else _refuse("a prompt")

    def forward(self, images: Tensor) -> Tensor:  # type: ignore[override]
        """Pixels in [0, 1], [n, 3, size, size]."""
        shaped = images.contiguous(memory_format=torch.channels_last) if images.is_cuda else images
        return self.finish(graphs_of(self.backbone).vectors(self.backbone, shaped))

    def embed(self, *views: ImageView) -> tuple[Tensor, ...]:  # type: ignore[override]
        """All views in one forward: batch norm sees them together, as SimCLR has it."""
        vectors = self(torch.cat([self._images(view) for view in views]))
        return tuple(vectors.split([len(view) for view in views]))

    def embed_shuffled(self, view: ImageView) -> Tensor:
        """The same in a random order, undone afterwards: groups of batch norm hold other images than a query's do."""
        images = self._images(view)
        order = torch.randperm(len(images))
        there, back = moved(order, images.device), moved(torch.argsort(order), images.device)
        vectors: Tensor = self(images[there])
        return vectors[back]

    def _images(self, view: ImageView) -> Tensor:
        return graphs_of(self.backbone).images(view)

    def encode(
        self,
        images: Any,
        batch_size: int | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        processes: int = 1,
        half: bool = False,
    ) -> Any:
        """Vectors of ``images``, float32, in the order given; one image gives one vector.

        An image is the name of a file, an array [height, width, 3] (or [n, height, width, 3]), or a Pillow image. It is
        looked at in the middle, 87.5 % of its shorter side, as the papers do; one of the network's size as a whole.
        ``half`` changes nothing here.
        """
        if prompt_name or prompt or processes != 1:
            raise InputError("Images have no prompt and are encoded in one process; leave prompt and processes out.")
        single = isinstance(images, str | os.PathLike) or _dimensions(images) in (2, 3)
        rows = [images] if single else list(images)
        if not rows:
            return np.empty((0, self.dimension), dtype=np.float32)
        names = [str(one) if isinstance(one, str | os.PathLike) else f"item {row}" for row, one in enumerate(rows)]
        options = (batch_size, normalize_embeddings, show_progress_bar, truncate_dim)
        vectors = self._encoded(len(rows), lambda places: [self._pixels(rows[row]) for row in places], names, *options)
        result = vectors[0] if single else vectors
        return torch.from_numpy(result) if convert_to_tensor or not convert_to_numpy else result

    def encode_rows(
        self, corpus: ImageCorpus, rows: npt.NDArray[np.int64], normalize_embeddings: bool = False
    ) -> Vectors:
        """The same of rows of a corpus, which are decoded already."""
        edge = (corpus.side - self.size) // 2

        def read(places: range) -> npt.NDArray[np.uint8]:
            pixels = corpus.pixels(rows[places.start : places.stop])
            return pixels[:, edge : edge + self.size, edge : edge + self.size]

        return self._encoded(len(rows), read, [""] * len(rows), None, normalize_embeddings, None, None)

    def _encoded(
        self,
        count: int,
        read: Any,
        names: Sequence[str],
        batch_size: int | None,
        normalize: bool,
        show: bool | None,
        truncate_dim: int | None,
    ) -> Vectors:
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}.")
        width = self.dimension if truncate_dim is None else check_width(truncate_dim, self.dimension)
        size = batch_size or ROWS.get(self.device.type, ROWS["cuda"])
        vectors = np.empty((count, width), dtype=np.float32)
        shown = count > 2000 and None if show is None else show
        with evaluating(self), bar("encoding", count, show=shown) as advance:
            for start in range(0, count, size):
                places = range(start, min(start + size, count))
                pixels = torch.from_numpy(np.ascontiguousarray(read(places))).to(self.device)
                output = self(centred(pixels.permute(0, 3, 1, 2).float() / 255.0, self.size)).float()[:, :width]
                output = nn.functional.normalize(output, dim=-1) if normalize else output
                vectors[places.start : places.stop] = found = output.cpu().numpy()
                check_finite([names[row] for row in places], found)
                advance(len(places))
        return vectors

    def _pixels(self, image: Any) -> Pixels:
        if isinstance(image, str | os.PathLike):
            if not Path(image).is_file():
                raise InputError(f"{str(image)[:200]!r}: no such image file; this model reads images, not text.")
            try:
                return seen(decoded(image), self.size)
            except NotAnImageError as error:
                raise InputError(f"{image}: this is no image that can be read ({error}).") from error
        return seen(from_array(image), self.size)

    def _unit(self, side: Any) -> npt.NDArray[np.float32]:
        """Vectors as they are; names of files, Pillow images and pixels are encoded first."""
        array = side if isinstance(side, np.ndarray) else None
        if array is None or array.ndim > 2 or array.dtype == np.uint8:
            side = self.encode(side)
        vectors = np.array(side, dtype=np.float32, ndmin=2)
        return nn.functional.normalize(torch.from_numpy(vectors), dim=1).numpy()

    def frame(self, *given: Any, **named: Any) -> NoReturn:
        _refuse("text")

    frame_pairs = tokenize = layers = states = pooled = states_and_vectors = frame

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write weights and config; see ``isotrope.encoders.image_folder``."""
        from isotrope.encoders.image_folder import save_images

        save_images(self, folder)


def _refuse(what: str) -> NoReturn:
    raise InputError(f"This model reads images and takes no {what.removeprefix('a ')}; load a text encoder for that.")


def _dimensions(images: Any) -> int:
    shape = getattr(images, "shape", None)
    if shape is not None:
        return len(shape)
    return 3 if hasattr(images, "__array_interface__") or type(images).__module__.startswith("PIL.") else 0


def fresh_image_encoder(name: str = "timm:resnet18", side: int | None = None, seed: int = 42) -> ImageEncoder:
    """A network with random weights; ``side``: that of the images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ImageEncoder(VisionNetwork(config_named(name, side)))
