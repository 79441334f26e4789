"""
A ledger of 10,000 orders of 200 teams, embedded: registering, adding a team, looking.

Registering is measured without Argo CD's part at work (nothing is bootstrapped), so that it is the
cost of registering. What is listed was put into the cluster as it would stand there, and is
left alone by delivery. Client, forge and cluster share this process; `cpu-s` beside a figure are
its processor seconds.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from bench.figure import Figure, size
from ground.names import OrderId, RepoId, TeamName
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, TRACKING_ID, Kind, Manifest
from kubeschema.xrd import crd_for
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.cli.connecting import connect
from orderkit.core.kit.order_kinds import kinds_of
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import TeamPlace
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.order import order_report
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import EmbeddedPlatform, Ports
from yamlfiles import yaml11

REQUESTER = "user:default/bench"
TEAMS, ORDERS, REGISTERED = size((200, 10_000, 1_000), (4, 100, 3))
BATCH = 2_000
HEAD = "d" * 40
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, started(Path(name)) as settings:
        platform = connect(settings)
        write_ledger(platform)
        yield from _registering(platform)
        yield from _adding(platform)
        fill_cluster(platform)
        yield from _looking("cold", connect(settings))
        yield from _looking("warm", platform)
        yield from _commanding(Path(name) / "platform.yaml")


@contextlib.contextmanager
def started(folder: Path) -> Iterator[PlatformSettings]:
    """Run the embedded platform with the reference pack in its forge, and nothing bootstrapped."""
    embedded = EmbeddedPlatform(folder, pack=reference_pack(), ports=Ports(0, 0, 0, 0), teams=())
    with contextlib.ExitStack() as undo:
        undo.callback(embedded.stop)
        settings = embedded.start()
        platform = connect(settings)
        files = read_folder(reference_pack())
        platform.forge.ensure_org(platform.pack_repo.owner)
        platform.forge.ensure_repo(platform.pack_repo, description="pack")
        changes = [FileChange(path, data, None) for path, data in sorted(files.items())]
        platform.forge.write(platform.pack_repo, changes, Operation("pack", REQUESTER, "pack"))
        yield settings


def write_ledger(platform: Platform, *, teams: int = TEAMS, orders_: int = ORDERS) -> None:
    """Write a ledger as registering would have, in few commits."""
    repo, url = platform.ledger, platform.forge.base_url
    platform.forge.ensure_repo(repo, description="ledger")
    kinds = kinds_of(read_pack(read_folder(reference_pack())).kits())
    files = {PurePosixPath("README.md"): "# Ledger\n"}
    for team in map(team_name, range(teams)):
        files[ledger.team_path(team)] = ledger_applications.team_file(
            TeamPlace(team, url, repo, kinds)
        )
        files[ledger.apps_keep_path(team)] = ""
    for number in range(orders_):
        entry = entry_of(number, teams)
        made = _made(entry, url)
        files[entry.application_path] = yaml11.dump(made)
    paths = sorted(files)
    for at in range(0, len(paths), BATCH):
        changes = [FileChange(path, files[path].encode(), None) for path in paths[at : at + BATCH]]
        platform.forge.write(repo, changes, Operation(f"fill-{at}", REQUESTER, "fill"))


def team_name(number: int) -> TeamName:
    return TeamName(f"crew-{number:03d}")


def entry_of(number: int, teams: int = TEAMS) -> OrderEntry:
    return OrderEntry(team_name(number % teams), OrderId(f"garage-{number:05d}"))


def _registering(platform: Platform) -> Iterator[Figure]:
    entries = [entry_of(ORDERS + number) for number in range(REGISTERED)]
    for entry in entries:
        _publish(platform, entry.repository)
    wanted = [Registration(e.order, "garage", e.team, REQUESTER) for e in entries]
    register(platform, wanted[0])  # the service has read the ledger long ago
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for each in wanted[1:]:
        assert register(platform, each).changed
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    done = len(wanted) - 1
    yield Figure("ledger.register.per-second", done / wall_s, "1/s", aim=">= 50")
    yield Figure("ledger.register.cpu-s-each", cpu_s / done, "s")
    bare_s = _bare_write_s(platform)
    yield Figure(
        "ledger.register.each",
        wall_s / done * 1000,
        "ms",
        peer="the one write to the ledger, nothing checked or refreshed",
        peer_value=bare_s * 1000,
        ratio=wall_s / done / bare_s,
    )


def _publish(platform: Platform, repo: RepoId) -> None:
    platform.forge.ensure_org(repo.owner)
    platform.forge.ensure_repo(repo, description="bench")
    record: Manifest = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Order",
        "metadata": {"name": repo.name},
        "spec": {"kit": "garage", "team": repo.owner, "requester": REQUESTER, "ordered": {}},
    }
    data = yaml11.dump(record).encode()
    change = FileChange(PurePosixPath(".orderkit/order.yaml"), data, None)
    platform.forge.write(repo, [change], Operation("bench", REQUESTER, "bench"))


def _bare_write_s(platform: Platform, runs: int = 50) -> float:
    begin_s = time.perf_counter()
    for number in range(runs):
        change = FileChange(PurePosixPath(f"data/bench-{number}.txt"), b"x", None)
        platform.forge.write(platform.ledger, [change], Operation(f"b{number}", REQUESTER, "b"))
    return (time.perf_counter() - begin_s) / runs


def _adding(platform: Platform) -> Iterator[Figure]:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for number in range(20):
        add_team(platform, f"fresh-{number}", requester=REQUESTER)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    yield Figure("ledger.team-add.each", wall_s / 20 * 1000, "ms")
    yield Figure("ledger.team-add.cpu-s-each", cpu_s / 20, "s")


def fill_cluster(platform: Platform) -> None:
    """Put what the cluster would hold of 10,000 delivered orders there."""
    (kit,) = read_pack(read_folder(reference_pack())).kits()
    definition = crd_for(kit.xrd)
    definition["metadata"].pop("ownerReferences", None)  # its XRD is not there
    platform.cluster.apply(definition, owner="bench")
    url = platform.forge.base_url
    while not platform.cluster.serves(kit.kind):
        time.sleep(0.05)
    for number in range(ORDERS):
        entry = entry_of(number)
        platform.cluster.create(application(entry, url), owner="bench")
        xr = _xr(entry, kit.kind.api_version, kit.kind.kind)
        made = platform.cluster.create(xr, owner="bench")
        platform.cluster.replace({**made, "status": xr["status"]}, owner="bench", status=True)


def _made(entry: OrderEntry, url: str) -> Manifest:
    return ledger_applications.order_application(
        entry, kit="garage", forge_url=url, requester=REQUESTER
    )


def application(entry: OrderEntry, url: str) -> Manifest:
    made = _made(entry, url)
    made["metadata"]["annotations"] |= {"argocd.argoproj.io/skip-reconcile": "true"}
    resource = {"group": "blog.opsbogus.dev", "version": "v1alpha1", "kind": "XGarage"}
    synced: dict[str, Any] = {"status": "Synced", "revision": HEAD}
    made["status"] = {
        "sync": {**synced, "comparedTo": {k: made["spec"][k] for k in ("source", "destination")}},
        "health": {"status": "Healthy"},
        "resources": [{**resource, "name": entry.order, "status": "Synced"}],
        "operationState": {
            "operation": {"sync": {"revision": HEAD, "prune": True}},
            "phase": "Succeeded",
            "message": "successfully synced (all tasks run)",
            "startedAt": "2026-11-21T12:00:00Z",
            "finishedAt": "2026-11-21T12:00:01Z",
            "syncResult": {"revision": HEAD, "resources": [{**resource, "name": entry.order}]},
        },
    }
    return made


def _xr(entry: OrderEntry, api_version: str, kind: str) -> Manifest:
    seen = {"observedGeneration": 1, "lastTransitionTime": "2026-11-21T12:00:02Z"}
    ready = {"status": "True", "reason": "Available", **seen}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": entry.order,
            "annotations": {TRACKING_ID: f"{entry.order}:{XGARAGE.group}/{kind}:/{entry.order}"},
        },
        "spec": {"teamName": "crew", "stage": "stage2"},
        "status": {"conditions": [{**ready, "type": "Synced"}, {**ready, "type": "Ready"}]},
    }


def _looking(name: str, platform: Platform) -> Iterator[Figure]:
    """A cold client has read nothing yet, as a command; a warm one is the service's."""
    begin_s = time.perf_counter()
    order_report.status(platform, entry_of(77).order)
    yield Figure(f"ledger.status.{name}", time.perf_counter() - begin_s, "s", aim="<= 1")
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    found = order_report.list_orders(platform)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    assert len(found) == ORDERS + REGISTERED
    assert sum(each.state.ready for each in found) == ORDERS
    plain_s = _plain_list_s(platform)
    yield Figure(
        f"ledger.list.{name}",
        wall_s,
        "s",
        peer="list the same Applications and XRs, nothing joined or judged",
        peer_value=plain_s,
        ratio=wall_s / plain_s,
        aim="<= 1",
    )
    yield Figure(f"ledger.list.{name}.cpu-s", cpu_s, "s")


def _commanding(settings: Path) -> Iterator[Figure]:
    """Run the command itself: a process that imports, connects, lists and prints."""
    command = [sys.executable, "-m", "orderkit", "list", "--json", "--platform", str(settings)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s, platform_s = time.perf_counter(), time.process_time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall_s, platform_s = time.perf_counter() - begin_s, time.process_time() - platform_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield Figure("ledger.list.command", wall_s, "s", aim="<= 2")
    yield Figure("ledger.list.command.cpu-s", client_s, "s")
    yield Figure("ledger.list.command.platform-cpu-s", platform_s, "s")


def _plain_list_s(platform: Platform) -> float:
    begin_s = time.perf_counter()
    platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE)
    platform.cluster.list(XGARAGE)
    return time.perf_counter() - begin_s
