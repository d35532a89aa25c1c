"""Laws of the house: what can be read off the files themselves, without running anything.

No paper outside its file, one name a file, lines that fit, settings that explain themselves, walks that exist.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from isotrope.heads.head_settings import HeadSettings
from isotrope.methods.frame.method_registry import auxiliaries, registry
from isotrope.methods.frame.settings import Described, Settings, describe
from isotrope.spaces.space_registry import registry as spaces
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.static_student import StaticSettings
from isotrope.training.tactics.tactic import tactics

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "isotrope"
METHOD = PACKAGE / "methods" / "frame" / "method.py"
METHODS = "isotrope.methods."

# A method's name that stands outside its file, and why; each must still be needed.
NAMES_ELSEWHERE = {
    ("__init__.py", "distil"): "a verb of the same name",
    ("catalogue.py", "distil"): "that verb's command",
    ("methods/frame/masked_language.py", "mlm"): "the term that every paper with masked language modelling logs",
    ("methods/cline.py", "mlm"): "the weight of that term",
    ("methods/dclr.py", "simcse"): "the run that it needs before its own",
    ("methods/infoword.py", "mlm"): "the weight of that term",
    ("methods/rankcse.py", "simcse"): "the run that it needs before its own",
    ("methods/structbert.py", "mlm"): "that term",
    ("methods/tacl.py", "mlm"): "that term",
    ("objectives/__init__.py", "cosent"): "an objective of the same name is exported",
}
# A paper that builds on another one takes its base class, which stands there without a card; (paper, other paper).
BUILT_ON = {
    ("dclr", "simcse"): "DropoutPair: SimCSE's pair with other negatives",
    ("esimcse", "simcse"): "DropoutPair: SimCSE's pair with an edit and a queue",
    ("ease", "simcse"): "DropoutPair: SimCSE's pair with entities",
    ("rankcse", "simcse"): "DropoutPair: SimCSE's pair with a teacher's ranking",
}

CODE = [path for room in ("src", "tests", "benchmarks", "docs", "recipes") for path in (ROOT / room).rglob("*.py")]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
GENERATED = ("settings.md",)  # written by `make docs`
PRAGMA = re.compile(r"\s*# (type: ignore|noqa|isort: ).*$")  # it cannot be broken
UNBROKEN = re.compile(r"^(`{3,}).*?^\1|^\$\$.*?^\$\$", re.DOTALL | re.MULTILINE)  # code and equations
LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|<?https?://\S+")
STEP = re.compile(r"^\d+\. `([\w/]+\.py)`: `([\w.]+)`", re.MULTILINE)


def module_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def paper_modules() -> dict[str, str]:
    """The file of each method, by the method's name."""
    return {name: method.__module__.removeprefix(METHODS) for name, method in registry().items()}


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string constant but docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported, at the top or in a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_no_methods_name_stands_outside_its_file() -> None:
    files = paper_modules()
    found = {
        (place(path), text)
        for path in module_files()
        for text in strings(parsed(path))
        if text in files and place(path) != f"methods/{files[text]}.py"
    }
    assert found == set(NAMES_ELSEWHERE), (
        "a method is known by name where it must not be, or an exception is not needed"
    )


def test_no_paper_is_imported_except_by_one_that_builds_on_it() -> None:
    papers = {f"{METHODS}{module}" for module in paper_modules().values()}
    found = defaultdict(set)
    for path in module_files():
        for module in papers.intersection(imported(parsed(path))):
            found[place(path)].add(module.removeprefix(METHODS))
    pairs = {(Path(file).stem, other) for file, others in found.items() for other in others}
    assert {file for file in found if Path(file).parent.as_posix() != "methods"} == set()
    assert pairs == set(BUILT_ON)


def test_what_a_paper_takes_from_another_has_no_card() -> None:
    """It is a base class or its settings, not the other paper itself."""
    carded = {method.__name__ for method in registry().values()}
    for paper, other in BUILT_ON:
        tree = parsed(PACKAGE / "methods" / f"{paper}.py")
        taken = [
            node.names for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == METHODS + other
        ]
        assert not carded & {name.name for names in taken for name in names}, paper


def test_every_method_stands_in_a_file_of_its_room() -> None:
    assert all("." not in module for module in paper_modules().values())


def test_file_names_are_unique_in_the_package() -> None:
    counted = Counter(path.name for path in module_files() if not path.name.startswith("__"))
    assert [name for name, count in counted.items() if count > 1] == []


def test_no_line_of_code_is_longer_than_120_columns() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in CODE
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(PRAGMA.sub("", line)) > 120
    ]
    assert long == []


def test_no_line_of_prose_is_longer_than_100_columns() -> None:
    assert [line for page in PAGES if page.name not in GENERATED for line in long_lines(page)] == []


def long_lines(page: Path) -> Iterator[str]:
    """Tables, headings, links, code and equations are as long as they are."""
    prose = UNBROKEN.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(prose.splitlines(), 1):
        if len(LINK.sub("", line)) > 100 and not line.startswith(("|", "#", "    ")):
            yield f"{page.relative_to(ROOT)}:{number}"


def settings_classes() -> dict[str, type[Settings]]:
    """Every class of settings that a user fills in, by its owner."""
    added = {name: one.Added for name, one in auxiliaries().items() if one.Added is not None}
    return {
        **{name: method.Settings for name, method in registry().items()},
        **{f"{name} as an auxiliary loss": settings for name, settings in added.items()},
        **{name: tactic.Settings for name, tactic in tactics().items()},
        **{name: space.Settings for name, space in spaces().items()},
        "the loop": LoopSettings,
        "pretrain": PretrainSettings,
        "static student": StaticSettings,
        "head": HeadSettings,
    }


@pytest.mark.parametrize("owner", sorted(settings_classes()))
def test_every_setting_has_a_meaning_and_every_number_a_range(owner: str) -> None:
    settings = describe(settings_classes()[owner])
    assert [setting.name for setting in settings if not setting.meaning] == []
    assert [setting.name for setting in settings if is_number(setting) and not setting.range] == []


def is_number(setting: Described) -> bool:
    return "number" in setting.type  # yes or no is none


def test_settings_have_a_type() -> None:
    """``settings: Any`` hides a misspelled setting from mypy. Keyword arguments of a verb may be any."""
    found = [f"{place(path)}:{node.lineno}" for path in module_files() for node in untyped_settings(parsed(path))]
    assert found == []


def untyped_settings(tree: ast.Module) -> Iterator[ast.arg | ast.AnnAssign]:
    verbs = {id(node.kwarg) for node in ast.walk(tree) if isinstance(node, ast.arguments)}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == "settings" and id(node) not in verbs and is_any(node.annotation):
            yield node
        named = isinstance(node, ast.AnnAssign) and ast.unparse(node.target).split(".")[-1] == "settings"
        if isinstance(node, ast.AnnAssign) and named and is_any(node.annotation):
            yield node


def is_any(annotation: ast.expr | None) -> bool:
    return annotation is None or ast.unparse(annotation) == "Any"


def test_every_step_of_the_walks_exists() -> None:
    """docs/guides/rooms.md lists file and function of each step."""
    steps = STEP.findall((ROOT / "docs" / "guides" / "rooms.md").read_text(encoding="utf-8"))
    assert len(steps) > 40
    missing = [f"{file}: {name}" for file, name in steps if name not in defined(PACKAGE / file)]
    assert missing == []


@cache
def defined(path: Path) -> frozenset[str]:
    """Functions and classes of a file, and the methods of its classes as Class.method."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(found)


def test_every_room_is_on_the_page_of_rooms() -> None:
    text = (ROOT / "docs" / "guides" / "rooms.md").read_text(encoding="utf-8")
    rooms = [path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")]
    assert [room for room in rooms if room != "." and f"`{room}/`" not in text] == []


def test_every_file_between_the_rooms_is_on_the_page_of_rooms() -> None:
    text = (ROOT / "docs" / "guides" / "rooms.md").read_text(encoding="utf-8")
    files = [path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]
    assert [name for name in files if f"`{name}`" not in text] == []


def test_every_room_says_in_a_line_what_it_answers() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        said = ast.get_docstring(parsed(path)) or ""
        assert len(said.split("\n\n")[0].split()) >= 3, path


def test_every_public_member_of_a_method_is_on_the_page_of_the_frame() -> None:
    """And every field of its card."""
    text = (ROOT / "docs" / "guides" / "frame.md").read_text(encoding="utf-8")
    classes = {node.name: node for node in parsed(METHOD).body if isinstance(node, ast.ClassDef)}
    members = [one.name for one in classes["Method"].body if isinstance(one, ast.FunctionDef)]
    named = [
        ast.unparse(one.target)
        for name in ("Method", "Card")
        for one in classes[name].body
        if isinstance(one, ast.AnnAssign)
    ]
    public = [name for name in (*members, *named) if not name.startswith("_")]
    assert len(public) > 30
    assert [name for name in public if not re.search(rf"`[^`]*\b{name}\b[^`]*`", text)] == []
