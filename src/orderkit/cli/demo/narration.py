"""
How the demo speaks, what it is about, and how it looks at the platform from outside.

Called by ``cli.demo.story`` and ``cli.demo.change_story``, which hold its stages.
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from orderkit.adapters.embedded.platform import BOT
from orderkit.cli.connecting import token
from orderkit.cli.serving.embedded_platform import Running
from orderkit.core.errors import OrderkitError
from orderkit.core.names import RepoId
from orderkit.core.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey, dig
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock

T = TypeVar("T")

TEAM = "ae86"
ORDER = f"garage-{TEAM}"
REPO = RepoId(TEAM, ORDER)
REQUESTER = "user:default/demo"
XGARAGE = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), ORDER)
BAY = ObjectKey(NAMESPACE, ORDER)
SPEC_SHEET = ObjectKey(CONFIG_MAP, "spec-sheet", ORDER)
PATIENCE_S = 120.0


class ExpectationError(OrderkitError):
    """Something the demo promises did not hold."""


class Story:
    """Where the demo works and how it speaks; counts what it proved."""

    def __init__(self, folder: Path, say: Callable[[str], object]) -> None:
        self.folder, self._say = folder, say
        self._begin_s = self._mark_s = time.monotonic()
        self.proved = 0

    def stage(self, name: str, proof: str) -> None:
        """Print one line: what was done, how long it took, what it proved."""
        now_s = time.monotonic()
        self._say(f"  {name:<12} {now_s - self._mark_s:6.2f} s   {proof}")
        self._mark_s = now_s
        self.proved += 1

    def headline(self, text: str) -> None:
        self._say(text)

    def end(self) -> None:
        elapsed_s = time.monotonic() - self._begin_s
        self._say(f"all {self.proved} stages held, {elapsed_s:.1f} s")


def expect(holds: object, expectation: str) -> None:
    """
    Go on if it holds.

    Raises:
        ExpectationError: It does not.
    """
    if not holds:
        raise ExpectationError(f"expected: {expectation}")


def wait(goal: str, look: Callable[[], T], is_done: Callable[[T], bool]) -> T:
    """Look until it is done; raises IncompleteError after half a minute."""
    return until(SystemClock(), look, is_done, timeout_s=PATIENCE_S, goal=goal)


def expect_sheet(running: Running, stage: str) -> None:
    """Expect the composed ConfigMap to say this stage."""
    data = dig(running.platform.cluster.get(SPEC_SHEET) or {}, "data")
    expect(data == {"stage": stage, "team": TEAM}, f"the spec sheet says {stage}, not {data}")


def git(running: Running, folder: Path, *arguments: str) -> str:
    """
    Run the real git; the credential travels in the environment, never in an argument.

    Raises:
        ExpectationError: git failed.
    """
    secret = base64.b64encode(f"{BOT}:{token(running.settings.forge)}".encode()).decode()
    settings = {
        f"http.{running.settings.forge.url}/.extraHeader": f"Authorization: Basic {secret}",
        "user.name": "Demo",
        "user.email": "demo@localhost",
        "commit.gpgSign": "false",
    }
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(settings)},
        **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(settings.values())},
    }
    process = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", *arguments],  # noqa: S607 - git from PATH
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if process.returncode:
        raise ExpectationError(f"git {arguments[0]}: {process.stderr.strip()}")
    return process.stdout.strip()
