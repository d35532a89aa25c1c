"""Starting and ending: ports, keys, signals."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.serving.access_key import read_key, shows_key
from isotrope.serving.gate import is_loopback
from isotrope.serving.listening_port import bind


def test_a_port_in_use_is_one_sentence_before_a_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as stop:
            main(["serve", "no-such-model", "--port", str(port)])
    assert stop.value.code == 2
    assert f"Port {port} of 127.0.0.1 is in use by another program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "port", "sentence"),
    [("127.0.0.1", 70_000, "between 0 and 65535"), ("no such host", 0, "no address"), ("192.0.2.1", 0, "cannot be")],
)
def test_addresses_that_cannot_be(host: str, port: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        bind(host, port)


@pytest.mark.parametrize("limit", ["max_inputs", "max_body", "max_waiting", "batch_tokens"])
def test_limits_are_at_least_one(limit: str) -> None:
    with pytest.raises(InputError, match=f"{limit} must be at least 1"):
        isotrope.serve("builtin", **{limit: 0})


def test_a_key_file_that_anyone_can_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "key"
    file.write_text("0123456789abcdef\n")
    caplog.set_level("INFO", "isotrope")
    file.chmod(0o600)
    assert read_key(file) == b"0123456789abcdef"
    assert caplog.messages == []
    file.chmod(0o644)
    assert read_key(file) == b"0123456789abcdef"
    assert "can be read by others" in caplog.text
    assert "0123456789abcdef" not in caplog.text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("", "is empty"), ("two words-of-key", "2 words"), ("short", "too short"), ("schlüsselwort", "ASCII")],
)
def test_key_files_that_hold_none(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "key"
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(InputError, match=sentence):
        read_key(file)
    with pytest.raises(InputError, match="no such file"):
        read_key(tmp_path / "nowhere")


def test_only_the_whole_key_opens() -> None:
    assert shows_key(b"Bearer secret-key", b"secret-key")
    assert shows_key(b"bearer  secret-key", b"secret-key")
    for wrong in (b"", b"Bearer", b"Bearer ", b"Bearer secret-ke", b"Bearer secret-keyy", b"secret-key", "ü".encode()):
        assert not shows_key(wrong, b"secret-key")


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "localhost", "::1", "a.localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "")))


def test_a_signal_answers_what_is_open_and_ends_with_0(tiny: Path) -> None:
    words = [sys.executable, "-m", "isotrope", "serve", f"name={tiny}", "--port", "0", "--batch-tokens", "16"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while "serves name" not in line:
                assert process.poll() is None, line
                line = process.stderr.readline()
            port = int(line.split(":")[2].split()[0])
            answers: list[int] = []
            body = json.dumps({"inputs": ["the chef bakes the bread and the soup"] * 300})
            opened = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            opened.request("POST", "/embed", body)

            def wait() -> None:
                found = opened.getresponse()
                answers.append(len(json.loads(found.read())))

            waiting = threading.Thread(target=wait)
            waiting.start()
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            asked.request("GET", "/metrics")
            while "te_queue_size 1.0" not in asked.getresponse().read().decode() and not answers:
                asked.request("GET", "/metrics")
            asked.close()
            process.send_signal(signal.SIGTERM)
            waiting.join(120)
            assert answers == [300]
            assert process.wait(60) == 0
            assert "Stopped." in process.stderr.read()
        finally:
            process.kill()  # where something failed, nobody waits for it


def test_who_starts_it_hears_of_cut_and_changed_texts(
    tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from isotrope.serving.opening_service import open_service

    text = tmp_path / "a.txt"
    text.write_text("short\n" + "long " * 200 + "\n", encoding="utf-8")
    isotrope.index(tiny, text, tmp_path / "index")
    text.write_text("another\n", encoding="utf-8")
    with caplog.at_level("INFO", logger="isotrope"):
        service = open_service([tiny], tmp_path / "index")
    service.close()
    assert "1 of the 2 texts of the index are longer than the model reads" in caplog.text
    assert "a.txt has changed since it was indexed" in caplog.text
