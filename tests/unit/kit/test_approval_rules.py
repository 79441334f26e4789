"""Rules of approval: when they hold, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit.core.kit.approval_rules import Subjects, approval_problems, needs_of, window_problems
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Approval, ApprovalRule, MaintenanceWindow

SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 1},
        "note": {"type": "string"},
    },
}
XRD = {
    "spec": {
        "group": "x.example.org",
        "names": {"kind": "XThing"},
        "versions": [
            {
                "name": "v1",
                "referenceable": True,
                "schema": {"openAPIV3Schema": {"properties": {"spec": SPEC}}},
            }
        ],
    }
}


def kit(when: str, *, by: tuple[str, ...] = ("platform",), count: int = 1) -> Kit:
    rule = ApprovalRule(when, by, "of a reason", count)
    return Kit(name="thing", xrd=XRD, approval=Approval((rule,)))


def subjects(new: dict[str, Any], old: dict[str, Any] | None = None, **cost: Any) -> Subjects:
    requester = {"ref": "user:default/eve", "name": "eve", "proved": False}
    order = {"name": "thing-a", "team": "ae86", "kit": "thing", "isNew": old is None}
    return Subjects(old, new, requester, order, cost)


@pytest.mark.parametrize(
    ("reason", "when", "subject", "needed"),
    [
        ("it holds", "new.size > 3", subjects({"size": 4}), True),
        ("it does not", "new.size > 3", subjects({"size": 3}), False),
        ("the XRD's default counts", "new.size > 0", subjects({}), True),
        ("a new order", "order.isNew", subjects({}), True),
        ("a change", "order.isNew || old.size != new.size", subjects({}, {"size": 1}), False),
        ("nobody proved it", "!requester.proved", subjects({}), True),
        ("an unset field", "new.note == 'x'", subjects({}), True),
        (
            "an unset field that it asks for",
            "has(new.note) && new.note == 'x'",
            subjects({}),
            False,
        ),
        ("no cost", "cost.after > 5.0", subjects({}), True),
        ("a low cost", "cost.after > 5.0", subjects({}, after=4.0), False),
        ("a division by zero", "1 / (new.size - 1) > 3", subjects({}), True),
        ("an integer beyond 64 bits", "new.size < 0", subjects({"size": 10**30}), True),
    ],
)
def test_a_rule_that_cannot_be_evaluated_needs_its_agreement(
    reason: str, when: str, subject: Subjects, *, needed: bool
) -> None:
    assert bool(needs_of(kit(when), subject)) is needed, reason


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (kit("new.sise > 3"), "is refused: undefined field 'sise'"),
        (kit("new.size"), "is refused: it is int, not true or false"),
        (kit("spec.size > 3"), "is refused: undeclared reference to 'spec"),
        (
            kit("true", by=("user:default/a", "user:default/A"), count=2),
            "is more than the 1 people",
        ),
    ],
)
def test_the_check_refuses(broken: Kit, problem: str) -> None:
    (found,) = approval_problems(broken)

    assert problem in found.rule


def test_the_check_accepts_what_may_hold() -> None:
    assert not list(approval_problems(kit("new.size > 3 && cost.difference > 1.0", count=3)))


def test_a_window_names_a_time_zone() -> None:
    window = MaintenanceWindow(("mon",), "22:00", "23:00", "Europe/Brelin")
    (found,) = window_problems(Kit(name="thing", xrd=XRD, windows=(window,)))

    assert (found.value, found.rule) == ("Europe/Brelin", "is not a time zone")


@pytest.mark.parametrize(
    ("when", "found"),
    [
        ("!order.isNew && new.size - old.size > 100", []),
        ("cost.difference > 100.0", []),
        ("new.size > 100", ["7d compares nothing"]),
        ("new.threshold > 100", ["7d compares nothing"]),
    ],
)
def test_a_window_is_for_rules_that_compare(when: str, found: list[str]) -> None:
    rule = ApprovalRule(when, ("platform",), "of a reason", within="7d")
    subject = Kit(name="thing", xrd=XRD, approval=Approval((rule,)))

    problems = [p for p in approval_problems(subject) if p.steps[-1] == "within"]
    assert [f"{p.value} {p.rule}" for p in problems] == found
