"""Many readers of one order over HTTP: they share the work, and each sees what Git has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
import requests
from bays import Bay
from countedforge import CountedForge
from rogues import XGARAGE

from ground.objects.kube_objects import ObjectKey
from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.flows.order import order_damage
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import Forge
from orderkit.web import operations
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

STAGE = 'stage: "stage1"'


@contextmanager
def served(site: Running, platform: Platform) -> Iterator[str]:
    usual = service_options(site.settings, audit=None)
    options = replace(usual, requests_per_minute=100_000)
    server = HttpServer(service_app(platform, options), bind("service", 0))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture(scope="module")
def url(site: Running) -> Iterator[str]:
    with served(site, site.platform) as address:
        yield address


def show(url: str, site: Running, order: str, question: str = "") -> dict[str, Any]:
    headers = {SECRET_HEADER: token(site.settings.service)}
    with requests.get(f"{url}/v1/orders/{order}{question}", headers=headers, timeout=60) as answer:
        found: dict[str, Any] = answer.json()
        assert answer.ok, found
    return found


def test_a_push_is_in_the_next_answer(url: str, site: Running, bay: Bay) -> None:
    assert show(url, site, bay.order)["head"] == bay.head

    for number in range(3):
        bay.edit(STAGE, f"{STAGE} # {number}")
        assert show(url, site, bay.order)["head"] == bay.head
        assert show(url, site, bay.order, "/trace")["order"]["head"] == bay.head


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked when an order was looked at."""
    found: list[Any] = []
    look = order_damage.status

    def counted(*arguments: Any) -> Any:
        found.append(arguments)
        return look(*arguments)

    monkeypatch.setattr(order_damage, "status", counted)
    return found


def test_readers_at_the_same_time_share_the_work(
    url: str, site: Running, bay: Bay, looks: list[Any]
) -> None:
    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(lambda _: show(url, site, bay.order), range(60)))

    assert {answer["head"] for answer in answers} == {bay.head}
    assert len(looks) <= 30  # 60 without sharing; an order that is being delivered changes


def test_a_repository_is_not_looked_at_again_while_only_the_cluster_moves(
    site: Running, bay: Bay, looks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "KEPT_S", 60.0)  # however slow the machine is
    forge = CountedForge(site.platform.forge, bay.repo)
    clock = SystemClock()
    with served(site, replace(site.platform, forge=cast("Forge", forge))) as url:

        def shown(goal: str, is_done: Callable[[dict[str, Any]], bool]) -> None:
            until(
                clock,
                lambda: show(url, site, bay.order),
                is_done,
                timeout_s=60,
                goal=goal,
            )

        shown("it is Ready", lambda answer: answer["phase"] == "Ready")
        before, looked = forge.calls.copy(), len(looks)
        moved = {"metadata": {"annotations": {"example.org/moved": "yes"}}}
        site.platform.cluster.patch(ObjectKey(XGARAGE, bay.order), moved, owner="test")
        shown("it is looked at again", lambda _: len(looks) > looked)

    again = forge.calls - before
    assert not again.keys() & {"repo", "blocking_rule", "names_like", "commits"}, again
