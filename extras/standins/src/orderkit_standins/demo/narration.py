"""How the demo speaks, what it is about, and how it looks at the platform from outside."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ground.errors import OrderkitError
from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey, dig
from orderkit.cli.connecting import token
from orderkit.core.platform.forge_kinds import ForgeKind
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import BOT
from orderkit_standins.serve_platform import Running

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


@dataclass(frozen=True, slots=True)
class DemoStage:
    """One stage of the demo that held."""

    name: str
    proof: str
    duration_s: float


class Story:
    """Where the demo works, how it reports, and which stages held so far."""

    def __init__(
        self, folder: Path, say: Callable[[str], object], forge: ForgeKind | None = None
    ) -> None:
        self.folder, self._say, self.forge = folder, say, forge
        self._begin_s = self._mark_s = time.monotonic()
        self.stages: list[DemoStage] = []

    def stage(self, name: str, proof: str) -> None:
        """Print one line: what was done, how long it took, what it proved."""
        now_s = time.monotonic()
        stage = DemoStage(name, proof, now_s - self._mark_s)
        self._say(f"  {name:<12} {stage.duration_s:6.2f} s   {proof}")
        self._mark_s = now_s
        self.stages.append(stage)

    def headline(self, text: str) -> None:
        self._say(text)

    def end(self) -> None:
        self._say(f"all {len(self.stages)} stages held, {self.elapsed_s:.1f} s")

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin_s


def expect(holds: object, expectation: str) -> None:
    """
    Go on if it holds.

    Raises:
        ExpectationError: It does not.
    """
    if not holds:
        raise ExpectationError(f"expected: {expectation}")


def wait(
    goal: str,
    look: Callable[[], T],
    is_done: Callable[[T], bool],
    *,
    timeout_s: float = PATIENCE_S,
) -> T:
    """
    Call `look` until `done` accepts its result; return that result.

    Raises:
        IncompleteError: `timeout_s` passed; the message says `what` did not happen.
    """
    return until(SystemClock(), look, is_done, timeout_s=timeout_s, goal=goal)


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
        f"http.{running.settings.forge.address}/.extraHeader": f"Authorization: Basic {secret}",
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
