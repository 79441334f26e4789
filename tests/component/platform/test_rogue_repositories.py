"""What a rogue repository tries is refused on the embedded platform, and told in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
import roguery
import rogues
from commands import as_process
from rogues import ROGUES, XGARAGE, Pair, Rogue, object_of

from ground.errors import OrderkitError
from ground.objects.kube_objects import ObjectKey
from orderkit.flows.order import tracing
from orderkit.flows.platform import write_ledger
from orderkit.ports.forge import Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PAIR = Pair("ae86", "rx7")
_THEIRS = {
    "of": {
        "apiVersion": XGARAGE.api_version,
        "kind": XGARAGE.kind,
        "resourceRef": {"name": f"garage-{PAIR.them}"},
    },
    "reason": "it never ends",
}
_USAGES = tuple(
    Rogue(
        f"a {kind} that holds up another order's end",
        "drawer",
        object_of("protection.crossplane.io/v1beta1", kind, "rogue", namespace, spec=_THEIRS),
        f"resource protection.crossplane.io:{kind} is not permitted in project {{us}}",
        (f"{kind} rogue", "nothing else"),
    )
    for kind, namespace in (("Usage", "team-{us}"), ("ClusterUsage", ""))
)
"""Kinds that a cluster has with Crossplane only."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform of the rogues' pack, with one order of each kit for each rogue that needs one."""
    folder = tmp_path_factory.mktemp("rogues")
    pack = rogues.rogue_pack(folder / "pack")
    wanted = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), (PAIR.us, PAIR.them))
    with running(wanted, on_step=lambda *_: None) as found:
        for kit in ("garage", "locker", "drawer"):
            roguery.place(found.platform, kit, PAIR.us, "own")
        yield found


@pytest.mark.parametrize("rogue", [*ROGUES, *_USAGES], ids=lambda rogue: rogue.reason)
def test_it_is_refused_and_told_and_forgiven(site: Running, rogue: rogues.Rogue) -> None:
    platform = site.platform
    entry = roguery.entry_of(rogue.kit, PAIR.us, "" if rogue.kit == "garage" else "own")
    tried = roguery.attempt(platform, platform.forge, rogue, PAIR, entry)

    report = roguery.failing(platform, tried)

    assert report.state.head == tried.head
    assert tried.said() in roguery.reasons(platform, entry)
    failing = tracing.trace(platform, entry.order).failing
    assert failing is not None
    assert all(word in failing.reason for word in tried.told())
    assert platform.cluster.get(ObjectKey(XGARAGE, f"garage-{PAIR.them}")) is None
    roguery.forgiven(platform, tried, roguery.repent(platform, tried))


def test_a_change_of_an_order_in_its_teams_namespace_is_waited_for(site: Running) -> None:
    file = site.embedded.state.folder / "platform.yaml"
    done = as_process(file)("change", "drawer-own", "serial=second", "--json")

    assert done.code == 0, done.err
    roguery.ready(site.platform, roguery.entry_of("drawer", PAIR.us, "own"))


def test_what_is_applied_by_hand_is_refused_at_once(site: Running) -> None:
    with pytest.raises(OrderkitError, match="no Application delivers XGarage"):
        site.platform.cluster.create(rogues.by_hand(PAIR.them), owner="kubectl")


def test_an_application_of_another_teams_repository_delivers_nothing(site: Running) -> None:
    """Whoever writes the ledger decides; but even there a mistake stays in its team."""
    path = PurePosixPath("apps", PAIR.us, "locker-stolen.yaml")
    application = rogues.stolen(site.settings.forge.url, PAIR)
    operation = Operation("stolen", roguery.REQUESTER, "a mistake")
    write_ledger(site.platform, {path: application}, operation)
    entry = roguery.entry_of("locker", PAIR.us, "stolen")

    report = roguery.wait_for(
        site.platform, entry, lambda found: found.state.phase == "Failing", "told"
    )

    assert f"{PAIR.them}/locker-own" in report.state.reason
    assert roguery.application(site.platform, entry)["status"]["conditions"][0]["type"] == (
        "InvalidSpecError"
    )
    undo = Operation("stolen-undone", roguery.REQUESTER, "sorry")
    write_ledger(site.platform, {path: None}, undo)
