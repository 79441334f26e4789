"""One write while somebody else wins the race for it, also where the reason is hidden."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest
from faultproxy import Decision, Falsehood, Fault, FaultProxy, Listed, Plan, is_contents, open_proxy
from tests.faults import history

from ground.errors import ConflictError
from ground.names import RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import ROUNDS, ServerError
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

TOKEN = "e" * 40
A, B, NEW = PurePosixPath("a"), PurePosixPath("b"), PurePosixPath("new")
_numbers = itertools.count(1)
LOST_RACE = Falsehood(500, b'{"message":"","url":"http://forge/api/swagger"}')
"""A lost race without the reason: the forge itself says so, not a gateway."""


@dataclass
class Stand:
    """A forge with the files a and b, a client behind the proxy, and a rival past it."""

    proxy: FaultProxy
    client: GiteaForge
    rival: GiteaForge
    bare: Path
    repo: RepoId
    count: int = 0

    def change(self, path: PurePosixPath, text: str | None) -> FileChange:
        """Return a change of a file as it is now."""
        seen = self.rival.read(self.repo, path, "main")
        data = None if text is None else text.encode()
        return FileChange(path, data, seen.sha if seen else None)

    def rival_writes(self, path: PurePosixPath, text: str | None) -> None:
        self.count += 1
        operation = Operation(f"rival-{self.count}", "they", "Win")
        self.rival.write(self.repo, [self.change(path, text)], operation)

    def write(self, *changes: FileChange, name: str = "ours") -> None:
        self.client.write(self.repo, changes, Operation(name, "me", "Write"))

    def before_our_commit(self, act: Callable[[], None]) -> None:
        """Let somebody act when our request is on its way."""
        plan = Listed([Decision(Fault.HOOK_BEFORE)], is_contents)
        plan.hook = act  # type: ignore[method-assign]  # what a plan's hook is for
        self.proxy.plan = plan

    def operations(self) -> list[str]:
        """Return the operation ids in the history after the first commit, oldest first."""
        return [name for step in history.steps(self.bare)[1:] for name in step.operations]


@pytest.fixture(scope="module")
def forge(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EmbeddedForge, FaultProxy]]:
    made = EmbeddedForge(tmp_path_factory.mktemp("forge"))
    made.ensure_user("warden", "warden-pw1", admin=True)
    made.ensure_token("warden", "t", TOKEN, ["all"])
    upstream = HttpServer(made.app, bind("forge", 0))
    upstream.start()
    with open_proxy(upstream.url) as proxy:
        yield made, proxy
    upstream.stop()
    made.close()


@pytest.fixture
def stand(
    forge: tuple[EmbeddedForge, FaultProxy], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stand]:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.01)
    made, proxy = forge
    repo = RepoId("team", f"order-{next(_numbers)}")
    with (
        GiteaForge(proxy.url, token=TOKEN) as client,
        GiteaForge(proxy.upstream, token=TOKEN) as rival,
    ):
        rival.ensure_org(repo.owner)
        rival.ensure_repo(repo, description="")
        first = [FileChange(A, b"a\n", None), FileChange(B, b"b\n", None)]
        rival.write(repo, first, Operation("first", "they", "Begin"))
        bare = made.repository_path(repo)
        assert bare is not None
        proxy.log.clear()
        yield Stand(proxy, client, rival, bare, repo)
        proxy.plan = Plan()
        proxy.deliver_late()


def test_a_rival_on_another_file_costs_nothing(stand: Stand) -> None:
    stand.before_our_commit(lambda: stand.rival_writes(B, "theirs"))

    stand.write(stand.change(A, "ours"))

    assert stand.operations() == ["rival-1", "ours"]


@dataclass(frozen=True)
class Race:
    reason: str
    ours: tuple[PurePosixPath, str | None]
    theirs: tuple[PurePosixPath, str | None]


@pytest.mark.parametrize(
    "race",
    [
        Race("both change a file", (A, "ours"), (A, "theirs")),
        Race("they delete what we change", (A, "ours"), (A, None)),
        Race("they change what we delete", (A, None), (A, "theirs")),
        Race("both create a file", (NEW, "ours"), (NEW, "theirs")),
    ],
    ids=lambda race: race.reason,
)
def test_a_rival_on_our_file_is_a_conflict_and_nothing_of_ours_is_written(
    stand: Stand, race: Race
) -> None:
    ours = stand.change(*race.ours)
    stand.before_our_commit(lambda: stand.rival_writes(*race.theirs))

    with pytest.raises(ConflictError, match="nothing was written") as caught:
        stand.write(ours, stand.change(B, "ours too"))

    assert caught.value.exit_code == 3
    assert stand.operations() == ["rival-1"]


@pytest.mark.parametrize(
    ("path", "text"),
    [(A, "same"), (A, None), (NEW, "same")],
    ids=["both change", "both delete", "both create"],
)
def test_a_rival_who_does_the_same_leaves_nothing_to_do(
    stand: Stand, path: PurePosixPath, text: str | None
) -> None:
    ours = stand.change(path, text)
    stand.before_our_commit(lambda: stand.rival_writes(path, text))

    written = stand.client.write(stand.repo, [ours], Operation("ours", "me", "Write"))

    assert not written.changed
    assert stand.operations() == ["rival-1"]


@pytest.mark.parametrize("late_by", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    "changes",
    [((A, "1"),), ((NEW, "1"),), ((A, None),), ((A, "1"), (NEW, "1"), (B, None))],
    ids=["update", "create", "delete", "all three"],
)
def test_a_request_that_is_carried_out_late_makes_one_commit(
    stand: Stand, changes: Sequence[tuple[PurePosixPath, str | None]], late_by: int
) -> None:
    """Late: before, between and after the requests by which the client looks and sends again."""
    ours = [stand.change(path, text) for path, text in changes]
    stand.proxy.plan = Listed([Decision(Fault.LATE, late_by=late_by)], is_contents)

    stand.write(*ours)

    stand.proxy.deliver_late()
    assert stand.operations() == ["ours"]


@dataclass
class Losing(Plan):
    """The forge refuses each commit, and does not say that a race was lost."""

    act: Callable[[], None]
    lost: int = field(default=0)

    def decide(self, method: str, path: str) -> Decision:
        if not is_contents(method, path):
            return Decision()
        self.lost += 1
        self.act()
        return Decision(Fault.REFUSE_BEFORE, LOST_RACE)


def test_losing_every_race_is_a_conflict_with_exit_code_3(stand: Stand) -> None:
    plan = stand.proxy.plan = Losing(lambda: stand.rival_writes(B, f"{plan.lost}"))

    with pytest.raises(
        ConflictError, match=f"won all {ROUNDS} rounds; nothing was written"
    ) as caught:
        stand.write(stand.change(A, "ours"))

    assert caught.value.exit_code == 3
    assert stand.operations() == [f"rival-{number}" for number in range(1, ROUNDS + 1)]


def test_a_broken_forge_is_no_conflict(stand: Stand) -> None:
    """The same answer while nobody else writes."""
    stand.proxy.plan = Losing(lambda: None)

    with pytest.raises(ServerError) as caught:
        stand.write(stand.change(A, "ours"))

    assert caught.value.retryable
    assert stand.operations() == []


@pytest.mark.parametrize(
    "changes",
    [((A, "1"),), ((A, "1"), (B, "1")), tuple((PurePosixPath(f"n{n}"), "1") for n in range(6))],
    ids=["one file", "two files", "six files"],
)
def test_a_write_takes_one_request(
    stand: Stand, changes: Sequence[tuple[PurePosixPath, str]]
) -> None:
    ours = [stand.change(path, text) for path, text in changes]

    stand.write(*ours)

    (asked,) = stand.proxy.log
    assert asked.split()[1:] == ["POST", f"/api/v1/repos/{stand.repo}/contents"]
