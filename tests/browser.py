"""A real browser for the tests, spoken to over a pipe in the DevTools protocol; nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. ``complaints`` are console errors, exceptions, and requests for anything but the page itself."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.to_browser, self.from_browser = to_browser, from_browser
        self.buffer = b""
        self.number = 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    session: str | None = None
    home = "file:"  # what the page may ask for

    def call(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(30)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            read = os.read(self.from_browser, 1 << 20)
            if not read:
                raise RuntimeError("the browser ended")
            self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(line))

    def open(self, place: Path | str, width: int = 1280, height: int = 900) -> None:
        """A file, or the address of a server: the page may then ask that server, and nobody else."""
        self.width = width
        self.home = place if isinstance(place, str) else "file:"
        address = place if isinstance(place, str) else place.resolve().as_uri()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=address)
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(self.home)})")

    def wait_for(self, expression: str, seconds: float = 60) -> Any:
        """The value of an expression, as soon as it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.value(expression)
            if found:
                return found
            time.sleep(0.05)
        raise TimeoutError(f"never true: {expression}")

    def type_text(self, text: str) -> None:
        """As a keyboard does, letter by letter, into whatever has the focus."""
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def point_at(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, file: Path, whole: bool = False) -> None:
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self) -> list[str]:
        self.value("1")  # whatever was said before this has arrived
        found = []
        for event in self.events:
            method, values = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(
                    str(
                        values["exceptionDetails"].get("exception", {}).get("description")
                        or values["exceptionDetails"]["text"]
                    )
                )
            elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
                found.append(str(values["args"]))
            elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                found.append(values["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not values["request"]["url"].startswith(
                (self.home, "about:", "data:")
            ):
                found.append(f"asks for {values['request']['url']}")
        return found


@contextmanager
def browser_page(program: str) -> Iterator[Page]:
    """A headless browser with a profile of its own, ended afterwards."""
    ours, theirs = os.pipe()  # the browser reads from fd 3 and writes to fd 4
    theirs_read, ours_write = ours, theirs
    ours_read, theirs_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # its helpers end a little later
        words = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        words += [
            f"--user-data-dir={profile}",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        ]
        script = f'exec "$@" 3<&{theirs_read} 4>&{theirs_write}'
        process = subprocess.Popen(
            ["bash", "-c", script, "bash", *words],
            pass_fds=(theirs_read, theirs_write),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            yield Page(ours_write, ours_read)
        finally:
            process.terminate()
            process.wait(timeout=20)
            os.close(ours_write)
            os.close(ours_read)
