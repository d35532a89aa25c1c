"""The command line: each command parses its options, calls the public verb of the same name, and prints the answer."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import NoReturn

import typer

from isotrope.cli import training_commands  # isort: skip  # noqa: F401 - --help lists the groups in this order
from isotrope.cli import evaluation_commands  # isort: skip  # noqa: F401
from isotrope.cli import encoder_commands  # isort: skip  # noqa: F401
from isotrope.cli import search_commands  # isort: skip  # noqa: F401
from isotrope.cli import serving_commands  # isort: skip  # noqa: F401
from isotrope.cli import data_commands  # isort: skip  # noqa: F401
from isotrope.cli.application import Stopped, UsageProblem, app
from isotrope.errors import InputError
from isotrope.terminal import show

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; bad input is one sentence and exit code 2, never a traceback."""
    _show_log()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Chinese shows its numbers, no traceback
    warnings.filterwarnings("ignore", message=r"[\d,]+ of [\d,]+ texts are longer")  # commands count and say it
    warnings.showwarning = lambda message, *rest, **named: show(f"warning: {message}", error=True)
    warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate|huggingface_hub)\b")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler asks as Ctrl-C does
    given = list(arguments) if arguments is not None else None
    try:
        status = app(args=given, prog_name="isotrope", standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except UsageProblem as error:
        _fail(error.format_message())  # type: ignore[attr-defined]
    except (Stopped, typer.Abort, KeyboardInterrupt) as stop:
        said = str(stop) or "stopped"
        hint = "; the same command with --resume (and the run's folder as --output) continues from here"
        show(f"isotrope: {said}{hint if 'at step' in said else ''}.", error=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{os.fsdecode(error.filename)}: {(error.strerror or str(error)).lower()}.")
    sys.exit(status if isinstance(status, int) else 0)


class _Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        for line in record.getMessage().split("\n"):
            show(line, error=True)


def _show_log() -> None:
    """What the library logs is a line of the terminal."""
    logger = logging.getLogger("isotrope")
    logger.handlers = [_Said(logging.INFO)]
    logger.setLevel(logging.INFO)


def _fail(sentence: str) -> NoReturn:
    show(f"isotrope: {' '.join(sentence.split())}", error=True)
    sys.exit(2)
