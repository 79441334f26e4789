"""Addresses of the pages of pull requests, as Gitea 1.26.0 answers them (observed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from orderkit.core.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


@dataclass(frozen=True)
class Desk:
    """One repository with an open pull request."""

    repo: RepoId
    number: int


@dataclass(frozen=True)
class Case:
    """One address and what it answers."""

    id: str
    reason: str
    path: str
    status: int = 200


@pytest.fixture(scope="module")
def desk(shop: Workshop) -> Desk:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "dir" / "a.txt").write_text("changed on a branch\n")
    (copy / "all.bin").write_bytes(bytes(range(256)))
    assert shop.git("add", "-A", cwd=copy).returncode == 0
    assert shop.git("commit", "-qm", "One\n\nbody", cwd=copy).returncode == 0
    (copy / "new.txt").write_text("new\n")
    assert shop.git("add", "-A", cwd=copy).returncode == 0
    assert shop.git("commit", "-qm", "Two", cwd=copy).returncode == 0
    assert shop.git("push", "-q", "origin", "HEAD:more", cwd=copy).returncode == 0
    wanted = {"head": "more", "base": "main", "title": "More"}
    made = shop.api("POST", f"/repos/{repo}/pulls", wanted)
    assert made.status_code == 201, made.text
    return Desk(repo, int(made.json()["number"]))


PULLS = [
    Case("Y100", "the list", "", status=200),
    Case("Y101", "the closed ones", "?state=closed", status=200),
    Case("Y102", "one", "/{number}", status=200),
    Case("Y103", "its commits", "/{number}/commits", status=200),
    Case("Y104", "its changes", "/{number}/files", status=200),
    Case("Y105", "none", "/99", status=404),
    Case("Y106", "no number", "/x", status=404),
    Case("Y107", "changes of none", "/99/files", status=404),
]


@pytest.mark.parametrize("case", PULLS, ids=lambda case: case.id)
def test_y_pages_of_pull_requests(shop: Workshop, desk: Desk, case: Case) -> None:
    address = f"/{desk.repo}/pulls{case.path.format(number=desk.number)}"

    assert shop.call("GET", address, auth=None).status_code == case.status, case.reason


def test_y110_the_number_as_an_issue_leads_to_the_pull_request(shop: Workshop, desk: Desk) -> None:
    answer = shop.call("GET", f"/{desk.repo}/issues/{desk.number}", auth=None)

    assert answer.status_code == 303
    assert answer.headers["Location"] == f"/{desk.repo}/pulls/{desk.number}"
