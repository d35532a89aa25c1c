"""What is shown to a person: texts and file names as they are, never as commands to the terminal.

A text may hold escape sequences, which move the cursor, change the title or hide what follows; it may hold what rich
reads as markup (``[/b]``, ``:smile:``). Both are data here: control characters are shown as ``\\x1b``, and nothing is
markup. Everything that the command line prints goes through ``show`` or ``console``.
"""

from __future__ import annotations

import re
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# C0 without the tab, DEL and C1, separators of lines, what turns the direction of writing, half characters.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    """The text on one line, with each control character as its escape."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def show(line: object, error: bool = False) -> None:
    """Print one line, on standard error where ``error`` says so."""
    print(visible(line), file=sys.stderr if error else sys.stdout)


def console(file: IO[str] | None = None, width: int | None = None, stderr: bool = False) -> Console:
    """A console of rich that takes text as text; cells and captions still go through ``visible``."""
    from rich.console import Console

    return Console(
        file=file,
        width=width,
        stderr=stderr,
        no_color=True if file is not None else None,
        markup=False,
        emoji=False,
        highlight=False,
    )
