"""A small client of ChromeDriver: the few commands of the W3C WebDriver protocol that browser_test.py needs."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowDown": "\ue015", "ArrowUp": "\ue013", "Tab": "\ue004",
        "Control": "\ue009", "Space": " "}  # fmt: skip


class WebDriverError(RuntimeError):
    pass


def missing() -> str:
    """What this machine lacks for a browser test; "" when it has everything."""
    for program in ("chromedriver", "chromium"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: packages/install browser)"
    return ""


class Browser:
    """One headless Chromium. Use as a context manager."""

    def __init__(self, profile: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.driver = subprocess.Popen(
            [shutil.which("chromedriver") or "chromedriver", f"--port={self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.session = ""
        try:
            self._wait()
            self._begin(profile)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.session:
            try:
                self._call("DELETE", "")
            except (WebDriverError, OSError):
                pass
        self.driver.terminate()
        self.driver.wait()

    def _wait(self) -> None:
        for _ in range(200):
            try:
                if self._request("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise WebDriverError("ChromeDriver does not answer")

    def _begin(self, profile: str) -> None:
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}"]  # fmt: skip
        capabilities = {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
        }
        answer = self._request("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = answer["sessionId"]
        # What the browser's own first page says is no page of ours.
        self.open("about:blank")
        for kind in ("browser", "performance"):
            self.log(kind)

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"].split("\n")[0]) from error

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._request(method, f"/session/{self.session}{path}", body)

    # ---- what tests use ----

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def shape(self, width: int, height: int, dark: bool = False, media: str = "screen") -> None:
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        # Elements that still move cannot be clicked.
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[scheme, still])

    def open(self, address: str) -> None:
        self._call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str, held: str = "") -> None:
        actions: list[dict[str, str]] = []
        if held:
            actions.append({"type": "keyDown", "value": KEYS[held]})
        for key in keys:
            actions += [{"type": kind, "value": KEYS.get(key, key)} for kind in ("keyDown", "keyUp")]
        if held:
            actions.append({"type": "keyUp", "value": KEYS[held]})
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector: str) -> None:
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[ELEMENT]}/click")

    def picture(self, path: str, whole: bool = True) -> None:
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
            data = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        else:
            data = self.devtools("Page.captureScreenshot")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def log(self, kind: str) -> list[dict[str, Any]]:
        return self._call("POST", "/se/log", {"type": kind})
