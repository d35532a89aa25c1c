"""The key that a client must show: read from a file, compared in constant time."""

from __future__ import annotations

import hmac
import os
import stat
from pathlib import Path

from isotrope.data.tables import check_readable
from isotrope.errors import InputError
from isotrope.progress import say

LEAST = 8  # characters


def read_key(place: str | os.PathLike[str]) -> bytes:
    """The one line of a key file; a file that others may read is used, with a warning."""
    file = check_readable(place, "a text file with a key")
    try:
        words = Path(file).read_bytes().split()
    except OSError as error:
        raise InputError(f"{file}: {(error.strerror or str(error)).lower()}.", setting="api_key_file") from error
    if len(words) != 1 or len(words[0]) < LEAST:
        found = "is empty" if not words else f"holds {len(words)} words" if len(words) > 1 else "is too short"
        raise InputError(
            f"{file}: the key {found}; write one word of at least {LEAST} characters into it, such as that of "
            "`openssl rand -hex 32`.",
            setting="api_key_file",
        )
    if not words[0].isascii():
        raise InputError(f"{file}: the key holds letters outside ASCII, which no header can.", setting="api_key_file")
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        say(f"warning: {file} can be read by others on this machine; make it yours alone with `chmod 600 {file}`.")
    return words[0]


def shows_key(authorization: bytes, key: bytes) -> bool:
    """Whether a header is ``Bearer KEY``; the time it takes does not depend on where they differ."""
    scheme, _, shown = authorization.partition(b" ")
    return hmac.compare_digest(shown.strip(), key) and scheme.lower() == b"bearer"
