"""Find a model by its name or path, in the package, on disk or on a hub, and load it as an encoder.

A model is a folder, or a text file of word vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.folder_reader import read_folder
from isotrope.encoders.image_encoder import fresh_image_encoder
from isotrope.encoders.image_folder import is_image_folder, read_image_folder
from isotrope.encoders.modes import evaluating
from isotrope.encoders.onnx_encoder import FACTS as EXPORTED
from isotrope.encoders.onnx_encoder import read_onnx
from isotrope.encoders.packed import WEIGHTS, read_packed
from isotrope.encoders.read_out import named
from isotrope.encoders.remote_code import named_as_trusted, trusting
from isotrope.encoders.stored_files import loaded_by_others, read_facts
from isotrope.encoders.truncation import truncated
from isotrope.encoders.vector_table import read_table
from isotrope.encoders.vision_networks import is_network_name
from isotrope.errors import InputError

BUILTIN = ("builtin", "builtin-base", "builtin-static")
DEVICE = "ISOTROPE_DEVICE"  # the variable that names the device of models for which none is given
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


def load(
    name_or_path: str | os.PathLike[str] = "builtin",
    pooling: str | None = None,
    device: str | torch.device | None = None,
    language_head: bool = False,
    trust_remote_code: str | os.PathLike[str] | None = None,
    truncate_dim: int | None = None,
) -> Encoder:
    """An encoder ready to use.

    ``pooling`` replaces the one stored with the model (auto: it does not); a plain Hugging Face folder, which stores
    none, gets mean pooling. ``language_head`` keeps the masked-language head, for methods that train it. A file is read
    as word vectors (GloVe, word2vec or fastText text); an encoder is their mean. A folder of an image encoder is opened
    as such, and timm:NAME is a network for images with random weights. Code in a model's folder is never run,
    unless ``trust_remote_code`` names that folder (remote_code.py). ``truncate_dim`` keeps the leading dimensions of
    its vectors.
    """
    wanted = default_device() if device is None else _there(device)
    file, chosen = Path(name_or_path).expanduser(), named(pooling)
    if str(name_or_path) not in BUILTIN and file.is_file():
        encoder = read_table(file, chosen, language_head)
    elif is_network_name(name_or_path) and not file.exists():
        encoder = fresh_image_encoder(str(name_or_path))
    elif (images := next((place for place in (file, file / "model") if is_image_folder(place)), None)) is not None:
        encoder = read_image_folder(images)
    else:
        trusted = named_as_trusted(name_or_path, trust_remote_code)
        folder = find_folder(str(name_or_path), (*HUB_FILES, *(["*.py"] if trusted else [])))
        read = _reader(folder)
        with trusting(folder if trusted else None):
            encoder = read(folder, chosen, language_head)
        check_runs(folder, encoder)
    return truncated(encoder.to(wanted).eval(), truncate_dim).eval()


def _reader(folder: Path) -> Callable[[Path, str | None, bool], Encoder]:
    if (folder / WEIGHTS).is_file():
        return read_packed
    return read_onnx if EXPORTED in read_facts(folder / "isotrope.json") else read_folder


def check_runs(folder: Path, encoder: Encoder) -> None:
    """Send two tokens through: a model that was built and cannot compute is refused here, not at its first text."""
    if encoder.max_length < 1:
        raise InputError(f"{folder / 'config.json'}: the model has no positions for a text; take another model.")
    with loaded_by_others(folder, "the model was built and cannot be run: it"), evaluating(encoder):
        vectors = encoder(encoder.tokenize(["a", ""]))
    if vectors.shape != (2, encoder.dimension):
        raise InputError(
            f"{folder}: the model gives vectors of {tuple(vectors.shape[1:])}, not of {encoder.dimension} dimensions."
        )


def default_device() -> torch.device:
    """The one that ISOTROPE_DEVICE names, else a GPU where there is one, Apple's included, else the CPU."""
    if named_device := os.environ.get(DEVICE):
        return checked_device(named_device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _there(device: str | torch.device) -> torch.device:
    """Any device that torch can use here, also one that no option of ours names (xpu)."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was compiled with CUDA
        raise InputError(
            f"This machine has no device '{device}'; `isotrope doctor` says what it has.", setting="device"
        ) from error


def checked_device(name: str) -> torch.device:
    """A device by name, such as cpu, cuda, cuda:1 or mps; one that is not there is refused."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"Unknown device '{name}'; cpu, cuda, cuda:1 or mps were expected.", "device") from error
    if device.type not in ("cpu", "cuda", "mps"):
        raise InputError(f"Unknown device '{name}'; cpu, cuda, cuda:1 or mps were expected.", setting="device")
    there = torch.cuda.device_count() if device.type == "cuda" else int(torch.backends.mps.is_available())
    if device.type != "cpu" and (device.index or 0) >= there:
        raise InputError(f"This machine has no device '{name}'; `isotrope doctor` says what it has.", setting="device")
    return device


def find_folder(name: str, files: Sequence[str] = HUB_FILES) -> Path:
    """The folder a name stands for; a hub id is fetched once, those of its ``files`` that are asked for."""
    if name in BUILTIN:
        folder = Path(__file__).parent / "builtin" / name
        if not folder.is_dir():
            raise InputError(
                f"This version of isotrope ships no '{name}' yet; give a model folder or a hub id as model."
            )
        return folder
    folder = Path(name).expanduser()
    if name and folder.is_dir():  # an empty name would be the folder one stands in
        return folder / "model" if (folder / "run.json").is_file() and (folder / "model").is_dir() else folder
    if name and folder.exists():
        raise InputError(f"{name}: this is a file; give the model's folder.")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name or not name:
        raise InputError(f"{name!r}: no such model folder.")
    return _from_hub(name, files)


def _from_hub(name: str, files: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except HFValidationError as error:
        raise InputError(f"{name!r} is neither a model folder nor a hub id such as owner/name.") from error
    except RepositoryNotFoundError as error:
        raise InputError(f"{name!r}: no such folder here, and the hub knows no such model.") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise InputError(
            f"{name!r}: no such folder here, and the hub cannot be reached; give a local folder, or fetch it where "
            "there is a network."
        ) from error
