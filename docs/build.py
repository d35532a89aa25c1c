"""Write docs/reference/settings.md from the code, and check that the pages hold together.

The laws: every link leads somewhere, every file and every name of the package that a page mentions exists, every method
and every space is named on its page, prose has at most 100 columns, and a word has one spelling. ``make docs`` runs
this before it builds the site.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from isotrope.heads.head_settings import HeadSettings
from isotrope.methods.frame.method_registry import auxiliaries, registry
from isotrope.methods.frame.settings import Settings, describe
from isotrope.spaces.space_registry import registry as spaces
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.static_student import StaticSettings
from isotrope.training.tactics.tactic import tactics

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SETTINGS = DOCS / "reference" / "settings.md"
SPACES = DOCS / "guides" / "spaces.md"
COLUMNS = 100
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
UNBROKEN = re.compile(r"^```.*?^```|^\$\$.*?^\$\$|^\|.*?$|^!\[.*?$|^<.*?$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"(?<![\w./-])(?:\w+/)+\w+\.(?:py|js|sh|yaml)\b")
NAME = re.compile(r"(?<![\w./-])isotrope(?!\.json)(?:\.[A-Za-z_]\w*)+")
HOMES = ("", "src", "src/isotrope")  # a file is named from the root, from src/ or from the package
SPELLED = {
    "tokeniser": "tokenizer",
    "tokenisers": "tokenizers",
    "anew": "again",
    "kept aside": "held out",
    "beside": "next to, or added to",
    "told": "predicted",
}
HEAD = """# Settings

This page is written by `make docs` from the code; do not edit it. On the command line a setting is
`--name value`, with `-` for `_`. In Python it is a keyword argument of `isotrope.train`,
`isotrope.pretrain`, `isotrope.fit_space` or `isotrope.distil`.
"""


def table(settings: type[Settings], defaults: Mapping[str, Any] | None = None) -> str:
    """Default, values and meaning of each setting, as Markdown."""
    found = describe(settings, defaults)
    if not found:
        return "None of its own.\n"
    lines = ["| setting | default | values | meaning |", "|---|---|---|---|"]
    for one in found:
        values = one.range if one.range.startswith("one of") else ", ".join(filter(None, (one.type, one.range)))
        cells = [f"`{one.name}`", f"`{one.default}`", values, one.meaning]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def method_page(method: type) -> Path:
    return DOCS / "methods" / f"{method.__module__.rsplit('.', 1)[-1]}.md"


def settings_page() -> str:
    parts = [HEAD, _section("The loop", _first_line(LoopSettings), table(LoopSettings))]
    for name, auxiliary in auxiliaries().items():
        assert auxiliary.Added is not None
        about = (
            f"{auxiliary.card.title}, [added to a method](../guides/training.md#auxiliary-losses) that shares its text."
        )
        parts.append(_section(f"{name} as an auxiliary loss", about, table(auxiliary.Added)))
    for name, tactic in tactics().items():
        page = f"[{tactic.card.title}](../methods/{name.replace('-', '_')}.md)"
        parts.append(_section(name, page, table(tactic.Settings)))
    parts.append(_section("Pre-training", _first_line(PretrainSettings), table(PretrainSettings)))
    about = "The student of [`isotrope distil`](../guides/static.md)."
    parts.append(_section("Static student", about, table(StaticSettings)))
    about = "The classifier of [`isotrope train head`](../guides/predict.md)."
    parts.append(_section("Head", about, table(HeadSettings)))
    for name, method in registry().items():
        changed = ", ".join(f"`{setting}` {value}" for setting, value in method.defaults.items())
        page = f"[{method.card.title}](../methods/{method_page(method).name})"
        loop = f"\n\nOther defaults: {changed}." if changed else ""
        parts.append(_section(name, f"{page}{loop}", table(method.Settings)))
    for name, space in spaces().items():
        parts.append(_section(name, f"{space.card.title}, a [space](../guides/spaces.md)", table(space.Settings)))
    return "\n".join(parts)


def _section(title: str, about: str, table: str) -> str:
    return f"## {title}\n\n{about}\n\n{table}"


def _first_line(settings: type[Settings]) -> str:
    return (inspect.getdoc(settings) or "").splitlines()[0]


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
    if page.name == "CONTRIBUTING.md":  # it names files that its reader is to write
        return
    yield from _of_names(where, text)
    if page == SETTINGS:
        return
    for line in UNBROKEN.sub("", text).splitlines():
        if len(line) > COLUMNS:
            yield f"{where}: {len(line)} columns, {COLUMNS} are the most: {line[:60]} …"
    for wrong, right in SPELLED.items():
        if re.search(rf"\b{wrong}\b", prose, re.IGNORECASE):
            yield f"{where}: we write '{right}', not '{wrong}'."


def _of_names(where: Path, text: str) -> Iterator[str]:
    for place in sorted(set(FILE.findall(text))):
        if "NAME" not in place and not any((ROOT / home / place).is_file() for home in HOMES):
            yield f"{where}: there is no file {place}."
    for name in sorted(set(NAME.findall(text))):
        if not _exists(name):
            yield f"{where}: there is no {name}."


def _exists(name: str) -> bool:
    """Whether a dotted name leads to a module of the package, or to what stands in one."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        try:
            found = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            found = getattr(found, part, None)
    return found is not None


def main() -> None:
    SETTINGS.write_text(settings_page(), encoding="utf-8")
    found = list(complaints())
    done = f"{SETTINGS.relative_to(ROOT)} is written; {len(registry())} methods have their pages."
    print("\n".join(found) or done)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
