"""
The end of an order on a real Gitea, API server and Argo CD: nothing is left, nothing comes back.

Crossplane alone is stood for, by our assembler on that API server. Who judges is a watch of its
own: it sees every object of the orders come and go, so a part that self-heal brought back for a
moment would be in its log. Ends are killed by SIGKILL before and after their writes and repeated.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import dyingend
import pytest
from commands import Command, as_process
from labplatform import CHIEF, LabPlatform, ServedLab

from ground.names import RepoId
from ground.objects.kube_objects import (
    APPLICATION,
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    metadata,
)
from orderkit.core.order.lease import EXPIRES_AT
from orderkit.core.order.ledger import tombstones
from orderkit.flows.lease.sweeping import SweepRequest, SweptOrder, sweep
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import ExpiredError

if TYPE_CHECKING:
    from chances import Chances

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
WATCHED = (XGARAGE, NAMESPACE, CONFIG_MAP)
WRITES = [
    "forge write",  # the end mark
    "forge write",  # "emptying" begins
    "forge write",  # the order's repository is emptied
    "forge write",  # the ledger names that commit
    "forge write",  # "removing" begins
    "forge write",  # the Application goes
    "forge write",  # "unregistering" begins
    "catalog unregister",
    "forge write",  # "closing" begins
    "forge archive",
    "forge write",  # the tombstone
]
KILLS = [*itertools.product(range(1, len(WRITES) + 1), ("before", "after"))]
SHORT, AT_ONCE = 2, 3
END_S = 240


@dataclass
class Log:
    """What came and went, as an independent watch saw it."""

    uids: dict[ObjectKey, set[str]] = field(default_factory=dict)
    living: set[ObjectKey] = field(default_factory=set)

    def take(self, type_: str, manifest: Manifest) -> None:
        key = ObjectKey.of(manifest)
        self.uids.setdefault(key, set()).add(metadata(manifest)["uid"])
        (self.living.discard if type_ == "DELETED" else self.living.add)(key)

    def of(self, team: str) -> dict[ObjectKey, set[str]]:
        """Return what belonged to a team's garage, with the uids it had."""
        name = f"garage-{team}"
        return {k: uids for k, uids in dict(self.uids).items() if name in (k.name, k.namespace)}


@dataclass(frozen=True)
class Site(ServedLab):
    """The lab, and what came and went on it."""

    log: Log

    @property
    def orderkit(self) -> Command:
        return as_process(self.file)


@pytest.fixture(scope="module")
def site(served_lab: ServedLab) -> Iterator[Site]:
    log = Log()
    with contextlib.ExitStack() as undo:
        for kind in WATCHED:
            undo.enter_context(_watched(served_lab.lab, kind, log))
        yield Site(served_lab.lab, served_lab.platform, served_lab.file, log)


@contextlib.contextmanager
def _watched(lab: LabPlatform, kind: Kind, log: Log) -> Iterator[None]:
    """Write down every change of a kind, from a list on, until the block ends."""
    done = threading.Event()

    def watch() -> None:
        since = lab.cluster.list(kind).resource_version
        while not done.is_set():
            try:
                for event in lab.cluster.watch(kind, since=since, timeout_s=2):
                    since = metadata(event.object)["resourceVersion"]
                    if event.type != "BOOKMARK":
                        log.take(event.type, event.object)
            except ExpiredError:  # pragma: no cover - a log with a gap would judge wrongly
                raise AssertionError(f"the watch of {kind} lost events") from None

    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(watch)
        try:
            yield
        finally:
            done.set()
            watching.result(90)


_numbers = itertools.count(1)


def ordered(site: Site) -> str:
    """Return a new team whose garage is Ready."""
    team = f"pit-{next(_numbers):02d}"
    add_team(site.platform, team, requester=CHIEF)
    done = site.orderkit("order", "garage", f"team_name={team}", "stage=stage2", "--json")
    assert (done.code, done.json["phase"]) == (0, "Ready"), done.out + done.err
    return team


def end(site: Site, team: str, number: int, side: str) -> subprocess.CompletedProcess[str]:
    """Run an end that dies at a write."""
    support = Path(dyingend.__file__).parent
    command = [sys.executable, "-m", "dyingend", str(site.file), f"garage-{team}"]
    return subprocess.run(
        [*command, str(number), side],
        cwd=support,
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
    )


def nothing_is_left(site: Site, team: str) -> None:
    order = f"garage-{team}"
    cluster, forge = site.lab.cluster, site.lab.forge
    until(
        site.platform.clock, lambda: set(site.log.living) & site.log.of(team).keys(),
        lambda found: not found, timeout_s=90, goal="the watch telling the last deletion",
    )  # fmt: skip
    paths = ledger_snapshot(site.platform).blobs
    repository = forge.repo(RepoId(team, order))
    parts = site.log.of(team)

    assert cluster.get(ObjectKey(APPLICATION, order, "argocd")) is None
    assert cluster.get(ObjectKey(XGARAGE, order)) is None
    assert cluster.get(ObjectKey(NAMESPACE, order)) is None
    assert repository is not None
    assert repository.archived
    assert len(tombstones(paths, order)) == 1
    assert not [p for p in paths if p.name in ("end.yaml", f"{order}.yaml") and team in p.parts]
    assert {ObjectKey(XGARAGE, order), ObjectKey(CONFIG_MAP, "spec-sheet", order)} <= parts.keys()
    assert {key: len(uids) for key, uids in parts.items()} == dict.fromkeys(parts, 1), "came back"


def test_an_end_leaves_nothing_and_makes_these_writes(site: Site) -> None:
    team = ordered(site)

    done = end(site, team, 0, "never")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == WRITES
    nothing_is_left(site, team)


class TurnedClock(SystemClock):
    """The machine's clock, moved by as much as a test says."""

    moved = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.moved


def noted_expiry(site: Site, key: ObjectKey) -> object:
    return annotations_of(site.lab.cluster.get(key) or {}).get(EXPIRES_AT)


def test_an_order_whose_lease_is_over_is_warned_twice_and_ends(site: Site) -> None:
    team = ordered(site)
    order = f"garage-{team}"
    extended = site.orderkit("lease", "extend", order, "2d", "--reason", "a race", "--json")
    assert extended.code == 0, extended.err
    for key in (ObjectKey(APPLICATION, order, "argocd"), ObjectKey(XGARAGE, order)):
        until(
            site.platform.clock,
            partial(noted_expiry, site, key),
            lambda found: found == extended.json["expires"],
            timeout_s=120,
            goal=f"the expiry reaching {key}",
        )
    clock = TurnedClock()
    platform = replace(site.platform, clock=clock, other_clock=lambda: None)
    done: list[SweptOrder] = []
    for passed in (
        timedelta(days=1, minutes=1),
        timedelta(hours=23, minutes=1),
        timedelta(hours=2),
    ):
        clock.moved += passed
        done += sweep(platform, SweepRequest()).orders

    assert [(one.order, one.action, one.stage) for one in done] == [
        (order, "warn", "24h"),
        (order, "warn", "1h"),
        (order, "end", ""),
    ]
    nothing_is_left(site, team)
    real = replace(site.platform, other_clock=site.lab.cluster.clock)
    assert sweep(real, SweepRequest()).doubt == ""
    jumped = replace(real, clock=clock)
    assert "one of them is wrong" in sweep(jumped, SweepRequest()).doubt


def test_an_end_killed_at_its_writes_is_finished_by_repeating_it(
    site: Site, chances: Chances
) -> None:
    short = chances.random("ends").sample(KILLS, SHORT)
    kills = KILLS if chances.soak else sorted(short)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        teams = list(threads.map(lambda _: ordered(site), kills))
        killed = list(threads.map(lambda k: end(site, k[1], *k[0]), zip(kills, teams, strict=True)))
        again = list(
            threads.map(lambda team: site.orderkit("destroy", "--yes", f"garage-{team}"), teams)
        )

    assert [each.returncode for each in killed] == [-signal.SIGKILL] * len(kills)
    assert [(done.code, done.err) for done in again if done.code] == []
    for team in teams:
        nothing_is_left(site, team)
