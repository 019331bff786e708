"""A headless Chromium driven over its own debugging pipe: no further package, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_PATIENCE_S = 60.0


class Page:
    """One tab. ``complaints`` holds whatever its console, its scripts or its policy complained of."""

    def __init__(self, commands: int, answers: int) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._commands = commands
        self._answers = answers
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        [target] = [each for each in self.send("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        answer = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(
        self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False, charts: bool = True
    ) -> None:
        """Load a file and wait until its program has drawn all charts, if it has a program."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        for url in ("about:blank", path.as_uri()):
            self.send("Page.navigate", url=url)
            self.wait_for(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
        if charts:
            self.wait_for("document.documentElement.dataset.drawn === 'all'")

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not self.run(condition):
            assert time.monotonic() < until, f"never came true: {condition}; {self.complaints}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        answer = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            read = os.read(self._answers, 1 << 20)
            assert read, "the browser ended"
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        self._note(answer.get("method", ""), answer.get("params", {}))
        return answer

    def _note(self, event: str, answer: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            details = answer["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and answer["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(each.get("value", each.get("description"))) for each in answer["args"]))
        elif event == "Log.entryAdded" and answer["entry"]["level"] in ("error", "warning"):
            self.complaints.append(answer["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(answer["request"]["url"])


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    assert PROGRAM is not None
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
    options += ["--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    # No request of its own, which a closed network refuses.
    options += ["--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    # The browser reads its commands from descriptor 3 and answers on 4.
    line = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_answers}'
    browser = subprocess.Popen(
        ["/bin/bash", "-c", line, PROGRAM, *options, "about:blank"],
        pass_fds=(read_commands, write_answers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        browser.kill()
        browser.wait()


def main(page: str, picture: str, width: str, height: str) -> None:
    """Take a picture of the top of a page, once all its charts are drawn."""
    if PROGRAM is None:
        sys.exit("there is no Chromium here; Debian has it in the package chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, chromium(Path(profile)) as opened:
        opened.open(Path(page).resolve(), width=int(width), height=int(height))
        opened.screenshot(Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:])
