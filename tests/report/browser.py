"""Chromium by its DevTools protocol: what a page shows, says and asks for."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0",
)  # fmt: skip
_LOUD = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


class Tab:
    """One page, with what it said and asked for since it was opened."""

    def __init__(self, connection: ClientConnection, session: str) -> None:
        self._connection, self._session, self._sent = connection, session, 0
        self.console: list[dict[str, Any]] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self._sent += 1
        message = {"id": self._sent, "sessionId": self._session, "method": method, "params": parameters}
        self._connection.send(json.dumps(message))
        while (found := self._receive()).get("id") != self._sent:
            pass
        assert "error" not in found, (method, found["error"])
        return found["result"]

    def open(self, page: Path) -> None:
        """Load a page and wait until it has loaded."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass
        self.evaluate("new Promise(done => setTimeout(done, 100))")  # for what a page asks for late

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def see(self, *, dark: bool = False, width: int = 1100, medium: str = "screen") -> None:
        """Look at it in another theme, on another width, or in print."""
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[theme])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )

    def picture(self, target: Path) -> None:
        """A screenshot of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        target.write_bytes(base64.b64decode(found["data"]))

    def violations(self) -> list[str]:
        """What axe-core finds wrong, one line each."""
        self.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text() + "; null")
        return self.evaluate(
            "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | ')))"
        )

    def _receive(self) -> dict[str, Any]:
        message = json.loads(self._connection.recv(timeout=60))
        if message.get("method") in _LOUD:
            self.console.append(message["params"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """A tab of a new Chromium with an empty profile; it ends with the context."""
    assert CHROMIUM is not None
    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"], stderr=subprocess.DEVNULL
    )
    try:
        port, path = _endpoint(profile / "DevToolsActivePort")
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as connection:

            def browser(method: str, **parameters: Any) -> dict[str, Any]:
                connection.send(json.dumps({"id": 0, "method": method, "params": parameters}))
                while (found := json.loads(connection.recv(timeout=60))).get("id") != 0:
                    pass
                return found["result"]

            target = browser("Target.createTarget", url="about:blank")["targetId"]
            session = browser("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            yield Tab(connection, session)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _endpoint(file: Path) -> tuple[str, str]:
    """The port and path that Chromium writes once it listens."""
    for _ in range(300):
        if file.exists() and len(lines := file.read_text().split()) == 2:
            return lines[0], lines[1]
        time.sleep(0.1)
    raise AssertionError("Chromium did not start within 30 seconds")
