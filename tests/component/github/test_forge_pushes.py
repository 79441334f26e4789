"""What the answers to a push mean: written, somebody was faster, not allowed, or not known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest
from answering import Reply, scripted

from ground.errors import AccessError, NotFoundError, RemoteError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import GarbledError, LostAnswerError, ServerError
from orderkit.adapters.forges.pushing import Push, PushDeclinedError, StaleHeadError, push_commit
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.github.transport import Pacer
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.urgency import pushed

REPO = RepoId("team", "order")
R = "/api/v3/repos/team/order"
PUSH = "POST /team/order.git/git-receive-pack"
HEAD, OTHER = CommitSha("a" * 40), CommitSha("b" * 40)
A = PurePosixPath("a.txt")
OK = b"000eunpack ok\n0019ok refs/heads/main\n0000"
DECLINED = b"000eunpack ok\n002fng refs/heads/main protected branch\n0000"
USUAL: Mapping[str, Reply | list[Reply]] = {
    "GET /api/v3/user": (200, {"id": 1, "login": "warden"}),
    f"GET {R}/git/trees/{HEAD}": (200, {"tree": []}),
    f"GET {R}/git/ref/heads/main": (200, {"object": {"sha": HEAD}}),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


MOVED: Mapping[str, Reply] = {f"GET {R}/git/ref/heads/main": (200, {"object": {"sha": OTHER}})}
REFUSED: list[tuple[str, Reply, Mapping[str, Reply], type[Exception], str]] = [
    ("no credentials", (401, {"message": "who?"}), {}, AccessError, "push to team/order: who?"),
    ("no right", (403, {"message": "no"}), {}, AccessError, "push to team/order: no"),
    ("no repository", (404, {"message": "none"}), {}, NotFoundError, "none"),
    ("a failure", (500, {}), {}, ServerError, "500"),
    ("another refusal", (400, {}), {}, RemoteError, "400"),
    ("no report", (200, b" \n"), {}, GarbledError, "reports nothing"),
    ("a rule", (200, DECLINED), {}, PushDeclinedError, "protected branch"),
    ("somebody was faster", (200, DECLINED), MOVED, StaleHeadError, "protected branch"),
    ("another branch", (200, OK.replace(b"main", b"mainly")), {}, PushDeclinedError, "mainly"),
]


@pytest.mark.parametrize(
    ("said", "more", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in REFUSED]
)
def test_a_push_that_is_not_taken_says_why(
    said: Reply, more: Mapping[str, Reply], error: type[Exception], text: str
) -> None:
    with (
        scripted({**USUAL, **more, PUSH: said}) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pytest.raises(error, match=text) as caught,
    ):
        push_commit(forge, Push(REPO, "main", HEAD, [FileChange(A, b"1", None)], "m"))

    assert type(caught.value) is error


def test_a_first_push_that_is_declined_was_overtaken() -> None:
    with (
        scripted({**USUAL, PUSH: (200, DECLINED)}) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pytest.raises(StaleHeadError),
    ):
        push_commit(forge, Push(REPO, "main", None, [FileChange(A, b"1", None)], "m"))


def test_a_path_cannot_be_a_file_and_a_folder() -> None:
    changes = [FileChange(A, b"1", None), FileChange(A / "b", b"1", None)]
    with (
        scripted(USUAL) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pytest.raises(PushDeclinedError, match=r"a\.txt cannot be a file and a folder"),
    ):
        push_commit(forge, Push(REPO, "main", HEAD, changes, "m"))


GRAPHQL = "POST /api/graphql"
MADE: Reply = (200, {"data": {"createCommitOnBranch": {"commit": {"oid": OTHER}}}})


def test_a_branch_that_takes_no_push_gets_its_commits_by_the_api_from_then_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replies = {**USUAL, PUSH: (200, DECLINED), GRAPHQL: MADE, f"GET {R}/commits": (200, [])}
    with (
        scripted(replies) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pushed(),
    ):
        for number in (1, 2):
            change = FileChange(PurePosixPath(f"{number}.txt"), b"1", None)
            forge.write(REPO, [change], Operation(f"op-{number}", "user:default/eve", "Paint it"))

        assert script.asked.count(PUSH) == 1
        assert script.asked.count(GRAPHQL) == 2
        assert forge.declined == {(REPO, "main")}
    assert [m for m in caplog.messages if "goes through the API" in m]


def test_a_push_whose_answer_is_lost_is_looked_for_and_sent_again() -> None:
    pushes: list[Reply] = [(500, {}), (200, OK)]
    replies = {**USUAL, PUSH: pushes, f"GET {R}/commits": (200, [])}
    with (
        scripted(replies) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pushed(),
    ):
        forge.write(REPO, [FileChange(A, b"1", None)], Operation("op", "x", "Paint it"))

        assert script.asked.count(PUSH) == 2
        assert GRAPHQL not in script.asked
        assert forge.declined == set()


def test_a_push_that_never_gets_an_answer_leaves_open_what_happened() -> None:
    replies = {**USUAL, PUSH: (500, {}), f"GET {R}/commits": (200, [])}
    with (
        scripted(replies) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pushed(),
        pytest.raises((ServerError, LostAnswerError)),
    ):
        forge.write(REPO, [FileChange(A, b"1", None)], Operation("op", "x", "Paint it"))
    assert GRAPHQL not in script.asked


def test_a_push_that_somebody_overtook_is_made_again_on_the_new_head() -> None:
    heads: list[Reply] = [
        (200, {"object": {"sha": HEAD}}),
        (200, {"object": {"sha": OTHER}}),
    ]
    pushes: list[Reply] = [(200, DECLINED), (200, OK)]
    replies: Mapping[str, Reply | list[Reply]] = {
        **USUAL,
        f"GET {R}/git/ref/heads/main": heads,
        f"GET {R}/git/trees/{OTHER}": (200, {"tree": []}),
        PUSH: pushes,
        f"GET {R}/commits": (200, []),
    }
    with (
        scripted(replies) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
        pushed(),
    ):
        written = forge.write(REPO, [FileChange(A, b"1", None)], Operation("op", "x", "Paint it"))

        assert script.asked.count(PUSH) == 2
        assert script.sent[PUSH][4:44] == OTHER.encode()
    assert written.parent == OTHER
