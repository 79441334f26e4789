"""What GitHub's answers to a commit mean: written, somebody was faster, or not allowed and why."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

import pytest
from answering import Reply, Script, scripted

from ground.errors import (
    AccessError,
    ConflictError,
    MovedError,
    NotFoundError,
    RefusedError,
    RemoteError,
)
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import LostAnswerError, ServerError
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.github.transport import Pacer
from orderkit.ports.forge import FileChange, Operation, Written

REPO = RepoId("team", "order")
R = "/api/v3/repos/team/order"
GRAPHQL, REF, COMMITS = "POST /api/graphql", f"GET {R}/git/ref/heads/main", f"GET {R}/commits"
HEAD, MADE = CommitSha("a" * 40), CommitSha("b" * 40)
ONE, TWO = BlobSha("1" * 40), BlobSha("2" * 40)
A = PurePosixPath("a.txt")
OPERATION = Operation("op", "user:default/eve", "Paint it")
Replies = Mapping[str, Reply | list[Reply]]
DONE: Reply = (200, {"data": {"createCommitOnBranch": {"commit": {"oid": MADE}}}})


def at(head: str) -> Reply:
    return 200, {"object": {"sha": head}}


def tree(**files: tuple[str, str]) -> Reply:
    entries = [{"path": f"{k}.txt", "sha": sha, "mode": mode} for k, (sha, mode) in files.items()]
    return 200, {"tree": entries}


USUAL: Replies = {
    f"GET {R}": (200, {"size": 1, "permissions": {"push": True}}),
    f"GET {R}/branches/main": (200, {}),
    f"GET {R}/rules/branches/main": (200, []),
    f"GET {R}/git/trees/{HEAD}": tree(),
    REF: at(HEAD),
    COMMITS: (200, []),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def github(replies: Replies) -> Iterator[tuple[GitHubForge, Script]]:
    with (
        scripted({**USUAL, **replies}) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
    ):
        yield forge, script


def write(forge: GitHubForge, *changes: FileChange) -> Written:
    return forge.write(REPO, changes or [FileChange(A, b"1", None)], OPERATION)


def error_of(kind: str) -> Reply:
    return 200, {"errors": [{"type": kind, "message": "why"}]}


LOCKED: Replies = {
    f"GET {R}/rules/branches/main": (200, [{"type": "update", "ruleset_id": 4}]),
    f"GET {R}/rulesets/4": (200, {"name": "locked", "current_user_can_bypass": "never"}),
}
REFUSED: list[tuple[str, Replies, type[Exception], str]] = [
    ("no right", {GRAPHQL: error_of("FORBIDDEN")}, AccessError, "no right: write to team/order"),
    ("a rule", {GRAPHQL: error_of("FORBIDDEN"), **LOCKED}, AccessError, "by the rule 'locked'"),
    ("another refusal, by a rule", {GRAPHQL: error_of("OTHER"), **LOCKED}, AccessError, "'locked'"),
    ("nothing there, whatever rules say", {GRAPHQL: error_of("NOT_FOUND"), **LOCKED},
     NotFoundError, "why"),
    ("rules that we may not see", {GRAPHQL: error_of("OTHER"), f"GET {R}/branches/main": (404, {})},
     RemoteError, "write to team/order: why"),
    ("an archive", {GRAPHQL: error_of("FORBIDDEN"),
                    f"GET {R}": (200, {"size": 1, "archived": True})},
     RefusedError, "archived, hence read-only: team/order"),
    ("a failure", {GRAPHQL: (502, {})}, ServerError, "502"),
    ("an answer without a commit", {GRAPHQL: (200, {"data": {}})}, LostAnswerError, "has no oid"),
    ("a redirect", {GRAPHQL: (301, {})}, MovedError, "has moved"),
    ("another writer every time", {GRAPHQL: error_of("STALE_DATA")}, ConflictError,
     "all 12 rounds"),
    ("no branch", {REF: (404, {})}, NotFoundError, "has no branch main"),
    ("no repository", {REF: (404, {}), f"GET {R}": (404, {})}, NotFoundError, "hidden from us"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in REFUSED]
)
def test_a_write_that_is_not_carried_out_says_why(
    replies: Replies, error: type[Exception], text: str
) -> None:
    with github(replies) as (forge, _), pytest.raises(error, match=text) as caught:
        write(forge)

    assert type(caught.value) is error


def test_a_write_is_made_on_the_head_that_was_read() -> None:
    there: Replies = {f"GET {R}/git/trees/{HEAD}": tree(b=(ONE, "100644")), GRAPHQL: DONE}
    gone = FileChange(PurePosixPath("b.txt"), None, ONE)
    with github(there) as (forge, script):
        written = write(forge, FileChange(A, b"1", None), gone)
        sent: Any = script.sent[GRAPHQL]["variables"]["input"]
    assert (written.commit, written.parent, written.changed) == (MADE, HEAD, True)
    assert sent["expectedHeadOid"] == HEAD
    assert sent["fileChanges"] == {
        "additions": [{"path": "a.txt", "contents": base64.b64encode(b"1").decode()}],
        "deletions": [{"path": "b.txt"}],
    }
    assert sent["message"]["headline"] == "Paint it"
    assert "Orderkit-Operation: op" in sent["message"]["body"]


def test_somebody_elses_commit_in_between_is_read_and_kept() -> None:
    replies: Replies = {
        REF: [at(HEAD), at("c" * 40)],
        f"GET {R}/git/trees/{'c' * 40}": tree(b=(ONE, "100644")),
        GRAPHQL: [error_of("STALE_DATA"), DONE],
    }
    with github(replies) as (forge, script):
        assert write(forge).parent == "c" * 40
        assert script.asked.count(GRAPHQL) == 2
    taken = {**replies, f"GET {R}/git/trees/{'c' * 40}": tree(a=(ONE, "100644"))}
    with github(taken) as (forge, script):
        with pytest.raises(ConflictError, match=r"a\.txt changed: expected no file, found 1111"):
            write(forge)
        assert script.asked.count(GRAPHQL) == 1


def test_a_refused_write_that_was_carried_out_is_found() -> None:
    ours = {"sha": MADE, "commit": {"message": OPERATION.message}}
    blob = blob_sha(b"1", HEAD)
    for said in ((403, {}), (502, {}), error_of("OTHER")):
        replies: Replies = {
            GRAPHQL: said,
            REF: [at(HEAD), at(MADE)],
            COMMITS: (200, [ours]),
            f"GET {R}/git/trees/{MADE}": tree(a=(blob, "100644")),
        }
        with github(replies) as (forge, script):
            assert write(forge).commit == MADE
            assert script.asked.count(GRAPHQL) == 1


BLOB, TREES, POSTED, MOVE = (
    f"POST {R}/git/blobs", f"POST {R}/git/trees", f"POST {R}/git/commits",
    f"PATCH {R}/git/refs/heads/main",
)  # fmt: skip
OBJECTS: Replies = {
    f"GET {R}/git/trees/{HEAD}": tree(a=(ONE, "100755"), b=(TWO, "100644")),
    f"GET {R}/git/commits/{HEAD}": (200, {"tree": {"sha": "e" * 40}}),
    BLOB: (201, {"sha": "f" * 40}),
    TREES: (201, {"sha": "d" * 40}),
    POSTED: (201, {"sha": MADE}),
    MOVE: (200, {"object": {"sha": MADE}}),
}


def test_an_executable_is_written_by_gits_objects_without_force() -> None:
    changes = [
        FileChange(A, b"1", ONE),
        FileChange(PurePosixPath("b.txt"), None, TWO),
        FileChange(PurePosixPath("c.txt"), b"1", None),
        FileChange(PurePosixPath("d.txt"), b"1", None, executable=True),
    ]
    with github(OBJECTS) as (forge, script):
        assert write(forge, *changes).commit == MADE
        assert GRAPHQL not in script.asked
        items = script.sent[TREES]["tree"]
        assert script.sent[TREES]["base_tree"] == "e" * 40
        assert script.sent[POSTED]["parents"] == [HEAD]
        assert script.sent[MOVE] == {"sha": MADE, "force": False}
    assert [(item["path"], item["mode"], item["sha"]) for item in items] == [
        ("a.txt", "100755", "f" * 40),
        ("b.txt", "100644", None),
        ("c.txt", "100644", "f" * 40),
        ("d.txt", "100755", "f" * 40),
    ]


def test_the_end_of_an_executable_needs_no_objects_of_git() -> None:
    with github({**OBJECTS, GRAPHQL: DONE}) as (forge, script):
        write(forge, FileChange(A, None, ONE))
        assert GRAPHQL in script.asked
        assert MOVE not in script.asked


def test_a_branch_that_moved_before_the_objects_were_named_is_read_again() -> None:
    replies: Replies = {
        **OBJECTS,
        MOVE: [(422, {"message": "not a fast forward"}), (200, {"object": {}})],
    }
    with github(replies) as (forge, script):
        write(forge, FileChange(A, b"1", ONE))
        assert script.asked.count(MOVE) == 2
    with (
        github({**OBJECTS, POSTED: (422, {"message": "bad"})}) as (forge, _),
        pytest.raises(RemoteError, match="422 bad"),
    ):
        write(forge, FileChange(A, b"1", ONE))


def test_a_head_that_we_replaced_is_ours_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub may show the old head for a while after a write."""
    with github({GRAPHQL: DONE}) as (forge, _):
        write(forge)
        assert forge.head(REPO) == MADE
        assert forge.head(REPO, "other") is None
        monkeypatch.setattr("orderkit.adapters.github.reading._NEWER_S", -1.0)
        assert forge.head(REPO) == HEAD
        monkeypatch.setattr("orderkit.adapters.github.reading._NEWER_S", 20.0)
        assert forge.head(REPO) == HEAD


def test_heads_that_we_replaced_are_bounded() -> None:
    with github({}) as (forge, _):
        for number in range(501):
            forge.note_write(REPO, f"b{number}", HEAD, MADE)
        forge.note_write(REPO, "main", HEAD, MADE)

        assert forge.head(REPO) == MADE
        assert len(forge._replaced) == 500  # noqa: SLF001  what is kept
