"""Pull requests that look harmless to who judges them, and are not what would be merged."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bays import XR, ask, new_bay, set_
from forgeusers import ForgeUser, new_user
from tests.security import test_four_eyes as four_eyes
from tests.security.test_four_eyes import BOSS, Review

from ground.errors import RefusedError
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.ports.requesters import UNKNOWN, Requester
from orderkit_standins.serve_platform import Running

people, review = four_eyes.people, four_eyes.review
SECOND = """---
apiVersion: v1
kind: Namespace
metadata:
  name: nobody-approved-this
"""


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_second_object_in_the_file_needs_an_approval(
    platform: Running, forge_admin: ForgeUser, place: str
) -> None:
    """The kit lets a team change this field directly; it says nothing about other objects."""
    bay = new_bay(platform.platform)
    eve = new_user(forge_admin, "eve")
    forge_admin.api("PUT", f"/repos/{bay.repo}/collaborators/{eve.login}", {"permission": "write"})
    text = bay.text()
    second = f"{text}{SECOND}" if place == "after" else f"{SECOND}---\n{text}"
    number = opened(eve, str(bay.repo), second)

    with pytest.raises(RefusedError, match="nobody else has approved"):
        merge_reviewed(platform.platform, bay.order, number, requester=BOSS)


def opened(by: ForgeUser, repo: str, text: str) -> int:
    """Open a pull request that changes the XR's file."""
    path = f"/repos/{repo}/contents/{XR}"
    there = by.api("GET", f"{path}?ref=main")
    content = base64.b64encode(text.encode()).decode()
    by.api("POST", f"/repos/{repo}/branches", {"new_branch_name": "own", "old_ref_name": "main"})
    body = {"sha": there["sha"], "content": content, "branch": "own", "message": "by hand"}
    by.api("PUT", path, body)
    pull = by.api("POST", f"/repos/{repo}/pulls", {"head": "own", "base": "main", "title": "x"})
    return int(pull["number"])


@pytest.mark.parametrize("kind", ["heads", "tags"])
@pytest.mark.parametrize("named", ["head", "base"])
def test_a_branch_named_like_a_commit_hides_nothing(
    review: Review, tmp_path: Path, kind: str, named: str
) -> None:
    """Asked for a file at a commit, Gitea answers from the branch or tag of that name."""
    eve = review.eve
    review.push(eve, "stage3")
    pull = review.bay.platform.forge.pull(review.bay.repo, review.pull.number)
    assert pull is not None
    folder = four_eyes.clone(review.bay, eve, tmp_path / "work")
    main = review.bay.head
    ref, target = (pull.head_commit, main) if named == "head" else (main, pull.head_commit)
    git(folder, "fetch", "-q", "origin", pull.head)
    git(folder, "push", "-q", "origin", f"{target}:refs/{kind}/{ref}")

    # Which of them depends on what of the commit was read before the name hid it.
    refusals = "shows something else|nobody else has approved|has no commit that main lacks"
    with pytest.raises(RefusedError, match=refusals):
        review.merge()

    assert review.bay.head == main


@pytest.mark.parametrize("place", ["CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS"])
def test_an_owners_file_names_no_approver(review: Review, place: str) -> None:
    """Who may approve says the published kit, never a file of the order, on main or in a branch."""
    eve, path = review.eve, f"/repos/{review.bay.repo}/contents/{place}"
    content = base64.b64encode(f"* @{eve.login}\n".encode()).decode()
    eve.api("POST", path, {"content": content, "message": "x", "branch": review.pull.head})
    review.approve(eve)
    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()
    review.approve(review.carol)
    review.merge()
    asked = ask(
        review.bay, set_("stage", "stage3"), requester=Requester(f"user:default/{eve.login}")
    )
    assert asked.pull is not None
    again = four_eyes.Review(review.bay, eve, review.carol, asked.pull)

    again.approve(eve)

    with pytest.raises(RefusedError, match="nobody else has approved"):
        again.merge()
    assert review.bay.spec()["stage"] == "stage2"


def test_what_is_pushed_just_before_the_request_is_opened_is_not_ours(
    platform: Running,
    forge_admin: ForgeUser,
    people: tuple[ForgeUser, ForgeUser],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The forge notes who opened a request as the pusher of all that its branch holds then."""
    bay, (eve, mallory) = new_bay(platform.platform), people
    forge = type(platform.platform.forge)
    open_pull = forge.open_pull

    def push_first(self: Any, repo: Any, draft: Any, operation: Any) -> Any:
        path = f"/repos/{repo}/contents/by-mallory"
        mallory.api("POST", path, {"content": "eA==", "message": "x", "branch": draft.head})
        return open_pull(self, repo, draft, operation)

    monkeypatch.setattr(forge, "open_pull", push_first)
    review = four_eyes.proposed(bay, forge_admin, eve, mallory)
    review.approve(mallory)

    with pytest.raises(RefusedError, match="nothing proves who wrote"):
        review.merge()


def test_a_tag_named_main_is_not_main(review: Review, tmp_path: Path) -> None:
    """Git, and Gitea's histories, prefer a tag to a branch."""
    bay, folder = review.bay, four_eyes.clone(review.bay, review.eve, tmp_path / "work")
    before = [commit.id for commit in bay.commits()]
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "push", "-q", "origin", "HEAD:refs/tags/main")

    assert [commit.id for commit in bay.commits()] == before
    assert bay.platform.forge.head(bay.repo) == before[0]
    assert bay.text() == bay.text(ref=before[0])


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, timeout=60)


def test_whoever_takes_the_name_of_an_unknown_requester_does_not_help(
    platform: Running, forge_admin: ForgeUser, people: tuple[ForgeUser, ForgeUser]
) -> None:
    """Anybody may register ``unknown`` on the forge."""
    eve, carol = people
    body = {"username": "unknown", "password": eve.password, "email": "u@example.org"}
    forge_admin.call("POST", "/admin/users", {**body, "must_change_password": False})
    bay = new_bay(platform.platform)
    for person in people:
        path = f"/repos/{bay.repo}/collaborators/{person.login}"
        forge_admin.api("PUT", path, {"permission": "write"})
    asked = ask(bay, set_("stage", "stage2"), requester=Requester(UNKNOWN))
    assert asked.pull is not None
    four_eyes.Review(bay, eve, carol, asked.pull).approve(eve)

    with pytest.raises(RefusedError, match="nothing says who asked"):
        merge_reviewed(platform.platform, bay.order, asked.pull.number, requester=BOSS)
