"""Send a saved model to a hub, through huggingface_hub's own client: its endpoint, its token, its retries.

Only the files of a model travel: what else stands in the folder stays here. Nothing is sent before the folder has been
checked and the card has a licence, or the caller was told that it has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotrope.encoders.model_card import CARD, LICENSE
from isotrope.encoders.saving import OURS
from isotrope.encoders.stored_files import gist, read_json
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import say

HEADER = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
REPO = re.compile(r"[\w.-]+(/[\w.-]+)?")
NAME = re.compile(r"[\w.+-]{1,80}")
CLIENTS = ("httpx", "httpx2", "requests")  # whose errors huggingface_hub lets through, by its version


@dataclass(frozen=True)
class PushedModel:
    """What ``push`` sent, and where it is now."""

    repo: str
    url: str
    files: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {"repo": self.repo, "url": self.url, "files": self.files, "bytes": self.bytes}

    def rows(self) -> list[dict[str, Any]]:
        return [self.to_dict()]


def push_folder(
    folder: str | os.PathLike[str],
    repo: str,
    private: bool = True,
    license: str | None = None,
    revision: str | None = None,
    message: str = "Upload a sentence encoder",
) -> PushedModel:
    """Create the repository where it is missing, and commit the model's files in one commit."""
    place = model_folder(folder)
    if not REPO.fullmatch(repo):
        raise InputError(f"{repo!r} is no name of a repository; write owner/name.", setting="repo")
    if license is not None and not NAME.fullmatch(license):
        raise InputError(f"{license!r} is no name of a licence; write such as apache-2.0.", setting="license")
    files = list(model_files(place))
    from huggingface_hub import HfApi

    api = HfApi()
    with _card_kept(place / CARD), _said_by_hub(repo):
        _license(place, license)
        url = str(api.create_repo(repo, private=private, exist_ok=True, repo_type="model"))
        if revision is not None:
            api.create_branch(repo, branch=revision, exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            folder_path=place,
            allow_patterns=[file.relative_to(place).as_posix() for file in files],
            commit_message=message,
            revision=revision,
        )
    return PushedModel(repo, url, len(files), sum(file.stat().st_size for file in files))


def model_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder itself, or model/ of a run; anything else is refused."""
    place = Path(folder)
    place = place / "model" if (place / "model" / "modules.json").is_file() else place
    if not (place / "modules.json").is_file():
        raise InputError(f"{place}: no saved model is here (no modules.json); give the folder that a save wrote.")
    read_json(place / "modules.json")
    return place


def model_files(place: Path) -> Iterator[Path]:
    """Files with a name that a save gives, links left out."""
    for file in sorted(place.rglob("*")):
        parts = file.relative_to(place).parts
        if file.is_file() and not file.is_symlink() and all(OURS.fullmatch(part) or _inner(part) for part in parts):
            yield file
        elif file.is_file():
            say(f"{file} is no file of a model and is not sent")


def _inner(name: str) -> bool:
    return name in ("classifier.json",)


def _license(place: Path, license: str | None) -> None:
    """Name the licence in the card's header; where none is named, say so."""
    import yaml

    card = place / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    match = HEADER.match(text)
    try:
        header = yaml.safe_load(match[1]) if match else {}
    except yaml.YAMLError as error:
        raise InputError(f"{card}: its header is not YAML ({gist(error)}); repair it.") from error
    if not isinstance(header, dict):
        raise InputError(f"{card}: its header is no mapping; repair it.")
    if license is None:
        if not header.get(LICENSE):
            say("The model's card names no licence, so nobody may use the model; give a license.")
        return
    made = yaml.safe_dump({**header, LICENSE: license}, sort_keys=False, allow_unicode=True)
    with written_file(card) as temporary:
        temporary.write_text(f"---\n{made}---\n{text[match.end() :] if match else text}", encoding="utf-8")


@contextmanager
def _card_kept(card: Path) -> Iterator[None]:
    """The card as it was, where the model is not sent."""
    before = card.read_bytes() if card.is_file() else None
    try:
        yield
    except BaseException:
        if before is None:
            card.unlink(missing_ok=True)
        elif card.read_bytes() != before:
            with written_file(card) as temporary:
                temporary.write_bytes(before)
        raise


@contextmanager
def _said_by_hub(repo: str) -> Iterator[None]:
    """The client's refusals as one sentence."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    try:
        yield
    except LocalTokenNotFoundError as error:
        raise InputError("No token for the hub was found; run `hf auth login`, or set HF_TOKEN.") from error
    except HFValidationError as error:
        raise InputError(f"{repo!r} is no name of a repository: {gist(error)}.", setting="repo") from error
    except HfHubHTTPError as error:
        status = int(error.response.status_code) if error.response is not None else 0
        advice = {401: "; run `hf auth login`, or set HF_TOKEN", 403: "; the token may not write there"}
        raise InputError(
            f"{repo}: the hub refused it (status {status}){advice.get(status, '')}: {gist(error)}."
        ) from error
    except Exception as error:
        if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in CLIENTS:
            raise
        raise InputError(f"{repo}: the hub cannot be reached ({gist(error)}); try again.") from error
