"""A proxy that loses, cuts and falsifies the forge's answers: one commit, or an error."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

import pygit2
import pytest
from faultproxy import Decision, Falsehood, Fault, FaultProxy, Listed, is_contents, open_proxy
from tests.faults import history

from ground.errors import AccessError, ConflictError, RefusedError, RemoteError, UnreachableError
from ground.names import RepoId, blob_sha
from orderkit.adapters.forges import answers, calls
from orderkit.adapters.forges.answers import ROUNDS, LostAnswerError, ServerError, pauses
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import CommitStatus, FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

TOKEN = "e" * 40
REPO = RepoId("team", "order")
FILE = PurePosixPath("f")
RACE = Falsehood(403, b'{"message":"cannot lock ref \'refs/heads/main\': is at a but expected b"}')
PAGE = Falsehood(502, b"<html>no</html>", "text/html")
OTHER = Falsehood(422, b'{"message":"[SHA]: Required"}')
ARCHIVED = Falsehood(423, b'{"message":"team/order is archived"}')
DENIED = Falsehood(403, b'{"message":"user should have a permission to write to a repo"}')
LOGIN = Falsehood(200, b"<html>please log in</html>", "text/html")
DROP = Decision(Fault.DROP_AFTER)
DROP_BEFORE = Decision(Fault.DROP_BEFORE)
FAULTS = [
    DROP,
    Decision(Fault.CUT_AFTER),
    *(Decision(Fault.REFUSE_AFTER, each) for each in (PAGE, RACE, OTHER, ARCHIVED, DENIED, LOGIN)),
    DROP_BEFORE,
    *(Decision(Fault.REFUSE_BEFORE, each) for each in (PAGE, RACE, LOGIN)),
    *(Decision(Fault.LATE, late_by=number) for number in range(1, 7)),
]


@dataclass
class Stand:
    """A forge with one repository, and a client that reaches it through the proxy."""

    proxy: FaultProxy
    client: GiteaForge
    bare: Path

    def write(self, text: str, operation: str) -> None:
        seen = self.client.read(REPO, FILE, "main")
        change = FileChange(FILE, text.encode(), seen.sha if seen else None)
        self.client.write(REPO, [change], Operation(operation, "me", "Write"))

    def write_past(self, text: str, operation: str) -> None:
        """Write as somebody whom nothing disturbs."""
        with GiteaForge(self.proxy.upstream, token=TOKEN) as client:
            Stand(self.proxy, client, self.bare).write(text, operation)

    def posts(self) -> int:
        """Return how many commits were asked for."""
        return sum("POST" in line and "/contents" in line for line in self.proxy.log)

    def operations(self) -> list[str]:
        """Return the operation ids in the history, oldest first."""
        return [name for step in history.steps(self.bare) for name in step.operations]


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.01)
    forge = EmbeddedForge(tmp_path)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])

    upstream = HttpServer(forge.app, bind("forge", 0))
    upstream.start()
    with open_proxy(upstream.url) as proxy, GiteaForge(proxy.url, token=TOKEN) as client:
        client.ensure_org(REPO.owner)
        client.ensure_repo(REPO, description="")
        bare = forge.repository_path(REPO)
        assert bare is not None
        proxy.log.clear()
        yield Stand(proxy, client, bare)
    upstream.stop()
    forge.close()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("first", [True, False], ids=["root commit", "later commit"])
def test_a_write_ends_as_success_with_exactly_one_commit(
    stand: Stand,
    fault: Decision,
    first: bool,  # noqa: FBT001  a table
) -> None:
    if not first:
        stand.write("0", "op-0")
    stand.proxy.plan = Listed([fault], is_contents)

    stand.write("1", "op-1")

    stand.proxy.deliver_late()
    assert stand.operations() == (["op-1"] if first else ["op-0", "op-1"])


def test_every_answer_lost_is_still_one_commit(stand: Stand) -> None:
    stand.proxy.plan = Listed([DROP] * 100, is_contents)

    stand.write("1", "op-1")

    assert stand.operations() == ["op-1"]
    assert stand.posts() == 1


def test_a_forge_that_never_gets_the_request_is_an_error_with_nothing_written(
    stand: Stand,
) -> None:
    stand.proxy.plan = Listed([DROP_BEFORE] * 100, is_contents)

    with pytest.raises(UnreachableError) as caught:
        stand.write("1", "op-1")

    assert stand.operations() == []
    assert stand.posts() == ROUNDS
    assert "repeat" in caught.value.hint


def test_losing_every_round_is_a_conflict_with_exit_code_3(stand: Stand) -> None:
    stand.proxy.plan = Listed([Decision(Fault.REFUSE_BEFORE, RACE)] * 100, is_contents)

    with pytest.raises(ConflictError, match="won all") as caught:
        stand.write("1", "op-1")

    assert (caught.value.exit_code, stand.operations()) == (3, [])


@pytest.mark.parametrize("told", [OTHER, ARCHIVED, DENIED], ids=lambda told: str(told.status))
def test_a_refusal_is_believed_when_the_history_agrees(stand: Stand, told: Falsehood) -> None:
    stand.proxy.plan = Listed([Decision(Fault.REFUSE_BEFORE, told)], is_contents)

    with pytest.raises((RemoteError, RefusedError)) as caught:
        stand.write("1", "op-1")

    assert not isinstance(caught.value, (LostAnswerError, ServerError))
    assert (stand.posts(), stand.operations()) == (1, [])


def test_a_refusal_after_a_lost_answer_leaves_the_outcome_open(stand: Stand) -> None:
    late, refused = Decision(Fault.LATE, late_by=99), Decision(Fault.REFUSE_BEFORE, OTHER)
    stand.proxy.plan = Listed([late, refused], is_contents)

    with pytest.raises(LostAnswerError, match="may still be carried out") as caught:
        stand.write("1", "op-1")

    assert "repeat the command" in caught.value.hint
    assert stand.proxy.deliver_late() == 1
    assert stand.operations() == ["op-1"]
    stand.client.write(REPO, [FileChange(FILE, b"1", None)], Operation("op-1", "me", "Write"))
    assert stand.operations() == ["op-1"]


def test_a_changed_file_is_a_conflict_also_when_an_answer_was_lost(stand: Stand) -> None:
    stand.write("0", "op-0")
    stand.proxy.plan = Listed([Decision(Fault.LATE, late_by=99)], is_contents)
    stand.proxy.plan.hook = lambda: None  # type: ignore[method-assign]  # nobody else

    def rival(method: str, path: str) -> bool:
        """Change the file as soon as the request is held."""
        if is_contents(method, path) and len(stand.operations()) == 1:
            stand.write_past("2", "rival")
        return is_contents(method, path)

    stand.proxy.plan.applies = rival

    with pytest.raises(ConflictError, match="nothing was written"):
        stand.write("1", "op-1")

    assert stand.proxy.deliver_late() == 1
    assert stand.operations() == ["op-0", "rival"]


def test_an_operation_id_that_was_used_before_is_not_taken_for_this_write(stand: Stand) -> None:
    """The same command, given again after others changed what it did, is another write."""
    stand.write("1", "op")
    stand.write("2", "other")
    stand.proxy.plan = Listed([DROP_BEFORE], is_contents)

    stand.write("1\n", "op")

    assert stand.operations() == ["op", "other", "op"]


def test_a_late_request_is_carried_out_again_only_when_its_file_came_back(stand: Stand) -> None:
    """The limit: no forge can be told to forget a request that it did not see yet."""
    stand.write("0", "op-0")
    stand.proxy.plan = Listed([Decision(Fault.LATE, late_by=99)], is_contents)
    stand.write("1", "op-1")
    stand.write("0", "op-2")

    stand.proxy.deliver_late()

    assert stand.operations() == ["op-0", "op-1", "op-2", "op-1"]


def test_one_write_per_repository_is_in_flight(stand: Stand) -> None:
    operation = Operation("op", "me", "Write")

    def write(number: int) -> None:
        change = FileChange(PurePosixPath(f"n{number}"), b"1", None)
        stand.client.write(REPO, [change], Operation(f"op-{number}", "me", operation.summary))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert stand.proxy.most_in_flight == 1
    assert len(stand.operations()) == 6


@pytest.mark.parametrize("files", [1, 6])
def test_a_write_takes_one_request(stand: Stand, files: int) -> None:
    """The caller has read; the forge compares with what was seen."""
    stand.write("0", "op-0")
    changes = [FileChange(PurePosixPath(f"n{number}"), b"1", None) for number in range(files)]
    stand.proxy.log.clear()

    stand.client.write(REPO, changes, Operation("op-1", "me", "Write"))

    (line,) = stand.proxy.log
    assert line.split()[1:] == ["POST", f"/api/v1/repos/{REPO}/contents"]


@pytest.mark.parametrize(("items", "requests"), [(0, 1), (1, 1), (3, 2)])
def test_a_list_is_read_once_page_by_page(
    stand: Stand, items: int, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE", 2)
    stand.write("0", "op-0")
    head = stand.client.head(REPO)
    assert head is not None
    for number in range(items):
        stand.client.set_status(REPO, head, CommitStatus(f"check-{number}", "success"))
    stand.proxy.log.clear()

    assert len(stand.client.statuses(REPO, head)) == items

    assert len(stand.proxy.log) == requests


def test_a_write_that_changes_nothing_sends_nothing(stand: Stand) -> None:
    stand.write("0", "op-0")
    stand.proxy.log.clear()

    stand.write("0", "op-1")

    assert {line.split()[1] for line in stand.proxy.log} == {"GET"}
    assert stand.operations() == ["op-0"]


def test_a_lost_race_for_a_file_takes_no_second_request_to_write(stand: Stand) -> None:
    stand.write("0", "op-0")
    seen = stand.client.read(REPO, FILE, "main")
    assert seen is not None
    stand.write("1", "rival")
    stand.proxy.log.clear()

    with pytest.raises(ConflictError, match="nothing was written"):
        stand.client.write(REPO, [FileChange(FILE, b"2", seen.sha)], Operation("op-1", "me", "W"))

    assert stand.posts() == 1


@pytest.mark.parametrize("lost", [True, False], ids=["a lost race", "a missing right"])
def test_a_refusal_without_words_is_told_by_the_head(
    stand: Stand,
    lost: bool,  # noqa: FBT001  a table
) -> None:
    """Forges differ in their words; a branch that moved says that it was a race."""
    stand.write("0", "op-0")
    told = Decision(Fault.REFUSE_BEFORE, Falsehood(403, b'{"message":""}'))
    stand.proxy.plan = Listed([told] * (1 if lost else 99), is_contents)

    if lost:
        stand.write("1", "op-1")
    else:
        with pytest.raises(AccessError):
            stand.write("1", "op-1")

    assert stand.operations() == (["op-0", "op-1"] if lost else ["op-0"])
    assert stand.posts() <= 3


@pytest.mark.parametrize("later", [1, 40])
def test_a_repeated_command_finds_its_commit_below_others(stand: Stand, later: int) -> None:
    stand.write("0", "op-0")
    seen = stand.client.read(REPO, FILE, "main")
    assert seen is not None
    stand.write("1", "op-1")
    for number in range(later):
        stand.write(f"later {number}", f"later-{number}")

    change = FileChange(FILE, b"1", seen.sha)
    written = stand.client.write(REPO, [change], Operation("op-1", "me", "Write"))

    assert written.changed
    assert stand.operations().count("op-1") == 1


class Chance(random.Random):
    """Returns the same number again and again."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def random(self) -> float:
        return self.value


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.0, [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]),
        (1.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]),
    ],
)
def test_pauses_double_up_to_two_seconds(chance: float, expected: list[float]) -> None:
    assert list(islice(pauses(Chance(chance)), 8)) == pytest.approx(expected)


@pytest.mark.parametrize("data", [b"", b"hello\n", bytes(range(256))])
def test_blob_ids_are_gits(data: bytes) -> None:
    assert blob_sha(data) == str(pygit2.hash(data))
    assert len(blob_sha(data, like="0" * 64)) == 64
