"""``push`` through huggingface_hub's own client, against a stand-in for the hub on this machine.

The stand-in answers the calls that the client makes: create, preupload, LFS batch, upload, commit, and for the way back
the revision and the files. It checks nothing else of the real hub.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.cli import main


class StandIn:
    """What the hub holds: repositories with files, objects by their sum, and the paths that were asked for."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.refuses = 0
        self.url = ""


class Answers(BaseHTTPRequestHandler):
    hub: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def reply(self, body: Any = None, status: int = 200, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            found = b""
            while size := int(self.rfile.readline().strip(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_POST(self) -> None:
        raw, path = self.body(), self.path.split("?")[0]
        self.hub.asked.append(path)
        self.hub.tokens.add(self.headers.get("Authorization"))
        if self.hub.refuses:
            return self.reply({"error": "no"}, self.hub.refuses)
        if path == "/api/repos/create":
            asked = json.loads(raw)
            name = "/".join(part for part in (asked.get("organization"), asked["name"]) if part)
            self.hub.repos.setdefault(name, {})
            self.hub.private[name] = bool(asked.get("private")) or asked.get("visibility") == "private"
            return self.reply({"url": f"{self.hub.url}/{name}", "name": name, "id": name})
        if path == "/api/validate-yaml":
            return self.reply({"errors": [], "warnings": []})
        if "/preupload/" in path:
            files = [
                {"path": one["path"], "uploadMode": "lfs" if one["path"].endswith(".safetensors") else "regular"}
                for one in json.loads(raw)["files"]
            ]
            return self.reply({"files": [{**one, "shouldIgnore": False, "oid": None} for one in files]})
        if path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**one, "actions": {"upload": {"href": f"{self.hub.url}/lfs/{one['oid']}"}}}
                for one in json.loads(raw)["objects"]
            ]
            return self.reply(
                {"transfer": "basic", "objects": objects}, headers={"Content-Type": "application/vnd.git-lfs+json"}
            )
        if "/commit/" in path:
            name = "/".join(path.split("/")[3:5])
            for line in raw.decode().splitlines():
                one = json.loads(line)
                if one["key"] == "file":
                    self.hub.repos[name][one["value"]["path"]] = base64.b64decode(one["value"]["content"])
                if one["key"] == "lfsFile":
                    self.hub.repos[name][one["value"]["path"]] = self.hub.objects[one["value"]["oid"]]
            return self.reply({"commitUrl": f"{self.hub.url}/{name}/commit/{'a' * 40}", "commitOid": "a" * 40})
        return self.reply({"error": "unknown"}, 404)

    def do_PUT(self) -> None:
        raw = self.body()
        assert hashlib.sha256(raw).hexdigest() == self.path.rsplit("/", 1)[1]
        self.hub.objects[self.path.rsplit("/", 1)[1]] = raw
        self.reply(b"")

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        self.hub.asked.append(path)
        if path.startswith("/api/models/"):
            name = "/".join(path.split("/")[3:5])
            files = self.hub.repos.get(name)
            if files is None:
                return self.reply({"error": "none"}, 404, {"X-Error-Code": "RepoNotFound"})
            listed = [{"rfilename": file} for file in files]
            if "/tree/" in path:
                tree = [
                    {"type": "file", "path": file, "size": len(raw), "oid": hashlib.sha1(raw).hexdigest()}
                    for file, raw in files.items()
                ]
                return self.reply(tree)
            return self.reply({"id": name, "modelId": name, "sha": "a" * 40, "siblings": listed, "tags": []})
        owner, repo, _, _, file = path[1:].split("/", 4)
        found = self.hub.repos[f"{owner}/{repo}"].get(file)
        if found is None:
            return self.reply({"error": "none"}, 404, {"X-Error-Code": "EntryNotFound"})
        etag = f'"{hashlib.sha256(found).hexdigest()}"'
        return self.reply(found, headers={"X-Repo-Commit": "a" * 40, "ETag": etag})

    do_HEAD = do_GET


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    from huggingface_hub import constants

    stand_in = StandIn()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Answers,), {"hub": stand_in}))
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", stand_in.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", stand_in.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # another test of this process may have set it
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield stand_in
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def model(tiny: Path, tmp_path: Path) -> Path:
    encoder = isotrope.load(tiny)
    encoder.prompts = {"query": "q: "}
    encoder.save(tmp_path / "m")
    return tmp_path / "m"


def test_what_is_pushed_is_the_model_and_its_card(
    hub: StandIn, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "notes.txt").write_text("a secret")
    with pytest.raises(SystemExit) as stop:
        main(["push", str(model), "someone/encoder", "--license", "apache-2.0", "--json"])
    captured = capsys.readouterr()
    assert stop.value.code == 0, captured.err
    found = hub.repos["someone/encoder"]
    sent = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()} - {"notes.txt"}
    assert set(found) == sent
    assert found["model.safetensors"] == (model / "model.safetensors").read_bytes()
    assert b"license: apache-2.0\n" in found["README.md"]
    assert "notes.txt is no file of a model" in captured.err
    answer = json.loads(captured.out)
    assert (answer["repo"], answer["files"]) == ("someone/encoder", len(sent))
    assert hub.private["someone/encoder"]
    assert hub.tokens == {"Bearer hf_of_a_test"}


def test_what_was_pushed_loads_again_from_the_hub(hub: StandIn, model: Path) -> None:
    isotrope.push(model, "someone/encoder")
    again = isotrope.load("someone/encoder")
    assert (again.encode("the chef bakes") == isotrope.load(model).encode("the chef bakes")).all()
    assert again.prompts == {"query": "q: "}


@pytest.mark.parametrize(("status", "advice"), [(401, "hf auth login"), (403, "may not write")])
def test_a_refusal_of_the_hub_is_one_sentence(hub: StandIn, model: Path, status: int, advice: str) -> None:
    hub.refuses = status
    with pytest.raises(isotrope.InputError, match=rf"status {status}.*{advice}"):
        isotrope.push(model, "someone/encoder")


def test_what_is_no_model_or_no_name_is_not_sent(hub: StandIn, model: Path, tmp_path: Path) -> None:
    with pytest.raises(isotrope.InputError, match=r"no modules\.json"):
        isotrope.push(tmp_path, "someone/encoder")
    with pytest.raises(isotrope.InputError, match="no name of a repository"):
        isotrope.push(model, "../elsewhere/x")
    assert hub.asked == []
