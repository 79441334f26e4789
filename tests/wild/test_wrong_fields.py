"""Several wrong fields: one error names each with value, rule and way out; nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from commands import Command
from roguery import place

from ground.names import TeamName
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.team.teams import add_team
from orderkit_standins.serve_platform import Running

TEAM = "wrong-fields"


@pytest.fixture(scope="module")
def entry(platform: Running) -> OrderEntry:
    add_team(platform.platform, TeamName(TEAM), requester="user:default/test")
    return place(platform.platform, "garage", TEAM)


def problems_of(error: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {one["field"]: (one["value"], one["rule"], one["hint"]) for one in error["problems"]}


def fields_of(error: dict[str, Any]) -> list[str]:
    return sorted(one.get("field") or one["message"].split()[0] for one in error["problems"])


def test_an_order_with_wrong_fields_reports_all_of_them(orderkit: Command) -> None:
    wrong = ("order", "garage", "team_name=AE 86", "stage=stage9", "colour=red")
    shown = orderkit(*wrong)
    object_ = orderkit(*wrong, "--json").json["error"]

    assert shown.code == 2
    assert shown.err.startswith("error: 3 problems:\n")
    for words in (
        "- team_name: 'AE 86' does not match the pattern",
        "- stage: 'stage9' is none of stage1, stage2, stage3",
        "- colour: 'red' is not a field of this form",
    ):
        assert words in shown.err
    assert object_["exitCode"] == 2
    assert fields_of(object_) == ["colour", "stage", "team_name"]
    assert problems_of(object_)["stage"][2] == "one of: stage1, stage2, stage3"


@pytest.mark.parametrize(
    ("assignments", "names"),
    [
        ((), ["stage", "team_name"]),
        (("team_nam=ae86",), ["stage", "team_nam"]),
        (("stage=[",), ["stage", "team_name"]),
    ],
    ids=["nothing", "a misspelt field is not missing too", "a wrong one and a missing one"],
)
def test_what_is_missing_is_named_among_the_problems(
    assignments: tuple[str, ...], names: list[str], orderkit: Command
) -> None:
    done = orderkit("order", "garage", *assignments, "--json")

    assert fields_of(done.json["error"]) == names
    assert "None" not in done.err.replace("none of", "")
    assert "is missing: the form requires it" in done.err


def test_a_change_with_wrong_fields_reports_all_of_them(
    platform: Running, orderkit: Command, entry: OrderEntry
) -> None:
    head = platform.platform.forge.head(entry.repository)
    wrong = ("change", entry.order, "stage=stage9", "teamName=other", "stge=stage2")
    shown = orderkit(*wrong)
    error = orderkit(*wrong, "--json").json["error"]

    assert shown.code == 2
    assert fields_of(error) == ["stage", "stge", "teamName"]
    assert "names the order or its team" in shown.err
    assert "(did you mean 'stage'?)" in shown.err
    assert platform.platform.forge.head(entry.repository) == head


def test_the_service_answers_with_all_problems(platform: Running, entry: OrderEntry) -> None:
    values = {"team_name": "AE 86", "colour": "red"}
    tasks = post(platform, "/v1/tasks", {"template": "garage", "values": values})
    wrong = {"values": {"stage": "stage9", "stge": 1}}
    changes = post(platform, f"/v1/orders/{entry.order}/changes", wrong)

    assert fields_of(tasks) == ["colour", "stage", "team_name"]
    assert fields_of(changes) == ["stage", "stge"]
    for one in (*tasks["problems"], *changes["problems"]):
        assert set(one) == {"message", "hint", "field", "value", "rule"}


def post(platform: Running, path: str, body: object) -> dict[str, Any]:
    """Ask the service; return its error."""
    service = platform.settings.service
    with requests.Session() as session:
        session.trust_env = False
        headers = {SECRET_HEADER: token(service)}
        answer = session.post(f"{service.url}{path}", json=body, headers=headers, timeout=60)
    assert answer.status_code == 400, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_a_thousand_wrong_fields_are_a_short_error(orderkit: Command) -> None:
    done = orderkit("order", "garage", *(f"field{number}=x" for number in range(1000)))

    assert done.code == 2
    assert done.err.startswith("error: 1002 problems, the first of which are:\n")
    assert len(done.err.splitlines()) == 21
