"""Dockerfile and docker-compose.yml as text: no container engine is needed, so this proves no image.

Sources exist and travel, versions are named, the user is not root, ports are those of this machine alone.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def of(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def test_every_instruction_is_one() -> None:
    known = set("FROM ARG ENV RUN WORKDIR COPY USER EXPOSE ENTRYPOINT CMD".split())
    assert {word for word, _ in instructions()} <= known
    assert instructions()[0][0] == "FROM"
    for base in of("FROM"):
        assert re.fullmatch(r"[\w/-]+:[\w.-]+( AS \w+)?", base), base  # a version, and not latest
        assert ":latest" not in base
    for command in of("ENTRYPOINT") + of("CMD"):
        assert isinstance(json.loads(command), list)


def test_sources_exist_and_are_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [shlex.split(one)[:-1] for one in of("COPY") if "--from" not in one]
    for source in [name for names in copied for name in names]:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source


def test_what_runs_is_no_root_and_no_cuda() -> None:
    assert of("USER")[-1] == "1000"
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "TORCH_INDEX" in of("ARG")  # no default: who builds it names the index of CPU builds, or is told to
    assert "${TORCH_INDEX:?" in text
    assert "nvidia" not in text.lower()
    assert "PIP_NO_CACHE_DIR=1" in text
    # torch is installed before the package, from the index of CPU builds, or the package would fetch another one.
    commands = of("RUN")
    assert [("${TORCH_INDEX" in one, "torch" in one) for one in commands if "pip install" in one] == [
        (True, True),
        (False, False),
    ]


def test_the_extras_are_known() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (named,) = [one.partition("=")[2] for one in of("ARG") if one.startswith("EXTRAS")]
    missing = [name for name in named.split(",") if name not in known]
    assert missing == []


def test_the_services_are_pinned_and_local() -> None:
    found = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    services = found["services"]
    assert set(services) == {"isotrope", "milvus"}
    for name, service in services.items():
        assert "build" in service or re.search(r":[\w.-]*\d[\w.-]*$", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source == "./" or source in found["volumes"], volume
        for other in service.get("depends_on", []):
            assert other in services
    assert "healthcheck" in services["milvus"]  # the condition that isotrope waits for
