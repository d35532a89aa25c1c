"""Open a plan whose data are images: the network that training starts from, and the decoded images.

What a method, a model and the data are must agree: a method for text on images, or images for a text encoder, is one
sentence.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotrope.data.corpus import Corpus
from isotrope.data.image_corpus import ImageCorpus, natural_side, open_images
from isotrope.data.image_sources import is_image_source
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder, fresh_image_encoder
from isotrope.encoders.loading import load
from isotrope.encoders.read_out import ReadOut
from isotrope.encoders.shared_batch_norm import batch_norms, set_groups
from isotrope.encoders.vision_networks import is_network_name
from isotrope.errors import InputError
from isotrope.methods.frame.method import Method
from isotrope.training.loop_settings import LoopSettings

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.plan import Plan

DEFAULT_NETWORK = "timm:resnet18"


def image_defaults(method: type[Method[Any]], data: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a method sets for images where the user does not; empty for text. ``given``: the user's settings."""
    if not is_image_source(data):
        return {}
    if method.card.images is None:
        raise InputError(
            f"{data if isinstance(data, str) else 'The data'} holds images, and {method.card.name} is about text "
            f"({method.card.needs}); `isotrope methods --needs images` lists the methods for images."
        )
    defaults = dict(method.image_defaults)
    own, asked = defaults.get("optimiser"), given.get("optimiser")
    if asked not in (None, own) and not {"learning_rate", "learning-rate"} & given.keys():
        raise InputError(
            f"The learning rate that {method.card.name} has for images is that of {own}, not of {asked}; "
            "give learning_rate too."
        )
    return defaults


def open_image_plan(
    plan: Plan, accelerator: Accelerator, default_model: str
) -> tuple[ImageEncoder, ImageCorpus, ReadOut]:
    """The network, the images at its side, and how vectors are read out."""
    for _, settings in plan.added:
        if settings.weight > 0:
            raise InputError(f"{settings.setting()} adds a loss over text, and the data are images; leave it out.")
    if plan.pooling is not None:
        raise InputError("A network for images has its own pooling; leave pooling out.")
    encoder = _start(plan, default_model).to(accelerator.device)
    if plan.loop.chunk_size is not None and batch_norms(encoder):
        raise InputError(
            "chunk_size cuts a batch, and the network's batch norm would see a chunk instead of the batch; leave it "
            "out, or take a network without batch norm, as timm:vit_tiny_patch16_224."
        )
    with accelerator.main_process_first():
        corpus = open_images(plan.data, str(plan.method.card.images), encoder.size)
    return encoder, corpus, ReadOut("mean", "the network's global pooling")


def network_name(model: object, default_model: str) -> str:
    """The network that training on images starts from: the default model reads text, so it was not asked for."""
    return DEFAULT_NETWORK if str(model) == default_model else str(model)


def _start(plan: Plan, default_model: str) -> ImageEncoder:
    if isinstance(plan.model, Encoder):
        found: Encoder = copy.deepcopy(plan.model)
    else:
        name = network_name(plan.model, default_model)
        found = (
            fresh_image_encoder(name, natural_side(plan.data), plan.loop.seed) if is_network_name(name) else load(name)
        )
    if not isinstance(found, ImageEncoder):
        raise InputError(f"The data are images, and {plan.model} reads text; give timm:NAME, or a model for images.")
    set_groups(found, 1)  # an earlier run in memory may have left its own
    return found


def with_scaled_rate(plan: Plan, corpus: Corpus, settings: LoopSettings) -> LoopSettings:
    """A method's default rate for images goes with the batch, in proportion, as published; one that was given stays."""
    given, known = plan.given, plan.method.image_defaults
    if not isinstance(corpus, ImageCorpus) or given & {"learning_rate", "optimiser"} or "learning_rate" not in known:
        return settings
    return replace(settings, learning_rate=known["learning_rate"] * settings.batch_size / known["batch_size"])


def check_reads_text(encoder: Encoder) -> None:
    if isinstance(encoder, ImageEncoder):
        raise InputError("The data are text, and the model reads images; give a text encoder, or a folder of images.")
