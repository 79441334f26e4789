"""Somebody who opens pull requests of an order by hand, and looks at what is said of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import requests
from bays import XR, Bay

from orderkit.cli.connecting import token
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.plan.pull_requests import CONTEXT
from orderkit.ports.forge import CommitStatus, Operation, PullDraft, PullRequest

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Hand:
    """Somebody who opens pull requests on the forge."""

    settings: PlatformSettings
    bay: Bay

    def opens(
        self, files: dict[PurePosixPath, str | None], *, body: str = "", base: str = "main"
    ) -> PullRequest:
        """Open a pull request with files of its own."""
        number = next(_numbers)
        branch, forge = f"by-hand-{number}", self.bay.platform.forge
        forge.ensure_branch(self.bay.repo, branch, self.bay.head)
        self.bay.put(files, branch=branch)
        draft = PullDraft(f"By hand {number}", body, branch, base)
        return forge.open_pull(
            self.bay.repo, draft, Operation(f"open-{number}", "user:default/hand", "by hand")
        )

    def edits(self, old: str, new: str, **more: Any) -> PullRequest:
        """Open a pull request that replaces a piece of the XR's text."""
        text = self.bay.text()
        assert old in text
        return self.opens({XR: text.replace(old, new)}, **more)

    def comments(self, pull: PullRequest) -> list[dict[str, Any]]:
        url = f"{self.settings.forge.url}/api/v1/repos/{self.bay.repo}/issues/{pull.number}"
        headers = {"Authorization": f"token {token(self.settings.forge)}"}
        found: list[dict[str, Any]] = requests.get(
            f"{url}/comments", headers=headers, timeout=30
        ).json()
        return found

    def status(self, commit: str) -> CommitStatus | None:
        statuses = self.bay.platform.forge.statuses(self.bay.repo, commit)  # type: ignore[arg-type]
        return next((each for each in statuses if each.context == CONTEXT), None)
