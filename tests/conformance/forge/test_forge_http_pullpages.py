"""Addresses of the pages of pull requests, as Gitea 1.26.0 answers them (observed)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import requests

from ground.names import RepoId

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


@dataclass(frozen=True)
class Pressed:
    """Somebody who sends a form of the page, and what that leads to."""

    id: str
    reason: str
    by: str
    fields: dict[str, str]
    reviews: tuple[str, ...] = ()
    merged: bool = False


FORMS = [
    Pressed("Y120", "approve", "outsider", {"type": "approve"}, ("APPROVED",)),
    Pressed("Y121", "comment", "outsider", {"type": "comment", "content": "a"}, ("COMMENT",)),
    Pressed("Y122", "reject", "outsider", {"type": "reject", "content": "a"}, ("REQUEST_CHANGES",)),
    Pressed("Y123", "reject without words", "outsider", {"type": "reject"}),
    Pressed("Y124", "the author approves", "admin", {"type": "approve"}),
    Pressed("Y125", "nobody approves", "", {"type": "approve"}),
    Pressed("Y126", "an outsider merges", "outsider", {"do": "merge"}),
    Pressed("Y127", "a writer merges", "admin", {"do": "merge"}, merged=True),
    Pressed("Y128", "another head is merged", "admin", {"do": "merge", "head": "0" * 40}),
    Pressed("Y129", "nobody merges", "", {"do": "merge"}),
]


def send(shop: Workshop, address: str, case: Pressed, head: str) -> None:
    """Send a form as a browser of somebody who signed in: by a session, here by Basic."""
    with requests.Session() as session:
        session.headers["Origin"] = shop.target.url
        if case.by:
            user, password = shop.outsider if case.by == "outsider" else shop.admin
            session.auth = (user, password)
            login = {"user_name": user, "password": password}
            session.post(f"{shop.target.url}/user/login", data=login, timeout=60)
        page = session.get(f"{shop.target.url}{address}", timeout=60).text
        token = re.search(r'name="_csrf" value="(\w+)"', page)
        fields = {"_csrf": token[1] if token else "", "commit_id": head, "head_commit_id": head}
        fields |= case.fields
        if "head" in fields:
            fields["head_commit_id"] = fields.pop("head")
        part = "merge" if "do" in fields else "files/reviews/submit"
        session.post(f"{shop.target.url}{address}/{part}", data=fields, timeout=60)


@pytest.mark.parametrize("case", FORMS, ids=lambda case: case.id)
def test_y_forms_of_a_pull_request(shop: Workshop, case: Pressed) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "new.txt").write_text("new\n")
    assert shop.git("add", "-A", cwd=copy).returncode == 0
    assert shop.git("commit", "-qm", "One", cwd=copy).returncode == 0
    assert shop.git("push", "-q", "origin", "HEAD:more", cwd=copy).returncode == 0
    body = {"head": "more", "base": "main", "title": "More"}
    made = shop.api("POST", f"/repos/{repo}/pulls", body, auth=shop.admin).json()
    path = f"/repos/{repo}/pulls/{made['number']}"
    shop.eventually(lambda: shop.api("GET", path).json()["mergeable"])

    send(shop, f"/{repo}/pulls/{made['number']}", case, made["head"]["sha"])

    reviews = shop.api("GET", f"{path}/reviews").json()
    assert tuple(review["state"] for review in reviews) == case.reviews, case.reason
    assert shop.api("GET", path).json()["merged"] == case.merged, case.reason
