"""The judge: suites, each with a named protocol; geometry; label-free measures.

A file with a ``Suite`` dropped into this folder is found by ``isotrope.evaluate`` and by the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotrope.evaluation.suite import SuiteCard


def suites() -> list[SuiteCard]:
    """The suites by name, each with its title, its protocol and the options that it takes."""
    from isotrope.evaluation.suite import registry

    return [suite.card for suite in registry().values()]
