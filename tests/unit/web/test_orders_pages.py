"""What the console's list of orders shows and leaves out, and how an order's parts are told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from bareplatform import platform_of
from faultproxy import FaultProxy
from ownforge import OwnForge, SharedForge, Watched, unanswered

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.live.live_row import LiveRow
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation, PullDraft
from orderkit.ports.requesters import Requester
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.console.order_pages import FAVOURITES_MAX, OrderPages, PartsTree, node_id
from orderkit.web.console.page_exchange import ApiCalls
from orderkit.web.console.sessions import Session, SessionCaller
from orderkit.web.metrics import Metrics
from orderkit.web.operations import Service, ServiceOptions, ServiceRequest

ACCESS = CallerAccess("s", "X")


class Then(SystemClock):
    def now(self) -> datetime:
        return datetime(2026, 11, 24, 8, 0, tzinfo=UTC)


def row(name: str, phase: Phase = "Ready", team: str = "a", **parts: Any) -> LiveRow:
    order = OrderRow(f"garage-{name}", team, "garage", phase, **parts)
    return LiveRow.of(order, None, is_ready=phase == "Ready")


def cost(monthly: str | None, up_to: str = "0") -> OrderCost:
    return OrderCost("EUR", None if monthly is None else Decimal(monthly), Decimal(up_to))


ROWS = (
    row("cheap", costs=cost("9")),
    row("dear", costs=cost("9", "1"), expires="2026-11-25T08:00:00Z"),
    row("dim", costs=cost(None), expires="2026-11-24T08:00:00Z"),
    row("free", "Failing", expires="soon"),
    row("other", team="b"),
)


@dataclass
class Model:
    rows_: Sequence[LiveRow] = ROWS

    def wait_complete(self) -> None:
        """Be complete."""

    def rows(self) -> Sequence[LiveRow]:
        return self.rows_


Serving = Callable[..., Service]


@pytest.fixture(scope="module")
def pulls(one_forge: SharedForge) -> Iterator[FaultProxy]:
    """A line to the forge, on which team a has two open pull requests and b's cannot be read."""
    with ExitStack() as undo:
        own, repo = OwnForge(one_forge, undo), RepoId("a", "garage-dear")
        own.client.ensure_org("a")
        own.client.ensure_repo(repo, description="")
        head = own.write(repo, {"README.md": ""})
        for number, branch in enumerate(("one", "two")):
            own.client.ensure_branch(repo, branch, head)
            operation = Operation(f"propose-{branch}", "user:default/zoe", "Propose it")
            path = PurePosixPath(f"{number}.yaml")
            own.client.write(repo, [FileChange(path, b"", None)], operation, branch=branch)
            own.client.open_pull(repo, PullDraft("t", "", branch), operation)
        yield own.proxy(Watched(unanswered(999), "owner=b"))


@pytest.fixture
def service(pulls: FaultProxy, one_forge: SharedForge) -> Iterator[Serving]:
    with one_forge.client(url=pulls.url) as client:

        def serve(rows: Sequence[LiveRow] = ROWS) -> Service:
            model: Any = Model(rows)
            streams: Any = None
            platform = platform_of(None, forge=client, clock=Then())
            return Service(platform, ServiceOptions(ACCESS), Metrics(), model, streams)

        yield serve


def signed_in(*teams: str) -> Caller:
    groups = frozenset(f"group:default/{team}" for team in teams)
    person = Requester("user:default/zoe", "a link", groups)
    session = Session("s1", person, "csrf", 2e9)
    return SessionCaller(ACCESS, portal=False, proof=person, session=session)


def listed(
    service: Service, query: dict[str, str], favourites: str = "", **parts: Any
) -> list[str]:
    """Return the orders that the list links to, in its order."""
    call = ServiceRequest(
        parts.get("caller", signed_in("a", "b")), {}, {}, query,
        headers={"at": "/", "favourites": favourites},
    )  # fmt: skip
    page = OrderPages(ApiCalls(())).orders(service, call).body
    return list(dict.fromkeys(re.findall(r'href="/orders/garage-([a-z0-9]+)"', page)))


@pytest.mark.parametrize(
    ("query", "orders"),
    [
        ({}, {"cheap", "dear", "dim", "free", "other"}),
        ({"team": "b"}, {"other"}),
        ({"phase": "Failing"}, {"free"}),
        ({"text": " dea "}, {"dear"}),
        ({"cost": "9"}, {"cheap", "dear"}),
        ({"cost": "10"}, {"dear"}),
        ({"cost": "11"}, set()),
        ({"cost": "0"}, {"cheap", "dear"}),
        ({"cost": "unknown"}, {"dim", "free", "other"}),
        ({"cost": "much"}, {"cheap", "dear", "dim", "free", "other"}),
        ({"cost": "12345678"}, {"cheap", "dear", "dim", "free", "other"}),
        ({"cost": "1234567"}, set()),
        ({"expires": "never"}, {"cheap", "other"}),
        ({"expires": "24h"}, {"dear", "dim"}),
        ({"expires": "23h"}, {"dim"}),
        ({"expires": "soon"}, {"cheap", "dear", "dim", "free", "other"}),
        ({"only": "favourites"}, {"dim", "other"}),
    ],
)
def test_a_list_shows_the_orders_that_its_filters_select(
    query: dict[str, str], orders: set[str], service: Serving
) -> None:
    assert set(listed(service(), query, "garage-dim.Not A Label.garage-other")) == orders


def test_a_list_is_of_the_callers_teams_and_urgent_orders_come_first(service: Serving) -> None:
    assert listed(service(), {}, caller=signed_in("b")) == ["other"]
    assert listed(service(), {})[0] == "free"
    assert listed(service(), {"sort": "order"})[0] == "cheap"
    assert listed(service(), {"sort": "-order"})[0] == "other"
    assert listed(service(), {"sort": "none"})[0] == "free"


def test_open_proposals_are_marked_and_read_once_in_a_while(
    service: Serving, pulls: FaultProxy
) -> None:
    pulls.log.clear()
    pages = OrderPages(ApiCalls(()))
    call = ServiceRequest(signed_in("a", "b"), {}, {}, {}, headers={"at": "/"})

    bodies = [pages.orders(service(), call).body for _ in range(2)]

    asked = Counter(re.findall(r"owner=(\w)", "\n".join(pulls.log)))
    assert asked == {"a": 1, "b": len(unanswered())}
    for body in bodies:
        marks = re.findall(r'href="/orders/garage-([a-z]+)/pulls/(\d)"', body)
        assert marks == [("dear", "1"), ("dear", "2")]


def favoured(order: str, before: Sequence[str]) -> list[str]:
    call = ServiceRequest(
        signed_in("a"), {"favourite": [order], "back": ["/?team=a"]}, {}, {},
        headers={"favourites": ".".join(before), "favourites-name": "f", "secure": ""},
    )  # fmt: skip
    nothing: Any = None
    answer = OrderPages(ApiCalls(())).favourite(nothing, call)
    assert answer.headers["Location"] == f"/?team=a#star-{order}"
    kept = re.match(r"f=([^;]*);", answer.headers["Set-Cookie"])
    assert kept
    return kept[1].split(".") if kept[1] else []


def test_a_favourite_is_kept_first_and_a_second_time_it_is_none() -> None:
    many = [f"o-{number}" for number in range(FAVOURITES_MAX)]

    assert favoured("garage-a", []) == ["garage-a"]
    assert favoured("garage-a", ["x", "garage-a", "y"]) == ["x", "y"]
    assert favoured("x", ["x"]) == []
    assert favoured("new", many) == ["new", *many[:-1]]
    assert favoured("new", [*many, "more"]) == ["new", *many[:-1]]
    with pytest.raises(InvalidInputError, match="favourite"):
        favoured("No Label", [])


def node(name: str, *children: Any, ready: str = "True", reason: str = "") -> dict[str, Any]:
    where = {"apiVersion": "v1", "kind": "X", "namespace": "", "name": name}
    state = {"synced": "True", "ready": ready, "reason": reason}
    return {**where, **state, "children": list(children)}


def names(tree: PartsTree, ids: Sequence[str]) -> list[str]:
    return [each["name"] for each in tree.walk() if each["id"] in ids]


FAILING = node("app", node("xr", node("inner", node("disk", ready="False"), ready="False"),
                           node("net"), ready="False"))  # fmt: skip


def test_what_an_order_waits_for_is_told_from_the_deepest_part() -> None:
    tree = PartsTree({"tree": FAILING, "failing": {"name": "disk"}})
    whole = PartsTree({"tree": FAILING, "failing": None})
    alone = PartsTree({"tree": node("app", node("xr"), reason="no path"), "failing": {}})

    assert [each["name"] for each in tree.waiting()] == ["disk"]
    assert [each["name"] for each in alone.waiting()] == ["app"]
    assert whole.waiting() == []
    assert tree.counts() == {"ready": 1, "total": 3}
    assert names(tree, tree.open()) == ["app", "xr", "inner", "disk"]
    assert names(alone, alone.open()) == ["app", "xr"]


def test_a_part_shows_its_newest_events_and_nobody_elses() -> None:
    about = {"apiVersion": "v1", "kind": "X", "name": "disk"}
    events = [{"object": about, "text": number} for number in range(7)]
    events.append({"object": {**about, "namespace": "other"}, "text": 7})

    tree = PartsTree({"tree": FAILING, "failing": {}}, events)

    (disk,) = (each for each in tree.walk() if each["name"] == "disk")
    assert [event["text"] for event in disk["events"]] == [0, 1, 2, 3, 4]
    assert disk["id"] == node_id(about)
    assert re.fullmatch("part-[0-9a-f]{12}", disk["id"])
    assert [each["name"] for each in tree.walk() if each["events"]] == ["disk"]
