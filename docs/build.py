"""Write docs/settings.md from the code, and check that the pages hold together:

links lead somewhere, every method has its page.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

from isotrope.methods.frame.method_registry import registry
from isotrope.spaces.space_registry import registry as spaces
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.loop_settings import LoopSettings

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
HEAD = "# Settings\n\nWritten by `make docs` from the code; do not edit. On the command line a setting is `--name value`, with `-` for `_`.\n"


def meanings(kind: type) -> dict[str, str]:
    """What is said of each setting:

    the comment behind it, or the sentence of the docstring that begins with its name.
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        source = inspect.getsource(base)
        text = " ".join((ast.get_docstring(ast.parse(source).body[0]) or "").split())
        for name in inspect.get_annotations(base):
            comment = re.search(rf"^\s*{name}:[^#\n]*#\s*(.+)$", source, re.MULTILINE)
            sentence = re.search(rf"``{name}``\s*(.+?)\.(?=\s+``|\s*$)", text)
            found[name] = comment[1] if comment else sentence[1] if sentence else ""
    return found


def table(kind: type) -> str:
    said = meanings(kind)
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for field in fields(kind):
        default = "" if field.default is MISSING else f"`{field.default}`"
        rows.append(
            f"| `{field.name}` | {str(field.type).replace('|', 'or')} | {default} | {said[field.name].replace('|', chr(92) + '|')} |"
        )
    return "\n".join(rows) + "\n" if len(rows) > 2 else "None of its own.\n"


def settings_page() -> str:
    parts = [HEAD, f"## The loop\n\n{LoopSettings.__doc__}\n\n{table(LoopSettings)}"]
    parts.append(f"## Pre-training\n\n{PretrainSettings.__doc__}\n\n{table(PretrainSettings)}")
    for name, method in registry().items():
        page = f"methods/{method.__module__.rsplit('.', 1)[-1]}.md"
        parts.append(f"## {name}\n\n{method.title}: [{page}]({page}).\n\n{table(method.Settings)}")
    for name, space in spaces().items():
        parts.append(f"## {name}\n\n{space.title}, a space: [spaces.md](spaces.md).\n\n{table(space.Settings)}")
    return "\n".join(parts)


def complaints() -> Iterator[str]:
    pages = [
        *sorted(DOCS.glob("*.md")),
        *sorted(DOCS.glob("methods/*.md")),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
    for page in filter(Path.is_file, pages):
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in LINK.findall(prose):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)}: the link to {target} leads nowhere."
    for name, method in registry().items():
        page = DOCS / "methods" / f"{method.__module__.rsplit('.', 1)[-1]}.md"
        if not page.is_file():
            yield f"The method {name} has no page; write {page.relative_to(ROOT)}."
        elif f"`{name}`" not in page.read_text(encoding="utf-8"):
            yield f"{page.relative_to(ROOT)}: the page does not name the method `{name}`."
    for name in spaces():
        if f"`{name}`" not in (DOCS / "spaces.md").read_text(encoding="utf-8"):
            yield f"docs/spaces.md: the page does not name the space `{name}`."


def main() -> None:
    (DOCS / "settings.md").write_text(settings_page(), encoding="utf-8")
    found = list(complaints())
    print(
        "\n".join(found)
        or f"docs/settings.md is written; {len(registry())} methods have their pages and every link leads somewhere."
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
