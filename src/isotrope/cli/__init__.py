"""The command line: each command parses its options, calls the public verb of the same name, and prints the answer."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

import typer

from isotrope.cli import training_commands  # isort: skip  # noqa: F401 - --help lists the groups in this order
from isotrope.cli import evaluation_commands  # isort: skip  # noqa: F401
from isotrope.cli import encoder_commands  # isort: skip  # noqa: F401
from isotrope.cli import data_commands  # isort: skip  # noqa: F401
from isotrope.cli.application import Stopped, UsageProblem, app
from isotrope.errors import InputError

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; bad input is one sentence and exit code 2, never a traceback."""
    _show_log()
    warnings.showwarning = lambda message, *rest, **named: print(f"warning: {message}", file=sys.stderr)
    warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate|huggingface_hub)\b")
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
        print(f"isotrope: {said}{hint if 'at step' in said else ''}.", file=sys.stderr)
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
        print(record.getMessage(), file=sys.stderr)


def _show_log() -> None:
    """What the library logs is a line of the terminal."""
    logger = logging.getLogger("isotrope")
    logger.handlers = [_Said(logging.INFO)]
    logger.setLevel(logging.INFO)


def _fail(sentence: str) -> NoReturn:
    print(f"isotrope: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)
