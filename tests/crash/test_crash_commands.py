"""
Commands killed by SIGKILL before and after every write they make, then repeated.

The lists of writes are expectations of their own: a write that nobody knew of fails the test
that enumerates, so that it gets its two kills. Random moments hit the reads between them too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.mark import ParameterSet
from tests.crash import judging
from tests.crash.durable import Side
from tests.crash.judging import order_of

from ground.names import RepoId
from orderkit.flows.team.teams import add_team

if TYPE_CHECKING:
    from chances import Chances
    from tests.crash.conftest import Tally
    from tests.crash.laboratory import Lab

LEDGER = "forge POST /api/v1/repos/platform/ledger/contents"
REFRESH = "cluster PATCH /apis/argoproj.io/v1alpha1/namespaces/argocd/applications/"
LOCATIONS = "portal POST /api/catalog/locations"
ORDER_REPO = "/api/v1/repos/TEAM/garage-TEAM"

ORDER = [
    "forge POST /api/v1/orgs/TEAM/repos",
    f"forge POST {ORDER_REPO}/contents",
    f"forge PATCH {ORDER_REPO}",  # no squash merges
    LEDGER,
    f"{REFRESH}team-TEAM",
    f"{LOCATIONS} (dry run)",
    LOCATIONS,
]
END = [
    LEDGER,  # the end mark
    f"{REFRESH}team-TEAM",
    LEDGER,  # "emptying" begins
    f"forge POST {ORDER_REPO}/contents",
    LEDGER,  # the Application names the emptied commit
    f"{REFRESH}team-TEAM",
    f"{REFRESH}garage-TEAM",
    LEDGER,  # "removing" begins
    LEDGER,  # the Application goes
    f"{REFRESH}team-TEAM",
    LEDGER,  # "unregistering" begins
    "portal DELETE /api/catalog/locations/UUID",
    LEDGER,  # "closing" begins
    f"forge PATCH {ORDER_REPO}",
    LEDGER,  # the tombstone
]
END_AND_DELETE = [*END[:-2], f"forge DELETE {ORDER_REPO}", LEDGER]
DELETE_ARCHIVED = END_AND_DELETE[-2:]
ADD_TEAM = [
    "forge POST /api/v1/orgs",
    "forge POST /api/v1/orgs/TEAM/hooks",
    LEDGER,
    f"{REFRESH}ledger",
    f"{REFRESH}team-TEAM",
]
CHANGE = [f"forge POST {ORDER_REPO}/contents", f"{REFRESH}garage-TEAM"]
PROPOSE = [
    f"forge POST {ORDER_REPO}/branches",
    f"forge POST {ORDER_REPO}/contents",
    f"forge POST {ORDER_REPO}/pulls",
    f"forge POST {ORDER_REPO}/statuses/COMMIT",  # what its plan says
]
UPDATE = [
    f"forge POST {ORDER_REPO}/contents",
    f"forge PATCH {ORDER_REPO}/pulls/1",
    f"forge POST {ORDER_REPO}/statuses/COMMIT",
]

LEDGER_REPO = "/api/v1/repos/platform/ledger"
WAIT = [
    *ORDER[:3],
    f"forge POST {ORDER_REPO}/branch_protections",
    LEDGER,  # it waits
    f"forge POST {LEDGER_REPO}/branches",
    LEDGER,  # what is proposed
    f"forge POST {LEDGER_REPO}/pulls",
    f"forge POST {LEDGER_REPO}/statuses/COMMIT",  # who has to agree
    *ORDER[-2:],
]

SHORT, FULL = 1, 100
"""How often each command is killed at a random moment."""
BUSY_S = {"team": 0.15, "order": 0.5, "destroy": 0.5}
"""About how long each command needs on a free machine."""

SIDES: tuple[Side, ...] = ("before", "after")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Kill:
    """A command to kill at its n-th write."""

    writes: Sequence[str]
    at: int
    side: Side

    def __str__(self) -> str:
        return f"{self.side} write {self.at}, {self.writes[self.at - 1]}"


def kills(writes: Sequence[str], *, last: int | None = None, every: int = 2) -> list[ParameterSet]:
    """
    Return both sides of every write, or of the `last` ones.

    A short run kills before the first, and after one in `every` of them: other tests kill at the
    same kinds of writes. Killed before a later write, a command leaves what it leaves when it is
    killed after the previous one: what it read in between dies with it.
    """
    first = len(writes) - (last or len(writes)) + 1
    return [
        pytest.param(
            Kill(writes, at, side),
            marks=[pytest.mark.soak]
            if (side == "before" and at > first) or (at - first) % every
            else [],
        )
        for at in range(first, len(writes) + 1)
        for side in SIDES
    ]


def order(team: str) -> tuple[str, ...]:
    return ("order", "garage", f"team_name={team}", "stage=stage2")


@pytest.fixture
def fresh() -> str:
    """A name for a team."""
    return f"crash-{next(_numbers)}"


@pytest.fixture
def team(served: Path, fresh: str) -> str:
    """A team that nobody else uses."""
    with judging.looking_at(served) as platform:
        add_team(platform, fresh, requester="user:default/test")
    return fresh


@pytest.fixture
def ordering_team(lab: Lab, served: Path, team: str) -> str:
    """A team that has an order."""
    lab.must_do(served, *order(team))
    return team


@pytest.fixture
def ended_team(lab: Lab, served: Path, ordering_team: str) -> str:
    """A team whose order ended; its repository is archived."""
    lab.must_do(served, "destroy", "--yes", order_of(ordering_team))
    return ordering_team


def writes_of(lab: Lab, state: Path, *arguments: str) -> list[str]:
    """Run a command to its end and return its writes."""
    watch = lab.killed_at(state, arguments, 0, "before")
    return [exchange.pattern for exchange in watch.exchanges if exchange.method != "GET"]


def kill_and_repeat(lab: Lab, state: Path, kill: Kill, *arguments: str) -> None:
    """Kill a command at its point, look at what was acknowledged, repeat it to its end."""
    watch = lab.killed_at(state, arguments, kill.at, kill.side)
    assert watch.killed, f"write {kill.at} was never reached"
    with judging.looking_at(state) as platform:
        judging.still_there(platform, state, watch.exchanges)
    lab.must_do(state, *arguments)


def test_the_writes_of_an_order_are_known(lab: Lab, served: Path, team: str) -> None:
    assert writes_of(lab, served, *order(team)) == ORDER


def test_the_writes_of_an_end_are_known(lab: Lab, served: Path, ordering_team: str) -> None:
    assert writes_of(lab, served, "destroy", "--yes", order_of(ordering_team)) == END


def test_the_writes_of_an_end_with_deletion_are_known(
    lab: Lab, served: Path, ordering_team: str
) -> None:
    arguments = ("destroy", "--yes", order_of(ordering_team), "--delete-repository")
    assert writes_of(lab, served, *arguments) == END_AND_DELETE


def test_the_writes_of_a_deletion_after_the_end_are_known(
    lab: Lab, served: Path, ended_team: str
) -> None:
    arguments = ("destroy", "--yes", order_of(ended_team), "--delete-repository")
    assert writes_of(lab, served, *arguments) == DELETE_ARCHIVED


def test_the_writes_of_a_new_team_are_known(lab: Lab, served: Path, fresh: str) -> None:
    assert writes_of(lab, served, "team", "add", fresh) == ADD_TEAM


def change(team: str, *more: str) -> tuple[str, ...]:
    return ("change", order_of(team), "stage=stage3", "--operation", f"op-{team}", *more)


def test_the_writes_of_a_change_are_known(lab: Lab, served: Path, ordering_team: str) -> None:
    assert writes_of(lab, served, *change(ordering_team)) == CHANGE


def test_the_writes_of_a_proposal_are_known(lab: Lab, served: Path, ordering_team: str) -> None:
    assert writes_of(lab, served, *change(ordering_team, "--pr")) == PROPOSE


@pytest.mark.parametrize("kill", kills(CHANGE), ids=str)
def test_a_killed_change_is_finished_by_repeating_it(
    lab: Lab, served: Path, ordering_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *change(ordering_team))

    with judging.looking_at(served) as platform:
        judging.order_is_whole(platform, served, ordering_team, "stage3", edits=1)


@pytest.mark.parametrize("kill", kills(PROPOSE), ids=str)
def test_a_killed_proposal_is_finished_by_repeating_it(
    lab: Lab, served: Path, ordering_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *change(ordering_team, "--pr"))

    repo = RepoId(ordering_team, order_of(ordering_team))
    with judging.looking_at(served) as platform:
        (pull,) = platform.forge.pulls(repo, state="all")
        (commit,) = platform.forge.compare(repo, "main", pull.head)
        (status,) = platform.forge.statuses(repo, commit.id)
        judging.order_is_whole(platform, served, ordering_team, "stage2", edits=0)
    assert (status.context, status.state) == ("orderkit/plan", "success")
    assert (pull.state, pull.operation) == ("open", f"op-{ordering_team}")
    assert commit.operation == pull.operation
    branches = judging.git(judging.bare(served, repo), "branch", "--format=%(refname:short)")
    assert sorted(branches.split()) == sorted(["main", pull.head])


def another(team: str) -> tuple[str, ...]:
    """Return another wish of the same person for the same field."""
    return ("change", order_of(team), "stage=stage1", "--operation", f"next-{team}", "--pr")


@pytest.fixture
def proposing_team(lab: Lab, served: Path, ordering_team: str) -> str:
    """A team whose order has an open pull request."""
    lab.must_do(served, *change(ordering_team, "--pr"))
    return ordering_team


def test_the_writes_of_an_updated_proposal_are_known(
    lab: Lab, served: Path, proposing_team: str
) -> None:
    assert writes_of(lab, served, *another(proposing_team)) == UPDATE


@pytest.mark.parametrize("kill", kills(UPDATE), ids=str)
def test_a_killed_update_of_a_proposal_is_finished_by_repeating_it(
    lab: Lab, served: Path, proposing_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *another(proposing_team))

    repo = RepoId(proposing_team, order_of(proposing_team))
    with judging.looking_at(served) as platform:
        (pull,) = platform.forge.pulls(repo, state="all")
        last, first = platform.forge.compare(repo, "main", pull.head)
        (status,) = platform.forge.statuses(repo, last.id)
    assert (first.operation, last.operation) == (f"op-{proposing_team}", f"next-{proposing_team}")
    assert (pull.operation, status.state) == (last.operation, "success")
    assert "stage1" in pull.title


@pytest.mark.parametrize("kill", kills(ORDER), ids=str)
def test_a_killed_order_is_finished_by_repeating_it(
    lab: Lab, served: Path, team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *order(team))

    with judging.looking_at(served) as platform:
        judging.order_is_whole(platform, served, team, "stage2", edits=0)


@pytest.fixture
def asking_team(lab: Lab, served: Path, fresh: str) -> str:
    """A team whose orders need approval; the ledger had such an order before."""
    for name in (f"{fresh}-before", fresh):
        lab.must_do(served, "team", "add", name, "--limit", "orders=0", "--over", "ask")
    lab.must_do(served, *order(f"{fresh}-before"), "--no-wait")
    return fresh


def test_the_writes_of_an_order_that_waits_are_known(
    lab: Lab, served: Path, asking_team: str
) -> None:
    """The service may judge the proposal in the middle; then its status is written once more."""
    writes = writes_of(lab, served, *order(asking_team), "--no-wait")

    status = f"forge POST {LEDGER_REPO}/statuses/COMMIT"
    first = writes.index(status) + 1
    assert [*writes[:first], *(each for each in writes[first:] if each != status)] == WAIT


@pytest.mark.parametrize("kill", kills(WAIT, every=4), ids=str)
def test_a_killed_order_that_waits_is_proposed_once_by_repeating_it(
    lab: Lab, served: Path, asking_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *order(asking_team), "--no-wait")

    with judging.looking_at(served) as platform:
        pulls = list(platform.forge.pulls(platform.ledger, state="all"))
        titles = [pull.title for pull in pulls]
        (pull,) = [p for p in pulls if p.title.startswith(f"{order_of(asking_team)}:")]
        (status,) = platform.forge.statuses(platform.ledger, pull.head_commit)
        applications = judging.ledger_files(platform, f"apps/{asking_team}/")
    assert (pull.state, status.context, status.state) == ("open", "orderkit/approval", "pending")
    assert len(titles) == len(set(titles))
    assert [name for name in applications if name.endswith(".yaml")] == []


@pytest.mark.parametrize("kill", kills(END, every=4), ids=str)
def test_a_killed_end_is_finished_by_repeating_it(
    lab: Lab, served: Path, ordering_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, "destroy", "--yes", order_of(ordering_team))

    with judging.looking_at(served) as platform:
        judging.order_is_gone(platform, served, ordering_team, survivor="archive")


@pytest.mark.parametrize("kill", kills(END_AND_DELETE, last=2), ids=str)
def test_a_killed_end_with_deletion_is_finished_by_repeating_it(
    lab: Lab, served: Path, ordering_team: str, kill: Kill
) -> None:
    arguments = ("destroy", "--yes", order_of(ordering_team), "--delete-repository")
    kill_and_repeat(lab, served, kill, *arguments)

    with judging.looking_at(served) as platform:
        judging.order_is_gone(platform, served, ordering_team, survivor="delete")


@pytest.mark.parametrize("kill", kills(DELETE_ARCHIVED), ids=str)
def test_a_killed_deletion_after_the_end_is_finished_by_repeating_it(
    lab: Lab, served: Path, ended_team: str, kill: Kill
) -> None:
    arguments = ("destroy", "--yes", order_of(ended_team), "--delete-repository")
    kill_and_repeat(lab, served, kill, *arguments)

    with judging.looking_at(served) as platform:
        judging.order_is_gone(platform, served, ended_team, survivor="delete")
        (tombstone,) = judging.ledger_files(platform, f"data/{ended_team}/")
        assert "repository: delete" in judging.ledger_text(platform, tombstone)


@pytest.mark.parametrize("kill", kills(ADD_TEAM), ids=str)
def test_a_killed_team_is_finished_by_repeating_it(
    lab: Lab, served: Path, fresh: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, "team", "add", fresh)

    with judging.looking_at(served) as platform:
        judging.team_is_whole(platform, served, fresh)
    lab.must_do(served, *order(fresh))


def test_commands_killed_at_random_moments_are_finished_by_repeating_them(
    lab: Lab, served: Path, tally: Tally, chances: Chances
) -> None:
    random_ = chances.random("commands")
    for number in range(chances.count(SHORT, FULL)):
        team = f"crash-moment-{number}"
        commands: list[tuple[str, ...]] = [
            ("team", "add", team),
            order(team),
            ("destroy", "--yes", order_of(team)),
        ]
        for arguments in commands:
            watch = lab.killed_after(served, arguments, random_.uniform(0, BUSY_S[arguments[0]]))
            with judging.looking_at(served) as platform:
                judging.still_there(platform, served, watch.exchanges)
            lab.must_do(served, *arguments)
            tally.kill(f"{arguments[0]} at random moments", reached=watch.killed)
        with judging.looking_at(served) as platform:
            judging.team_is_whole(platform, served, team)
            judging.order_is_gone(platform, served, team, survivor="archive")
