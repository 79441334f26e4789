"""Changes above what a team may spend: refused, or a pull request if the team may ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from approvaldesk import Desk, person, published_approval
from bays import Bay, ask, set_
from commands import Command
from tests.component.platform.test_costs import TABLE, publish

from ground.errors import RefusedError
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.deciding import approve
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.order.registering import Registration, register
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

LIMIT = "above the team's cost limit of 50.00"


@pytest.fixture(autouse=True)
def prices(site: Running) -> Iterator[None]:
    publish(site, TABLE)
    yield
    publish(site, None)


@pytest.fixture
def bay(desk: Desk, orderkit: Command) -> Bay:
    """An order for 40.10, of a team that may spend 50."""
    desk.order(stage="stage1")
    assert orderkit("team", "change", desk.team, "--limit", "cost=50").code == 0
    return Bay(desk.platform, desk.team, desk.team)


@pytest.fixture
def eve(desk: Desk) -> Requester:
    groups = frozenset({f"group:default/{desk.team}"})
    return Requester(f"user:default/{desk.eve.login}", "a token", groups)


def test_without_asking_it_is_refused(bay: Bay, eve: Requester) -> None:
    with pytest.raises(RefusedError, match=LIMIT):
        ask(bay, set_("stage", "stage2"), requester=eve)

    assert bay.spec()["stage"] == "stage1"
    assert list(bay.platform.forge.pulls(bay.repo)) == []


def test_what_was_pushed_past_it_to_a_protected_main_is_not_delivered(
    bay: Bay, desk: Desk, eve: Requester
) -> None:
    before = pinned_commit(desk.platform, OrderEntry(desk.team, bay.order))
    bay.edit("stage1", "stage2")
    registration = Registration(bay.order, "garage", desk.team, "user:default/boss")

    with pytest.raises(RefusedError, match=f"is not delivered: .*{LIMIT}"):
        register(desk.platform, registration)

    assert pinned_commit(desk.platform, OrderEntry(desk.team, bay.order)) == before
    ask(bay, set_("stage", "stage1"), requester=eve)
    assert register(desk.platform, registration).order == bay.order


def test_a_team_that_may_ask_proposes_it_and_the_platform_team_agrees(
    bay: Bay, desk: Desk, eve: Requester, orderkit: Command
) -> None:
    assert orderkit("team", "change", desk.team, "--over", "ask").code == 0
    below = ask(bay, set_("budget", 5), requester=eve)
    above = ask(bay, set_("stage", "stage2"), requester=eve)
    pull = above.pull
    assert pull is not None
    with pytest.raises(RefusedError, match=LIMIT):
        merge_reviewed(desk.platform, bay.order, pull.number, requester="user:default/boss")
    before = bay.spec()["stage"]
    path = f"/repos/{desk.platform.ledger}/collaborators/{desk.frank.login}"
    desk.admin.api("PUT", path, {"permission": "write"})

    decision = approve(desk.platform, bay.order, person(desk.frank), number=pull.number)

    assert (below.state, above.state, before) == ("committed", "proposed", "stage1")
    assert "- the platform team, because" in pull.body
    assert LIMIT in pull.body
    assert decision.state == "delivered", decision.missing
    assert bay.spec()["stage"] == "stage2"


RULE = {"when": "cost.difference > 20.0", "by": ["platform"], "because": "it costs 20 more"}


def test_a_rule_about_the_cost_asks_for_what_costs_more(
    desk: Desk, eve: Requester, site: Running
) -> None:
    desk.order(stage="stage1")
    bay = Bay(desk.platform, desk.team, desk.team)
    with published_approval(desk.platform, [RULE]):
        cheap = ask(bay, set_("budget", 5), requester=eve)
        dear = ask(bay, set_("stage", "stage2"), requester=eve)
        publish(site, TABLE.replace("currency: EUR", "currency: EURO"))
        broken = ask(bay, set_("laps", 6), requester=eve)
        publish(site, None)
        unknown = ask(bay, set_("budget", 6), requester=eve)

    assert (cheap.state, dear.state) == ("committed", "proposed")
    assert (broken.state, unknown.state) == ("proposed", "proposed")
    assert dear.pull is not None
    assert "- the platform team, because it costs 20 more" in dear.pull.body
