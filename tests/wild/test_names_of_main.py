"""Whatever else is called ``main``, an order whose kit wants reviews delivers a commit."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import roguery
from commands import Command
from forgeusers import ForgeUser, embedded_admin, new_user
from pusher import Pusher

from ground.names import MAIN, CommitSha, OrderId, TeamName
from ground.objects.kube_objects import dig
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.argocd.refreshing import REFRESH, application_key, refresh
from orderkit.flows.forge_protection import CONTEXT
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.repeating import until
from orderkit.flows.team.pinning import unpinned_teams
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import CommitStatus, FileChange, MergeStyle, Operation
from orderkit_standins.argocd.source_repositories import BareRepositories
from orderkit_standins.serve_platform import Running

REFS = ("refs/tags/main", "refs/heads/main\N{NO-BREAK SPACE}x", "refs/heads/refs/heads/main")
WAIT_S = 60.0


@dataclass(frozen=True)
class Placed:
    """An order of the garage, whose kit wants reviews, and the credentials of its team's member."""

    running: Running
    entry: OrderEntry
    admin: ForgeUser
    member: ForgeUser

    @property
    def head(self) -> CommitSha:
        head = self.running.platform.forge.head(self.entry.repository)
        assert head is not None
        return head

    def clone(self, folder: Path) -> Pusher:
        url = f"{self.running.platform.forge.base_url}/{self.entry.repository}.git"
        return Pusher.cloned(folder, url, self.member.login, self.member.password)

    def write(self, old: str, new: str) -> CommitSha:
        """Write to ``main`` past Orderkit, as an owner of the organisation may."""
        forge, repo = self.running.platform.forge, self.entry.repository
        ((path, (data, sha)),) = roguery.manifests(forge, self.entry).items()
        change = FileChange(path, data.replace(old.encode(), new.encode()), sha)
        return forge.write(repo, [change], Operation(f"hand-{sha}", roguery.REQUESTER, "x")).commit

    def revision_now(self) -> str:
        """Have Argo CD compare, and return the commit that it compared."""
        platform, key = self.running.platform, application_key(self.entry.order)
        refresh(platform.cluster, self.entry.order)
        live = until(
            SystemClock(), lambda: platform.cluster.get(key),
            lambda live: REFRESH not in dig(live, "metadata", "annotations", default={}),
            timeout_s=WAIT_S, goal="a refresh", why_not=str,
        )  # fmt: skip
        return str(dig(live, "status", "sync", "revision"))


@pytest.fixture
def placed(platform: Running, orderkit: Command, new_name: Callable[[], str]) -> Placed:
    team = new_name()
    assert orderkit("team", "add", team).code == 0
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0
    entry = OrderEntry(TeamName(team), OrderId(f"garage-{team}"))
    forge_url = platform.platform.forge.base_url
    admin = embedded_admin(forge_url, platform.embedded.state.folder)
    member = new_user(admin, "mallory")
    path = f"/repos/{entry.repository}/collaborators/{member.login}"
    admin.api("PUT", path, {"permission": "write"})
    return Placed(platform, entry, admin, member)


def push_names(placed: Placed, folder: Path) -> str:
    """Push a commit that nobody reviewed under every name of ``main``."""
    pusher = placed.clone(folder)
    evil = pusher.commit("x", pusher.replace("manifests/xgarage.yaml", "stage1", "stage3"))
    for ref in REFS:
        pusher.push(f"{evil}:{ref}")
    return evil


def test_status_names_what_can_be_taken_for_main_and_the_remedy_removes_it(
    placed: Placed, orderkit: Command, tmp_path: Path
) -> None:
    push_names(placed, tmp_path)
    hostile = "refs/heads/main\N{NO-BREAK SPACE}$(id)"
    pusher = Pusher(tmp_path / "clone")
    pusher.push(f"HEAD:{hostile}")

    shown = orderkit("status", placed.entry.order, "--json").json
    for ref in (*REFS, hostile):
        assert repr(ref) in shown["reason"]
    command, url, *deletions = shlex.split(shown["advice"].removeprefix("git "))
    assert (command, url) == ("push", f"{placed.admin.url}/{placed.entry.repository}.git")
    pusher.git("push", "-q", "origin", *deletions)

    assert "taken for its branch" not in orderkit("status", placed.entry.order).out


def test_status_names_a_finalizer_that_git_gives_the_xr(placed: Placed, orderkit: Command) -> None:
    """Its end would wait for whoever pushed it."""
    placed.write("metadata:\n", "metadata:\n  finalizers: [example.org/mine]\n")
    order = placed.entry.order
    asked = ("--kit", "garage", "--team", placed.entry.team)
    assert orderkit("register", order, *asked).code == 0
    await_commit(placed.running.platform, order, placed.head, timeout_s=WAIT_S)

    shown = orderkit("status", order, "--json").json

    assert shown["phase"] == "Ready"
    assert "Git gives its XR the finalizer example.org/mine" in shown["reason"]
    assert shown["advice"].startswith("take metadata.finalizers out of the XR's file")


def test_the_stand_in_takes_any_ref_of_that_short_name(placed: Placed, tmp_path: Path) -> None:
    """As Argo CD does now and then (tests/e2e/shared_lab/test_commit_refs.py)."""
    pusher = placed.clone(tmp_path)
    evil = pusher.commit("x", {"x": "x"})
    forge, folder = placed.running.platform.forge, placed.running.embedded.state.folder
    sources = BareRepositories(forge.base_url, folder / "forge" / "repos")
    url = f"{forge.base_url}/{placed.entry.repository}.git"
    resolved = {}
    for ref in REFS:
        pusher.push(f"{evil}:{ref}")
        name = "refs/heads/main" if ref.startswith("refs/heads/refs") else MAIN
        resolved[ref] = sources.resolve(url, name)
        pusher.git("push", "-q", "origin", "--delete", ref)

    assert resolved == dict.fromkeys(REFS, evil)
    assert sources.resolve(url, MAIN) == placed.head


def test_no_other_name_of_main_is_delivered_and_the_order_can_end(
    placed: Placed, orderkit: Command, tmp_path: Path
) -> None:
    push_names(placed, tmp_path)

    assert pinned_commit(placed.running.platform, placed.entry) == placed.head
    assert placed.revision_now() == placed.head

    ended = orderkit("destroy", "--yes", placed.entry.order)

    assert ended.code == 0, ended.err
    assert placed.running.platform.cluster.get(application_key(placed.entry.order)) is None


def test_what_somebody_wrote_past_orderkit_is_shown_and_delivered_on_demand(
    placed: Placed, orderkit: Command
) -> None:
    before, order, team = placed.head, placed.entry.order, placed.entry.team
    commit = placed.write("stage1", "stage2")

    assert placed.revision_now() == before
    told = orderkit("status", order)
    assert f"main is at {commit[:8]}, and the ledger has {before[:8]} delivered" in told.out
    assert told.out.startswith(f"{order} of team {team}: Failing")  # it does not pass by itself
    way_out = f"orderkit register {order} --kit garage --team {team}"
    assert way_out in told.out
    assert str(placed.entry.repository) in orderkit("doctor").out

    assert orderkit(*way_out.split()[1:]).code == 0
    await_commit(placed.running.platform, order, commit, timeout_s=WAIT_S)
    assert "Ready" in orderkit("status", order).out
    assert str(placed.entry.repository) not in orderkit("doctor").out


def test_a_change_for_which_no_approval_counts_says_so_before_somebody_reviews_it(
    placed: Placed, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, member = placed.entry.order, placed.member
    unknown = "'user:default/nobody-there' is not a user of the forge"
    asked = orderkit("change", order, "stage=stage2", "--requester", "user:default/nobody-there")
    own = f"user:default/{member.login}"
    proposed = orderkit("change", order, "stage=stage3", "--requester", own)
    merged = orderkit("merge", order, "1")

    assert unknown in asked.out
    assert "once somebody else of the team approved it" in proposed.out
    assert "is not a user of the forge" not in proposed.out
    assert (merged.code, "--requester user:default/LOGIN" in merged.err) == (4, True)
    monkeypatch.setenv("ORDERKIT_FORGE_USER", member.login)
    monkeypatch.setenv("ORDERKIT_FORGE_PASSWORD", member.password)
    for number, why in (("1", "is not a user of the forge"), ("2", f"{member.login} asked for it")):
        approved = orderkit("approve", order, "--pull", number)
        assert (approved.code, "that does not count: " in approved.out) == (4, True)
        assert why in approved.out


def test_a_merge_that_was_interrupted_is_delivered_by_its_repetition(
    placed: Placed, orderkit: Command
) -> None:
    platform, order = placed.running.platform, placed.entry.order
    asked = orderkit("change", order, "stage=stage2", "--json").json
    pull = platform.forge.pull(placed.entry.repository, int(asked["pull"]["number"]))
    assert pull is not None
    why = Operation("merge-x", roguery.REQUESTER, "merged")
    status = CommitStatus(CONTEXT, "success")
    platform.forge.set_status(placed.entry.repository, pull.head_commit, status)
    commit = platform.forge.merge_pull(
        placed.entry.repository, pull.number, head=pull.head_commit,
        style=MergeStyle.MERGE, operation=why,
    )  # fmt: skip
    assert pinned_commit(platform, placed.entry) not in (None, commit)

    done = orderkit("merge", order, str(pull.number))

    assert done.code == 0, done.err
    assert pinned_commit(platform, placed.entry) == commit
    await_commit(platform, order, commit, timeout_s=WAIT_S)


def test_what_an_earlier_release_wrote_is_reported_and_mended(
    placed: Placed, orderkit: Command, tmp_path: Path
) -> None:
    platform = placed.running.platform
    push_names(placed, tmp_path)
    roguery.follow_main(platform, placed.entry)
    told = orderkit("doctor")
    teams = unpinned_teams(platform)

    done = orderkit("team", "add", placed.entry.team)

    assert "a tag called main is delivered now and then" in told.out
    assert placed.entry.team in teams  # which bootstrap and upgrade mend alike
    assert done.code == 0, done.err
    assert pinned_commit(platform, placed.entry) == placed.head
    await_commit(platform, placed.entry.order, placed.head, timeout_s=WAIT_S)
    assert placed.entry.team not in unpinned_teams(platform)
