"""Links that leave docs/: they work in the repository; the site, which holds the pages alone, shows them as names.

CONTRIBUTING.md and CHANGELOG.md become pages of the site. A link to a file that does not exist is a warning, which the
strict build refuses.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.links")
ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    for source, page in PAGES.items():
        if (ROOT / source).is_file():
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = next((source for source, name in PAGES.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")

    def resolved(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        place = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if not (ROOT / place).exists():
            log.warning("%s: the link to %s leads nowhere", here, target)
        site_place = PAGES.get(place, place.removeprefix("docs/") if place.startswith("docs/") else None)
        if site_place is None:
            return text if "`" in text else f"`{text}`"
        return f"[{text}]({posixpath.relpath(site_place, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", markdown, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [LINK.sub(resolved, part) for part in parts[::2]]
    return "".join(parts)
