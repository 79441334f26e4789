"""Pull requests in the forge's own state: what a kill between two steps leaves, and the pause."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge, git_read, git_write
from orderkit_standins.forge.pull_requests import PULL_REF, MergeRecord, Pull
from orderkit_standins.forge.repositories import Repository

AUTH = ("warden", "warden-pw1")
API = "/api/v1/repos/warden/r"
NEW = {"content": "YQ==", "message": "m"}


class Desk:
    """A served forge with one repository of its admin."""

    def __init__(self, forge: EmbeddedForge, url: str) -> None:
        self.forge, self.url = forge, url

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, f"{self.url}{API}{path}", json=body, auth=AUTH, timeout=30)

    def opened_pull(self, head: str) -> Pull:
        self.call("POST", "/branches", {"new_branch_name": head})
        made = self.call("POST", f"/contents/{head}.txt", NEW | {"branch": head})
        assert made.status_code == 201, made.text
        body = {"head": head, "base": "main", "title": head}
        number = self.call("POST", "/pulls", body).json()["number"]
        return self.pull(number)

    def pull(self, number: int) -> Pull:
        found = self.forge.pulls.find(self.repo.id, number)
        assert found is not None
        return found

    def shown(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/pulls/{number}").json()
        return found

    @property
    def repo(self) -> Repository:
        found = self.forge.repositories.find("warden", "r")
        assert found is not None
        return found

    def heads(self) -> dict[str, str]:
        return git_read.heads(self.repo.path)


@contextmanager
def desk(root: Path, *, check_delay_s: float = 0.0) -> Iterator[Desk]:
    forge = EmbeddedForge(root, check_delay_s=check_delay_s)
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user(*AUTH, admin=True)
    try:
        found = Desk(forge, server.url)
        if forge.repositories.find("warden", "r") is None:
            user = forge.accounts.find("warden")
            assert user is not None
            repos = f"{server.url}/api/v1/user/repos"
            assert requests.post(repos, json={"name": "r"}, auth=AUTH, timeout=30).ok
            assert found.call("POST", "/contents/README.md", NEW).ok
        yield found
    finally:
        server.stop()
        forge.close()


def begin(found: Desk, pull: Pull, commit: str) -> None:
    """Do what a merge does before it moves the base branch."""
    user = found.forge.accounts.find("warden")
    assert user is not None
    record = MergeRecord(commit, user.id, "2026-01-02T03:04:05Z")
    found.forge.merge_journal.begin(found.repo, pull, record)


def test_a_merge_killed_before_the_branch_moved_never_happened(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        pull = found.opened_pull("a")
        begin(found, pull, found.heads()["a"])

    with desk(tmp_path) as found:
        shown = found.shown(pull.number)
        assert (shown["merged"], shown["state"], found.pull(pull.number).merge_in_progress) == (
            False,
            "open",
            None,
        )
        assert found.call("POST", f"/pulls/{pull.number}/merge", {"Do": "merge"}).ok


def test_a_merge_killed_after_the_branch_moved_has_happened(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        pull, heads = found.opened_pull("a"), found.heads()
        begin(found, pull, heads["a"])
        git_write.move_branch(found.repo.path, "main", heads["main"], heads["a"])

    with desk(tmp_path) as found:
        shown = found.shown(pull.number)
        assert (shown["merged"], shown["state"]) == (True, "closed")
        assert (shown["merge_commit_sha"], shown["merge_base"]) == (heads["a"], heads["main"])
        assert shown["merged_at"] == "2026-01-02T03:04:05Z"
        assert found.call("POST", f"/pulls/{pull.number}/merge", {"Do": "merge"}).status_code == 405


def test_a_merge_whose_end_was_lost_is_finished_when_it_is_read(tmp_path: Path) -> None:
    """As after a database error between the move and the note: the forge itself goes on."""
    with desk(tmp_path) as found:
        pull, heads = found.opened_pull("a"), found.heads()
        begin(found, pull, heads["a"])
        git_write.move_branch(found.repo.path, "main", heads["main"], heads["a"])

        listed = found.call("GET", "/pulls").json()

        assert [each["merged"] for each in listed] == [True]
        assert found.pull(pull.number).merged is not None


def test_a_merge_is_judged_by_its_branch_also_when_that_went_on(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        pull, heads = found.opened_pull("a"), found.heads()
        begin(found, pull, heads["a"])
        git_write.move_branch(found.repo.path, "main", heads["main"], heads["a"])
        assert found.call("POST", "/contents/later", NEW).status_code == 201

    with desk(tmp_path) as found:
        assert found.shown(pull.number)["merge_commit_sha"] == heads["a"]
        assert found.heads()["main"] != heads["a"]


def test_branches_that_moved_or_went_unnoticed_are_caught_up_with(tmp_path: Path) -> None:
    """A push that was killed before pull requests were told."""
    with desk(tmp_path) as found:
        moved, gone, lost = (found.opened_pull(name) for name in ("a", "b", "c"))
        body = {"head": "a", "base": "c", "title": "onto c"}
        based = found.call("POST", "/pulls", body).json()["number"]
        path, heads = found.repo.path, found.heads()
        git_write.move_branch(path, "a", heads["a"], heads["b"])
        git_write.delete_branch(path, "b")
        git_write.delete_branch(path, "c")

    with desk(tmp_path) as found:
        git = git_read.open_repository(found.repo.path)
        kept = git.references[PULL_REF.format(moved.number)].target
        states = [found.shown(each.number)["state"] for each in (moved, gone, lost)]
        assert (str(kept), states) == (heads["b"], ["open", "closed", "closed"])
        assert found.shown(based)["base"]["ref"] == "c", "there is an open one to main already"


def test_while_it_is_checked_a_pull_request_is_not_mergeable(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        with found.forge.pulls.checks.held():
            number = found.opened_pull("a").number
            asked = found.call("POST", f"/pulls/{number}/merge", {"Do": "merge"})
            during = found.shown(number)["mergeable"]
        after = found.shown(number)["mergeable"]

        assert (asked.status_code, asked.json()["message"]) == (405, "Please try again later")
        assert (during, after) == (False, True)


@pytest.mark.parametrize("delay_s", [0.0, 3600.0])
def test_the_pause_is_as_long_as_chosen(tmp_path: Path, delay_s: float) -> None:
    with desk(tmp_path, check_delay_s=delay_s) as found:
        number = found.opened_pull("a").number

        assert found.shown(number)["mergeable"] is (delay_s == 0.0)


def test_a_deleted_repository_takes_its_pull_requests_along(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        pull = found.opened_pull("a")
        assert found.call("POST", f"/statuses/{found.heads()['a']}", {}).status_code == 201
        assert found.call("DELETE", "").status_code == 204
        assert found.shown(pull.number).get("number") is None

    with closing(sqlite3.connect(tmp_path / "forge.sqlite")) as db:
        for table in ("issues", "pulls", "statuses", "numbers"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table  # noqa: S608  names from here


def test_a_refused_push_leaves_no_object_behind(tmp_path: Path) -> None:
    """The pack of a push to a protected branch is looked at outside of the repository."""
    with desk(tmp_path) as found:
        found.call("POST", "/branch_protections", {"rule_name": "main"})
        before = {path for path in (found.repo.path / "objects").rglob("*") if path.is_file()}
        clone = _clone(found, tmp_path / "copy")

        done = _git(clone, "push", "-q", "origin", "HEAD:main")

        assert done.returncode != 0
        assert "Not allowed to push" in done.stderr
        after = {path for path in (found.repo.path / "objects").rglob("*") if path.is_file()}
        assert after == before


def _git(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:

    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def _clone(found: Desk, folder: Path) -> Path:
    url = found.url.replace("://", "://{}:{}@".format(*AUTH))
    done = _git(found.forge.root, "clone", "-q", f"{url}/warden/r.git", str(folder))
    assert done.returncode == 0, done.stderr
    (folder / "n").write_text("1")
    _git(folder, "add", ".")
    assert _git(folder, "commit", "-qm", "n").returncode == 0
    return folder


def test_an_edit_of_the_version_it_read_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with desk(tmp_path) as found:
        number = found.opened_pull("a").number
        pull = f"/pulls/{number}"
        before = found.call("GET", pull).json()["body"]

        answer = found.call("PATCH", pull, {"body": "mine", "content_version": 1})

        assert (answer.status_code, found.call("GET", pull).json()["body"]) == (422, before)
        assert "content_version is not supported" in answer.json()["message"]


ODD: tuple[Any, ...] = (3, -1, 2**70, "\0", "é" * 300, [], [1], ["x"], [None], {"a": 1}, True, 1.5)
FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("POST", "/pulls"): ("head", "base", "title", "body", "labels", "assignees", "milestone"),
    ("PATCH", "/pulls/1"): ("title", "body", "state", "base", "labels", "content_version"),
    ("POST", "/pulls/1/merge"): ("Do", "MergeTitleField", "head_commit_id", "force_merge"),
    ("PATCH", "/branches/a"): ("name",),
    ("POST", "/branch_protections"): ("rule_name", "priority", "status_check_contexts"),
    ("PATCH", "/branch_protections/x"): ("priority", "enable_push", "push_whitelist_teams"),
    ("POST", "/statuses/main"): ("state", "context", "description", "target_url"),
}


@pytest.mark.parametrize("where", FIELDS, ids=" ".join)
def test_what_does_not_fit_a_field_is_refused_and_breaks_nothing(
    tmp_path: Path, where: tuple[str, str]
) -> None:
    whole = {"head": "a", "base": "main", "title": "t", "Do": "merge"}
    with desk(tmp_path) as found:
        found.opened_pull("a")
        found.call("POST", "/branch_protections", {"rule_name": "x"})

        for field in FIELDS[where]:
            for value in ODD:
                answer = found.call(*where, whole | {field: value})
                assert answer.status_code < 500, (field, value, answer.text)
