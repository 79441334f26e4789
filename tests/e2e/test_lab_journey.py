"""
Twenty orders of four teams, one of them broken, and thirteen rogues, on the real thing.

A real Gitea, a real API server with its controllers, a real Argo CD. Crossplane alone is stood
for: our assembler works on that API server through the Kubernetes adapter, for there are no
kubelets on which Crossplane's packages could run. The rogue pushes are those of a member of the
teams, with that member's own token. The tests build on each other.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import labplatform
import pytest
import roguery
import rogues
from commands import Command, as_process
from lab.realgitea import add_token, add_user
from labplatform import CHIEF, LabPlatform, bootstrapped
from rogues import ROGUES, XGARAGE, Pair

from ground.errors import OrderkitError
from ground.objects.kube_objects import NAMESPACE, ObjectKey
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import RepeatedRefresh, nudge, refresh
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order import order_report, tracing
from orderkit.flows.platform import Platform, write_ledger
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import TeamChange, change_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.soak,
]  # the lab comes up within the first test's time
TEAMS = ("ae86", "fd3s", "rx7", "skyline")
THEM = TEAMS[-1]
"""Has no garage of its own: the rogues are after its name."""
BROKEN = roguery.entry_of("locker", THEM, f"{THEM}-c")
WORKERS = 4
SETTLED_S = 240.0
EVERYTHING_READY = 19
ENTRIES = [
    *(roguery.entry_of("garage", team) for team in TEAMS[:-1]),
    *(roguery.entry_of("locker", team, f"{team}-{n}") for team in TEAMS for n in "ab"),
    *(roguery.entry_of("drawer", team, f"{team}-{n}") for team in TEAMS for n in "ab"),
    BROKEN,
]


@dataclass(frozen=True)
class Site:
    """The bootstrapped lab, and the forge as a member of the teams sees it."""

    lab: LabPlatform
    platform: Platform
    member: GiteaForge


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("journey")
    pack = rogues.rogue_pack(folder / "pack")
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(labplatform.serving(_made(folder), teams=TEAMS, pack=pack))
        platform = undo.enter_context(bootstrapped(lab, pack))
        person = add_user(lab.gitea, "mallory")
        for team in TEAMS:
            change_team(platform, team, requester=CHIEF, change=TeamChange(members=(person[0],)))
        token = add_token(lab.gitea.url, person, ["write:repository", "read:user"])
        member = undo.enter_context(GiteaForge(lab.gitea.url, token=token))
        yield Site(lab, platform, member)


@pytest.fixture(scope="module")
def orderkit(site: Site) -> Command:
    return as_process(site.lab.file)


def _made(folder: Path) -> Path:
    found = folder / "lab"
    found.mkdir()
    return found


def test_nineteen_of_twenty_orders_get_ready_and_the_broken_one_alone_is_red(site: Site) -> None:
    with ThreadPoolExecutor(WORKERS) as threads:
        placed = list(threads.map(lambda entry: _place(site.platform, entry), ENTRIES))
    _break(site)

    reports = until(
        SystemClock(),
        lambda: order_report.list_orders(site.platform),
        lambda found: (
            sum(each.state.ready for each in found) == EVERYTHING_READY
            and any(each.state.phase == "Failing" for each in found)
        ),
        timeout_s=SETTLED_S,
        goal="19 Ready, one Failing",
        why_not=_unsettled,
        on_look=functools.partial(
            _ask_again, RepeatedRefresh(site.platform.cluster, site.platform.clock)
        ),
    )

    assert sorted(placed, key=str) == sorted(ENTRIES, key=str)
    (red,) = [each for each in reports if not each.state.ready]
    assert red.entry == BROKEN
    assert "xlocker.yaml" in red.state.reason


def _place(platform: Platform, entry: OrderEntry) -> OrderEntry:
    kit, _, name = entry.order.partition("-")
    return roguery.place(platform, kit, entry.team, name, wait=False)


def _break(site: Site) -> None:
    path = PurePosixPath("manifests", "xlocker.yaml")
    seen = site.member.read(BROKEN.repository, path, "main")
    assert seen is not None
    change = FileChange(path, seen.data + b"broken: [\n", seen.sha)
    broken = Operation("broken", CHIEF, "broken")
    commit = site.member.write(BROKEN.repository, [change], broken).commit
    nudge(site.platform.cluster, BROKEN.order, commit)  # else Argo CD sees it minutes later


def _ask_again(asking: RepeatedRefresh, found: list[order_report.OrderReport]) -> None:
    """Nobody waits for a single order here, who would ask again for one that a refresh missed."""
    for each in found:
        if each.state.phase == "Written":
            asking.look(ledger.team_application(each.entry.team))


def _unsettled(found: list[order_report.OrderReport]) -> str:
    left = [each for each in found if not each.state.ready]
    return "; ".join(f"{each.entry.order}: {each.state.phase} {each.state.reason}" for each in left)


def test_a_change_is_delivered_at_its_very_commit(site: Site, orderkit: Command) -> None:
    entry = roguery.entry_of("drawer", THEM, f"{THEM}-a")

    done = orderkit("change", entry.order, "serial=second", "--json")

    assert done.code == 0, done.err
    assert done.json["state"] == "committed"
    report = roguery.ready(site.platform, entry)
    assert report.state.revision == done.json["commit"]
    assert report.xr is not None
    assert (site.lab.cluster.get(report.xr) or {})["spec"]["serial"] == "second"


def test_every_rogue_is_refused_told_and_forgiven(site: Site, orderkit: Command) -> None:
    """Each in the repository of another order, all at once."""
    free = list(ENTRIES)
    tried = []
    for rogue in ROGUES:
        entry = next(each for each in free if each.order.startswith(f"{rogue.kit}-"))
        free.remove(entry)
        pair = Pair(entry.team, THEM)
        tried.append(roguery.attempt(site.platform, site.member, rogue, pair, entry))
    for each in tried:
        report = roguery.failing(site.platform, each)
        assert report.state.head == each.head
        assert each.said() in roguery.reasons(site.platform, each.entry), each.rogue.reason
        failing = tracing.trace(site.platform, each.entry.order).failing
        assert failing is not None
        assert all(word in failing.reason for word in each.told()), each.rogue.reason
    shown = orderkit("status", tried[0].entry.order)
    assert all(word in shown.out for word in tried[0].told()), shown.out
    assert site.lab.cluster.get(ObjectKey(XGARAGE, f"garage-{THEM}")) is None

    commits = [roguery.repent(site.platform, each) for each in tried]
    for each, commit in zip(tried, commits, strict=True):
        roguery.forgiven(site.platform, each, commit)


def test_what_is_applied_by_hand_is_refused_at_once(site: Site) -> None:
    with pytest.raises(OrderkitError, match="no Application delivers XGarage"):
        site.lab.cluster.create(rogues.by_hand(THEM), owner="kubectl")
    key = ObjectKey(XGARAGE, ENTRIES[1].order)
    with pytest.raises(OrderkitError, match="never changes"):
        site.lab.cluster.patch(key, {"spec": {"teamName": THEM}}, owner="kubectl")


def test_an_application_of_another_teams_repository_delivers_nothing(site: Site) -> None:
    pair = Pair(TEAMS[0], TEAMS[1])
    path = PurePosixPath("apps", pair.us, "locker-stolen.yaml")
    made = rogues.stolen(site.lab.gitea.url, pair)
    write_ledger(site.platform, {path: made}, Operation("stolen", CHIEF, "a mistake"))
    refresh(site.platform.cluster, f"team-{pair.us}")
    entry = roguery.entry_of("locker", pair.us, "stolen")

    report = roguery.wait_for(
        site.platform, entry, lambda found: found.state.phase == "Failing", "told"
    )

    assert f"{pair.them}/locker-own" in report.state.reason
    write_ledger(site.platform, {path: None}, Operation("undone", CHIEF, "sorry"))
    refresh(site.platform.cluster, f"team-{pair.us}")


def test_a_destroyed_order_leaves_nothing(site: Site) -> None:
    entry = ENTRIES[0]
    wanted = EndRequest(entry.order, CHIEF, timeout_s=400.0)

    destroy(site.platform, wanted, on_step=lambda *_: None)

    assert site.lab.cluster.get(ObjectKey(XGARAGE, entry.order)) is None
    assert site.lab.cluster.get(ObjectKey(NAMESPACE, entry.order)) is None
    with pytest.raises(OrderkitError, match="has ended"):
        order_report.status(site.platform, entry.order)
