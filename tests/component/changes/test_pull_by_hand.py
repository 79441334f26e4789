"""A person pushes a branch and opens a pull request on the forge; the plan appears by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from bays import Bay, new_bay
from pullhand import Hand

from orderkit.cli.connecting import token
from orderkit.flows.plan.pull_requests import CONTEXT
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit_standins.serve_platform import Running

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, site: Running) -> Git:
    """Return git in a folder of its own, with the credentials of a person at a prompt."""
    host = urlsplit(site.settings.forge.url).netloc
    clean = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    (tmp_path / ".git-credentials").write_text(f"http://x:{token(site.settings.forge)}@{host}\n")

    def run(*words: str, cwd: Path = tmp_path) -> str:
        names = ("-c", "user.name=Hand", "-c", "user.email=hand@example.org")
        helper = ("-c", "credential.helper=store")
        done = subprocess.run(
            ["git", *names, *helper, *words],
            cwd=cwd,
            env=clean,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    return run


def pushed(site: Running, git: Git, folder: Path, bay: Bay, new: str) -> dict[str, Any]:
    """Do what a person does: clone, branch, edit, commit, push, open a pull request."""
    git("clone", "-q", f"{site.settings.forge.url}/{bay.repo}.git", "copy")
    copy = folder / "copy"
    git("switch", "-qc", "mine", cwd=copy)
    xr = copy / "manifests" / "xgarage.yaml"
    xr.write_text(xr.read_text().replace("stage1", new))
    git("commit", "-qam", "By hand", cwd=copy)
    git("push", "-q", "origin", "mine", cwd=copy)
    answer = requests.post(
        f"{site.settings.forge.url}/api/v1/repos/{bay.repo}/pulls",
        json={"head": "mine", "base": "main", "title": "By hand"},
        headers={"Authorization": f"token {token(site.settings.forge)}"},
        timeout=30,
    )
    assert answer.status_code == 201, answer.text
    pull: dict[str, Any] = answer.json()
    return pull


@pytest.mark.parametrize(("new", "state"), [("stage2", "success"), ("stage9", "failure")])
def test_a_pull_request_by_hand_gets_its_plan_without_further_set_up(
    site: Running, git: Git, tmp_path: Path, new: str, state: str
) -> None:
    """Nobody called ``orderkit platform webhook``."""
    bay = new_bay(site.platform, "hands")

    pull = pushed(site, git, tmp_path, bay, new)

    status = until(
        site.platform.clock,
        lambda: Hand(site.settings, bay).status(pull["head"]["sha"]),
        lambda seen: seen is not None,
        timeout_s=120,
        goal=f"the status {CONTEXT}",
    )
    assert status is not None
    assert status.state == state
    until(
        site.platform.clock,
        lambda: requests.get(pull["html_url"], headers={"Accept": "text/html"}, timeout=30).text,
        lambda text: f"Plan of <code>{pull['head']['sha'][:7]}" in text,
        timeout_s=120,
        goal="the comment on the page",
    )


def test_each_team_has_one_webhook_however_often_it_is_added(site: Running) -> None:
    def hooks() -> list[dict[str, Any]]:
        answer = requests.get(
            f"{site.settings.forge.url}/api/v1/orgs/hooked/hooks",
            headers={"Authorization": f"token {token(site.settings.forge)}"},
            timeout=30,
        )
        found: list[dict[str, Any]] = answer.json()
        return found

    added = [add_team(site.platform, "hooked", requester="user:default/test") for _ in range(2)]

    assert [team.created for team in added] == [True, False]
    (hook,) = hooks()
    assert site.platform.webhook is not None
    assert hook["config"]["url"] == site.platform.webhook.url
