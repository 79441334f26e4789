"""What orders cost: before they are placed, in lists and views, and held to a team's limit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import requests
from bays import new_bay
from commands import Command
from consolebrowser import Browser
from faultproxy import Decision, Falsehood, Fault, Listed, open_proxy
from forgehands import client_at
from forgeusers import ForgeUser, embedded_admin, new_user
from tests.component.platform.test_orders import push

from ground.errors import OrderkitError, RefusedError, RemoteError
from ground.names import OrderId, RepoId, TeamName
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order import ledger
from orderkit.core.plan.price_table import PRICES
from orderkit.flows.approval.deciding import approve
from orderkit.flows.order import cost_limit
from orderkit.flows.order.live_order import find_living, read_xr
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

TABLE = """\
apiVersion: orderkit.dev/v1alpha1
kind: PriceTable
metadata: {name: ours}
spec:
  currency: EUR
  source: a test
  date: 2099-01-01
  prices:
    - {kind: XGarage, title: bay, when: {spec.stage: stage1}, price: '40.00'}
    - {kind: XGarage, title: bay, when: {spec.stage: stage2}, price: '65.00'}
    - {kind: XGarage, title: bay, when: {spec.stage: stage3}, price: '110.00'}
    - {kind: Namespace, title: room, price: 0}
    - {kind: ConfigMap, title: sheet, price: '0.10'}
"""


def publish(platform: Running, text: str | None) -> None:
    forge, pack = platform.platform.forge, platform.platform.pack_repo
    before = forge.read(pack, PRICES, "main")
    change = FileChange(PRICES, text.encode() if text else None, before.sha if before else None)
    operation = Operation(f"prices-{hash((text, before and before.sha))}", "user:default/t", "p")
    if text or before:
        forge.write(pack, [change], operation)


@pytest.fixture(autouse=True)
def prices(platform: Running) -> Iterator[None]:
    publish(platform, TABLE)
    yield
    publish(platform, None)


def ask(platform: Running, method: str, path: str, body: object = None) -> Any:
    settings = platform.settings.service
    headers = {SECRET_HEADER: token(settings)}
    answer = requests.request(
        method, f"{settings.url}{path}", headers=headers, json=body, timeout=60
    )
    return answer.json()


def test_the_plan_of_an_order_says_what_it_would_cost_and_writes_nothing(
    orderkit: Command, platform: Running, team: str
) -> None:
    head = platform.platform.forge.head(platform.platform.ledger)

    planned = orderkit("order", "garage", f"team_name={team}", "stage=stage3", "--plan")

    assert planned.code == 0, planned.err
    assert "0.00 → 110.10 EUR a month (+110.10)" in planned.out
    assert "prices      ours: a test, 2099-01-01\n" in planned.out
    as_json = orderkit("order", "garage", f"team_name={team}", "stage=stage3", "--plan", "--json")
    assert as_json.json["plan"]["costs"]["monthly"]["after"] == "110.1"
    assert platform.platform.forge.repo(RepoId(team, f"garage-{team}")) is None
    assert platform.platform.forge.head(platform.platform.ledger) == head


def test_an_order_ends_with_what_it_gives_its_price_and_its_page(
    orderkit: Command, platform: Running, team: str
) -> None:
    form = ("order", "garage", f"team_name={team}", "stage=stage3")
    page = f"{platform.settings.service.url}/orders/garage-{team}"

    ordered, told = orderkit(*form), orderkit(*form, "--json").json

    lines = [line.split(maxsplit=1) for line in ordered.out.splitlines()[1:]]
    assert ordered.out.startswith(f"garage-{team} ordered: Ready\n")
    assert ["Bay", f"garage-{team}"] in lines, "an output that the kit declares"
    assert ["cost", "110.10 EUR a month"] in lines
    assert ["page", page] in lines
    assert lines[-1] == ["look", f"orderkit status garage-{team}"]
    assert (told["cost"], told["page"]) == ("110.10 EUR", page)


def test_lists_and_views_show_a_cost_that_depends_on_fields(
    orderkit: Command, platform: Running, team: str
) -> None:
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage3", "--no-wait")
    assert done.code == 0, done.err
    order = f"garage-{team}"

    def rows() -> list[dict[str, Any]]:
        orders: list[dict[str, Any]]
        orders = ask(platform, "GET", f"/v1/orders?team={team}&sort=-cost")["orders"]
        return orders

    (row,) = until(
        SystemClock(), rows, lambda r: bool(r and r[0]["cost"]), timeout_s=60, goal="a cost"
    )

    assert row["cost"] == "110.10 EUR"
    assert row["costs"] == {
        "currency": "EUR",
        "monthly": "110.1",
        "upTo": "0",
        "notKnown": [],
        "stale": [],
    }
    assert ask(platform, "GET", f"/v1/orders/{order}/view")["cost"] == "110.10 EUR"
    assert "110.10 EUR a month" in orderkit("status", order).out
    listed = orderkit("list", "--team", team, "--sort=-cost")
    assert "110.10 EUR" in listed.out
    assert "together: 110.10 EUR a month" in listed.out
    sums = ask(platform, "GET", f"/v1/teams/{team}")["costs"]
    assert (sums["sums"][0]["monthly"], sums["notKnown"]) == ("110.1", 0)
    publish(platform, TABLE.replace("'110.00'", "'111.00'").replace("2099", "2020"))
    until(
        SystemClock(),
        rows,
        lambda r: r[0]["cost"] == "111.10 EUR (old prices)",
        timeout_s=90,
        goal="the new price",
    )
    publish(platform, TABLE.replace("ConfigMap", "Cat"))
    assert "at least 110.00 EUR a month" in orderkit("status", order).out


def test_a_team_may_not_order_more_than_it_may_spend(
    orderkit: Command, platform: Running, team: str
) -> None:
    assert orderkit("team", "change", team, "--limit", "cost=100").code == 0
    assert "cost=100EUR" in orderkit("team", "show", team).out

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage3")

    assert done.code == 4
    assert (
        f"garage-{team} costs 110.10 EUR a month, and the other orders of team {team} 0.00: "
        "together 110.10, above the team's cost limit of 100.00"
    ) in done.err
    assert f"orderkit team change {team} --limit cost=" in done.err
    assert platform.platform.forge.repo(RepoId(team, f"garage-{team}")) is None
    planned = orderkit("order", "garage", f"team_name={team}", "stage=stage3", "--plan")
    assert planned.code == 4


def test_a_change_is_held_to_what_the_team_may_spend(orderkit: Command, team: str) -> None:
    order = f"garage-{team}"
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    assert orderkit("team", "change", team, "--limit", "cost=100 EUR").code == 0

    dearer = orderkit("change", order, "stage=stage3", "--dry-run")

    assert dearer.code == 4, dearer.out
    assert "above the team's cost limit of 100.00" in dearer.err
    assert orderkit("change", order, "stage=stage1", "--dry-run").code == 0
    orderkit("team", "change", team, "--limit", "cost=1")
    assert orderkit("change", order, "stage=stage1", "--dry-run").code == 0
    assert orderkit("team", "change", team, "--no-limit", "cost").code == 0
    assert orderkit("change", order, "stage=stage3", "--dry-run").code == 0


def test_what_is_not_known_is_not_below_a_limit(
    orderkit: Command, platform: Running, team: str
) -> None:
    orderkit("team", "change", team, "--limit", "cost=1000")
    publish(platform, TABLE.replace("ConfigMap", "Cat"))

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1")

    assert done.code == 4
    assert "is not known (no price: ConfigMap)" in done.err
    assert "'0' for what is free" in done.err
    publish(platform, TABLE.replace("EUR", "USD"))
    foreign = orderkit("order", "garage", f"team_name={team}", "stage=stage1")
    assert "prices are in USD, the limit is in EUR" in foreign.err


def test_the_cost_of_an_order_that_is_gone_is_unknown_and_not_nothing(
    orderkit: Command, platform: Running, team: str
) -> None:
    bay = new_bay(platform.platform, team)
    orderkit("team", "change", team, "--limit", "cost=1000")
    platform.platform.forge.delete_repo(bay.repo)

    refused = orderkit("order", "garage", "stage=stage1", f"team_name={team}", "--plan")

    assert refused.code == 4, refused.out
    assert "has no commit on main, or does not exist" in refused.err


def test_a_forge_that_is_down_is_not_taken_for_an_unknown_cost(
    orderkit: Command, platform: Running, team: str
) -> None:
    bay, settings = new_bay(platform.platform, team), platform.settings.forge
    orderkit("team", "change", team, "--limit", "cost=1000")
    whole, ledger_files = platform.platform, ledger_snapshot(platform.platform)
    file = team_of(whole, TeamName(team), ledger_files)
    unavailable = Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))

    with (
        open_proxy(settings.url) as proxy,
        proxy.using(Listed([unavailable] * 50, lambda _, path: f"/{bay.repo}/" in path)),
        client_at(proxy.url, settings, None, read_timeout_s=10) as forge,
        pytest.raises(RemoteError, match="503"),
    ):
        cost_limit.team_excess(replace(whole, forge=forge), file, ledger_files.blobs)


@pytest.mark.parametrize(
    ("text", "words"), [("cost=many", "is not an amount"), ("cost=5USD", "currency of the prices")]
)
def test_a_limit_that_is_not_an_amount_is_refused(
    orderkit: Command, team: str, text: str, words: str
) -> None:
    done = orderkit("team", "change", team, "--limit", text)
    assert done.code == 2
    assert words in done.err


def test_of_orders_that_race_for_the_last_money_one_is_registered(
    orderkit: Command, platform: Running, team: str
) -> None:
    orders = [OrderId(f"garage-{team}-{n}") for n in range(4)]
    for order in orders:
        publish_order(platform, team, order)
    assert orderkit("team", "change", team, "--limit", "cost=100").code == 0
    errors: list[OrderkitError] = []

    def attempt(order: OrderId) -> bool:
        request = Registration(order, "garage", TeamName(team), "user:default/x")
        try:
            register(platform.platform, request)
        except OrderkitError as error:
            errors.append(error)
            return False
        return True

    with ThreadPoolExecutor(len(orders)) as threads:
        done = list(threads.map(attempt, orders))

    paths = ledger_snapshot(platform.platform).blobs
    assert len(ledger.living_orders(paths, TeamName(team))) == sum(done) == 1
    assert all(isinstance(error, RefusedError) for error in errors)


@pytest.fixture
def lead(platform: Running) -> Iterator[ForgeUser]:
    """Somebody of the platform team; bootstrap refuses a ledger that others may write to."""
    forge = platform.settings.forge
    admin = embedded_admin(forge.url, platform.embedded.state.folder)
    lead = new_user(admin, "lead")
    path = f"/repos/{platform.platform.ledger}/collaborators/{lead.login}"
    admin.api("PUT", path, {"permission": "write"})
    yield lead
    admin.api("DELETE", path)


@pytest.fixture
def eve(platform: Running) -> ForgeUser:
    """Somebody who orders."""
    admin = embedded_admin(platform.settings.forge.url, platform.embedded.state.folder)
    return new_user(admin, "eve")


def test_a_team_that_may_ask_orders_above_its_limit_if_the_platform_team_agrees(
    orderkit: Command, platform: Running, team: str, lead: ForgeUser, eve: ForgeUser
) -> None:
    order, requester = f"garage-{team}", f"user:default/{eve.login}"
    assert orderkit("team", "change", team, "--limit", "cost=100", "--over", "ask").code == 0
    arguments = ("order", "garage", f"team_name={team}", "--requester", requester, "--no-wait")

    done = orderkit(*arguments, "stage=stage3")
    shown = orderkit("status", order).out
    with pytest.raises(RefusedError, match="is not an approver"):
        approve(platform.platform, order, Requester(requester, "a token"))
    decision = approve(platform.platform, order, Requester(f"user:default/{lead.login}", "a token"))

    assert done.code == 0, done.err
    assert "Waiting" in shown
    assert "the platform team, because" in shown
    assert "together 110.10, above the team's cost limit of 100.00" in " ".join(shown.split())
    assert decision.state == "delivered", decision.missing
    assert orderkit("status", order, "--json").json["phase"] != "Waiting"


def test_a_team_that_may_ask_orders_below_its_limit_at_once(orderkit: Command, team: str) -> None:
    assert orderkit("team", "change", team, "--limit", "cost=100", "--over", "ask").code == 0

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1")

    assert done.code == 0, done.err
    assert orderkit("approvals").out.count(f"garage-{team}") == 0


def test_of_orders_that_race_for_the_last_money_the_others_wait_if_the_team_may_ask(
    orderkit: Command, platform: Running, team: str, eve: ForgeUser
) -> None:
    orders = [OrderId(f"garage-{team}-{n}") for n in range(2)]
    for order in orders:
        publish_order(platform, team, order)
    assert orderkit("team", "change", team, "--limit", "cost=100", "--over", "ask").code == 0

    def attempt(order: OrderId) -> str:
        request = Registration(order, "garage", TeamName(team), f"user:default/{eve.login}")
        return register(platform.platform, request).approval

    with ThreadPoolExecutor(len(orders)) as threads:
        approvals = list(threads.map(attempt, orders))

    paths = ledger_snapshot(platform.platform).blobs
    (waiting,) = [e for e in ledger.waiting_orders(paths) if e.team == team]
    assert len(ledger.living_orders(paths, TeamName(team))) == 1
    assert waiting.application_path not in paths
    assert sorted(map(bool, approvals)) == [False, True]
    assert "together 130.20, above the team's cost limit of 100.00" in max(approvals)


def test_changes_that_raced_are_noticed_after_the_commit(
    orderkit: Command, platform: Running, team: str
) -> None:
    orders = [OrderId(f"garage-{team}-{n}") for n in range(2)]
    for order in orders:
        publish_order(platform, team, order)
        register(platform.platform, Registration(order, "garage", TeamName(team), "user:default/x"))
    assert orderkit("team", "change", team, "--limit", "cost=200").code == 0
    live = find_living(platform.platform, orders[0])
    head = platform.platform.forge.head(live.repository)
    assert head is not None
    old = read_xr(platform.platform, live, head).xr
    new = {**old, "spec": {**old["spec"], "stage": "stage3"}}
    assert cost_limit.change_excess(platform.platform, live, old, new) is None
    publish_order(platform, team, orders[1], "stage3")

    excess = str(cost_limit.change_excess(platform.platform, live, old, new))

    assert f"{orders[0]} costs 110.10 EUR a month" in excess
    assert "together 220.20, above the team's cost limit of 200.00" in excess


def test_a_push_past_orderkit_above_the_limit_is_reported(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    order = OrderId(f"garage-{team}")
    publish_order(platform, team, order)
    register(platform.platform, Registration(order, "garage", TeamName(team), "user:default/x"))
    assert orderkit("team", "change", team, "--limit", "cost=100").code == 0
    assert f"team {team} cost" not in orderkit("status", order).out
    excess = f"the orders of team {team} cost 110.10 EUR a month, above its limit of 100.00"

    push(platform, team, tmp_path, lambda text: text.replace("stage2", "stage3"))

    assert excess in orderkit("status", order).out
    findings = orderkit("doctor", "--json").json["findings"]
    (limits,) = [finding for finding in findings if finding["what"] == "limits"]
    assert (limits["verdict"], excess in limits["detail"]) == ("warn", True)
    until(
        SystemClock(),
        lambda: ask(platform, "GET", f"/v1/teams/{team}")["costExcess"],
        lambda said: said == excess,
        timeout_s=90,
        goal="the sum of the team",
    )
    browser = Browser(platform.settings.service.url)
    engineer = Requester("user:default/ryosuke", "a one-time link", everywhere=True)
    browser.sign_in(token(platform.settings.service), engineer)
    page = browser.get(f"/teams/{team}").page.text
    assert f"cost at most 100.00 EUR a month; now 110.10 EUR; {excess}" in page
    assert orderkit("team", "change", team, "--no-limit", "cost").code == 0


def publish_order(platform: Running, team: str, order: str, stage: str = "stage2") -> None:
    """Write a repository as a portal's steps would."""
    repo = RepoId(team, order)
    platform.platform.forge.ensure_repo(repo, description="by hand")
    record = (
        "apiVersion: orderkit.dev/v1alpha1\nkind: Order\n"
        f"metadata: {{name: {order}}}\n"
        f"spec: {{kit: garage, team: {team}, requester: 'user:default/x', ordered: {{}}}}\n"
    )
    name = order.removeprefix("garage-")
    xr = (
        "apiVersion: blog.opsbogus.dev/v1alpha1\nkind: XGarage\n"
        f"metadata: {{name: {order}}}\nspec: {{teamName: {name}, stage: {stage}}}\n"
    )
    files = {".orderkit/order.yaml": record, "manifests/xgarage.yaml": xr}
    changes = []
    for path, text in files.items():
        before = platform.platform.forge.read(repo, PurePosixPath(path), "main")
        sha = before.sha if before else None
        changes.append(FileChange(PurePosixPath(path), text.encode(), sha))
    operation = Operation(f"to-{stage}", "user:default/x", "made")
    platform.platform.forge.write(repo, changes, operation)
