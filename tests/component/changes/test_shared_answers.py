"""Many readers of one order over HTTP: they share the work, and each sees what Git has."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import requests
from bays import Bay

from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.flows.order import order_damage
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

STAGE = 'stage: "stage1"'


@pytest.fixture(scope="module")
def url(site: Running) -> Iterator[str]:
    usual = service_options(site.settings, audit=None)
    options = replace(usual, requests_per_minute=100_000)
    server = HttpServer(service_app(site.platform, options), bind("service", 0))
    server.start()
    yield server.url
    server.stop()


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


def test_readers_at_the_same_time_share_the_work(
    url: str, site: Running, bay: Bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    look = order_damage.status

    def counted(*arguments: Any) -> Any:
        looks.append(arguments)
        return look(*arguments)

    monkeypatch.setattr(order_damage, "status", counted)
    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(lambda _: show(url, site, bay.order), range(60)))

    assert {answer["head"] for answer in answers} == {bay.head}
    assert len(looks) <= 30  # 60 without sharing; an order that is being delivered changes
