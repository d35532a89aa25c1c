"""Find a model by its name or path, in the package, on disk or on a hub, and load it as an encoder."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.folder_reader import read_folder
from isotrope.encoders.packed import WEIGHTS, read_packed
from isotrope.encoders.read_out import named
from isotrope.errors import InputError

BUILTIN = ("builtin", "builtin-base")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def load(
    name_or_path: str | os.PathLike[str] = "builtin",
    pooling: str | None = None,
    device: str | torch.device | None = None,
    language_head: bool = False,
) -> Encoder:
    """An encoder ready to use.

    ``pooling`` replaces the one stored with the model (auto: it does not); a plain Hugging Face folder, which stores
    none, gets mean pooling. ``language_head`` keeps the masked-language head, for methods that train it.
    """
    folder = find_folder(str(name_or_path))
    read = read_packed if (folder / WEIGHTS).is_file() else read_folder
    encoder = read(folder, named(pooling), language_head)
    return encoder.to(torch.device(device) if device is not None else default_device()).eval()


def default_device() -> torch.device:
    """A GPU where there is one, Apple's included, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def find_folder(name: str) -> Path:
    """The folder a name stands for; a hub id is fetched once."""
    if name in BUILTIN:
        folder = Path(__file__).parent / "builtin" / name
        if not folder.is_dir():
            raise InputError(
                f"This version of isotrope ships no '{name}' yet; give a model folder or a hub id as model."
            )
        return folder
    folder = Path(name).expanduser()
    if name and folder.is_dir():  # an empty name would be the folder one stands in
        return folder
    if name and folder.exists():
        raise InputError(f"{name}: this is a file; give the model's folder.")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name or not name:
        raise InputError(f"{name!r}: no such model folder.")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return Path(snapshot_download(name, allow_patterns=HUB_FILES))
    except HFValidationError as error:
        raise InputError(f"{name!r} is neither a model folder nor a hub id such as owner/name.") from error
    except RepositoryNotFoundError as error:
        raise InputError(f"{name!r}: no such folder here, and the hub knows no such model.") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise InputError(
            f"{name!r}: no such folder here, and the hub cannot be reached; give a local folder, or fetch it where "
            "there is a network."
        ) from error
