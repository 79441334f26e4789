"""What the service shows of an order, of kits and of a team; and who is shown a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import requests
from commands import Command
from consolebrowser import Browser
from countedforge import CountedForge
from faultproxy import Decision, Fault, Plan, open_proxy
from forgehands import client_at
from viewedkit import PASSWORD, declared_outputs, put_secret

from ground.names import RepoId, TeamName
from orderkit.adapters.forges import answers
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order.team_file import TeamFile, path_of
from orderkit.flows.order import order_damage
from orderkit.flows.order.order_damage import damaged_orders
from orderkit.flows.order.order_report import KnownReads, list_orders
from orderkit.flows.order.viewing import Viewer, view
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Forge, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

EVE = "user:default/eve"
ATTENTION = """\
  attention:
    - when: status.stage == 'stage3'
      sentence: '{metadata.name} is loud: {status.stage}.'
      change: stage
      button: Calm it down
"""


@pytest.fixture(scope="module", autouse=True)
def declared(platform: Running) -> Iterator[None]:
    """The published kit declares more than the reference pack's."""
    with declared_outputs(platform, ATTENTION):
        yield


def ask(platform: Running, method: str, path: str, body: object = None) -> tuple[int, Any]:
    settings = platform.settings.service
    headers = {SECRET_HEADER: token(settings)}
    answer = requests.request(
        method, f"{settings.url}{path}", headers=headers, json=body, timeout=60
    )
    return answer.status_code, answer.json()


@pytest.fixture
def loud(platform: Running, orderkit: Command, team: str) -> str:
    """An order that is Ready, but."""
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage3")
    assert done.code == 0, done.err
    until(
        SystemClock(),
        lambda: ask(platform, "GET", f"/v1/orders?team={team}")[1]["orders"],
        lambda rows: [row["phase"] for row in rows] == ["Attention"],
        timeout_s=60,
        goal="the list showing the order",
    )
    return f"garage-{team}"


def test_a_view_has_what_people_want_to_see(platform: Running, loud: str, team: str) -> None:
    status, shown = ask(platform, "GET", f"/v1/orders/{loud}/view")

    assert status == 200, shown
    assert (shown["phase"], shown["reason"]) == ("Attention", f"{loud} is loud: stage3.")
    assert shown["attention"] == [
        {"sentence": f"{loud} is loud: stage3.", "change": "stage", "button": "Calm it down"}
    ]
    assert shown["outputs"][0] == {
        "name": "bay",
        "title": "Bay",
        "value": f"garage-{team}",
        "link": False,
        "secret": False,
    }
    assert shown["values"] == {"teamName": team, "stage": "stage3"}
    assert shown["parts"] == {"ready": 2, "total": 2, "failing": None}
    assert shown["head"] == shown["revision"] == shown["delivered"]
    assert shown["lastChange"]["ordered"] is True
    assert shown["owner"]
    assert shown["owner"] == shown["lastChange"]["requester"]
    assert [(c["name"], c["how"], c["allowed"]) for c in shown["changes"]] == [
        ("stage", "review", True)
    ]
    assert shown["pulls"] == shown["findings"] == []
    assert shown["created"]


def test_status_waits_for_no_more_although_it_asks_for_attention(
    orderkit: Command, loud: str
) -> None:
    found = orderkit("status", loud, "--json", "--check")

    assert found.code == 0
    assert (found.json["phase"], found.json["ready"]) == ("Attention", True)
    assert found.json["advice"] == "Calm it down: change 'stage'"
    assert found.json["outputs"][0]["value"]
    assert [
        row["phase"] for row in orderkit("list", "--json").json["orders"] if row["order"] == loud
    ] == ["Attention"]


def test_doctor_tells_of_an_order_that_is_ready_and_asks_for_attention(
    orderkit: Command, loud: str
) -> None:
    findings = orderkit("doctor", "--json").json["findings"]

    (orders,) = [found for found in findings if found["what"] == "orders"]
    assert f"{loud} is loud: stage3" in orders["detail"]
    assert orders["verdict"] != "ok"


def test_a_view_shows_open_pull_requests_with_their_plans(
    platform: Running, orderkit: Command, loud: str
) -> None:
    proposed = orderkit("change", loud, "stage=stage1", "--pr", "--json")
    assert proposed.code == 0, proposed.err

    (pull,) = ask(platform, "GET", f"/v1/orders/{loud}/view")[1]["pulls"]

    assert pull["number"] == proposed.json["pull"]["number"]
    assert pull["planState"] == "success"
    assert "1 changed" in pull["plan"] or "change" in pull["plan"]
    assert pull["requester"] == proposed.json["pull"]["requester"]


def test_a_secret_is_revealed_on_request_and_shown_nowhere_else(
    platform: Running, loud: str, team: str
) -> None:
    put_secret(platform, team, owned=True)

    status, revealed = ask(
        platform, "POST", f"/v1/orders/{loud}/outputs", {"names": ["password", "stage"]}
    )

    assert (status, revealed) == (
        200,
        {
            "order": loud,
            "outputs": [
                {"name": "password", "value": PASSWORD},
                {"name": "stage", "value": "stage3"},
            ],
        },
    )
    for path in (f"/v1/orders/{loud}/view", f"/v1/orders/{loud}", "/v1/orders"):
        found = ask(platform, "GET", path)[1]
        assert PASSWORD not in json.dumps(found)
        rows = found.get("orders", [found])
        (row,) = [row for row in rows if row["order"] == loud]
        assert [o["value"] for o in row["outputs"] if o["secret"]] == [None, None]


def test_the_console_reveals_a_secret_to_a_member_of_the_team(
    platform: Running, loud: str, team: str
) -> None:
    put_secret(platform, team, owned=True)
    member = Requester("user:default/lead", "a one-time link", frozenset({f"group:default/{team}"}))
    browser = Browser(platform.settings.service.url)
    browser.sign_in(token(platform.settings.service), member)
    shown = browser.get(f"/orders/{loud}")
    (form,) = (form for form in shown.forms if ("output", "password") in form.buttons)

    revealed = browser.submit(form, "password")

    assert PASSWORD not in shown.text
    assert revealed.status == 200
    assert f"password {PASSWORD}" in revealed.page.text


@pytest.mark.parametrize("owner", ["nobody", "somebody else of the part's name"])
def test_a_secret_of_somebody_else_is_never_read(
    owner: str, platform: Running, loud: str, team: str
) -> None:
    """Whoever pushes values chooses the name of the Secret, and what their own parts are called."""
    put_secret(platform, team, owned=owner != "nobody", uid="0b0b0b0b-0000-4000-8000-0123456789ab")

    status, refused = ask(platform, "POST", f"/v1/orders/{loud}/outputs", {"names": ["password"]})

    assert status == 403, refused
    assert f"Secret garage-{team}/login is not one of {loud}" in refused["error"]["message"]
    assert PASSWORD not in json.dumps(refused)


def test_a_secret_that_is_not_there_yet_has_no_value(platform: Running, loud: str) -> None:
    assert ask(platform, "POST", f"/v1/orders/{loud}/outputs", {"names": ["password"]}) == (
        200,
        {"order": loud, "outputs": [{"name": "password", "value": None}]},
    )


@pytest.mark.parametrize("name", ["bay", "missing"])
def test_what_is_not_a_secret_output_is_not_revealed(
    platform: Running, loud: str, name: str
) -> None:
    status, refused = ask(platform, "POST", f"/v1/orders/{loud}/outputs", {"names": [name]})

    assert (status, refused["error"]["rule"]) == (400, "is not a secret output of its kit")
    assert refused["error"]["hint"] == "secret outputs: password, stage"


def test_lists_are_filtered_sorted_and_paged(platform: Running, loud: str, team: str) -> None:
    def orders(query: str) -> tuple[list[str], str | None]:
        status, found = ask(platform, "GET", f"/v1/orders?{query}")
        assert status == 200, found
        return [row["order"] for row in found["orders"]], found["cursor"]

    everything, _ = orders("sort=order")
    paged, cursor = orders("sort=order&limit=1")
    while cursor:
        page, cursor = orders(f"sort=order&limit=1&cursor={cursor}")
        paged += page

    assert paged == everything
    assert orders(f"text={team}&phase=Attention,Failing") == ([loud], None)
    assert orders(f"team={team}&phase=Ready") == ([], None)
    assert ask(platform, "GET", "/v1/orders?sort=colour")[0] == 400
    assert ask(platform, "GET", "/v1/orders?cursor=abc")[0] == 404


def test_kits_say_what_can_be_ordered_and_changed(platform: Running) -> None:
    status, found = ask(platform, "GET", "/v1/kits")

    assert status == 200
    (kit,) = [kit for kit in found["kits"] if kit["name"] == "garage"]
    assert (kit["title"], kit["description"]) == (
        "Stage Kit",
        "Order a complete tuning kit for your team.",
    )
    stage = kit["fields"][1]
    assert (stage["path"], stage["choices"]) == ("stage", ["stage1", "stage2", "stage3"])
    assert stage["required"] is True
    assert stage["labels"]["stage1"] == "Stage 1"
    assert [change["name"] for change in kit["changes"]] == ["stage"]


def test_a_kit_names_the_teams_that_may_order_it(platform: Running, team: str) -> None:
    address = "/v1/kits/garage/teams"
    assert team in ask(platform, "GET", address)[1]["teams"]

    text = TeamFile(TeamName(team), kits=("seats",)).to_yaml()
    platform.platform.forge.write(
        platform.platform.ledger,
        [FileChange(path_of(TeamName(team)), text.encode(), None)],
        Operation("limit-kits", "user:default/x", "only seats"),
    )

    assert team not in ask(platform, "GET", address)[1]["teams"]
    assert ask(platform, "GET", "/v1/kits/cathedral/teams")[0] == 404


def test_a_team_has_its_orders_with_those_that_need_somebody_first(
    platform: Running, loud: str, team: str
) -> None:
    status, found = ask(platform, "GET", f"/v1/teams/{team}")

    assert status == 200
    assert (found["team"], found["total"], found["phases"]) == (team, 1, {"Attention": 1})
    assert [row["order"] for row in found["orders"]] == [loud]
    assert (found["members"], found["limits"]) == (None, {})
    assert ask(platform, "GET", "/v1/teams/nobody")[0] == 404


def test_an_order_that_is_well_costs_the_forge_little(
    platform: Running, loud: str, team: str
) -> None:
    reports = list_orders(platform.platform)
    forge = CountedForge(platform.platform.forge, RepoId(team, loud))
    counted = replace(platform.platform, forge=cast("Forge", forge))

    (seen,) = [r for r in damaged_orders(counted, reports) if r.entry.order == loud]

    assert seen.state.ready
    # the files are read because Argo CD delivers some faults, such as a symbolic link
    assert +forge.calls == {"repo": 1, "commits": 1, "tree": 1, "read": 1}


def test_an_order_is_looked_at_with_the_ledger_that_was_read_before(
    platform: Running, loud: str
) -> None:
    ledger_files = ledger_snapshot(platform.platform)
    forge = CountedForge(platform.platform.forge, platform.platform.ledger)
    counted = replace(platform.platform, forge=cast("Forge", forge))

    report = order_damage.status(counted, loud, KnownReads(ledger_files))

    assert report.state.ready
    assert +forge.calls == {"read": 1}  # of that commit, whose files the client remembers


def test_an_order_of_which_the_forge_tells_nothing_is_failing_and_hides_no_other(
    platform: Running, loud: str, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list is looked at with many others."""
    monkeypatch.setattr(answers, "GET_PAUSE_S", 0.001)
    here = platform.platform
    with (
        open_proxy(platform.settings.forge.url) as proxy,
        client_at(proxy.url, platform.settings.forge, here.signatures, read_timeout_s=30) as forge,
    ):
        reports = list_orders(here)
        proxy.plan = Silent(f"/repos/{team}/")
        damaged = [*damaged_orders(replace(here, forge=forge), reports)]

    (seen,) = [report for report in damaged if report.entry.order == loud]
    assert seen.state.phase == "Failing"
    assert seen.state.reason.startswith(f"{proxy.url} did not answer completely: ")
    assert len(damaged) >= len(reports)


@dataclass
class Silent(Plan):
    """Keeps what is asked about a part of the forge from it."""

    part: str

    def decide(self, method: str, path: str) -> Decision:
        return Decision(Fault.DROP_BEFORE) if self.part in path else super().decide(method, path)


@pytest.mark.parametrize(
    ("groups", "why_not"),
    [
        ({"group:default/{team}"}, ""),
        ({"group:default/others"}, "user:default/eve may not"),
    ],
)
def test_a_view_says_which_changes_somebody_who_is_proved_may_not_ask_for(
    platform: Running, loud: str, team: str, groups: set[str], why_not: str
) -> None:
    theirs = frozenset(group.format(team=team) for group in groups)
    (change,) = view(platform.platform, loud, Viewer(Requester(EVE, "a token", theirs))).changes

    assert (change.is_allowed, change.why_not.startswith(why_not)) == (not why_not, True), change


def test_an_order_that_ended_has_no_view(platform: Running) -> None:
    status, found = ask(platform, "GET", "/v1/orders/garage-nobody/view")

    assert (status, "no order" in found["error"]["message"]) == (404, True)
