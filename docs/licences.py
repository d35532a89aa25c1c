"""The licence of each pinned package, and whether it may be shipped next to an Apache-2.0 package.

    python docs/licences.py [constraints.txt]

Reads what the installed packages say of themselves. A package that says nothing, or names a licence that is not on the
list below, ends the command with 1; one that is pinned for another platform or extra and not installed is named.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# Names as SPDX writes them or as classifiers do, in lower case. Weak copyleft by file (MPL) asks nothing of a user of
# the package; GPL and AGPL would.
ALLOWED = {
    "0bsd": "BSD",
    "3-clause bsd license": "BSD",
    "apache": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache-2.0 with llvm-exception": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "blessing": "public domain",
    "bsd": "BSD",
    "bsd license": "BSD",
    "bsd-2-clause": "BSD",
    "bsd-3-clause": "BSD",
    "bsd-3-clause license": "BSD",
    "bsl-1.0": "BSL",
    "cc0-1.0": "public domain",
    "cnri-python": "Python",
    "isc": "ISC",
    "isc license (iscl)": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
    "mit-0": "MIT",
    "mit-cmu": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "mpl-2.0": "MPL-2.0",
    "openssl": "OpenSSL",
    "psf-2.0": "Python",
    "python software foundation license": "Python",
    "python-2.0": "Python",
    "the unlicense (unlicense)": "public domain",
    "unlicense": "public domain",
    "zlib": "zlib",
}
# The compilers' run-time libraries in the wheels of numpy and scipy: GPL with an exception for programs that use them.
EXCEPTIONS = {"gcc-exception-3.1", "gpl-3.0-or-later with gcc-exception-3.1", "gpl-3.0-with-gcc-exception"}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


def pinned(file: Path) -> dict[str, str]:
    """Each package and its version; one with several lines, for several versions of Python, counts once."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {found[1]: found[2] for line in lines if (found := PIN.match(line))}


def licence_names(package: Distribution) -> list[str]:
    """The licences that a package names: its SPDX expression, else its classifiers, else its licence field."""
    facts = package.metadata
    if facts.get("License-Expression"):
        return _parts(facts["License-Expression"])
    classed = [line.rsplit(" :: ", 1)[-1] for line in facts.get_all("Classifier", []) if line.startswith("License ::")]
    named = [name for name in classed if name != "OSI Approved"]
    field = (facts.get("License") or "").strip().splitlines()
    return named or [name for line in field[:1] if line.strip() != "UNKNOWN" for name in _parts(line)]


def _parts(expression: str) -> list[str]:
    return [part.strip("() ") for part in re.split(r"\s+(?:AND|OR)\s+", expression.strip()) if part]


def verdict(names: list[str]) -> str:
    """The families of the licences, or a question mark and what was found."""
    families = {ALLOWED.get(name.lower(), "") for name in names if name.lower() not in EXCEPTIONS}
    return ", ".join(sorted(families)) if families and "" not in families else f"? {', '.join(names) or 'none named'}"


def main(file: Path) -> int:
    counted: Counter[str] = Counter()
    absent, unclear = [], []
    for name in sorted(pinned(file), key=str.lower):
        try:
            found = verdict(licence_names(distribution(name)))
        except PackageNotFoundError:
            absent.append(name)
            continue
        counted[found] += 1
        if found.startswith("?"):
            unclear.append(f"{name}: {found[2:]}")
    for family, count in counted.most_common():
        if not family.startswith("?"):
            print(f"{count:4d}  {family}")
    print(f"not installed here: {', '.join(absent) or 'none'}")
    for line in unclear:
        print(f"look at it: {line}")
    return 1 if unclear else 0


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "constraints.txt"
    sys.exit(main(place))
