"""What the Gitea client makes of answers that the embedded forge does not give."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from answering import NO_ANSWER, Reply, Script, scripted

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    RemoteError,
)
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from ground.secrets import redact
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import LostAnswerError, ServerError
from orderkit.adapters.gitea import GiteaForge, pulls
from orderkit.ports.forge import (
    CommitStatus,
    FileChange,
    MergeStyle,
    Operation,
    TeamRight,
    Webhook,
)

TOKEN = "canary-0123456789abcdef"
REPO = RepoId("team", "order")
API = "/api/v1"
ORG, R = f"{API}/orgs/team", f"{API}/repos/team/order"
HEAD, BASE, BEFORE = CommitSha("a" * 40), CommitSha("b" * 40), CommitSha("c" * 40)
OPERATION = Operation("op", "user:default/eve", "Paint it")
ME: Reply = (200, {"id": 1, "login": "Warden"})
ENTRY: dict[str, Any] = {"id": 7, "permissions": {"push": True}, "owner": {"login": "team"}}
A = PurePosixPath("a.txt")
Replies = Mapping[str, Reply | list[Reply]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def gitea(
    replies: Replies, headers: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[tuple[GiteaForge, Script]]:
    with (
        scripted({f"GET {API}/user": ME, **replies}, headers) as script,
        GiteaForge(script.url, token=TOKEN) as forge,
    ):
        yield forge, script


NO_GITEA: list[tuple[str, Reply, str, str]] = [
    ("nothing", (404, {}), "404, there is no Gitea", "such as /gitea"),
    ("TLS", (400, b"Client sent an HTTP request to an HTTPS server."), "HTTPS", "use https://"),
    ("another server", (200, {"name": "x"}), "has no version", "address of a Gitea"),
]


@pytest.mark.parametrize(
    ("said", "text", "hint"), [pytest.param(*c[1:], id=c[0]) for c in NO_GITEA]
)
def test_an_address_that_is_no_gitea_is_told(said: Reply, text: str, hint: str) -> None:
    with (
        gitea({f"GET {API}/version": said}) as (forge, _),
        pytest.raises(NotFoundError, match=text) as caught,
    ):
        forge.version()

    assert hint in caught.value.hint


def test_another_bad_request_for_the_version_is_a_failure_of_its_own() -> None:
    with gitea({f"GET {API}/version": (400, {"message": "no"})}) as (forge, _):
        with pytest.raises(RemoteError, match="400 no") as caught:
            forge.version()
        assert not isinstance(caught.value, NotFoundError)


def test_who_we_are_is_never_unknown_to_a_forge() -> None:
    with (
        gitea({f"GET {API}/user": (404, {})}) as (forge, _),
        pytest.raises(NotFoundError, match="read who we are: 404") as caught,
    ):
        forge.user()

    assert "forge.url in platform.yaml" in caught.value.hint


def people(*logins: str) -> Reply:
    return 200, [{"id": number, "login": login} for number, login in enumerate(logins, 1)]


def test_every_way_into_an_organisation_is_listed_with_its_highest_right() -> None:
    teams = [
        {"id": 1, "name": "Owners", "permission": "owner"},
        {"id": 2, "name": "devs", "permission": "read", "units_map": {"repo.code": "write"}},
        {"id": 3, "name": "makers", "permission": "read", "can_create_org_repo": True},
        {"id": 4, "name": "readers", "permission": "read", "units_map": {"repo.code": "read"}},
    ]
    replies: Replies = {
        f"GET {ORG}/teams": (200, teams),
        f"GET {API}/teams/1/members": people("boss", "warden"),
        f"GET {API}/teams/2/members": people("dev", "boss"),
        f"GET {API}/teams/3/members": people("maker"),
        f"GET {API}/teams/4/members": people("reader"),
        f"GET {ORG}/actions/runners": (200, {"runners": [{"name": "box", "id": 3}]}),
        f"GET {ORG}/hooks": (200, [{"id": 1, "config": {"url": "http://hook"}}]),
        f"GET {ORG}/keys": (200, [{"id": 1, "title": "no key of an organisation"}]),
    }
    with gitea(replies) as (forge, _):
        found = {grant.holder: grant.right for grant in forge.foreign_access("team")}

    assert found == {
        "boss": "owner",
        "dev": "write",
        "maker": "write",
        "runner:box:3": "write",
        "webhook:http://hook": "listen",
    }


def test_an_organisation_that_we_may_not_look_into_is_somebody_elses() -> None:
    with (
        gitea({f"GET {ORG}/teams": (403, {})}) as (forge, _),
        pytest.raises(RefusedError, match="our account Warden is no member of it"),
    ):
        forge.foreign_access("team")
    with gitea({}) as (forge, _):
        assert forge.foreign_access("team") == ()


def test_every_way_into_a_repository_is_listed() -> None:
    rights = {"adm": "admin", "dev": "write", "reader": "read", "warden": "admin"}
    replies: Replies = {
        f"GET {R}": (200, {**ENTRY, "mirror": True, "original_url": "http://from"}),
        f"GET {R}/collaborators": people(*rights),
        **{
            f"GET {R}/collaborators/{login}/permission": (200, {"permission": level})
            for login, level in rights.items()
        },
        f"GET {R}/keys": (200, [
            {"id": 1, "title": "ci", "read_only": True, "fingerprint": "SHA256:x"},
            {"id": 2, "title": "cd", "read_only": False, "fingerprint": "SHA256:y"},
        ]),
        f"GET {R}/push_mirrors": (200, [{"remote_address": "http://to"}]),
    }  # fmt: skip
    with gitea(replies) as (forge, script):
        found = {grant.holder: grant.right for grant in forge.foreign_access(REPO)}
        seen = forge.repo(REPO)
        script.asked.clear()
        assert {g.holder for g in forge.foreign_access(REPO, seen)} == set(found)
        assert f"GET {R}" not in script.asked

    assert found == {
        "team": "owner",  # no organisation of that name: a person's repository
        "mirror:http://from": "write",
        "adm": "admin",
        "dev": "write",
        "deploy-key:ci:SHA256:x": "listen",
        "deploy-key:cd:SHA256:y": "write",
        "push-mirror:http://to": "listen",
    }
    there = {**replies, f"GET {ORG}": (200, {}), f"GET {R}": (200, ENTRY)}
    with gitea(there) as (forge, _):
        assert not {"team", "mirror:http://from"} & {g.holder for g in forge.foreign_access(REPO)}


def test_runners_of_more_than_one_page_are_all_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderkit.adapters.forges.calls.PAGE", 1)
    path = f"GET {ORG}/actions/runners"
    replies: Replies = {
        f"GET {ORG}/teams": (200, []),
        f"{path}?page=1": (200, {"runners": [{"name": "one", "id": 1}]}),
        f"{path}?page=2": (200, {"runners": [{"name": "two", "id": 2}]}),
        f"{path}?page=3": (200, {"runners": []}),
    }
    with gitea(replies) as (forge, _):
        assert [g.holder for g in forge.foreign_access("team")] == ["runner:one:1", "runner:two:2"]


def test_refs_that_may_be_taken_for_main_are_named() -> None:
    def refs(*names: str) -> Reply:
        return 200, [{"ref": f"refs/{name}"} for name in names]

    replies: Replies = {
        f"GET {R}/git/refs/tags": refs("tags/main", "tags/v1"),
        f"GET {R}/git/refs/heads/heads": refs("heads/heads/main"),
        f"GET {R}/git/refs/heads/refs": (404, {}),
        f"GET {R}/git/refs/heads/main": refs("heads/main", "heads/mainly", "heads/main\u3000x"),
    }
    with gitea(replies) as (forge, _):
        assert forge.names_like(REPO, "main") == (
            "refs/heads/heads/main",
            "refs/heads/main\u3000x",
            "refs/tags/main",
        )
    with (
        gitea({**replies, f"GET {R}/git/refs/tags": (500, {})}) as (forge, _),
        pytest.raises(ServerError),
    ):
        forge.names_like(REPO, "main")


def content(sha: str, **more: Any) -> Reply:
    return 200, {"type": "file", "sha": sha, "content": "aGk=", **more}


def tree(*entries: tuple[str, str, str]) -> Reply:
    listed = [
        {"path": path, "sha": sha, "mode": mode, "type": "blob"} for path, sha, mode in entries
    ]
    return 200, {"tree": listed, "total_count": len(listed)}


ONE, TWO = BlobSha("1" * 40), BlobSha("2" * 40)
TREE = f"GET {R}/git/trees/{HEAD}"
CONTENT = f"GET {R}/contents/a.txt"
SHOWN: list[tuple[str, Replies, bool]] = [
    ("as it is", {TREE: tree(("a.txt", ONE, "100644")), CONTENT: content(ONE)}, True),
    ("nothing", {TREE: tree(("b.txt", TWO, "100644"))}, True),
    ("a link", {TREE: tree(("a.txt", ONE, "120000"))}, True),
    ("other content", {TREE: tree(("a.txt", TWO, "100644")), CONTENT: content(ONE)}, False),
    ("nothing of a file", {TREE: tree(("a.txt", ONE, "100644"))}, False),
    ("a file of nothing", {TREE: tree(("b.txt", TWO, "100644")), CONTENT: content(ONE)}, False),
]


@pytest.mark.parametrize(("replies", "is_believed"), [pytest.param(*c[1:], id=c[0]) for c in SHOWN])
def test_a_file_is_believed_only_if_the_commit_has_it(
    replies: Replies, *, is_believed: bool
) -> None:
    """Gitea prefers a branch or tag of the commit's name; trees are read by the id itself."""
    with gitea(replies) as (forge, _):
        if is_believed:
            forge.read(REPO, A, HEAD)
            return
        with pytest.raises(RefusedError, match="something else as commit"):
            forge.read(REPO, A, HEAD)


def test_what_is_too_large_for_one_call_is_read_raw() -> None:
    large: Replies = {CONTENT: content(ONE, content=None), f"GET {R}/raw/a.txt": (200, b"large")}
    with gitea(large) as (forge, _):
        found = forge.read(REPO, A, "main")
        assert found is not None
        assert found.data == b"large"
    with (
        gitea({**large, f"GET {R}/raw/a.txt": (500, {})}) as (forge, _),
        pytest.raises(ServerError, match=r"read a\.txt"),
    ):
        forge.read(REPO, A, "main")
    with gitea({CONTENT: (200, [{"type": "file", "sha": ONE}])}) as (forge, _):
        assert forge.read(REPO, A, "main") is None
    with gitea({CONTENT: content(ONE, type="submodule")}) as (forge, _):
        assert forge.read(REPO, A, "main") is None


def test_ids_of_a_few_files_of_a_large_repository_are_asked_for_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orderkit.adapters.gitea.reading.TREE_PAGE", 1)
    paths = [A, PurePosixPath("b.txt")]
    first = tree(("a.txt", ONE, "100644"))[1]
    pages: dict[int, Reply] = {
        count: (200, {**first, "total_count": count})  # type: ignore[dict-item]  # an object
        for count in (2, 9)
    }
    more: Replies = {
        f"{TREE}?page=2": tree(("b.txt", TWO, "100644")),
        CONTENT: content(ONE),
        f"GET {R}/contents/b.txt": content(TWO),
    }
    for count, by_pages in ((2, True), (9, False)):
        with gitea({f"{TREE}?page=1": pages[count], **more}) as (forge, script):
            assert forge.blobs(REPO, HEAD, paths) == {A: ONE, paths[1]: TWO}
            assert (CONTENT not in script.asked) is by_pages


def pull(**more: Any) -> dict[str, Any]:
    return {
        "number": 1, "state": "open", "head": {"ref": "change", "sha": HEAD, "label": "change"},
        "base": {"ref": "main"}, "user": {"id": 2, "login": "eve"}, "merge_base": BEFORE, **more,
    }  # fmt: skip


def merging(said: Reply, *, commits: int = 1, **shown: Any) -> Replies:
    compared = {"commits": [{"sha": HEAD}] * commits, "total_commits": commits}
    return {
        f"GET {R}": (200, ENTRY),
        f"GET {R}/pulls/1": (200, pull(**shown)),
        f"POST {R}/pulls/1/merge": said,
        f"GET {R}/compare/main...{HEAD}": (200, compared),
        f"GET {R}/branches/main": (200, {"commit": {"id": BASE}}),
        f"GET {R}/git/trees/{BEFORE}": tree(("a.txt", ONE, "100644")),
        f"GET {R}/git/trees/{BASE}": tree(("a.txt", ONE, "100644")),
        f"GET {R}/git/trees/{HEAD}": tree(("a.txt", TWO, "100644")),
    }


def merge(forge: GiteaForge, deadline_s: float = 0.0) -> str:
    return forge.merge_pull(
        REPO, 1, head=HEAD, style=MergeStyle.MERGE, operation=OPERATION, deadline_s=deadline_s
    )


def says(text: str) -> dict[str, str]:
    return {"message": text}


LATER = says("Please try again later")
UNMERGED: list[tuple[str, Reply, type[Exception], str]] = [
    ("a failure", (502, {}), ServerError, "502"),
    ("a late head", (409, says("head out of date")), InProgressError, "not taken in its head"),
    ("a late base", (409, says("merge push out of date")), ConflictError, "push out of date"),
    ("a race", (403, says("cannot lock ref 'x'")), ConflictError, "cannot lock ref"),
    ("a hook", (409, says("PushRejected by a hook")), RefusedError, "PushRejected"),
    ("a conflict without a path", (409, says("conflict")), ConflictError, "refused as a conflict"),
    ("no right", (403, says("no")), AccessError, "no right"),
    ("nothing there", (404, {}), NotFoundError, "404"),
    ("no right to merge", (405, says("User not allowed to merge PR")), AccessError, "no right"),
    ("a check", (405, says("Not all required status checks successful")), RefusedError, "Not all"),
    ("still checking", (405, LATER), InProgressError, "still checking"),
    ("without a word", (405, {}), InProgressError, "still checking"),
    ("merged by somebody", (405, says("has been merged")), InProgressError, "still checking"),
]


@pytest.mark.parametrize(
    ("said", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in UNMERGED]
)
def test_why_it_is_not_merged_is_told_by_status_and_text(
    said: Reply, error: type[Exception], text: str
) -> None:
    with gitea(merging(said)) as (forge, _), pytest.raises(error, match=text) as caught:
        merge(forge)

    assert type(caught.value) is error


def test_a_conflict_names_the_paths_that_both_sides_changed() -> None:
    changed = tree(*[(f"{name}.txt", TWO, "100644") for name in "abcd"])
    other = tree(*[(f"{name}.txt", BlobSha("3" * 40), "100644") for name in "abcd"])
    replies = {
        **merging((409, says("conflict"))),
        f"GET {R}/git/trees/{BASE}": other,
        f"GET {R}/git/trees/{HEAD}": changed,
    }
    with gitea(replies) as (forge, _), pytest.raises(ConflictError) as caught:
        merge(forge)

    assert "both changed a.txt, b.txt, c.txt …" in str(caught.value)
    same = {**replies, f"GET {R}/git/trees/{BASE}": changed}
    with gitea(same) as (forge, _), pytest.raises(ConflictError, match="refused as a conflict"):
        merge(forge)


def test_what_has_nothing_to_merge_is_refused_after_some_looks_and_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody else's merge may be running, which moves the branch before it shows."""
    monkeypatch.setattr(pulls, "_EMPTY_S", 0.02)
    with gitea(merging((405, LATER), commits=0)) as (forge, script):
        with pytest.raises(RefusedError, match="nothing to merge"):
            merge(forge, 60)
        assert script.asked.count(f"POST {R}/pulls/1/merge") >= 5
    monkeypatch.setattr(pulls, "_EMPTY_S", 60.0)
    with (
        gitea(merging((405, LATER), commits=0)) as (forge, _),
        pytest.raises(InProgressError, match="still checking"),
    ):
        merge(forge, 0.1)


@pytest.mark.parametrize(("conflicting", "is_found"), [("a", True), ("c", True), ("d", False)])
def test_a_conflict_that_gitea_does_not_tell_is_found_by_trying_the_first_paths(
    monkeypatch: pytest.MonkeyPatch, conflicting: str, *, is_found: bool
) -> None:
    """Gitea answers the same while it checks and for a conflict."""
    monkeypatch.setattr(pulls, "_CHECK_S", 0.0)
    trees: dict[str, dict[str, bytes]] = {BEFORE: {}, BASE: {}, HEAD: {}}
    for name in "abcd":
        both = name == conflicting
        trees[BEFORE][name] = b"1\n2\n3\n4\n5\n"
        trees[BASE][name] = b"one\n2\n3\n4\n5\n"
        trees[HEAD][name] = b"eins\n2\n3\n4\n5\n" if both else b"1\n2\n3\n4\nfive\n"
    replies = dict(merging((405, LATER)))
    for commit, files in trees.items():
        ids = {name: blob_sha(data, HEAD) for name, data in files.items()}
        replies[f"GET {R}/git/trees/{commit}"] = tree(*[
            (f"{name}.txt", sha, "100644") for name, sha in ids.items()
        ])  # fmt: skip
        for name, data in files.items():
            text = base64.b64encode(data).decode()
            shown = content(ids[name], content=text)
            replies[f"GET {R}/contents/{name}.txt?ref={commit}"] = shown
    replies[f"POST {R}/pulls/1/merge"] = [(405, LATER), (409, says("PushRejected"))]
    error = ConflictError if is_found else RefusedError
    text = r"both changed a\.txt, b\.txt, c\.txt" if is_found else "PushRejected"
    with gitea(replies) as (forge, _), pytest.raises(error, match=text):
        merge(forge, 60)


def test_the_head_of_a_merged_one_is_read_from_its_own_ref() -> None:
    merged: dict[str, Any] = {"state": "closed", "merged": True, "merge_commit_sha": BASE}
    moved: dict[str, Any] = {**merged, "head": {"ref": "change", "sha": BEFORE, "label": "change"}}
    path = f"GET {R}/git/refs/pull/1/head"
    others = [{"ref": "refs/pull/1/heads", "object": {"sha": BASE}}]
    own = [*others, {"ref": "refs/pull/1/head", "object": {"sha": HEAD}}]
    with gitea({**merging((405, {}), **moved), path: (200, own)}) as (forge, _):
        assert merge(forge) == BASE
    not_told: list[Reply] = [(200, others), (404, {})]
    for said in not_told:
        with (
            gitea({**merging((405, {}), **moved), path: said}) as (forge, _),
            pytest.raises(ConflictError, match="its head is cccc"),
        ):
            merge(forge)


def test_a_merge_whose_answer_is_lost_is_looked_for_and_asked_for_again() -> None:
    merged = pull(state="closed", merged=True, merge_commit_sha=BASE)
    path = f"POST {R}/pulls/1/merge"
    shown: list[Reply] = [(200, pull()), (200, merged)]
    with gitea({**merging((NO_ANSWER, {})), f"GET {R}/pulls/1": shown}) as (forge, script):
        assert merge(forge, 60) == BASE
        assert script.asked.count(path) == 1
    again: Replies = {
        **merging((NO_ANSWER, {})),
        path: [(NO_ANSWER, {}), (200, {})],
        f"GET {R}/pulls/1": [(200, pull()), (200, pull()), (200, merged)],
    }
    with gitea(again) as (forge, script):
        assert merge(forge, 60) == BASE
        assert script.asked.count(path) == 2
    with gitea(merging((NO_ANSWER, {}))) as (forge, _), pytest.raises(LostAnswerError):
        merge(forge)
    failures: list[Reply] = [(NO_ANSWER, {}), (500, {})]
    for reads in failures:
        unread = {**merging((200, {})), f"GET {R}/pulls/1": reads}
        with gitea(unread) as (forge, script):
            with pytest.raises((LostAnswerError, ServerError)):
                merge(forge, 60)
            assert path not in script.asked


def test_a_refusal_after_a_lost_answer_leaves_open_whether_it_was_merged() -> None:
    said: list[Reply] = [(NO_ANSWER, {}), (405, says("User not allowed to merge PR"))]
    replies = {**merging((200, {})), f"POST {R}/pulls/1/merge": said}
    with gitea(replies) as (forge, _), pytest.raises(LostAnswerError, match="may still be carried"):
        merge(forge, 60)


def test_an_address_of_the_api_and_a_file_without_certificates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="must not contain /api/v1") as caught:
        GiteaForge("https://forge.example.org/api/v1/", token=TOKEN)
    assert caught.value.hint == "use https://forge.example.org"
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "none.pem"):
        with pytest.raises(InvalidInputError, match="cannot be read as certificates"):
            GiteaForge("https://forge.example.org", token=TOKEN, ca_bundle=tmp_path / name)


def test_a_closed_client_keeps_no_connection_and_can_be_used_again() -> None:
    with gitea({}) as (forge, _):
        assert forge.user() == "Warden"
        pools = forge.http._connections.pools  # noqa: SLF001  what stays open
        assert len(pools) == 1
        forge.close()
        assert len(pools) == 0
        assert forge.user() == "Warden"


def test_the_branch_of_a_head_that_is_gone_is_its_label() -> None:
    def branch(ref: str, label: str) -> str:
        with gitea(merging((405, {}), head={"ref": ref, "sha": HEAD, "label": label})) as (f, _):
            found = f.pull(REPO, 1)
        assert found is not None
        return found.head

    assert branch("refs/pull/1/head", "change") == "change"
    assert branch("refs/pull/1/head", "") == "refs/pull/1/head"
    assert branch("change", "eve:change") == "change"


def test_of_each_context_the_newest_status_counts() -> None:
    found = [
        {"id": 2, "context": "plan", "status": "failure", "description": "d", "target_url": "u"},
        {"id": 1, "context": "plan", "status": "success"},
        {"id": 3, "context": "cost", "state": "warning"},
        {"id": 4, "context": "b", "status": "skipped"},
        {"id": 5, "context": "c", "status": "strange"},
    ]
    with gitea({f"GET {R}/commits/{HEAD}/status": (200, {"statuses": found})}) as (forge, _):
        assert forge.statuses(REPO, HEAD) == (
            CommitStatus("b", "success"),
            CommitStatus("c", "error"),
            CommitStatus("cost", "warning"),
            CommitStatus("plan", "failure", "d", "u"),
        )


def test_comments_of_an_issue_that_is_not_there_are_told_from_a_failure() -> None:
    """Gitea answers 500 for a missing issue."""
    path = f"GET {R}/issues/1/comments"
    with gitea({path: (500, {})}) as (forge, _), pytest.raises(NotFoundError, match="or issue 1"):
        forge.comment(REPO, 1, "x", marker="m")
    there: Replies = {path: (500, {}), f"GET {R}/issues/1": (200, {"id": 1})}
    with gitea(there) as (forge, _), pytest.raises(ServerError):
        forge.comment(REPO, 1, "x", marker="m")


def test_commits_that_another_ref_of_the_name_shows_are_refused() -> None:
    path = f"GET {R}/compare/main...{HEAD}"
    with (
        gitea({path: (200, {"commits": [{"sha": BASE}], "total_commits": 1})}) as (forge, _),
        pytest.raises(RefusedError, match="something else as commit"),
    ):
        forge.compare(REPO, "main", HEAD)
    for none in ({"commits": [], "total_commits": 0}, {"commits": None}):
        with gitea({path: (200, none)}) as (forge, _):
            assert forge.compare(REPO, "main", HEAD) == ()
    with gitea({}) as (forge, _), pytest.raises(NotFoundError, match="one of them"):
        forge.compare(REPO, "main", HEAD)
    with gitea({path: (500, {})}) as (forge, _), pytest.raises(ServerError, match="compare main"):
        forge.compare(REPO, "main", HEAD)


BRANCH = f"GET {R}/branches/main"


def test_a_rule_keeps_us_from_pushing_only_if_it_does() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"protected": False, "user_can_push": False}, ""),
        ({"protected": True, "user_can_push": True}, ""),
        ({"protected": True, "user_can_push": False}, "main"),
        ({"protected": True, "effective_branch_protection_name": "m*"}, "m*"),
    ]
    for entry, rule in cases:
        with gitea({BRANCH: (200, entry)}) as (forge, _):
            assert forge.blocking_rule(REPO, "main") == rule


def test_a_commit_that_gitea_cannot_show_is_told_with_what_to_do() -> None:
    """Gitea 1.27 answers a commit that is no UTF-8 with nothing at all."""
    with gitea({BRANCH: (200, b"")}) as (forge, _):
        with pytest.raises(RefusedError, match="is not UTF-8") as caught:
            forge.blocking_rule(REPO, "main")
        assert "push a main without that commit" in caught.value.hint
    with (
        gitea({f"GET {R}/commits": (200, b"")}) as (forge, _),
        pytest.raises(RefusedError, match="cannot show a commit of main"),
    ):
        forge.commits(REPO)
    refs: Reply = (200, [{"ref": "refs/heads/main", "object": {"sha": HEAD}}])
    with gitea({BRANCH: (200, b""), f"GET {R}/git/refs/heads/main": refs}) as (forge, _):
        assert forge.head(REPO) == HEAD


def test_an_empty_repository_has_no_history_and_another_conflict_is_told() -> None:
    path = f"GET {R}/commits"
    with gitea({path: (409, says("Git Repository is empty."))}) as (forge, _):
        assert forge.commits(REPO) == []
    with gitea({}) as (forge, _):
        assert forge.commits(REPO) == []
    with gitea({path: (409, says("no"))}) as (forge, _), pytest.raises(RemoteError, match="409"):
        forge.commits(REPO)


def test_history_is_that_of_the_branch_or_the_commit_and_of_no_tag() -> None:
    path = f"GET {R}/commits"
    replies: Replies = {
        f"{path}?sha=refs/heads/main": (200, [{"sha": BASE}]),
        f"{path}?sha={HEAD}": (200, [{"sha": HEAD}]),
        f"{path}?sha=refs/heads/main&path=a.txt": (200, [{"sha": BEFORE}]),
    }
    with gitea(replies) as (forge, _):
        assert [commit.id for commit in forge.commits(REPO)] == [BASE]
        assert [commit.id for commit in forge.commits(REPO, ref=HEAD)] == [HEAD]
        assert [commit.id for commit in forge.commits(REPO, path=A)] == [BEFORE]


def test_a_tree_that_names_no_total_is_one_page_and_an_unknown_one_is_told() -> None:
    whole: Reply = (200, {"tree": [{"path": "a.txt", "sha": ONE, "mode": "100644"}]})
    with gitea({TREE: whole}) as (forge, script):
        assert forge.tree(REPO, HEAD) == {A: ONE}
        assert script.asked == [TREE]
        assert forge.special_files(REPO, HEAD) == {}
        assert script.asked == [TREE]
    with gitea({TREE: (200, {"tree": None})}) as (forge, _):
        assert forge.tree(REPO, HEAD) == {}
    for status in (400, 404):
        with gitea({TREE: (status, {})}) as (forge, _), pytest.raises(NotFoundError, match="no co"):
            forge.tree(REPO, HEAD)


def test_history_is_read_page_by_page_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderkit.adapters.forges.calls.PAGE", 2)
    ids = [f"{n}" * 40 for n in range(1, 6)]
    path = f"GET {R}/commits"
    replies: Replies = {
        f"{path}?page={page}": (200, [{"sha": each} for each in ids[at : at + 2]])
        for page, at in ((1, 0), (2, 2), (3, 4))
    }
    for limit in (1, 2, 3, 5, 9):
        with gitea(replies) as (forge, script):
            assert [commit.id for commit in forge.commits(REPO, limit=limit)] == ids[:limit]
            assert len(script.asked) == {1: 1, 2: 1, 3: 2, 5: 3, 9: 3}[limit]


NEW = FileChange(A, b"1", None)
POST = f"POST {R}/contents"
SHOWN_AT = {"commit": {"id": HEAD}}
AT: Reply = (200, SHOWN_AT)
WRITES: list[tuple[str, Replies, type[Exception], str]] = [
    ("no credentials", {POST: (401, {})}, AccessError, "bad credentials"),
    ("no commit in the answer", {POST: (201, {})}, ServerError, "names no commit"),
    ("a gateway", {POST: (502, {})}, ServerError, "502"),
    ("an archive", {POST: (423, {})}, RefusedError, "archived"),
    ("a rule", {POST: (403, says("no")), BRANCH: (200, {**SHOWN_AT, "protected": True})},
     AccessError, "by the rule 'main'"),
    ("no right", {POST: (403, says("not allowed"))}, AccessError, "no right"),
    ("a scope", {POST: (403, says("required scope(s), required=[x]"))}, AccessError, "scope"),
    ("no branch", {POST: (404, {}), BRANCH: (404, {})}, NotFoundError, "has no branch main"),
    ("a bad request", {POST: (422, says("bad"))}, RemoteError, "422 bad"),
    ("its own failure", {POST: (500, {"message": "m", "url": "u"})}, ServerError, "500 m"),
    ("another writer every time", {POST: (409, says("moved"))}, ConflictError, "won all 12 rounds"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in WRITES]
)
def test_a_write_that_is_not_carried_out_says_why(
    replies: Replies, error: type[Exception], text: str
) -> None:
    usual: Replies = {
        f"GET {R}": (200, ENTRY), BRANCH: AT, f"GET {R}/commits": (200, []),
    }  # fmt: skip
    with gitea({**usual, **replies}) as (forge, _), pytest.raises(error, match=text) as caught:
        forge.write(REPO, [NEW], OPERATION)

    assert type(caught.value) is error


def test_a_write_is_logged_with_who_asked_for_what(caplog: pytest.LogCaptureFixture) -> None:
    made: Reply = (201, {"commit": {"sha": BASE, "parents": [{"sha": HEAD}]}})
    with gitea({POST: made}) as (forge, _), caplog.at_level("INFO", "orderkit"):
        written = forge.write(REPO, [NEW], OPERATION)

    assert (written.commit, written.parent, written.changed) == (BASE, HEAD, True)
    (record,) = [each for each in caplog.records if each.message == "wrote Paint it"]
    noted = ("operation", "requester", "repository", "commit")
    assert [getattr(record, name) for name in noted] == ["op", OPERATION.requester, str(REPO), BASE]


@pytest.mark.parametrize("parents", [[], None, ["a text"], "no list"])
def test_a_commit_whose_parents_are_not_told_is_written_all_the_same(parents: object) -> None:
    made: Reply = (201, {"commit": {"sha": BASE, "parents": parents}})
    with gitea({POST: made}) as (forge, _):
        written = forge.write(REPO, [NEW], OPERATION)

    assert (written.commit, written.parent) == (BASE, None)


def test_what_is_written_already_makes_no_request_to_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sha = blob_sha(b"1", HEAD)
    replies: Replies = {BRANCH: AT, CONTENT: content(sha)}
    with gitea(replies) as (forge, script), caplog.at_level("INFO", "orderkit"):
        written = forge.write(REPO, [FileChange(A, b"1", sha)], OPERATION)
        assert POST not in script.asked
    assert (written.commit, written.changed) == (HEAD, False)
    assert not [each for each in caplog.records if each.message.startswith("wrote")]


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["a", "a"], "twice"),
        (["/a"], "not a path inside"),
        (["a/../b"], "not a path inside"),
        (["."], "not a path inside"),
    ],
)
def test_paths_that_no_repository_can_have_are_a_mistake_of_the_caller(
    paths: list[str], text: str
) -> None:
    changes = [FileChange(PurePosixPath(path), b"1", None) for path in paths]
    with gitea({}) as (forge, script):
        with pytest.raises(ValueError, match=text):
            forge.write(REPO, changes, OPERATION)
        assert script.asked == []


REFUSED_STEPS: list[tuple[str, Replies, Any, type[Exception], str]] = [
    ("an organisation's name", {f"POST {API}/orgs": (422, says("bad"))},
     lambda f: f.ensure_org("team"), InvalidInputError, "refused by the forge: bad"),
    ("a repository's name", {f"POST {ORG}/repos": (422, says("bad"))},
     lambda f: f.ensure_repo(REPO, description=""), InvalidInputError, "is refused: bad"),
    ("no organisation", {}, lambda f: f.ensure_repo(REPO, description=""), NotFoundError,
     "there is no organisation team"),
    ("making one", {f"POST {ORG}/repos": (403, {})},
     lambda f: f.ensure_repo(REPO, description=""), AccessError, "no right"),
    ("no such branch", {f"GET {R}": (200, ENTRY), f"PATCH {R}": (422, {})},
     lambda f: f.set_default_branch(REPO, "x"), NotFoundError, "no such branch"),
    ("a branch passed over", {f"GET {R}": (200, ENTRY),
                              f"PATCH {R}": (200, {"default_branch": "m"})},
     lambda f: f.set_default_branch(REPO, "x"), NotFoundError, "no such branch"),
    ("archiving nothing", {}, lambda f: f.archive(REPO), NotFoundError, "archive team/order"),
    ("a taken name", {f"GET {R}": (200, ENTRY), f"PATCH {R}": (422, says("taken"))},
     lambda f: f.rename_repo(REPO, "x"), ConflictError, "taken"),
    ("a branch's name", {f"POST {R}/branches": (422, says("bad"))},
     lambda f: f.ensure_branch(REPO, "x", HEAD), InvalidInputError, "is refused: bad"),
    ("a branch of no commit", {f"POST {R}/branches": (500, {})},
     lambda f: f.ensure_branch(REPO, "x", HEAD), NotFoundError, "has no commit"),
    ("the default branch", {BRANCH: AT, f"DELETE {R}/branches/main": (403, says("default branch"))},
     lambda f: f.delete_branch(REPO, "main"), RefusedError, "default branch"),
    ("no right to delete", {BRANCH: AT, f"DELETE {R}/branches/main": (403, says("no"))},
     lambda f: f.delete_branch(REPO, "main"), AccessError, "no right"),
    ("the owners", {}, lambda f: f.ensure_access("team", "OWNERS", right=TeamRight.READ,
                                                 members=[]), RefusedError, "team of owners"),
    ("a team's name", {f"GET {ORG}/teams": (200, []), f"POST {ORG}/teams": (422, says("bad"))},
     lambda f: f.ensure_access("team", "a", right=TeamRight.READ, members=[]),
     InvalidInputError, "is refused: bad"),
    ("a team of nothing", {}, lambda f: f.ensure_access("team", "a", right=TeamRight.READ,
                                                        members=[]), NotFoundError, "no organ"),
    ("a webhook's address", {f"GET {R}/hooks": (200, []), f"POST {R}/hooks": (422, says("bad"))},
     lambda f: f.ensure_webhook(REPO, Webhook("http://x")), InvalidInputError, "is refused: bad"),
    ("an account that reads", {f"POST {API}/admin/users": (403, says("no"))},
     lambda f: f.add_reader("team"), AccessError, "add an account that reads team: no"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "step", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in REFUSED_STEPS]
)
def test_a_step_that_is_refused_says_why(
    replies: Replies, step: Any, error: type[Exception], text: str
) -> None:
    with gitea(replies) as (forge, _), pytest.raises(error, match=text):
        step(forge)


def test_a_webhook_without_a_secret_is_changed_and_doubles_are_removed() -> None:
    def hook(number: int, url: str = "http://x") -> dict[str, Any]:
        return {"id": number, "config": {"url": url}, "active": True, "events": ["push"]}

    path = f"{R}/hooks"
    listed = [hook(8), hook(3), hook(1, "http://other")]
    replies: Replies = {
        f"GET {path}": (200, listed),
        f"PATCH {path}/3": (200, hook(3)),
        f"POST {path}": (201, hook(9)),
        **{f"DELETE {path}/{number}": (204, {}) for number in (3, 8)},
    }
    with gitea(replies) as (forge, script):
        forge.ensure_webhook(REPO, Webhook("http://x"))
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"PATCH {path}/3", f"DELETE {path}/8",
        ]  # fmt: skip
        assert "secret" not in script.sent[f"PATCH {path}/3"]["config"]
    with gitea(replies) as (forge, script):  # Gitea keeps an old secret, whatever it is sent
        forge.ensure_webhook(REPO, Webhook("http://x", secret="s-1"))
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"POST {path}", f"DELETE {path}/3", f"DELETE {path}/8",
        ]  # fmt: skip
        assert script.sent[f"POST {path}"]["config"]["secret"] == "s-1"


def test_a_webhook_counts_that_is_active_and_hears_all_that_is_wanted() -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"active": True, "events": ["push", "pull_request", "issues"]}, True),
        ({"active": True, "events": ["push"]}, False),
        ({"active": False, "events": ["push", "pull_request"]}, False),
        ({"active": True}, False),
    ]
    wanted = Webhook("http://x", ("push", "pull_request_only"))
    for state, counts in cases:
        hook = {"id": 1, "config": {"url": "http://x"}, **state}
        with gitea({f"GET {R}/hooks": (200, [hook, {"id": 2}])}) as (forge, _):
            assert forge.has_webhook(REPO, wanted) is counts


def test_the_members_of_teams_are_listed_as_far_as_they_are_shown() -> None:
    teams = [{"id": 1, "name": "Devs"}, {"id": 2, "name": "ops"}, {"id": 3, "name": "hidden"}]
    replies: Replies = {
        f"GET {ORG}/teams": (200, teams),
        f"GET {API}/teams/1/members": people("eve", "adam"),
        f"GET {API}/teams/2/members": people("eve"),
        f"GET {API}/teams/3/members": (403, {}),
    }
    with gitea(replies) as (forge, _):
        assert [user.login for user in forge.members("team", "devs")] == ["eve", "adam"]
        assert {user.id for user in forge.members("team")} == {1, 2}
        with pytest.raises(AccessError):
            forge.members("team", "hidden")
    with gitea({}) as (forge, _):
        assert forge.members("team") == ()


def test_the_scopes_that_a_token_lacks_are_named_and_nothing_else_of_a_refusal() -> None:
    scope = says("token does not have at least one of required scope(s), required=[write:issue]")
    replies: Replies = {
        f"GET {R}": (200, {"permissions": {}}),
        f"POST {R}/contents": (422, scope),
        f"POST {R}/issues": (403, scope),
        f"POST {API}/orgs": (403, says("no")),
    }
    with gitea(replies) as (forge, _):
        assert forge.missing_rights(REPO) == ("scope write:issue", "write access to team/order")
    with gitea({}) as (forge, _), pytest.raises(NotFoundError, match="hidden from us"):
        forge.missing_rights(REPO)


def test_an_account_that_is_no_owner_names_itself_in_the_rule_of_a_branch() -> None:
    """Else we would lock ourselves out."""
    path = f"{R}/branch_protections"
    shown: list[Reply] = [(200, []), (200, [])]
    replies: Replies = {
        f"GET {path}": shown,
        f"POST {path}": (201, {}),
        BRANCH: (200, {"user_can_push": False}),
        f"PATCH {path}/main": (200, {}),
    }
    with gitea(replies) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=[])
        sent = script.sent[f"PATCH {path}/main"]
        assert sent["push_whitelist_usernames"] == sent["merge_whitelist_usernames"] == ["Warden"]
    with gitea({**replies, BRANCH: (200, {"user_can_push": True})}) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=[])
        assert f"PATCH {path}/main" not in script.asked


def test_an_account_that_reads_is_restricted_and_its_password_is_in_no_message() -> None:
    team = {"id": 5, "name": "argocd", "permission": "read", "units_map": {}}
    replies: Replies = {
        f"POST {API}/admin/users": (201, {}),
        f"GET {ORG}/teams": (200, [team]),
        f"GET {API}/teams/5/members": (200, []),
        f"PATCH {API}/teams/5": (200, {}),
    }
    with gitea(replies) as (forge, script):
        with pytest.raises(NotFoundError, match="there is no user argocd-team-"):
            forge.add_reader("team")
        sent = script.sent[f"POST {API}/admin/users"]
    assert (sent["restricted"], sent["visibility"], sent["must_change_password"]) == (
        True, "private", False,
    )  # fmt: skip
    assert sent["password"] not in redact(f"it was {sent['password']}")
