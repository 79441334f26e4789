"""
How the cases of branches, pull requests, statuses and protection reach their state.

A real Gitea writes about three times a second and checks pull requests in the background:
so there branches are made together with their first commit, and `Pulls.merge` waits until the
forge knows. Used by the test modules beside it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

LATER = "Please try again later"
DEADLINE_S = 90


@dataclass(frozen=True)
class Refused:
    """A request that is refused: its body, the status and a part of the words."""

    id: str
    reason: str
    body: Mapping[str, Any]
    status: int
    text: str = ""


@dataclass
class Pulls:
    """One repository of the suite and its pull requests."""

    shop: Workshop
    repo: RepoId

    def api(self, method: str, path: str, body: object = None, **how: Any) -> requests.Response:
        """Send a request below the repository."""
        return self.shop.api(method, f"/repos/{self.repo}{path}", body, **how)

    def commit(
        self, branch: str, path: str, text: str, *, new: str = "", message: str = "m"
    ) -> str:
        """Write one file on `branch`, or from it on the new branch `new`; return the commit."""
        if self.shop.target.real:  # one request instead of three
            more = {"branch": branch, "new_branch": new, "message": message}
            return self._write("upload", path, text, **more)
        if new:
            self._make_branch(new, branch)
        known = self.api("GET", f"/contents/{path}?ref={new or branch}").ok
        operation = "update" if known else "create"
        return self._write(operation, path, text, branch=new or branch, message=message)

    def _make_branch(self, name: str, base: str) -> None:
        body = {"new_branch_name": name, "old_ref_name": base}
        made = self.api("POST", "/branches", body)
        assert made.status_code == 201, made.text

    def _write(self, operation: str, path: str, text: str, **more: str) -> str:
        content = base64.b64encode(text.encode()).decode()
        entry = {"operation": operation, "path": path, "content": content}
        body = {"files": [entry], **more}
        made = self.api("POST", "/contents", body)
        assert made.status_code == 201, made.text
        commit: str = made.json()["commit"]["sha"]
        return commit

    def branch(self, name: str, base: str = "main") -> str:
        """Make a branch with one commit of its own; return the commit."""
        path = f"of-{name.replace('/', '-')}"
        return self.commit(base, path, "1\n", new=name, message=name)

    def open(self, head: str, base: str = "main", **more: Any) -> int:
        """Open a pull request; return its number."""
        body = {"head": head, "base": base, "title": f"Bring {head}", **more}
        made = self.api("POST", "/pulls", body)
        assert made.status_code == 201, made.text
        number: int = made.json()["number"]
        return number

    def get(self, number: int) -> dict[str, Any]:
        """Return a pull request as it is shown."""
        found: dict[str, Any] = self.api("GET", f"/pulls/{number}").json()
        return found

    def edit(self, number: int, **changes: Any) -> requests.Response:
        """Change a pull request."""
        return self.api("PATCH", f"/pulls/{number}", changes)

    def try_merge(
        self, number: int, style: str = "merge", *, auth: Any = "token", **more: Any
    ) -> requests.Response:
        """Ask once for a merge."""
        return self.api("POST", f"/pulls/{number}/merge", {"Do": style, **more}, auth=auth)

    def merge(self, number: int, style: str = "merge", **more: Any) -> requests.Response:
        """Ask for a merge until the forge has checked the pull request."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self.try_merge(number, style, **more)
            if LATER not in answer.text or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def settled(self, number: int, *, mergeable: bool) -> dict[str, Any]:
        """
        Wait until the forge says so for some checks in a row; return the pull request.

        For open ones only: of one that is merged while its base is being looked at again, the
        forge may say for ever that it is being checked (observed).
        """
        deadline, in_a_row = time.monotonic() + DEADLINE_S, 0
        while in_a_row < (1 if mergeable else 10):
            found = self.get(number)
            in_a_row = in_a_row + 1 if found["mergeable"] == mergeable else 0
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found

    def head(self, branch: str = "main") -> str:
        """Return the commit at the tip of a branch."""
        found: str = self.api("GET", f"/branches/{branch}").json()["commit"]["id"]
        return found

    def log(self, ref: str, count: int) -> list[dict[str, Any]]:
        """Return the newest commits of a branch."""
        answer = self.api("GET", f"/commits?sha={ref}&limit={count}&stat=false&files=false")
        found: list[dict[str, Any]] = answer.json()[:count]
        return found
