"""
No hook of Argo CD that somebody pushes into an order ever runs, whatever happens to the order.

The embedded Argo CD asks the AppProject about hooks, as 3.6 does; what the policies hold by
themselves is in ``tests/conformance/policies/test_order_policies.py``. The same attacks on the real
Argo CD are in ``tests/e2e/test_security_hooks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import hookattacks
import pytest
import roguery
from commands import Command, in_process
from hookattacks import MALLORY, ON_DELETION, STEPS, outside

from ground.argocd.sync_rules import HELM_HOOK, HINT, HOOK
from ground.errors import RefusedError
from ground.names import OrderId, TeamName
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.registering import Registration, register
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("hooks") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as site:
        yield site


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.embedded.state.folder / PLATFORM_FILE, capsys)


@pytest.fixture
def order(site: Running, orderkit: Command) -> OrderEntry:
    """An order whose ``main`` is open, of a team of its own."""
    team = f"hooked{next(_numbers)}"
    assert orderkit("team", "add", team).code == 0
    return roguery.place(site.platform, "garage", team)


_numbers = iter(range(1, 1000))


def test_hooks_of_a_live_order_are_told_everywhere_and_make_nothing(
    site: Running, orderkit: Command, order: OrderEntry
) -> None:
    hookattacks.attack_live_order(site.platform, order, orderkit)


@pytest.mark.parametrize(
    "annotations", [{HOOK: "PreSync"}, {HOOK: "SyncFail"}, {HELM_HOOK: "pre-upgrade"}]
)
def test_an_xr_that_calls_itself_a_hook_is_not_replaced(
    site: Running, order: OrderEntry, annotations: Mapping[str, str]
) -> None:
    hookattacks.attack_own_xr(site.platform, order, annotations)


@pytest.mark.parametrize("annotations", ON_DELETION, ids=str)
def test_an_application_that_is_deleted_by_hand_runs_no_hook(
    site: Running, order: OrderEntry, annotations: Mapping[str, str]
) -> None:
    hookattacks.attack_deleted_application(site.platform, order, annotations)


def test_an_order_that_leaves_the_ledger_runs_no_hook(site: Running, order: OrderEntry) -> None:
    hookattacks.attack_removed_entry(site.platform, order)


@pytest.mark.parametrize(
    ("before", "steps", "refreshes"),
    [(True, (), False), (False, STEPS, True), (False, STEPS, False), (True, STEPS, True)],
    ids=["before", "during", "during, without a refresh", "before and during"],
)
def test_the_end_of_an_order_runs_no_hook_and_is_not_held_up(
    site: Running, order: OrderEntry, *, before: bool, steps: tuple[str, ...], refreshes: bool
) -> None:
    hookattacks.attack_end(site.platform, order, before=before, steps=steps, refreshes=refreshes)


def test_an_order_that_may_be_taken_back_is_not_entered_with_a_hook(
    site: Running, orderkit: Command, order: OrderEntry
) -> None:
    """Its Application would wait for the hook, and the order would live on above the limit."""
    forge, team = site.platform.forge, TeamName(f"{order.team}-full")
    assert orderkit("team", "add", team, "--limit", "orders=1").code == 0
    copied = OrderEntry(team, OrderId(f"garage-{team}"))
    forge.ensure_repo(copied.repository, description="")
    head = forge.head(order.repository)
    assert head is not None
    changes = [
        FileChange(path, file.data.replace(order.team.encode(), team.encode()), None)
        for path in forge.tree(order.repository, head)
        if (file := forge.read(order.repository, path, head))
    ]
    forge.write(copied.repository, changes, Operation("by-hand", MALLORY, "by hand"))
    hookattacks.push_objects(site.platform, copied, outside([{HOOK: "PreDelete"}], "entering"))

    with pytest.raises(RefusedError, match="is a hook of Argo CD") as refused:
        register(site.platform, Registration(copied.order, "garage", team, MALLORY))
    hookattacks.push(site.platform, copied, {"hooks.yaml": None})
    entered = register(site.platform, Registration(copied.order, "garage", team, MALLORY))

    assert HINT in refused.value.hint
    assert entered.changed
