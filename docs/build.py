"""Write docs/reference/settings.md from the code, and check that the pages hold together.

The laws: every link leads somewhere, every method and every space is named on its page, prose has at most 100 columns,
and a word has one spelling. ``make docs`` runs this before it builds the site.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import NamedTuple

from isotrope.methods.registry import registry
from isotrope.spaces.registry import registry as spaces
from isotrope.training.pretraining_settings import PretrainSettings
from isotrope.training.settings import LoopSettings

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SETTINGS = DOCS / "reference" / "settings.md"
SPACES = DOCS / "guides" / "spaces.md"
COLUMNS = 100
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
UNBROKEN = re.compile(r"^```.*?^```|^\$\$.*?^\$\$|^\|.*?$|^!\[.*?$|^<.*?$", re.DOTALL | re.MULTILINE)
SPELLED = {"tokeniser": "tokenizer", "tokenisers": "tokenizers", "anew": "again", "kept aside": "held out"}
HEAD = """# Settings

This page is written by `make docs` from the code; do not edit it. On the command line a setting is
`--name value`, with `-` for `_`. In Python it is a keyword argument of `isotrope.train`,
`isotrope.pretrain` or `isotrope.fit_space`.
"""


class Row(NamedTuple):
    """One setting, as the table shows it."""

    name: str
    type: str
    default: str
    range: str
    meaning: str


def rows(settings: type) -> list[Row]:
    """The settings of a dataclass. All introspection is here: what the code says of a setting is read nowhere else."""
    said = _meanings(settings)
    found = []
    for field in fields(settings):
        default = "" if field.default is MISSING else str(field.default)
        found.append(Row(field.name, str(field.type), default, "", said[field.name]))
    return found


def _meanings(settings: type) -> dict[str, str]:
    """The comment after each setting, or the sentence of the docstring that begins with its name."""
    found: dict[str, str] = {}
    for base in reversed(settings.__mro__[:-1]):
        source = inspect.getsource(base)
        text = " ".join((ast.get_docstring(ast.parse(source).body[0]) or "").split())
        for name in inspect.get_annotations(base):
            comment = re.search(rf"^\s*{name}:[^#\n]*#\s*(.+)$", source, re.MULTILINE)
            sentence = re.search(rf"``{name}``\s*(.+?)\.(?=\s+``|\s*$)", text)
            found[name] = comment[1] if comment else sentence[1] if sentence else ""
    return found


def table(settings: type) -> str:
    """The rows as Markdown; the column of ranges only where one is known."""
    found = rows(settings)
    if not found:
        return "None of its own.\n"
    ranged = any(row.range for row in found)
    columns = ["setting", "type", "default", *(["range"] if ranged else []), "meaning"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in found:
        cells = [f"`{row.name}`", row.type.replace("|", "or"), row.default and f"`{row.default}`"]
        cells += [*([row.range] if ranged else []), row.meaning]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def method_page(method: type) -> Path:
    return DOCS / "methods" / f"{method.__module__.rsplit('.', 1)[-1]}.md"


def settings_page() -> str:
    parts = [HEAD, f"## The loop\n\n{LoopSettings.__doc__}\n\n{table(LoopSettings)}"]
    parts.append(f"## Pre-training\n\n{PretrainSettings.__doc__}\n\n{table(PretrainSettings)}")
    for name, method in registry().items():
        page = f"[{method.title}](../methods/{method_page(method).name})"
        parts.append(f"## {name}\n\n{page}\n\n{table(method.Settings)}")
    for name, space in spaces().items():
        parts.append(f"## {name}\n\n{space.title}, a [space](../guides/spaces.md)\n\n{table(space.Settings)}")
    return "\n".join(parts)


def complaints() -> Iterator[str]:
    for page in [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        yield from _of_page(page, page.read_text(encoding="utf-8"))
    for name, method in registry().items():
        page = method_page(method)
        if not page.is_file():
            yield f"The method {name} has no page; write {page.relative_to(ROOT)}."
        elif f"`{name}`" not in page.read_text(encoding="utf-8"):
            yield f"{page.relative_to(ROOT)}: the page does not name the method `{name}`."
    for name in spaces():
        if f"`{name}`" not in SPACES.read_text(encoding="utf-8"):
            yield f"{SPACES.relative_to(ROOT)}: the page does not name the space `{name}`."


def _of_page(page: Path, text: str) -> Iterator[str]:
    where = page.relative_to(ROOT)
    prose = CODE.sub("", text)
    for target in LINK.findall(prose):
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            yield f"{where}: the link to {target} leads nowhere."
    if page == SETTINGS or DOCS not in page.parents:
        return
    for line in UNBROKEN.sub("", text).splitlines():
        if len(line) > COLUMNS:
            yield f"{where}: {len(line)} columns, {COLUMNS} are the most: {line[:60]} …"
    for wrong, right in SPELLED.items():
        if re.search(rf"\b{wrong}\b", prose, re.IGNORECASE):
            yield f"{where}: we write '{right}', not '{wrong}'."


def main() -> None:
    SETTINGS.write_text(settings_page(), encoding="utf-8")
    found = list(complaints())
    done = f"{SETTINGS.relative_to(ROOT)} is written; {len(registry())} methods have their pages."
    print("\n".join(found) or done)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
