"""What the site adds: a folder's pages in the navigation, each method's file on its page, room for wide tables."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def on_config(config: Any, **_: Any) -> Any:
    """``methods/*.md`` stands for all pages there that are not named: a new method needs no line in mkdocs.yml."""
    for section in config.nav:
        for name, entries in section.items():
            if isinstance(entries, list):
                section[name] = [page for entry in entries for page in _expanded(entry, entries)]
    return config


def _expanded(entry: Any, entries: list[Any]) -> list[Any]:
    if not isinstance(entry, str) or "*" not in entry:
        return [entry]
    named = {page for other in entries for page in (other.values() if isinstance(other, dict) else [other])}
    found = (path.relative_to(DOCS).as_posix() for path in DOCS.glob(entry))
    return sorted((page for page in found if page not in named), key=_title)


def _title(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].lower()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder, _, name = page.file.src_uri.partition("/")
    if folder == "notes":
        page.meta["hide"] = ["toc"]
        markdown = markdown.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    if folder != "methods" or name == "index.md":
        return markdown
    files = (ROOT / "src").rglob(f"{Path(name).stem}.py")
    (file,) = [path for path in files if path.parent.name in ("methods", "training", "tactics")]
    code = textwrap.indent(file.read_text(encoding="utf-8"), "    ")
    where = file.relative_to(ROOT).as_posix()
    block = f'??? example "{where}"\n\n    ````python\n{code}    ````\n'
    return f"{markdown}\n## The code {{ data-search-exclude }}\n\n{block}"
