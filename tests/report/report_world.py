"""The folders that the report's tests look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NASTY = 'the cook wrote </script><script>window.broken = true</script> & "<b>bold</b>" on the kitchen wall'


@dataclass(frozen=True)
class World:
    folder: Path
    text: Path
    data: Path
    runs: tuple[Path, Path]
