"""Where a kit wants a review: nobody pushes past it, and nobody approves a change of their own."""

from __future__ import annotations

import base64
import secrets
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bays import XR, Bay, ask, new_bay, set_
from commands import Command
from forgeusers import ForgeUser, new_user

from ground.errors import ConflictError, RefusedError
from ground.names import MAIN, blob_sha
from orderkit.adapters.github import GitHubForge
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.forge_protection import CONTEXT
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation, PullDraft, PullRequest
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

BOSS = "user:default/boss"


@dataclass(frozen=True)
class Review:
    """An order with a pull request that eve asked for, and people who may push to it."""

    bay: Bay
    eve: ForgeUser
    carol: ForgeUser
    pull: PullRequest

    @property
    def path(self) -> str:
        return f"/repos/{self.bay.repo}/pulls/{self.pull.number}"

    def approve(self, by: ForgeUser, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = by.api(
            "POST", f"{self.path}/reviews", {"event": "APPROVED", **more}
        )
        return answer

    def merge(self) -> str:
        return merge_reviewed(
            self.bay.platform, self.bay.order, self.pull.number, requester=BOSS
        ).commit

    def push(self, by: ForgeUser, new: str = "stage3", message: str = "by hand") -> None:
        """Change the stage on the pull request's branch."""
        path = f"/repos/{self.bay.repo}/contents/{XR}"
        there = by.api("GET", f"{path}?ref={self.pull.head}")
        text = base64.b64decode(there["content"]).decode().replace("stage2", new)
        content = base64.b64encode(text.encode()).decode()
        body = {
            "sha": there["sha"],
            "content": content,
            "branch": self.pull.head,
            "message": message,
        }
        by.api("PUT", path, body)


@pytest.fixture
def people(forge_admin: ForgeUser) -> tuple[ForgeUser, ForgeUser]:
    return new_user(forge_admin, "eve"), new_user(forge_admin, "carol")


@pytest.fixture
def review(
    platform: Running, forge_admin: ForgeUser, people: tuple[ForgeUser, ForgeUser]
) -> Review:
    return proposed(new_bay(platform.platform), forge_admin, *people)


def proposed(bay: Bay, admin: ForgeUser, eve: ForgeUser, carol: ForgeUser) -> Review:
    """Let eve ask for a reviewed change of an order that both may push to."""
    for person in (eve, carol):
        path = f"/repos/{bay.repo}/collaborators/{person.login}"
        admin.api("PUT", path, {"permission": "write"})
    asked = ask(bay, set_("stage", "stage2"), requester=Requester(f"user:default/{eve.login}"))
    assert asked.pull is not None
    return Review(bay, eve, carol, asked.pull)


def clone(bay: Bay, user: ForgeUser, folder: Path) -> Path:
    url = f"{user.url}/{bay.repo}.git".replace("://", f"://{user.login}:{user.password}@")
    subprocess.run(["git", "clone", "-q", url, str(folder)], check=True, timeout=60)
    for key, value in (("user.name", "x"), ("user.email", "x@example.org")):
        subprocess.run(["git", "-C", str(folder), "config", key, value], check=True, timeout=60)
    return folder


def test_a_push_does_not_bypass_a_review(review: Review, tmp_path: Path) -> None:
    bay, before = review.bay, review.bay.head
    folder = clone(bay, review.eve, tmp_path / "work")
    (folder / XR).write_text((folder / XR).read_text().replace("stage1", "stage3"))
    subprocess.run(["git", "-C", str(folder), "commit", "-qam", "x"], check=True, timeout=60)

    pushed = subprocess.run(
        ["git", "-C", str(folder), "push", "-q", "origin", "HEAD:main"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert pushed.returncode != 0
    assert "protected branch main" in pushed.stderr
    assert bay.head == before


def test_the_contents_api_does_not_bypass_a_review(review: Review) -> None:
    path = f"/repos/{review.bay.repo}/contents/{XR}"
    there = review.eve.api("GET", path)
    content = base64.b64encode(b"x").decode()

    done = review.eve.call("PUT", path, {"sha": there["sha"], "content": content, "message": "x"})

    assert done.status_code == 403


def test_the_platform_still_writes_what_it_must(review: Review) -> None:
    before = review.bay.head

    review.bay.edit("stage1", "stage3")

    assert review.bay.head != before


def test_the_requester_does_not_approve_their_own_change(review: Review) -> None:
    assert review.approve(review.eve)["official"] is True  # the forge lets them

    with pytest.raises(RefusedError, match=f"{review.eve.login} is behind the change"):
        review.merge()

    assert review.bay.spec()["stage"] == "stage1"


def test_a_requester_with_a_new_login_does_not_approve(
    review: Review, rename: Callable[[ForgeUser, str], ForgeUser], forge_admin: ForgeUser
) -> None:
    """Somebody else has the old login by then, so that the change seems to be theirs."""
    renamed = rename(review.eve, f"{review.eve.login}-2")
    body = {"username": review.eve.login, "password": review.eve.password}
    taken = {**body, "email": f"{renamed.login}@example.org", "must_change_password": False}
    forge_admin.api("POST", "/admin/users", taken)
    person = f"/repos/{review.bay.repo}/collaborators/{review.eve.login}"
    forge_admin.api("PUT", person, {"permission": "write"})
    review.approve(renamed)

    with pytest.raises(RefusedError, match=f"{renamed.login} is behind the change"):
        review.merge()

    review.approve(review.carol)
    review.merge()
    assert review.bay.spec()["stage"] == "stage2"


def test_a_requester_whose_login_nobody_has_any_more_is_known_by_id(
    review: Review, rename: Callable[[ForgeUser, str], ForgeUser]
) -> None:
    renamed = rename(review.eve, f"{review.eve.login}-2")
    review.approve(renamed)

    with pytest.raises(RefusedError, match=f"{renamed.login} is behind the change"):
        review.merge()

    review.approve(review.carol)
    assert review.merge()


def test_a_proposal_that_records_no_account_is_not_merged(review: Review) -> None:
    """As an earlier release made it: its requester may have another login by now."""
    bay, forge = review.bay, review.bay.platform.forge
    forge.ensure_branch(bay.repo, "orderkit/old", bay.head)
    why = Operation("change-old", f"user:default/{review.eve.login}", "stage3")
    text = bay.text()
    change = FileChange(XR, text.replace("stage1", "stage3").encode(), blob_sha(text.encode()))
    forge.write(bay.repo, [change], why, branch="orderkit/old")
    pull = forge.open_pull(bay.repo, PullDraft("stage3", "", "orderkit/old"), why)
    old = replace(review, pull=pull)
    old.approve(review.carol)

    with pytest.raises(RefusedError, match="does not record which account"):
        old.merge()


def test_somebody_elses_approval_merges(review: Review) -> None:
    review.approve(review.carol)

    review.merge()

    assert review.bay.spec()["stage"] == "stage2"
    assert review.merge() == review.bay.head  # repeating it changes nothing


def test_nobody_else_merges_with_a_status_of_their_own(review: Review) -> None:
    """Whoever may push may set any status, so the status alone protects nothing."""
    head, repo = review.pull.head_commit, review.bay.repo
    forged = {"context": "orderkit/review", "state": "success"}
    review.eve.api("POST", f"/repos/{repo}/statuses/{head}", forged)
    review.approve(review.eve)

    done = review.eve.call("POST", f"{review.path}/merge", {"Do": "merge", "head_commit_id": head})

    assert done.status_code == 405
    assert review.bay.spec()["stage"] == "stage1"


def test_a_commit_of_somebody_else_invalidates_an_approval(review: Review) -> None:
    review.approve(review.carol)
    mallory_is_eve = review.eve
    review.push(mallory_is_eve)

    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()


def test_who_pushed_does_not_approve_even_for_another_persons_request(review: Review) -> None:
    review.push(review.carol)
    review.approve(review.carol)

    with pytest.raises(RefusedError, match=f"{review.carol.login} is behind the change"):
        review.merge()


def test_editing_the_requesters_name_away_does_not_help(review: Review) -> None:
    """The text of a pull request can be edited by everybody who may write."""
    line = "<!-- orderkit-operation: x requester: user:default/somebody-else -->"
    edited = review.eve.call("PATCH", review.path, {"body": f"Harmless.\n\n{line}\n"})
    review.approve(review.eve)

    assert edited.ok
    with pytest.raises(RefusedError):
        review.merge()


def test_a_forged_trailer_does_not_free_the_pusher(review: Review) -> None:
    carol = review.carol.login
    forged = f"x\n\nOrderkit-Operation: change-1\nOrderkit-Requester: user:default/{carol}\n"
    review.push(review.eve, message=forged)
    review.approve(review.eve)

    with pytest.raises(RefusedError, match=f"{review.eve.login} is behind the change"):
        review.merge()


def test_a_dismissed_approval_does_not_count(review: Review, forge_admin: ForgeUser) -> None:
    approval = review.approve(review.carol)
    dismissals = f"{review.path}/reviews/{approval['id']}/dismissals"
    forge_admin.api("POST", dismissals, {"message": "no"})

    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()


def test_an_outsiders_approval_does_not_count(review: Review, stranger: ForgeUser) -> None:
    assert review.approve(stranger)["official"] is False

    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()


def test_an_approval_of_somebody_who_lost_the_right_does_not_count(
    review: Review, forge_admin: ForgeUser
) -> None:
    review.approve(review.carol)
    forge_admin.api("DELETE", f"/repos/{review.bay.repo}/collaborators/{review.carol.login}")

    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()


def test_a_rejection_holds_the_merge(review: Review, forge_admin: ForgeUser) -> None:
    dave = new_user(forge_admin, "dave")
    person = f"/repos/{review.bay.repo}/collaborators/{dave.login}"
    forge_admin.api("PUT", person, {"permission": "write"})
    review.approve(review.carol)
    body = {"event": "REQUEST_CHANGES", "body": "too fast"}
    dave.api("POST", f"{review.path}/reviews", body)

    with pytest.raises(RefusedError, match=f"{dave.login} asked for changes"):
        review.merge()


def test_an_approval_from_before_a_change_of_the_base_does_not_count(review: Review) -> None:
    """GO-2026-6080: before 1.27, Gitea keeps such approvals."""
    review.bay.platform.forge.ensure_branch(review.bay.repo, "elsewhere", review.bay.head)
    review.eve.api("PATCH", review.path, {"base": "elsewhere"})
    assert review.approve(review.carol)["official"] is True
    review.eve.api("PATCH", review.path, {"base": "main"})

    with pytest.raises(RefusedError, match="someone changed its base"):
        review.merge()


def test_a_requester_whom_the_forge_does_not_know_is_refused(
    platform: Running, forge_admin: ForgeUser, people: tuple[ForgeUser, ForgeUser]
) -> None:
    """Their approval could come from a login of another name."""
    ghost = ForgeUser(forge_admin.url, f"ghost-{secrets.token_hex(3)}")
    bay = new_bay(platform.platform)
    for person in people:
        path = f"/repos/{bay.repo}/collaborators/{person.login}"
        forge_admin.api("PUT", path, {"permission": "write"})
    asked = ask(bay, set_("stage", "stage2"), requester=Requester(f"user:default/{ghost.login}"))
    assert asked.pull is not None
    review = Review(bay, *people, asked.pull)
    review.approve(review.carol)

    with pytest.raises(RefusedError, match=f"{ghost.login}' asked for it, who is not a user"):
        review.merge()


def test_a_merge_is_of_the_commit_that_was_judged(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push between judging and merging is a conflict."""
    review.approve(review.carol)
    forge = review.bay.platform.forge
    merge_pull = type(forge).merge_pull

    def push_first(*args: Any, **more: Any) -> Any:
        review.push(review.eve)
        return merge_pull(*args, **more)

    monkeypatch.setattr(type(forge), "merge_pull", push_first)

    with pytest.raises(ConflictError):
        review.merge()


def test_a_crafted_merge_commit_hides_nothing(review: Review, tmp_path: Path) -> None:
    """Its first parent is an old commit of main, against which nothing seems to change."""
    bay = review.bay
    old = bay.head
    bay.edit("stage1", "stage3")
    folder = clone(bay, review.eve, tmp_path / "work")
    tree = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", f"{old}^{{tree}}"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.strip()  # fmt: skip
    made = subprocess.run(
        ["git", "-C", str(folder), "commit-tree", tree, "-p", old, "-p", "origin/main", "-m", "x"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.strip()  # fmt: skip
    push = ["git", "-C", str(folder), "push", "-q", "origin", f"{made}:refs/heads/sly"]
    subprocess.run(push, check=True, timeout=60)
    draft = {"head": "sly", "base": "main", "title": "Nothing"}
    number = review.eve.api("POST", f"/repos/{bay.repo}/pulls", draft)["number"]

    with pytest.raises(RefusedError):
        merge_reviewed(bay.platform, bay.order, number, requester=BOSS)

    assert bay.spec()["stage"] == "stage3"


def test_the_forge_says_what_is_lacking_and_refuses_to_merge_before(
    review: Review, orderkit: Command, forge_admin: ForgeUser
) -> None:
    """Neither has anybody asked Orderkit to merge, nor does its own account get past it."""
    merge = ("POST", f"{review.path}/merge", {"Do": "merge"})
    assert forge_admin.call(*merge).status_code == 405
    assert orderkit("platform", "webhook", "--repository", str(review.bay.repo)).code == 0

    review.eve.api("PATCH", review.path, {"body": "edited"})
    lacking = stated(review, "failure")
    assert f"nobody else has approved {review.pull.head_commit[:8]}" in lacking
    assert forge_admin.call(*merge).status_code == 405

    review.approve(review.carol)
    assert stated(review, "success") == f"approved by {review.carol.login}"

    body = {"event": "REQUEST_CHANGES", "body": "too fast"}
    review.carol.api("POST", f"{review.path}/reviews", body)
    assert f"{review.carol.login} asked for changes" in stated(review, "failure")


def stated(review: Review, state: str) -> str:
    """Wait for a state of the review's status; return its text."""
    forge = review.bay.platform.forge
    statuses = until(
        review.bay.platform.clock,
        lambda: forge.statuses(review.bay.repo, review.pull.head_commit),
        lambda now: any((each.context, each.state) == (CONTEXT, state) for each in now),
        timeout_s=120,
        goal=f"the status {state}",
    )
    return next(each.description for each in statuses if each.context == CONTEXT)


def test_doctor_reports_an_order_whose_protection_was_removed(
    orderkit: Command, review: Review, forge_admin: ForgeUser
) -> None:
    if isinstance(review.bay.platform.forge, GitHubForge):
        pytest.skip("a ruleset names no users: test_github_client widens it by actors and teams")
    rule = f"/repos/{review.bay.repo}/branch_protections/main"
    widened = {"push_whitelist_usernames": [review.eve.login]}
    forge_admin.api("PATCH", rule, widened)
    told = orderkit("doctor")
    repaired = orderkit("team", "add", review.bay.repo.owner)
    forge_admin.api("DELETE", rule)
    removed = orderkit("doctor")
    orderkit("team", "add", review.bay.repo.owner)

    assert told.code == 1
    assert str(review.bay.repo) in told.out
    assert repaired.code == 0, repaired.err
    assert str(review.bay.repo) in removed.out
    (row,) = [x for x in orderkit("doctor").out.splitlines() if x.startswith("protection ")]
    assert str(review.bay.repo) not in row, "orders of other tests may be there"


def test_the_command_merges_what_somebody_else_approved(orderkit: Command, review: Review) -> None:
    refused = orderkit("merge", review.bay.order, str(review.pull.number))
    review.approve(review.carol)
    done = orderkit("merge", review.bay.order, str(review.pull.number))

    assert refused.code == 4
    assert "nobody else has approved" in refused.err
    assert done.code == 0, done.err
    assert f"approved by {review.carol.login}" in done.out


def test_an_upgrade_protects_the_orders_of_an_earlier_release(
    orderkit: Command, review: Review, forge_admin: ForgeUser
) -> None:
    forge, repo = review.bay.platform.forge, review.bay.repo
    forge_admin.api("DELETE", f"/repos/{repo}/branch_protections/main")

    done = orderkit("platform", "upgrade")

    assert done.code == 0, done.err
    assert forge.is_protected(repo, MAIN, checks=(CONTEXT,))
