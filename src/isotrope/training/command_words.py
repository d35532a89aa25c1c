"""The command of a run as its model's card shows it."""

from __future__ import annotations

import os
import shlex
import sys

PROGRAMS = ("isotrope", "isotrope.exe", "__main__.py")


def card_command() -> str:
    """``isotrope train …``, with the folders of absolute paths left out; empty where a Python program made the run."""
    program, *words = sys.argv or [""]
    if os.path.basename(program) not in PROGRAMS or not words:
        return ""
    return shlex.join(["isotrope", *(os.path.basename(word) if os.path.isabs(word) else word for word in words)])
