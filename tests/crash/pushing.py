"""A change as a developer makes it: a clone, a commit, a push with the real git."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

from tests.crash import judging
from tests.crash.judging import repo_of

from orderkit.cli.connecting import load_settings, token

ACCOUNT = "orderkit"


def commit(state: Path, team: str, clone: Path, stage: str) -> None:
    """Commit another stage in a clone made past the platform. Nothing is pushed."""
    source = judging.bare(state, repo_of(team))
    judging.git(source, "clone", "--quiet", "--no-hardlinks", str(source), str(clone))
    xr = clone / "manifests" / "xgarage.yaml"
    before = xr.read_text()
    xr.write_text(before.replace("stage2", stage))
    assert xr.read_text() != before
    who = ("-c", "user.name=Crash", "-c", "user.email=crash@localhost")
    judging.git(clone, *who, "commit", "--quiet", "--all", "--message", stage)


class Push:
    """A push under way. Acknowledged means exit code 0: then the commit must be there."""

    def __init__(self, state: Path, team: str, clone: Path) -> None:
        self._state, self._team, self._clone = state, team, clone
        forge = load_settings(str(state / "platform.yaml")).forge
        secret = base64.b64encode(f"{ACCOUNT}:{token(forge)}".encode()).decode()
        self.process = subprocess.Popen(
            [
                "git",
                "-C",
                str(clone),
                "push",
                "--quiet",
                f"{forge.url}/{repo_of(team)}.git",
                "main",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
            },
        )

    def poll(self) -> int | None:
        return self.process.poll()

    def wait(self, deadline_s: float) -> int:
        """Return git's exit code; an acknowledged commit that is not there fails the test."""
        code = self.process.wait(deadline_s)
        if code == 0:
            head = judging.git(self._clone, "rev-parse", "HEAD").strip()
            assert head in judging.commits(self._state, repo_of(self._team)), "pushed and lost"
        return code
