"""What a report knows of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.report.subjects import Subject


@pytest.mark.parametrize(
    ("name", "there"), [("a.txt", "A text."), ("docs/a.md", "A text."), ("a.txt", ""), ("b.md", "")]
)
def test_the_text_of_a_run_counts_where_it_can_still_be_read(tmp_path: Path, name: str, there: str) -> None:
    """Else the run is reported on without it."""
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(there, encoding="utf-8")
    source = place.parent if name.startswith("docs") else place
    found = Subject("run", "run", lambda: None, facts={"source": str(source)}).source
    assert (found is not None) is bool(there)
    assert found is None or found.read_text(encoding="utf-8").strip() == there
