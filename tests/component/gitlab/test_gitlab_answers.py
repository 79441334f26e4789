"""What the GitLab client makes of answers that the embedded forge does not give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

import pytest
from answering import Reply, Script, scripted
from tests.component.gitlab.conftest import op

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    RemoteError,
)
from ground.names import BlobSha, CommitSha, RepoId
from ground.secrets import redact
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import LostAnswerError, ServerError
from orderkit.adapters.gitlab import GitLabForge
from orderkit.adapters.gitlab.reading import judge_gitlab
from orderkit.adapters.gitlab.transport import GitLabPacer
from orderkit.ports.forge import CommitStatus, FileChange, MergeStyle, TeamRight, Webhook

REPO = RepoId("team", "order")
API = "/api/v4"
G, P = f"{API}/groups/acme/team", f"{API}/projects/acme/team/order"
HEAD, BASE = CommitSha("a" * 40), CommitSha("b" * 40)
ME: Reply = (200, {"id": 1, "username": "Warden"})
PROJECT: dict[str, Any] = {
    "id": 7, "namespace": {"kind": "group"}, "visibility": "private",
    "permissions": {"project_access": {"access_level": 30}},
}  # fmt: skip
Replies = Mapping[str, Reply | list[Reply]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def gitlab(
    replies: Replies, headers: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[tuple[GitLabForge, Script]]:
    with (
        scripted({f"GET {API}/user": ME, **replies}, headers) as script,
        GitLabForge(script.url, token="t-1", group="acme", pacer=GitLabPacer()) as forge,
    ):
        yield forge, script


VERSIONS = [
    ("18.0.0", "unknown", "no suite ran"),
    ("17.11.4-ee", "too old", "older than 18.0"),
    ("19.2.1", "unknown", "no suite ran"),
    ("unclear", "unknown", "the version is unclear"),
    ("17.0.0+orderkit", "embedded", "the embedded forge"),
]


@pytest.mark.parametrize(("version", "basis", "words"), VERSIONS)
def test_a_gitlab_is_judged_by_its_version(version: str, basis: str, words: str) -> None:
    found = judge_gitlab(version)

    assert found.basis == basis
    assert words in found.detail


def test_where_no_gitlab_answers_the_address_is_doubted() -> None:
    with gitlab({}) as (forge, _), pytest.raises(NotFoundError, match="no GitLab at") as caught:
        forge.version()

    assert "forge.group" in caught.value.hint


def members(**levels: int) -> Reply:
    return 200, [
        {"id": number, "username": name, "access_level": level}
        for number, (name, level) in enumerate(levels.items(), 2)
    ]


def test_every_way_into_a_group_is_listed_with_its_highest_right() -> None:
    people = [
        {"id": 1, "username": "Warden", "access_level": 50},
        {"id": 2, "username": "boss", "access_level": 50},
        {"id": 3, "username": "adm", "access_level": 40},
        {"id": 4, "username": "dev", "access_level": 30},
        {"id": 5, "username": "reader", "access_level": 20},
        {"id": 6, "username": "invited", "access_level": 50, "state": "awaiting"},
        {"id": 4, "username": "dev", "access_level": 30},
    ]
    shares = [
        {"group_full_path": "ext/writers", "group_access_level": 30},
        {"group_full_path": "ext/readers", "group_access_level": 20},
    ]
    replies: Replies = {
        f"GET {G}": (200, {"id": 9, "shared_with_groups": shares}),
        f"GET {G}/members/all": (200, people),
        f"GET {G}/runners?type=group_type": (200, [{"id": 3, "description": "box"}]),
        f"GET {G}/hooks": (200, [{"id": 1, "url": "http://hook"}]),
        f"GET {G}/deploy_keys": (200, [{"id": 1, "title": "no key of a group"}]),
    }
    with gitlab(replies) as (forge, _):
        found = {grant.holder: grant.right for grant in forge.foreign_access("team")}

    assert found == {
        "boss": "owner",
        "adm": "admin",
        "dev": "write",
        "group:ext/writers": "write",
        "runner:box:3": "write",
        "webhook:http://hook": "listen",
    }


def test_every_way_into_a_project_is_listed() -> None:
    replies: Replies = {
        f"GET {P}": (200, {
            "id": 7, "mirror": True, "import_url": "http://from",
            "namespace": {"kind": "user", "path": "eve"},
        }),
        f"GET {P}/members": members(dev=30),
        f"GET {P}/runners?type=project_type": (200, [{"id": 3, "description": "box"}]),
        f"GET {P}/deploy_keys": (200, [
            {"id": 1, "title": "cd", "can_push": True, "fingerprint_sha256": "SHA256:x"},
            {"id": 2, "title": "ci", "can_push": False, "fingerprint": "aa:bb"},
        ]),
        f"GET {P}/remote_mirrors": (200, [{"id": 1, "url": "http://to"}]),
    }  # fmt: skip
    with gitlab(replies) as (forge, _):
        found = {grant.holder: grant.right for grant in forge.foreign_access(REPO)}

    assert found == {
        "eve": "owner",
        "mirror:http://from": "write",
        "dev": "write",
        "runner:box:3": "write",
        "deploy-key:cd:SHA256:x": "write",
        "deploy-key:ci:aa:bb": "listen",
        "push-mirror:http://to": "listen",
    }


def test_a_group_that_we_do_not_belong_to_is_somebody_elses_unless_we_administer_all() -> None:
    group: Replies = {f"GET {G}": (200, {"id": 9}), f"GET {G}/members/all": members(boss=50)}
    with (
        gitlab(group) as (forge, _),
        pytest.raises(RefusedError, match="our account Warden is no member of it"),
    ):
        forge.foreign_access("team")
    admin: Reply = (200, {"id": 1, "username": "Warden", "is_admin": True})
    with gitlab({**group, f"GET {API}/user": admin}) as (forge, _):
        assert [g.holder for g in forge.foreign_access("team")] == ["boss"]
    with gitlab({}) as (forge, _):
        assert forge.foreign_access("team") == ()
    hidden: Replies = {**group, f"GET {G}/members/all": (403, {})}
    with gitlab(hidden) as (forge, _), pytest.raises(RefusedError, match="somebody else"):
        forge.foreign_access("team")


def test_refs_that_may_be_taken_for_main_are_named() -> None:
    branches = ["main", "refs/heads/main", "heads/main", "mainly", "main\u3000x"]
    replies: Replies = {
        f"GET {P}/repository/branches?search=main": (200, [{"name": name} for name in branches]),
        f"GET {P}/repository/tags?search=main": (200, [{"name": "main"}, {"name": "v1-main"}]),
    }
    with gitlab(replies) as (forge, _):
        assert forge.names_like(REPO, "main") == (
            "refs/heads/heads/main",
            "refs/heads/main\u3000x",
            "refs/heads/refs/heads/main",
            "refs/tags/main",
        )


def test_a_file_that_is_shown_of_another_commit_is_refused() -> None:
    shown: Reply = (200, {"commit_id": BASE, "blob_id": "1" * 40, "content": "aGk="})
    with (
        gitlab({f"GET {P}/repository/files/a.txt": shown}) as (forge, _),
        pytest.raises(RefusedError, match="something else as commit"),
    ):
        forge.read(REPO, PurePosixPath("a.txt"), HEAD)
    with gitlab({f"GET {P}/repository/files/a.txt": shown}) as (forge, _):
        found = forge.read(REPO, PurePosixPath("a.txt"), "main")
        assert found is not None
        assert found.text == "hi"


def test_a_list_is_read_again_if_it_changed_between_its_pages() -> None:
    """An item that moved to a page which was read already must not be missed."""
    path = f"GET {P}/protected_branches"
    one, two = [{"name": "a"}], [{"name": "b"}]
    replies: Replies = {
        f"{path}?page=1": [(200, one), (200, [{"name": "a"}, {"name": "c"}])],
        f"{path}?page=2": (200, two),
        f"GET {P}": (200, PROJECT),
    }
    headers = {f"{path}?page=1": {"X-Next-Page": "2", "X-Total": "3"},
               f"{path}?page=2": {"X-Next-Page": "", "X-Total": "2"}}  # fmt: skip
    with gitlab(replies, headers) as (forge, _):
        names = [rule["name"] for rule in forge._rules(REPO)]  # noqa: SLF001  the list itself

    assert names == ["a", "b", "c"]


def pull(status: str = "mergeable", **more: Any) -> dict[str, Any]:
    return {
        "iid": 1, "state": "opened", "source_branch": "change", "target_branch": "main",
        "sha": HEAD, "author": {"id": 2, "username": "eve"}, "detailed_merge_status": status,
        **more,
    }  # fmt: skip


def merging(said: Reply, shown: dict[str, Any], **project: Any) -> Replies:
    return {
        f"GET {P}": (200, {**PROJECT, **project}),
        f"GET {P}/merge_requests/1": (200, shown),
        f"PUT {P}/merge_requests/1/merge": said,
    }


def merge(forge: GitLabForge, deadline_s: float = 0.0, style: MergeStyle = MergeStyle.MERGE) -> str:
    return forge.merge_pull(REPO, 1, head=HEAD, style=style, operation=op(), deadline_s=deadline_s)


NO: Reply = (405, {"message": "405 Method Not Allowed"})
UNMERGED: list[tuple[str, Reply, str, type[Exception], str]] = [
    ("a failure", (502, {}), "mergeable", ServerError, "502"),
    ("no right", (401, {}), "mergeable", AccessError, "ask who may merge|no right"),
    ("no right, too", (403, {}), "mergeable", AccessError, "no right"),
    ("a late head", (409, {}), "mergeable", InProgressError, "has not taken in its head yet"),
    ("a conflict", NO, "conflict", ConflictError, "conflicts with its base"),
    ("a rebase", NO, "need_rebase", ConflictError, "conflicts with its base"),
    ("nothing new", NO, "commits_status", RefusedError, "nothing to merge"),
    ("a check", NO, "ci_must_pass", RefusedError, "a check did not succeed"),
    ("unchecked", NO, "unchecked", InProgressError, "still checking"),
    ("ended meanwhile", NO, "not_open", InProgressError, "still checking"),
    ("able to", NO, "mergeable", InProgressError, "still checking"),
    ("a reason of a newer GitLab", NO, "locked_paths", RemoteError, "405"),
    ("the same, and a success", (200, {}), "locked_paths", InProgressError, "does not show it"),
]


@pytest.mark.parametrize(
    ("said", "status", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in UNMERGED]
)
def test_why_it_is_not_merged_is_told_by_the_merge_request(
    said: Reply, status: str, error: type[Exception], text: str
) -> None:
    with (
        gitlab(merging(said, pull(status))) as (forge, _),
        pytest.raises(error, match=text) as caught,
    ):
        merge(forge)

    assert type(caught.value) is error


def test_an_archived_project_and_a_forbidden_style_are_named() -> None:
    with (
        gitlab(merging(NO, pull(), archived=True)) as (forge, _),
        pytest.raises(RefusedError, match="archived, hence read-only"),
    ):
        merge(forge)
    never = merging(NO, pull(), squash_option="never")
    with gitlab(never) as (forge, _):
        with pytest.raises(RefusedError, match="squash is not allowed"):
            merge(forge, style=MergeStyle.SQUASH)
        with pytest.raises(InProgressError, match="still checking"):
            merge(forge)


def test_a_merge_that_is_shown_counts_and_keeps_the_branch() -> None:
    merged = pull(state="merged", merge_commit_sha=BASE)
    shown: list[Reply] = [(200, pull()), (200, merged)]
    replies = {**merging((500, {}), {}), f"GET {P}/merge_requests/1": shown}
    with gitlab(replies) as (forge, script):
        assert merge(forge) == BASE
        body = script.sent[f"PUT {P}/merge_requests/1/merge"]
    assert (body["sha"], body["squash"], body["should_remove_source_branch"]) == (
        HEAD, False, False,
    )  # fmt: skip


TRAIN = f"{P}/merge_trains/merge_requests/1"
UNTAKEN: list[tuple[str, Reply, str, type[Exception], str]] = [
    ("a late head", (409, {}), "mergeable", InProgressError, "has not taken in its head yet"),
    ("a conflict", (400, {}), "conflict", ConflictError, "conflicts with its base"),
    ("still checking", (400, {}), "checking", InProgressError, "still checking"),
    ("closed since", (400, {}), "not_open", InProgressError, "still checking"),
    ("a check", (400, {}), "ci_must_pass", RefusedError, "a check did not succeed"),
    ("a new reason", (400, {"message": "no"}), "locked", RefusedError, "does not take it: no"),
    ("no right", (403, {}), "mergeable", AccessError, "no right"),
]


@pytest.mark.parametrize(
    ("said", "status", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in UNTAKEN]
)
def test_what_a_merge_train_does_not_take_is_told(
    said: Reply, status: str, error: type[Exception], text: str
) -> None:
    replies = {**merging(NO, pull(status), merge_trains_enabled=True), f"POST {TRAIN}": said}
    with gitlab(replies) as (forge, script):
        with pytest.raises(error, match=text):
            merge(forge)
        assert f"PUT {P}/merge_requests/1/merge" not in script.asked


def test_a_place_on_a_train_is_asked_for_once() -> None:
    waiting: Reply = (200, {"status": "fresh"})
    replies: Replies = {
        **merging(NO, pull(), merge_trains_enabled=True),
        f"GET {TRAIN}": [(404, {}), waiting],
        f"POST {TRAIN}": (201, {}),
    }
    with gitlab(replies) as (forge, script):
        with pytest.raises(InProgressError, match="it is queued"):
            merge(forge, 0.2)
        assert script.asked.count(f"POST {TRAIN}") == 1
        assert script.sent[f"POST {TRAIN}"] == {"sha": HEAD, "squash": False}
    left = {**replies, f"GET {TRAIN}": [waiting, waiting, (200, {"status": "merged"})]}
    with gitlab(left) as (forge, _), pytest.raises(RefusedError, match="put it out again"):
        merge(forge, 60)


def test_of_each_name_the_newest_status_counts_in_our_words() -> None:
    def entry(number: int, name: str, status: str) -> dict[str, Any]:
        return {"id": number, "name": name, "status": status}

    found = [
        entry(2, "plan", "failed"), entry(1, "plan", "success"), entry(3, "cost", "running"),
        entry(4, "a", "skipped"), entry(5, "b", "strange"), entry(6, "c", "canceled"),
    ]  # fmt: skip
    with gitlab({f"GET {P}/repository/commits/{HEAD}/statuses": (200, found)}) as (forge, _):
        assert forge.statuses(REPO, HEAD) == (
            CommitStatus("a", "warning"),
            CommitStatus("b", "error"),
            CommitStatus("c", "error"),
            CommitStatus("cost", "pending"),
            CommitStatus("plan", "failure"),
        )


def test_of_two_comments_of_ours_one_is_kept_and_others_stay() -> None:
    line = "<!-- orderkit-comment: plan -->"
    me, eve = {"id": 1, "username": "warden"}, {"id": 2, "username": "eve"}
    before = [
        {"id": 9, "body": f"newer\n\n{line}", "author": me},
        {"id": 4, "body": f"old\n\n{line}\n", "author": me},
        {"id": 5, "body": f"not ours\n\n{line}", "author": eve},
        {"id": 6, "body": f"{line} is in the middle", "author": me},
        {"id": 7, "body": line, "author": me, "system": True},
    ]
    after = [{"id": 4, "body": f"now\n\n{line}\n", "author": me}, before[2]]
    path = f"{P}/merge_requests/1/notes"
    replies: Replies = {
        f"GET {path}": [(200, before), (200, after)],
        f"PUT {path}/4": (200, {}),
        f"DELETE {path}/9": (404, {}),
    }
    with gitlab(replies) as (forge, script):
        forge.comment(REPO, 1, "now", marker="plan")

        assert script.sent == {f"PUT {path}/4": {"body": f"now\n\n{line}\n"}}
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"DELETE {path}/9",
            f"PUT {path}/4",
        ]
    refused = {**replies, f"GET {path}": (200, before), f"DELETE {path}/9": (403, {})}
    with gitlab(refused) as (forge, _), pytest.raises(AccessError):
        forge.comment(REPO, 1, "now", marker="plan")


@pytest.mark.parametrize("marker", ["", "a b", "a--b", "<x>"])
def test_a_marker_that_could_end_its_hidden_line_is_refused(marker: str) -> None:
    with gitlab({}) as (forge, script):
        with pytest.raises(ValueError, match="marker"):
            forge.comment(REPO, 1, "now", marker=marker)
        assert script.asked == []


def test_merge_requests_of_forks_are_not_taken_for_ours() -> None:
    own: dict[str, Any] = {"source_project_id": 7, "target_project_id": 7}
    fork: dict[str, Any] = {"source_project_id": 8, "target_project_id": 7}
    listed = [pull(**fork), {**pull(**own), "iid": 2}, {**pull(state="merged", **own), "iid": 3}]
    with gitlab({f"GET {P}/merge_requests": (200, listed)}) as (forge, _):
        assert [p.number for p in forge.pulls(REPO, state="all", head="change")] == [2, 3]
        assert [p.number for p in forge.pulls(REPO, state="all")] == [1, 2, 3]
        assert [p.number for p in forge.pulls(REPO, state="closed", head="change")] == [3]
        between = forge.pull_between(REPO, "main", "change")
    assert between is not None
    assert between.number == 2


def test_the_newest_ended_one_counts_if_none_is_open() -> None:
    own: dict[str, Any] = {"source_project_id": 7, "target_project_id": 7}
    listed = [{**pull(state="closed", **own), "iid": 5}, {**pull(state="merged", **own), "iid": 4}]
    with gitlab({f"GET {P}/merge_requests": (200, listed)}) as (forge, _):
        between = forge.pull_between(REPO, "main", "change")
        assert between is not None
        assert (between.number, between.state) == (5, "closed")
    with gitlab({}) as (forge, _):
        assert forge.pull_between(REPO, "main", "change") is None


def test_a_comparison_that_gitlab_gave_up_is_no_answer() -> None:
    path = f"GET {P}/repository/compare"
    commits = [{"id": BASE}, {"id": HEAD}]
    slow: Reply = (200, {"commits": commits, "compare_timeout": True})
    with gitlab({path: slow}) as (forge, _), pytest.raises(RemoteError, match="not done in its"):
        forge.compare(REPO, "main", "change")
    with gitlab({path: (200, {"commits": commits})}) as (forge, _):
        assert [c.id for c in forge.compare(REPO, "main", "change")] == [HEAD, BASE]


LEVELS = [
    (50, True, ()),
    (40, True, ("role Owner of acme/team (for team add, destroy)",)),
    (30, True, ("role Maintainer of team/order (for bootstrap, platform webhook)",)),
    (20, True, ("write access to team/order",)),
    (50, False, ("scope api (for order, change)",)),
]


@pytest.mark.parametrize(("level", "has_scope", "missing"), LEVELS)
def test_what_we_lack_follows_from_our_role_and_the_tokens_scopes(
    *, level: int, has_scope: bool, missing: tuple[str, ...]
) -> None:
    for kind in ("project_access", "group_access"):
        entry = {**PROJECT, "permissions": {kind: {"access_level": level}, "other": None}}
        token: Reply = (200, {"scopes": ["api" if has_scope else "read_api"]})
        replies: Replies = {
            f"GET {P}": (200, entry),
            f"GET {API}/personal_access_tokens/self": token,
        }
        with gitlab(replies) as (forge, _):
            assert forge.missing_rights(REPO) == missing


def test_an_administrator_of_gitlab_owns_every_project() -> None:
    admin: Reply = (200, {"id": 1, "username": "Warden", "is_admin": True})
    with gitlab({f"GET {P}": (200, PROJECT), f"GET {API}/user": admin}) as (forge, script):
        assert forge.missing_rights(REPO) == ()
        assert forge.missing_rights(REPO) == ()
        assert script.asked.count(f"GET {API}/user") == 1


REFUSED_STEPS: list[tuple[str, Replies, Any, type[Exception], str]] = [
    ("no group above", {}, lambda f: f.ensure_org("team"), NotFoundError, "there is no group acme"),
    ("an organisation's name", {f"GET {API}/groups/acme": (200, {"id": 2}),
                                f"POST {API}/groups": (400, {"message": "bad"})},
     lambda f: f.ensure_org("team"), InvalidInputError, "refused by the forge: bad"),
    ("no organisation", {}, lambda f: f.ensure_repo(REPO, description=""), NotFoundError,
     "there is no organisation team"),
    ("a repository's name", {f"GET {G}": (200, {"id": 9}),
                             f"POST {API}/projects": (400, {"message": "bad"})},
     lambda f: f.ensure_repo(REPO, description=""), InvalidInputError, "is refused: bad"),
    ("no such branch", {f"GET {P}": (200, PROJECT)},
     lambda f: f.set_default_branch(REPO, "x"), NotFoundError, "no such branch"),
    ("renaming nothing", {}, lambda f: f.rename_repo(REPO, "x"), NotFoundError,
     "no such repository"),
    ("the default branch", {f"GET {P}": (200, {**PROJECT, "default_branch": "main"}),
                            f"GET {P}/repository/branches/main": (200, {"commit": {"id": HEAD}}),
                            f"DELETE {P}/repository/branches/main": (403, {})},
     lambda f: f.delete_branch(REPO, "main"), RefusedError, "it is the default branch"),
    ("a protected branch", {f"GET {P}": (200, {**PROJECT, "default_branch": "main"}),
                            f"GET {P}/repository/branches/x": (200, {"commit": {"id": HEAD}}),
                            f"DELETE {P}/repository/branches/x": (405, {"message": "protected"})},
     lambda f: f.delete_branch(REPO, "x"), RefusedError, "delete branch x of .*: protected"),
    ("a branch of no commit", {f"POST {P}/repository/branches": (400, {})},
     lambda f: f.ensure_branch(REPO, "x", HEAD), NotFoundError, "has no commit"),
    ("a branch's name", {f"POST {P}/repository/branches": (400, {"message": "bad"}),
                         f"GET {P}/repository/commits/{HEAD}": (200, {"id": HEAD})},
     lambda f: f.ensure_branch(REPO, "x", HEAD), InvalidInputError, "is refused: bad"),
    ("a branch in an archive", {f"GET {P}": (200, {**PROJECT, "archived": True}),
                                f"POST {P}/repository/branches": (403, {})},
     lambda f: f.ensure_branch(REPO, "x", HEAD), RefusedError, "archived"),
    ("the owners", {}, lambda f: f.ensure_access("team", "Owners", right=TeamRight.READ,
                                                 members=[]), RefusedError, "team of owners"),
    ("a team's name", {}, lambda f: f.ensure_access("team", "a b", right=TeamRight.READ,
                                                    members=[]), InvalidInputError, "letters"),
    ("a team of nothing", {}, lambda f: f.ensure_access("team", "a", right=TeamRight.READ,
                                                        members=[]), NotFoundError, "no organ"),
    ("a webhook of nothing", {}, lambda f: f.ensure_webhook("team", Webhook("http://x", ())),
     NotFoundError, "no organisation team"),
    ("a webhook's address", {f"GET {P}/hooks": (200, []), f"POST {P}/hooks": (422, {"error": "b"})},
     lambda f: f.ensure_webhook(REPO, Webhook("http://x", ())), InvalidInputError, "refused: b"),
    ("deleting", {f"GET {P}": (200, PROJECT), f"GET {API}/projects/7": (200, PROJECT),
                  f"DELETE {API}/projects/7": (403, {})},
     lambda f: f.delete_repo(REPO), AccessError, "delete team/order"),
    ("a reader", {f"GET {G}/deploy_tokens": (200, []), f"POST {G}/deploy_tokens": (401, {})},
     lambda f: f.add_reader("team"), AccessError, "add a token that reads team"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "step", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in REFUSED_STEPS]
)
def test_a_step_that_is_refused_says_why(
    replies: Replies, step: Any, error: type[Exception], text: str
) -> None:
    with gitlab(replies) as (forge, _), pytest.raises(error, match=text):
        step(forge)


def test_a_gitlab_that_cannot_sign_gets_the_secret_itself_and_one_webhook_stays() -> None:
    def hook(number: int) -> dict[str, Any]:
        return {"id": number, "url": "http://x"}

    path = f"{P}/hooks"
    replies: Replies = {
        f"GET {path}": (200, [hook(8), hook(3), {"id": 1, "url": "http://other"}]),
        f"PUT {path}/3": (200, hook(3)),
        f"DELETE {path}/8": (404, {}),
    }
    with gitlab(replies) as (forge, script):
        forge.ensure_webhook(REPO, Webhook("http://x", ("push",), "s-1"))
        assert [line for line in script.asked if "GET" not in line] == [
            f"PUT {path}/3", f"PUT {path}/3", f"DELETE {path}/8",
        ]  # fmt: skip
        assert script.sent[f"PUT {path}/3"] == {"token": "s-1", "url": "http://x"}
    signs = {**replies, f"PUT {path}/3": (200, {**hook(3), "signing_token_present": True})}
    with gitlab(signs) as (forge, script):
        forge.ensure_webhook(REPO, Webhook("http://x", ("push",), "s-1"))
        assert script.asked.count(f"PUT {path}/3") == 1
        sent = script.sent[f"PUT {path}/3"]
    assert "token" not in sent
    assert (sent["push_events"], sent["merge_requests_events"], sent["issues_events"]) == (
        True, False, False,
    )  # fmt: skip


def test_a_webhook_that_gitlab_switched_off_or_that_hears_less_does_not_count() -> None:
    on = {"id": 1, "url": "http://x", "push_events": True, "merge_requests_events": True}
    wanted = Webhook("http://x", ("push", "pull_request"))
    cases: list[tuple[dict[str, Any], bool]] = [
        (on, True),
        ({**on, "alert_status": "disabled"}, False),
        ({**on, "merge_requests_events": False}, False),
        ({**on, "url": "http://y"}, False),
    ]
    for hook, counts in cases:
        with gitlab({f"GET {P}/hooks": (200, [hook])}) as (forge, _):
            assert forge.has_webhook(REPO, wanted) is counts
        by_group: Replies = {f"GET {P}/hooks": (200, []), f"GET {G}/hooks": (200, [hook])}
        with gitlab(by_group) as (forge, _):
            assert forge.has_webhook(REPO, wanted) is counts


COMMITS = f"{P}/repository/commits"
BRANCH = f"GET {P}/repository/branches/main"
A = PurePosixPath("a.txt")
NEW = FileChange(A, b"1", None)
AT: Reply = (200, {"commit": {"id": HEAD}})
WRITES: list[tuple[str, Replies, type[Exception], str]] = [
    ("no credentials", {f"POST {COMMITS}": (401, {})}, AccessError, "bad credentials"),
    ("no commit in the answer", {f"POST {COMMITS}": (201, {})}, ServerError, "names no commit"),
    ("a failure", {f"POST {COMMITS}": (500, {})}, ServerError, "500"),
    ("an archive", {f"POST {COMMITS}": (403, {}), f"GET {P}": (200, {**PROJECT, "archived": True})},
     RefusedError, "archived"),
    ("a rule", {f"POST {COMMITS}": (403, {}), f"GET {P}": (200, PROJECT),
                BRANCH: (200, {"commit": {"id": HEAD}, "protected": True, "can_push": False})},
     AccessError, "by the rule 'main'"),
    ("a scope", {f"POST {COMMITS}": (403, {"error": "insufficient_scope", "scope": "api"})},
     AccessError, "missing scope"),
    ("no branch", {f"POST {COMMITS}": (404, {}), f"GET {P}": (200, PROJECT), BRANCH: (404, {})},
     NotFoundError, "has no branch main"),
    ("a bad request", {f"POST {COMMITS}": (400, {"message": "bad"})}, RemoteError, "400 bad"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in WRITES]
)
def test_a_write_that_is_not_carried_out_says_why(
    replies: Replies, error: type[Exception], text: str
) -> None:
    usual: Replies = {BRANCH: AT, f"GET {COMMITS}": (200, [])}
    with (
        gitlab({**usual, **replies}) as (forge, _),
        pytest.raises(error, match=text) as caught,
    ):
        forge.write(REPO, [NEW], op())

    assert type(caught.value) is error


def test_a_write_is_found_that_was_refused_and_carried_out_all_the_same() -> None:
    operation = op()
    blob = "56a6051ca2b02b04ef92d5150c9ef600403cb1de"  # git's name of "1"
    made = {"id": BASE, "message": operation.message, "parent_ids": [HEAD]}
    shown: Reply = (200, {"commit_id": BASE, "blob_id": blob, "last_commit_id": BASE})
    for status in (400, 403, 500):
        replies: Replies = {
            BRANCH: (200, {"commit": {"id": BASE}}),
            f"POST {COMMITS}": (status, {}),
            f"GET {COMMITS}": (200, [made]),
            f"GET {P}/repository/files/a.txt": shown,
        }
        with gitlab(replies) as (forge, script):
            written = forge.write(REPO, [NEW], operation)
            assert written.commit == BASE
            assert script.asked.count(f"POST {COMMITS}") == 1
    other = {**replies, f"GET {COMMITS}": (200, [{**made, "message": op().message}])}
    with gitlab(other) as (forge, _), pytest.raises((ConflictError, LostAnswerError, ServerError)):
        forge.write(REPO, [FileChange(A, b"2", None)], operation)


def test_a_delete_names_the_commit_that_changed_the_file_last() -> None:
    shown: Reply = (200, {"commit_id": HEAD, "blob_id": "1" * 40, "last_commit_id": BASE})
    made: Reply = (201, {"id": BASE, "parent_ids": [HEAD]})
    replies: Replies = {
        BRANCH: AT, f"GET {P}/repository/files/a.txt": shown, f"POST {COMMITS}": made,
    }  # fmt: skip
    with gitlab(replies) as (forge, script):
        forge.write(REPO, [FileChange(A, None, BlobSha("1" * 40))], op())
        assert script.sent[f"POST {COMMITS}"]["actions"] == [
            {"action": "delete", "file_path": "a.txt", "last_commit_id": BASE}
        ]


def test_a_reader_is_a_token_that_only_reads_and_takes_the_place_of_the_one_before() -> None:
    path, secret = f"{G}/deploy_tokens", "token-of-a-reader-0123456789"
    before = [{"id": 3, "username": "argocd-team-x"}, {"id": 4, "username": "other"}]
    replies: Replies = {
        f"GET {path}?active=true": (200, before),
        f"POST {path}": (201, {"username": "argocd-team-y", "token": secret}),
        f"DELETE {path}/3": (404, {}),
    }
    with gitlab(replies) as (forge, script):
        reader = forge.add_reader("team")
        assert script.sent[f"POST {path}"]["scopes"] == ["read_repository"]
        assert script.asked[-1] == f"DELETE {path}/3"
        forge.remove_reader("team", "argocd-team-x")
        forge.remove_reader("team", "argocd-team-z")
        assert script.asked.count(f"DELETE {path}/3") == 2
    assert (reader.name, reader.token) == ("argocd-team-y", secret)
    assert secret not in redact(f"it was {secret}")
    with gitlab({}) as (forge, _):
        forge.remove_reader("team", "argocd-team-x")
    refused = {**replies, f"DELETE {path}/3": (403, {})}
    with gitlab(refused) as (forge, _), pytest.raises(AccessError):
        forge.remove_reader("team", "argocd-team-x")
