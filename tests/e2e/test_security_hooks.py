"""
Hooks that a member pushes, on a real Argo CD: none runs, and no end is held up.

``tests/security/test_hooks.py`` makes the same attacks on the embedded platform. The policies alone
hold them on a real API server in ``tests/conformance/policies/test_order_policies.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import hookattacks
import labplatform
import pytest
import roguery
from commands import Command, as_process
from hookattacks import ON_DELETION, STEPS
from labplatform import LabPlatform, bootstrapped

from ground.argocd.sync_rules import HELM_HOOK, HOOK
from ground.names import TeamName
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team

_numbers = iter(range(1, 1000))


@dataclass(frozen=True)
class Site:
    """The lab, bootstrapped."""

    lab: LabPlatform
    platform: Platform


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("security-hooks")
    with labplatform.serving(folder) as lab, bootstrapped(lab) as platform:
        yield Site(lab, platform)


@pytest.fixture
def orderkit(site: Site) -> Command:
    return as_process(site.lab.file)


@pytest.fixture
def order(site: Site) -> OrderEntry:
    """An order whose ``main`` is open, of a team of its own."""
    team = TeamName(f"hooked{next(_numbers)}")
    add_team(site.platform, team, requester=roguery.REQUESTER)
    return roguery.place(site.platform, "garage", team)


def test_hooks_of_a_live_order_are_told_everywhere_and_make_nothing(
    site: Site, orderkit: Command, order: OrderEntry
) -> None:
    hookattacks.attack_live_order(site.platform, order, orderkit)


@pytest.mark.parametrize(
    "annotations", [{HOOK: "PreSync"}, {HOOK: "SyncFail"}, {HELM_HOOK: "pre-upgrade"}], ids=str
)
def test_an_xr_that_calls_itself_a_hook_is_not_replaced(
    site: Site, order: OrderEntry, annotations: Mapping[str, str]
) -> None:
    hookattacks.attack_own_xr(site.platform, order, annotations)


def test_an_xr_that_is_to_be_replaced_by_force_is_not(site: Site, order: OrderEntry) -> None:
    hookattacks.attack_by_replacement(site.platform, order)


@pytest.mark.parametrize("annotations", ON_DELETION, ids=str)
def test_an_application_that_is_deleted_by_hand_runs_no_hook(
    site: Site, order: OrderEntry, annotations: Mapping[str, str]
) -> None:
    hookattacks.attack_deleted_application(site.platform, order, annotations)


def test_an_order_that_leaves_the_ledger_runs_no_hook(site: Site, order: OrderEntry) -> None:
    hookattacks.attack_removed_entry(site.platform, order)


@pytest.mark.parametrize(
    ("before", "steps", "refreshes"),
    [(True, (), False), (False, STEPS, True), (False, STEPS, False), (True, STEPS, True)],
    ids=["before", "during", "during, without a refresh", "before and during"],
)
def test_the_end_of_an_order_runs_no_hook_and_is_not_held_up(
    site: Site, order: OrderEntry, *, before: bool, steps: tuple[str, ...], refreshes: bool
) -> None:
    hookattacks.attack_end(site.platform, order, before=before, steps=steps, refreshes=refreshes)
