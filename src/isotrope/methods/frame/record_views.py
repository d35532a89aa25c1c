"""Views of a record, whatever it is: edited texts, or augmented images. A method compares what it gets.

    text     the edits of each view, framed as token rows
    images   pixels, and what was drawn for each image; augmented on the device

A method that takes both has ``edits`` and ``second_edits`` for text (two_views.py) and ``augmentations`` for images
(augmentations.py) among its settings, and names its record type for images in its card.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.data.image_corpus import ImageCorpus
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.method import Method
from isotrope.views.augmentations import parse_augmentations
from isotrope.views.edits import Edit
from isotrope.views.image_views import augmented
from isotrope.views.two_views import edited

AugmentationSetting = Annotated[
    str,
    "Images: augmentations of both views in their order, as crop:0.2:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2,blur "
    "(the last number of a step is its probability), or a paper's: simclr-large, simclr-small, moco-v1, moco-v2, "
    "moco-v2-small, supcon-small, crop-flip; none: the images as they are",
]


def record_views(
    method: Method[Any], records: Records, edits: Sequence[Edit], augmentations: str, rng: np.random.Generator
) -> list[View]:
    """One view for each of ``edits``, each with draws of its own. For images ``edits`` are only counted."""
    if isinstance(records.corpus, ImageCorpus):
        steps = parse_augmentations(augmentations)
        size = cast(ImageEncoder, method.encoder).size
        return list(augmented(records.corpus, records.rows, [steps] * len(edits), size, rng))
    sequences = records.tokens()
    return [method.frame(edited(sequences, edit, rng)) for edit in edits]


def plain_view(method: Method[Any], corpus: Corpus, rows: Rows) -> View:
    """Some records as they are."""
    if isinstance(corpus, ImageCorpus):
        (view,) = augmented(corpus, rows, [()], cast(ImageEncoder, method.encoder).size, np.random.default_rng(0))
        return view
    return method.frame([corpus.tokens(row) for row in rows])


def bound_edits(encoder: Encoder, parsed: Any) -> tuple[Edit, Edit]:
    """The edits of both views for the encoder's tokenizer; images have none."""
    return (_unread, _unread) if isinstance(encoder, ImageEncoder) else parsed(encoder.text_tokenizer)


def _unread(ids: Any, rng: np.random.Generator) -> Any:
    raise AssertionError("Images have no tokens to edit.")
