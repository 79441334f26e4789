"""Somebody's own program edits the files of orders: seen in the plan, judged, taken back."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from bays import EVE, merge
from tests.component.campaigns.conftest import Desk, NewDesk

from ground.errors import IncompleteError, InvalidInputError
from orderkit.core.campaign.definition import parse
from orderkit.flows.campaign import planning, starting

XR = PurePosixPath("manifests/xgarage.yaml")


def what(program: str, **more: Any) -> dict[str, Any]:
    return {"run": {"program": program, **more}}


def text(desk: Desk, path: PurePosixPath) -> str | None:
    found = desk.platform.forge.read(desk.bays[0].repo, path, "main")
    return found.text if found else None


def plan(desk: Desk, program: str, **more: Any) -> planning.PlannedOrder:
    data = desk.file(what=what(program, **more)).read_bytes()
    campaign = parse(data, name=desk.name)
    (order,) = planning.plan_campaign(desk.platform, campaign, EVE).orders
    return order


def test_values_of_the_xr_are_looked_at_first(desk: NewDesk) -> None:
    found = desk(1)
    program = (
        "def edit(order):\n    path = 'manifests/xgarage.yaml'\n"
        "    return {path: order['files'][path] + '  note: mended\\n'}\n"
    )
    before = text(found, XR)
    assert plan(found, program).verdict == "review"
    found.start(what=what(program, files=["manifests/*"]))
    with pytest.raises(IncompleteError, match="1 pull requests are open"):
        found.run()
    assert text(found, XR) == before


def test_what_people_reviewed_is_taken_back_by_people(desk: NewDesk) -> None:
    found = desk(1)
    program = "def edit(order):\n    return {'NOTE.md': 'new'}\n"
    found.start(what=what(program, files=["*.md"]))
    with pytest.raises(IncompleteError, match="1 pull requests are open"):
        found.run()
    (pull,) = found.platform.forge.pulls(found.bays[0].repo)
    merge(found.bays[0], pull.number)
    assert found.run().state == "done"
    starting.revert(found.platform, found.name, EVE)

    (wave,) = found.run().waves

    (outcome,) = wave.outcomes.values()
    assert (outcome.result, text(found, PurePosixPath("NOTE.md"))) == ("kept", "new")
    assert outcome.why == f"{found.orders[0]}: kit garage wants reviews"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("{'../x': 'a'}", "is no path inside the repository"),
        ("{'/etc/x': 'a'}", "is no path inside the repository"),
        ("{'.orderkit/order.yaml': ''}", "is below .orderkit/, which no program may change"),
        ("{'.git/hooks/x': ''}", "is below .git/"),
        ("{'manifests/xgarage.yaml': None}", "is a file that the program was not given"),
        ("1 / 0", "line 2: ZeroDivisionError"),
    ],
)
def test_what_no_program_may_do_is_refused(desk: NewDesk, answer: str, words: str) -> None:
    planned = plan(desk(1), f"def edit(order):\n    return {answer}\n", files=["README.md"])
    assert planned.verdict == "refused"
    assert words in planned.why


def test_files_that_no_program_can_edit_at_once_are_refused_in_words(desk: NewDesk) -> None:
    """Too many of them, or a change of values that the campaign may not commit by itself."""
    found = desk(1)
    program = (
        "def edit(order):\n    path = 'manifests/xgarage.yaml'\n"
        "    return {path: order['files'][path] + '  note: mended\\n'}\n"
    )
    data = found.file(what=what(program), how="direct").read_bytes()
    (direct,) = planning.plan_campaign(found.platform, parse(data, name="x"), EVE).orders
    found.bays[0].put({PurePosixPath("big.txt"): "x" * (3 << 20)})
    large, named = plan(found, program), plan(found, program, files=["manifests/*"])

    assert (direct.verdict, large.verdict, named.verdict) == ("refused", "refused", "review")
    assert "the XR's values change, so the files cannot be committed directly" in direct.why
    assert "files are more than a program gets" in large.why


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("def edit(order:", r"is no Python \(line 1\)"),
        ("x = 1", r"is missing a function edit\(order\)"),
    ],
)
def test_a_program_that_is_none_is_refused_at_once(program: str, words: str) -> None:
    document = (
        "apiVersion: orderkit.dev/v1alpha1\nkind: Campaign\nmetadata: {name: x}\nspec:\n"
        f"  reason: r\n  which: {{kit: garage}}\n  what: {{run: {{program: {program!r}}}}}\n"
    )
    with pytest.raises(InvalidInputError, match=words):
        parse(document, name="x.yaml")
