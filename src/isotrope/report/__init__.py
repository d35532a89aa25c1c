"""The report: one page that opens anywhere, or a single figure of it.

The room shares its name with the public function, so the room itself can be called:
``isotrope.report("runs/first", output="report.html")``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotrope.report.build import Report


class _Room(ModuleType):
    def __call__(self, *subjects: Any, **settings: Any) -> Report:
        """What runs and models look like; see ``isotrope.report.build.make_report``."""
        from isotrope.report.build import make_report

        return make_report(*subjects, **settings)


sys.modules[__name__].__class__ = _Room
