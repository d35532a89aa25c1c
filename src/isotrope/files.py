"""Files and folders that are either whole or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from isotrope.durable import exchange, sync, sync_tree
from isotrope.errors import InputError
from isotrope.json_text import finite
from isotrope.leftovers import MARK, OLD, is_temporary, writing_in
from isotrope.locks import LOCK

BEGUN = {"run.json", "checkpoints", "metrics.jsonl", "start"}  # by these a folder is known as that of a run


def cache_folder() -> Path:
    """Where token caches live: ISOTROPE_CACHE, or the user's cache folder."""
    base = os.environ.get("ISOTROPE_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "isotrope"


@contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn the system's refusals to write into one sentence."""
    try:
        with _system_errors():
            yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "there is no space left on the disk; free some, or write elsewhere",
            errno.EFBIG: "the system allows no larger file; raise the limit on file sizes, or write elsewhere",
            errno.EIO: "the disk reports an error; write elsewhere",
            errno.EDQUOT: "your disk quota is used up; free some space, or write elsewhere",
            errno.EACCES: "permission was refused; choose a folder you may write to",
            errno.EROFS: "the disk is read-only; choose another place",
            errno.ENOTDIR: "a part of this path is a file, not a folder; choose another place",
            errno.EEXIST: "a part of this path is a file, not a folder; choose another place",
            errno.EISDIR: "a folder of this name is in the way; choose another name",
            errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
        }
        if error.errno in reasons:
            raise InputError(f"Cannot write {target}: {reasons[error.errno]}.") from error
        raise


@contextmanager
def _system_errors() -> Iterator[None]:
    """Raise ``OSError`` with its number where a library reports a full disk in words alone.

    A Rust library has an exception class of its own; NumPy and PyTorch only say that not all was written.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        said = str(error)
        number = re.search(r"\(os error (\d+)\)", said)
        cut = re.search(r"\d+ requested and \d+ written|PytorchStreamWriter|inline_container|unexpected pos", said)
        if getattr(error, "errno", None) is not None or (number is None and cut is None):
            raise
        raise OSError(int(number[1]) if number else errno.ENOSPC, said) from error


@contextmanager
def written_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it takes the name ``path``, on failure it disappears.

    A link stays a link: the file that it leads to is replaced. An earlier file keeps its permissions.
    """
    target = Path(path)
    target = Path(os.path.realpath(target)) if os.path.islink(target) else target
    _refuse_device(target)
    with explained(target), _made_parents(target), writing_in(target.parent):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}{MARK}", suffix=target.suffix, dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode) if target.is_file() else 0o666 & ~_umask())
            sync(temporary)
            os.replace(temporary, target)
            sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def written_folder(path: str | os.PathLike[str], whole: str | None = None) -> Iterator[Path]:
    """The same for a folder. An earlier folder of that name is replaced only once the new one is whole.

    For a cache, ``whole`` names a file that every finished folder has. A folder that another process finished meanwhile
    then stays: it holds the same content, and somebody may be reading it.
    """
    target = Path(path)
    target = target.resolve() if target.is_symlink() else target
    with explained(target), _made_parents(target), writing_in(target.parent):
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}{MARK}", dir=target.parent))
        try:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())
            for file in temporary.rglob("*"):  # safetensors writes for the owner alone
                os.chmod(file, (0o777 if file.is_dir() else 0o666) & ~_umask())
            sync_tree(temporary)
            if whole is None or not _placed(temporary, target, whole):
                _put(temporary, target)
            sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def discard(folder: Path) -> None:
    """Take a folder away in one step: nobody sees half of it. Who reads it already goes on reading."""
    with explained(folder), writing_in(folder.parent):
        grave = Path(tempfile.mkdtemp(prefix=f".{folder.name}{MARK}", dir=folder.parent))
        with suppress(FileNotFoundError):
            os.rename(folder, grave / "gone")
        shutil.rmtree(grave, ignore_errors=True)


def _refuse_device(target: Path) -> None:
    """A device or a pipe would be replaced by a file: /dev/null too, for who may do that."""
    if os.path.exists(target) and not target.is_file() and not target.is_dir():
        raise InputError(f"Cannot write {target}: this is a device or a pipe; name a file.")


@contextmanager
def _made_parents(target: Path) -> Iterator[None]:
    """The folders above a target; those that were made for it go again where nothing comes into them."""
    check_name(target)
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in missing:
            try:
                folder.rmdir()
            except OSError:  # somebody else came into it
                break
        raise


def _placed(temporary: Path, target: Path, whole: str) -> bool:
    """Whether a finished folder is in its place now: this one, if there was none."""
    try:
        os.rename(temporary, target)  # onto a folder with something in it: refused, in one step
    except OSError:
        return (target / whole).is_file()
    return True


def _put(temporary: Path, target: Path, attempts: int = 20) -> None:
    """Move a folder to its place.

    Another process may move its own there at the same moment; one of the two then stays, whole.
    """
    stale = temporary.with_name(temporary.name + OLD)
    for attempt in range(attempts):
        try:
            if target.is_dir():
                if exchange(temporary, target):  # the old one has the temporary name now
                    return
                os.replace(target, stale)
            os.replace(temporary, target)
        except OSError as error:
            taken = (isinstance(error, FileNotFoundError) and temporary.exists()) or error.errno in (
                errno.ENOTEMPTY,
                errno.EEXIST,
            )
            if taken and attempt < attempts - 1:
                shutil.rmtree(stale, ignore_errors=True)
                continue
            if stale.exists():
                os.replace(stale, target)
            raise
        shutil.rmtree(stale, ignore_errors=True)
        return


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name with bytes that are not UTF-8: no table, log or JSON file could hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{str(path)!a}: the name holds bytes that are not UTF-8; rename it.") from error


def check_run_folder(path: str | os.PathLike[str], resume: bool) -> None:
    """Refuse a place where no run can begin or be resumed. Nothing but names is looked at, so it can come first."""
    folder = Path(path)
    check_name(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file stands where the run's folder should be; choose another output.")
    holds = names_in(folder)
    begun = holds & BEGUN
    if resume and not begun:
        raise InputError(f"{folder}: no run to resume here (no run.json).", setting="resume")
    if resume:
        return
    if begun:
        raise InputError(f"{folder}: a run is here already; continue it with resume, or choose another output.")
    if holds:
        raise InputError(f"{folder}: the folder holds something else ({min(holds)}); choose a new folder.")


def dated_folder(name: str, inside: str | os.PathLike[str] = "runs") -> Path:
    """Where something goes that was given no output: its name and the time, and a number where that is taken."""
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(folder for folder in (Path(inside) / one for one in names) if not os.path.lexists(folder))


def names_in(folder: Path) -> set[str]:
    """What stands in a folder but for the lock and the temporary names of processes that were killed."""
    found = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return {name for name in found if name != LOCK and not is_temporary(name)}


def check_overwrite(output: str | os.PathLike[str] | None, *inputs: object) -> None:
    """Refuse an output that is one of the inputs: it would be lost. What is no path among them is passed over."""
    for given in inputs if output is not None else ():
        if isinstance(given, str | os.PathLike) and _same(Path(str(output)), Path(given)):
            raise InputError(f"{output}: the output is also read, and would be replaced; choose another output.")


def _same(target: Path, source: Path) -> bool:
    try:
        return target.samefile(source)
    except (OSError, ValueError):  # one of them is not there
        return False


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON that people and every program can read: a number that is none is null."""
    with written_file(path) as temporary:
        text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def digest(*parts: str | bytes) -> str:
    """A short, stable name for some content."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
    return state.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str:
    """The same for a file's content, whatever its name."""
    state = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as source:
        while block := source.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
