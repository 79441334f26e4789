"""
Every step that changes something, with every fault at its first request: done once, and said so.

Judged past the proxy, by what the forge has afterwards. Writing files has tests of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from faultproxy import Decision, Falsehood, Fault, FaultProxy, Listed, Plan, open_proxy

from ground.errors import InProgressError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import LostAnswerError
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import (
    CommitStatus,
    FileChange,
    MergeStyle,
    Operation,
    PullDraft,
    TeamRight,
    Webhook,
)
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

USER, PASSWORD = "warden", "warden-pw1"
DRAFT = PullDraft("Title", "Body", "change")
STATUS = CommitStatus("plan", "success")
HOOK = Webhook("http://127.0.0.1:9/x", secret="s3cret-0123")
_numbers = itertools.count(1)

GATEWAY = Falsehood(502, b"<html>Bad Gateway</html>", "text/html")
LOGIN = Falsehood(200, b"<html>please log in</html>", "text/html")
CONFLICT = Falsehood(409, b"{}")
FAULTS = [
    *(Decision(fault) for fault in (Fault.DROP_AFTER, Fault.DROP_BEFORE)),
    *(Decision(Fault.REFUSE_AFTER, told) for told in (GATEWAY, LOGIN, CONFLICT)),
    *(Decision(Fault.REFUSE_BEFORE, told) for told in (GATEWAY, LOGIN)),
    *(Decision(Fault.LATE, late_by=number) for number in (1, 4)),
]


@dataclass
class World:
    """A repository with a branch that is one commit ahead, and two ways to its forge."""

    proxy: FaultProxy
    client: GiteaForge
    direct: GiteaForge
    repo: RepoId
    commit: CommitSha

    @property
    def main(self) -> CommitSha:
        found = self.direct.head(self.repo)
        assert found is not None
        return found

    def open(self) -> int:
        return self.direct.open_pull(self.repo, DRAFT, operation("opened")).number

    def raw(self, path: str) -> list[dict[str, object]]:
        """Return a list that the port does not show."""
        found = self.direct._http.get(path).json()  # noqa: SLF001  past the port on purpose
        assert isinstance(found, list)
        return found


def operation(name: str) -> Operation:
    return Operation(name, "user:default/me", "Change")


def of_repo(world: World, rest: str) -> str:
    return f"/repos/{world.repo}/{rest}"


@dataclass(frozen=True)
class Step:
    """What is done; what the forge must have then. `before` makes what it starts from."""

    name: str
    act: Callable[[World, int], object]
    seen: Callable[[World, int], bool]
    before: Callable[[World], int] = lambda _: 0


def merge(world: World, number: int, deadline_s: float = 30.0) -> CommitSha:
    return world.client.merge_pull(
        world.repo,
        number,
        head=world.commit,
        style=MergeStyle.SQUASH,
        operation=operation("merge"),
        deadline_s=deadline_s,
    )


def merged_once(world: World, number: int) -> bool:
    found = world.direct.pull(world.repo, number)
    assert found is not None
    return found.state == "merged" and found.merge_commit == world.main


def team_is_right(world: World, _: int) -> bool:
    teams = [x for x in world.raw(f"/orgs/{world.repo.owner}/teams") if x["name"] == "devs"]
    members = world.raw(f"/teams/{teams[0]['id']}/members")
    return len(teams) == 1 and [each["login"] for each in members] == [USER]


def is_archived(world: World, _: int) -> bool:
    repository = world.direct.repo(world.repo)
    return repository is not None and repository.archived


STEPS = [
    Step(
        "organisation",
        lambda w, _: w.client.ensure_org(f"new-{w.repo.owner}"),
        lambda w, _: w.direct.has_org(f"new-{w.repo.owner}"),
    ),
    Step(
        "repository",
        lambda w, _: w.client.ensure_repo(RepoId(w.repo.owner, "new"), description="d"),
        lambda w, _: w.direct.repo(RepoId(w.repo.owner, "new")) is not None,
    ),
    Step(
        "archive",
        lambda w, _: w.client.archive(w.repo),
        is_archived,
    ),
    Step(
        "delete repository",
        lambda w, _: w.client.delete_repo(w.repo),
        lambda w, _: w.direct.repo(w.repo) is None,
    ),
    Step(
        "branch",
        lambda w, _: w.client.ensure_branch(w.repo, "new", w.commit),
        lambda w, _: w.direct.head(w.repo, "new") == w.commit,
    ),
    Step(
        "delete branch",
        lambda w, _: w.client.delete_branch(w.repo, "change"),
        lambda w, _: w.direct.head(w.repo, "change") is None,
    ),
    Step(
        "open",
        lambda w, _: w.client.open_pull(w.repo, DRAFT, operation("open")),
        lambda w, _: [x.operation for x in w.direct.pulls(w.repo, state="all")] == ["open"],
    ),
    Step(
        "update",
        lambda w, n: w.client.update_pull(w.repo, n, operation("update"), title="New"),
        lambda w, _: [x.title for x in w.direct.pulls(w.repo)] == ["New"],
        World.open,
    ),
    Step(
        "close",
        lambda w, n: w.client.close_pull(w.repo, n),
        lambda w, _: [x.state for x in w.direct.pulls(w.repo, state="all")] == ["closed"],
        World.open,
    ),
    Step("merge", merge, merged_once, World.open),
    Step(
        "comment",
        lambda w, n: w.client.comment(w.repo, n, "text", marker="plan"),
        lambda w, n: len(w.raw(of_repo(w, f"issues/{n}/comments"))) == 1,
        World.open,
    ),
    Step(
        "status",
        lambda w, _: w.client.set_status(w.repo, w.commit, STATUS),
        lambda w, _: w.direct.statuses(w.repo, w.commit) == (STATUS,),
    ),
    Step(
        "team",
        lambda w, _: w.client.ensure_access(
            w.repo.owner, "devs", right=TeamRight.WRITE, members=[USER]
        ),
        team_is_right,
    ),
    Step(
        "webhook",
        lambda w, _: w.client.ensure_webhook(w.repo, HOOK),
        lambda w, _: [x["active"] for x in w.raw(of_repo(w, "hooks"))] == [True],
    ),
]
MENDED_LATER = {"comment", "webhook"}
"""What a forge keeps twice if it carries a request out late, until the step is made again."""


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    made = EmbeddedForge(tmp_path_factory.mktemp("forge"))
    made.ensure_user(USER, PASSWORD, admin=True)
    upstream = HttpServer(made.app, bind("forge", 0))
    upstream.start()
    with open_proxy(upstream.url) as proxy:
        yield proxy
    upstream.stop()
    made.close()


@pytest.fixture
def world(forge: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.002)
    monkeypatch.setattr(answers, "GET_PAUSE_S", 0.001)
    repo = RepoId(f"team-{next(_numbers)}", "order")
    with (
        GiteaForge(forge.url, user=USER, password=PASSWORD) as client,
        GiteaForge(forge.upstream, user=USER, password=PASSWORD) as direct,
    ):
        direct.ensure_org(repo.owner)
        direct.ensure_repo(repo, description="")
        first = direct.write(repo, [change("a")], operation("first")).commit
        direct.ensure_branch(repo, "change", first)
        ahead = direct.write(repo, [change("b")], operation("second"), branch="change").commit
        yield World(forge, client, direct, repo, ahead)
        forge.plan = Plan()
        forge.deliver_late()


def change(path: str) -> FileChange:
    return FileChange(PurePosixPath(path), b"1\n", None)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_done_once_whatever_happens_to_its_first_request(
    world: World, step: Step, fault: Decision
) -> None:
    number = step.before(world)
    world.proxy.plan = Listed([fault])

    step.act(world, number)

    late = fault.fault is Fault.LATE
    world.proxy.deliver_late()
    if not (late and step.name in MENDED_LATER):
        assert step.seen(world, number)
    step.act(world, number)
    assert step.seen(world, number)


def test_a_text_that_another_writer_changes_meanwhile_is_written_all_the_same(world: World) -> None:
    number, already = world.open(), Falsehood(409, b'{"message":"the issue is already changed"}')
    world.proxy.plan = races = Listed([Decision(Fault.REFUSE_BEFORE, already)] * 3)

    world.client.update_pull(world.repo, number, operation("update"), title="New")

    assert races.decisions == []
    assert [pull.title for pull in world.direct.pulls(world.repo)] == ["New"]


CHECKING = Falsehood(405, b'{"message":"Please try again later"}')


def test_a_merge_whose_request_may_still_come_is_no_clear_failure(world: World) -> None:
    number, until = world.open(), [Decision(Fault.REFUSE_BEFORE, CHECKING)] * 100
    world.proxy.plan = Listed([Decision(Fault.LATE, late_by=999), *until])

    with pytest.raises(LostAnswerError, match="may still be carried out"):
        merge(world, number, deadline_s=0.3)

    assert not merged_once(world, number)
    assert world.proxy.deliver_late() == 1
    assert merge(world, number) == world.main


def test_a_merge_that_is_checked_for_too_long_is_busy_and_can_be_repeated(world: World) -> None:
    number = world.open()
    world.proxy.plan = Listed([Decision(Fault.REFUSE_BEFORE, CHECKING)] * 1000)

    with pytest.raises(InProgressError, match="still checking") as caught:
        merge(world, number, deadline_s=0.3)

    assert caught.value.retryable
    world.proxy.plan = Plan()
    assert merge(world, number) == world.main


def test_a_rule_of_the_forge_ends_a_merge_at_once(world: World) -> None:
    number = world.open()
    told = Falsehood(405, b'{"message":"Not all required status checks successful"}')
    world.proxy.plan = Listed([Decision(Fault.REFUSE_BEFORE, told)])

    with pytest.raises(RefusedError, match="required status checks"):
        merge(world, number, deadline_s=60.0)

    assert not merged_once(world, number)
