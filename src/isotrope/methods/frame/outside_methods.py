"""Methods that stand outside this package: in a file that the user names, or in an installed package.

Both are asked for by name: the variable ``ISOTROPE_METHODS`` holds files, joined as in PATH, and a package names its
modules as entry points of the group ``isotrope.methods``. The processes that a run starts inherit the variable, so it
holds for parallel and distributed runs too.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from isotrope.errors import InputError

VARIABLE = "ISOTROPE_METHODS"
GROUP = "isotrope.methods"


def named_files() -> tuple[Path, ...]:
    """The files that the variable names."""
    return tuple(Path(one).expanduser().resolve() for one in os.environ.get(VARIABLE, "").split(os.pathsep) if one)


def outside_modules(files: tuple[Path, ...]) -> list[ModuleType]:
    """The modules of installed packages, then those of the files; one that cannot be imported is refused."""
    return [*(_of_package(entry.module) for entry in entry_points(group=GROUP)), *(_of_file(file) for file in files)]


def outside_files(method: type) -> dict[str, str]:
    """The file of a method from outside: its text may change while the version of this package does not."""
    file = str(sys.modules[method.__module__].__file__)
    return {} if method.__module__.startswith(f"{GROUP}.") else {Path(file).name: file}


def _of_package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(
            f"The module {name}, which an installed package names as an entry point of {GROUP}, cannot be imported "
            f"({_said(error)}); repair or uninstall that package."
        ) from error


def _of_file(file: Path) -> ModuleType:
    if not file.is_file() or file.suffix != ".py":
        raise InputError(f"{VARIABLE} names {file}, which is no .py file; name the file that holds the method.")
    name = "isotrope_outside_methods." + re.sub(r"\W", "_", str(file))
    if name in sys.modules:
        return sys.modules[name]
    loader = SourceFileLoader(name, str(file))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    sys.modules[name] = module = module_from_spec(spec)  # dataclasses look their module up while it is executed
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{file}, which {VARIABLE} names, cannot be imported: {_said(error)}.") from error
    return module


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".")
