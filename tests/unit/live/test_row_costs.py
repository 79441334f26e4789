"""What an order costs is computed once for each state; a failure is a cost nobody knows."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from ownforge import OwnForge, Watched, unanswered
from rivals import Rival

from ground.errors import AccessError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest
from orderkit.core.order.order_cost import OrderCost
from orderkit.flows.live.live_row import RowCosts
from orderkit.flows.platform import Platform

XR: Manifest = {"metadata": {"name": "garage-a"}, "spec": {"stage": "s1"}}
OTHER: Manifest = {"metadata": {"name": "garage-a"}, "spec": {"stage": "s2"}}


FIRST = CommitSha("c" * 40)


@contextmanager
def costs_of(platform: Platform, known: queue.Queue[str]) -> Iterator[RowCosts]:
    costs = RowCosts(platform, known.put)
    yield costs
    costs.stop()


def unknown_cost(platform: Platform) -> OrderCost:
    known: queue.Queue[str] = queue.Queue()
    with costs_of(platform, known) as costs:
        before = costs.of("garage-a", XR, FIRST)
        told = known.get(timeout=20)
        after = costs.of("garage-a", XR, FIRST)
    assert (before, told) == (None, "garage-a")
    assert after
    return after


def test_a_cost_that_cannot_be_computed_is_not_known(
    forge: OwnForge, caplog: pytest.LogCaptureFixture
) -> None:
    forge.repo(forge.pack)
    blind = forge.client_of(scopes=("write:user",))
    with pytest.raises(AccessError) as refused:
        blind.head(forge.pack)
    with caplog.at_level(logging.WARNING):
        cost = unknown_cost(forge.platform(forge=blind))

    assert cost.unknown == (str(refused.value),)
    assert "cannot be computed now" in caplog.text


def test_a_bug_while_a_cost_is_computed_makes_it_unknown(
    forge: OwnForge, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Rival(forge.client, "head", lambda: 1 / 0)
    with caplog.at_level(logging.WARNING):
        cost = unknown_cost(forge.platform(forge=broken))

    assert cost.unknown == ("this is a bug in Orderkit",)
    assert "a bug while computing" in caplog.text


def test_a_forge_that_gives_no_answer_is_asked_again_until_the_service_stops(
    forge: OwnForge,
) -> None:
    known: queue.Queue[str] = queue.Queue()
    plan = Watched(unanswered())
    with costs_of(forge.platform(forge=forge.proxied(plan)), known) as costs:
        costs.of("garage-a", XR, FIRST)
        for _ in unanswered():
            plan.asked.get(timeout=20)
        assert costs.of("garage-a", XR, FIRST) is None

    assert known.empty()
    assert plan.asked.empty()


def test_an_order_without_prices_has_no_cost_and_is_computed_once(forge: OwnForge) -> None:
    known: queue.Queue[str] = queue.Queue()
    forge.repo(forge.pack)
    plan = Watched()
    with costs_of(forge.platform(forge=forge.proxied(plan)), known) as costs:
        assert costs.of("garage-a", None, FIRST) is None
        assert costs.of("garage-a", XR, None) is None
        costs.of("garage-a", XR, FIRST)
        plan.asked.get(timeout=20)
        costs.of("garage-b", OTHER, FIRST)
        plan.asked.get(timeout=20)
        assert costs.of("garage-a", XR, FIRST) is None
        assert plan.asked.empty()
        for order, xr in (("garage-a", OTHER), ("garage-b", XR)):  # one after the other
            costs.of(order, xr, FIRST)
            plan.asked.get(timeout=20)
        costs.forget("garage-a")
        costs.of("garage-a", OTHER, FIRST)
        plan.asked.get(timeout=20)

    assert known.empty()


def test_an_order_that_goes_while_its_cost_is_computed_is_forgotten(forge: OwnForge) -> None:
    known: queue.Queue[str] = queue.Queue()
    forge.repo(forge.pack)
    plan = Watched()
    during: list[RowCosts] = []
    rival = Rival(forge.proxied(plan), "head", lambda: during[0].forget("garage-a"))
    with costs_of(forge.platform(forge=rival), known) as costs:
        during.append(costs)
        for order in ("garage-a", "garage-b", "garage-a"):  # one after the other
            costs.of(order, XR, FIRST)
            plan.asked.get(timeout=20)

    assert rival.has_acted
