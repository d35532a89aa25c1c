"""Known vulnerabilities of the pinned packages, as pip-audit finds them; or one sentence on why it could not look.

    python docs/vulnerabilities.py PIP_AUDIT [constraints.txt]

Ends with 0 where every pinned package was looked up and none has a known one, with 1 where one has, and with 2 where
not all could be looked up: what was not looked at has not passed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SHOWN = 5  # packages that a sentence names
ELSEWHERE = "Run `make audit` where a network reaches pypi.org or osv.dev; nothing is said about vulnerabilities here."


def judged(out: str, err: str) -> tuple[int, list[str]]:
    """The exit code and the lines to print, from what pip-audit wrote."""
    try:
        packages: list[dict[str, Any]] = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "it said nothing")
        return 2, [f"pip-audit could not look up anything: {last[:300]}", ELSEWHERE]
    missed = [one["name"] for one in packages if "skip_reason" in one]
    found = [one for one in packages if one.get("vulns")]
    lines = [
        f"{one['name']} {one['version']}: {vuln['id']}"
        + (f", repaired in {', '.join(vuln['fix_versions'])}" if vuln.get("fix_versions") else "")
        for one in found
        for vuln in one["vulns"]
    ]
    if missed:
        named = ", ".join(missed[:SHOWN]) + (" …" if len(missed) > SHOWN else "")
        lines.append(f"{len(missed)} of {len(packages)} packages could not be looked up ({named}).")
        lines.append(ELSEWHERE)
    elif not found:
        lines.append(f"{len(packages)} packages were looked up; none has a known vulnerability.")
    return 1 if found else 2 if missed or not packages else 0, lines


def main(tool: str, file: Path) -> int:
    command = [tool, "--requirement", str(file), "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    try:
        ended = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
    except OSError as error:
        ended = subprocess.CompletedProcess(command, 1, "", f"{tool}: {error.strerror}; it could not be installed")
    code, lines = judged(ended.stdout, ended.stderr)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[1] / "constraints.txt"
    sys.exit(main(sys.argv[1], place))
