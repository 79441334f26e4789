"""The values that a campaign gives an order, worked out from its own."""

from __future__ import annotations

from typing import Any

import pytest
from changingpack import changing_pack

from ground.errors import InvalidInputError, SeveralProblemsError
from ground.names import OrderId, TeamName
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.definition import Campaign, FieldValues, Gates, What, Which
from orderkit.core.kit.pack import read_pack
from orderkit.core.order.ledger import OrderEntry

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-one"))
SPEC = {"teamName": "one", "stage": "stage1", "budget": 3, "guests": ["eve"]}


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Computer:
    folder = changing_pack(tmp_path_factory.mktemp("pack") / "pack")
    return Computer(read_pack(read_folder(folder)).kit("garage"))


def edits(computer: Computer, **fields: Any) -> list[tuple[str, str, Any]]:
    xr = {"metadata": {"name": "garage-one"}, "spec": SPEC}
    values = computer.variables(ENTRY, xr, None)
    found = computer.edits_of(FieldValues(**fields), SPEC, values)
    return [(edit.path, edit.op, edit.value) for edit in found]


def test_only_what_differs_is_edited(computer: Computer) -> None:
    assert edits(computer, set={"stage": "stage1", "note": "hi"}) == [("note", "set", "hi")]
    assert edits(computer, remove=("note", "budget")) == [("budget", "unset", None)]


def test_values_are_computed_from_the_orders_own(computer: Computer) -> None:
    compute = {
        "budget": "spec.budget * 2",
        "note": "'of ' + order.team",
        "guests": "spec.guests + ['bob']",
        "pit": "{'bays': 3}",
    }
    assert edits(computer, compute=compute) == [
        ("budget", "set", 6),
        ("note", "set", "of ae86"),
        ("guests", "set", ["eve", "bob"]),
        ("pit", "set", {"bays": 3}),
    ]


def test_growing_never_takes_away(computer: Computer) -> None:
    assert edits(computer, grow={"budget": 2}) == []
    assert edits(computer, grow={"budget": 5, "laps": 4}) == [
        ("budget", "set", 5),
        ("laps", "set", 4),
    ]
    assert edits(computer, grow={"guests": ["eve", "bob"]}) == [("guests", "add", "bob")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"compute": {"laps": "spec.laps * 2"}}, "laps: 'spec.laps * 2' cannot be computed"),
        ({"compute": {"note": "duration('1h')"}}, "it is a timedelta, which no field of an XR"),
        ({"grow": {"stage": "stage2"}}, "stage: 'stage2' cannot grow"),
        ({"grow": {"stage": 3}}, "stage: 'stage1' is not a number"),
        ({"grow": {"budget": ["a"]}}, "budget: 3 is not a list"),
    ],
)
def test_what_cannot_be_computed_is_said(
    computer: Computer, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        edits(computer, **fields)
    assert f" {message}" in f" {refused.value}"
    assert refused.value.hint


def test_a_condition_that_reads_an_unset_field_does_not_hold(computer: Computer) -> None:
    values = computer.variables(ENTRY, {"spec": SPEC}, {"status": {"stage": "stage1"}})
    held = "spec.budget == 3 && status.stage == 'stage1' && order.name == 'garage-one'"
    assert computer.matches(held, values).holds
    assert not computer.matches("spec.laps > 3", values).holds
    assert computer.matches("", values).holds


def test_faults_of_the_file_are_found_before_any_order_is_read(computer: Computer) -> None:
    faulty = Campaign(
        name="mend",
        reason="because",
        what=What(fields=FieldValues(compute={"budget": "spec.nix +"}, remove=("bugdet",))),
        which=Which(kit="garage", where="spec.budget"),
        gates=Gates(when="status.stage =="),
    )
    with pytest.raises(SeveralProblemsError) as refused:
        computer.check(faulty)
    text = str(refused.value)
    assert "spec.which.where: 'spec.budget' is refused: it is int, not true or false" in text
    assert "spec.gates.when" in text
    assert "spec.what.fields.compute.budget" in text
    assert "did you mean 'budget'?" in text
