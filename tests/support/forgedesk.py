"""A person with a browser at the embedded forge, and the hand that fills it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import requests
from pagereader import Page, read_page

from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.forge import EmbeddedForge

OWNER = ("warden", "warden-pw1")
GUEST = ("guest", "guest-pw12")
TOKEN = "d" * 40
TIMEOUT_S = 90
_numbers = itertools.count(1)


@dataclass
class Desk:
    """What a test of pages uses."""

    forge: EmbeddedForge
    client: GiteaForge
    url: str

    def get(
        self, path: str, *, auth: tuple[str, str] | None = None, accept: str = "text/html"
    ) -> requests.Response:
        """Fetch an address as a browser does; redirects are shown, not followed."""
        return requests.get(
            self.url + path,
            auth=auth,
            headers={"Accept": accept},
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )

    def page(self, path: str, *, auth: tuple[str, str] | None = None, status: int = 200) -> Page:
        """Fetch a page and judge it."""
        answer = self.get(path, auth=auth)
        assert answer.status_code == status, answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self';")
        assert "script" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return read_page(answer.text)

    def post(self, path: str, form: Mapping[str, str], auth: tuple[str, str] | None) -> int:
        """Send a form as a browser does that shows a page of the forge; return the status."""
        answer = requests.post(
            self.url + path,
            data=form,
            auth=auth,
            headers={"Accept": "text/html", "Origin": self.url, "Sec-Fetch-Site": "same-origin"},
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )
        return answer.status_code

    def press(self, page: Page, value: str, auth: tuple[str, str] | None, **typed: str) -> int:
        """Press the button of a page that has this value; return the status of the answer."""
        (form,) = [form for form in page.forms if value in form.buttons]
        fields = {**form.fields, form.buttons[value]: value, **typed}
        return self.post(form.action, fields, auth)

    def repo(self, *, private: bool = False, description: str = "") -> RepoId:
        """Return a new empty repository."""
        owner = f"team{next(_numbers)}"
        self.client.ensure_org(owner)
        made = RepoId(owner, "order")
        self.client.ensure_repo(made, description=description, private=private)
        return made

    def write(
        self,
        repo: RepoId,
        files: Mapping[str, str | bytes | None],
        summary: str = "Change files",
        requester: str = "user:default/takumi",
        *,
        branch: str = "main",
    ) -> CommitSha:
        """Commit files to a branch; None deletes."""
        empty = self.client.head(repo, branch) is None
        changes = []
        for name, data in files.items():
            path = PurePosixPath(name)
            seen = None if empty else self.client.read(repo, path, branch)
            content = data.encode() if isinstance(data, str) else data
            changes.append(FileChange(path, content, seen.sha if seen else None))
        operation = Operation(f"op{next(_numbers):08d}", requester, summary)
        return self.client.write(repo, changes, operation, branch=branch).commit

    def file(self, repo: RepoId, path: str) -> Page:
        """Return the page of a file on main."""
        return self.page(f"/{repo}/src/branch/main/{quote(path)}")

    def branch(self, repo: RepoId, name: str, start: str) -> None:
        """Make a branch at a commit."""
        self.api(
            "POST", f"/repos/{repo}/branches", {"new_branch_name": name, "old_ref_name": start}
        )

    def settle(self, repo: RepoId, number: int) -> None:
        """Wait until the forge has checked whether a pull request can be merged."""
        row = self.forge.repositories.find(repo.owner, repo.name)
        pull = self.forge.pulls.find(row.id, number) if row else None
        assert pull is not None
        deadline = time.monotonic() + TIMEOUT_S
        while self.forge.pulls.checks.running(pull.id):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Call the API as the site admin; fails on a refusal."""
        answer = requests.request(
            method,
            f"{self.url}/api/v1{path}",
            json=body,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=TIMEOUT_S,
        )
        assert answer.ok, answer.text
        return answer.json() if answer.text else None
