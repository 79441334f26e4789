"""The kit's rules: which fields may change, how far, by whom, and how."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError, RefusedError
from orderkit.core.kit.kit_file import Direction, How, KitChange
from orderkit.core.kit.kit_file_parts import Hidden
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import (
    ChangeRequester,
    ChangeVerdict,
    differences,
    judge_rules,
    judge_who,
)

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "team": {"type": "string"},
        "host": {"type": "string"},
        "stage": {"type": "string", "enum": ["s1", "s2", "s3", "s4"]},
        "size": {"type": "integer", "default": 10},
        "cores": {"type": "integer", "multipleOf": 4},
        "guests": {"type": "array", "items": {"type": "string"}},
        "storage": {"type": "object", "properties": {"sizeGb": {"type": "integer"}}},
        "note": {"type": "string"},
        "seal": {"type": "string"},
    },
}


def kit_with(*changes: KitChange) -> Kit:
    version = {"name": "v1", "served": True, "referenceable": True}
    schema = {"openAPIV3Schema": {"properties": {"spec": SPEC}}}
    xrd = {
        "spec": {
            "group": "example.org",
            "names": {"kind": "XBay"},
            "versions": [{**version, "schema": schema}],
        }
    }
    return Kit(
        name="bay",
        title="Bay",
        xrd=xrd,
        named_from=("team",),
        team_from="team",
        hidden={"host": Hidden("HOST")},
        changes=changes,
    )


GROW = KitChange("grow", ("size", "guests", "storage", "stage"), "Grow", Direction.GROW)
STEP = KitChange("step", ("stage", "cores"), "Step", Direction.STEP, how=How.REVIEW)
NEVER = KitChange("seal", ("seal",), "Seal", Direction.NEVER)
ANY = KitChange("note", ("note",), "Change the note", warning="Everybody will see it.")


@pytest.mark.parametrize(
    ("reason", "change", "old", "new"),
    [
        ("a number grows", GROW, {"size": 1}, {"size": 2}),
        ("a number grows from its default", GROW, {}, {"size": 11}),
        ("a list grows", GROW, {"guests": ["a"]}, {"guests": ["b", "a"]}),
        ("a list comes", GROW, {}, {"guests": ["a"]}),
        ("a field of a named map", GROW, {"storage": {"sizeGb": 1}}, {"storage": {"sizeGb": 2}}),
        ("an enum goes on, far", GROW, {"stage": "s1"}, {"stage": "s4"}),
        ("an enum steps on", STEP, {"stage": "s2"}, {"stage": "s3"}),
        ("an enum steps back", STEP, {"stage": "s2"}, {"stage": "s1"}),
        ("a number steps as its multiple", STEP, {"cores": 4}, {"cores": 8}),
        ("a first value is not a step", STEP, {}, {"stage": "s4"}),
        ("any direction", ANY, {"note": "x"}, {}),
    ],
)
def test_a_change_as_far_as_its_direction_is_allowed(
    reason: str, change: KitChange, old: Any, new: Any
) -> None:
    assert judge_rules(kit_with(change), differences(old, new)).changes == (change,), reason


@pytest.mark.parametrize(
    ("reason", "change", "old", "new", "told"),
    [
        ("a number shrinks", GROW, {"size": 2}, {"size": 1}, "size 2 → 1 is refused: it may only"),
        ("below the default", GROW, {}, {"size": 9}, "it may only grow"),
        ("back to the default", GROW, {"size": 20}, {}, "it may only grow"),
        ("an element goes", GROW, {"guests": ["a", "b"]}, {"guests": ["a"]}, "b is missing"),
        ("a list goes", GROW, {"guests": ["a"]}, {}, "may not be removed"),
        ("an enum goes back", GROW, {"stage": "s2"}, {"stage": "s1"}, "it may only grow"),
        ("two steps", STEP, {"stage": "s1"}, {"stage": "s3"}, "one step at a time; next is s2"),
        ("two steps back", STEP, {"stage": "s4"}, {"stage": "s1"}, "next is s3"),
        ("two multiples", STEP, {"cores": 4}, {"cores": 12}, "one step at a time"),
        ("never", NEVER, {"seal": "a"}, {"seal": "b"}, "never changes"),
        ("in no change", ANY, {"seal": "a"}, {"seal": "b"}, "does not allow this change"),
        ("the order's name", ANY, {"team": "a"}, {"team": "b"}, "names the order or its team"),
        ("a baked value", ANY, {"host": "a"}, {"host": "b"}, "the platform sets"),
        ("one of two", ANY, {"note": "a", "size": 1}, {"note": "b", "size": 2}, "size 1 → 2"),
    ],
)
def test_a_change_beyond_the_rules_is_refused(
    reason: str, change: KitChange, old: Any, new: Any, told: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        judge_rules(kit_with(change), differences(old, new))

    assert f" {told}" in f" {caught.value}", reason


def test_a_kit_without_changes_lets_everything_change_but_what_it_is() -> None:
    assert judge_rules(kit_with(), differences({"note": "a"}, {"note": "b"})) == ChangeVerdict(())
    with pytest.raises(RefusedError):
        judge_rules(kit_with(), differences({"team": "a"}, {"team": "b"}))


def test_never_wins_over_another_change_that_names_the_field() -> None:
    kit = kit_with(KitChange("all", ("seal", "note"), "All"), NEVER)

    with pytest.raises(RefusedError, match="never changes"):
        judge_rules(kit, differences({"seal": "a"}, {"seal": "b"}))


def test_the_first_change_that_allows_it_is_taken() -> None:
    kit = kit_with(STEP, GROW)
    near, far = ({"stage": "s2"}, {"stage": "s4"})

    assert judge_rules(kit, differences({"stage": "s1"}, near)).name == "step"
    assert judge_rules(kit, differences({"stage": "s1"}, far)).name == "grow"
    with pytest.raises(RefusedError, match="one step at a time"):
        judge_rules(kit, differences({"stage": "s1"}, far), change="step")


def test_several_fields_may_need_several_changes_and_one_review_reviews_all() -> None:
    kit = kit_with(ANY, STEP)

    found = judge_rules(kit, differences({"stage": "s1"}, {"stage": "s2", "note": "x"}))

    assert (found.name, found.how, found.warnings) == (
        "step, note", How.REVIEW, ("Everybody will see it.",),
    )  # fmt: skip


def test_an_unknown_change_names_the_nearest() -> None:
    with pytest.raises(InvalidInputError) as caught:
        judge_rules(kit_with(ANY, STEP), differences({}, {"note": "x"}), change="notes")

    assert caught.value.hint == "did you mean 'note'?"


def asking(ref: str, *groups: str) -> ChangeRequester:
    return ChangeRequester(
        ref, frozenset(groups), "user:default/eve", "ae86", "group:default/platform"
    )


@pytest.mark.parametrize(
    ("who", "person", "may"),
    [
        ("team", asking("user:default/bob", "group:default/ae86"), True),
        ("team", asking("user:default/bob", "Group:default/AE86"), True),
        ("team", asking("user:default/bob", "group:default/rx7"), False),
        ("team", asking("user:default/eve"), False),
        ("requester", asking("user:default/EVE"), True),
        ("requester", asking("user:default/bob", "user:default/eve"), False),
        ("platform", asking("user:default/bob", "group:default/platform"), True),
        ("platform", asking("user:default/bob"), False),
        ("ops", asking("user:default/bob", "group:default/ops"), True),
        ("group:ops", asking("user:default/bob", "group:default/ops"), True),
        ("user:bob", asking("user:default/bob"), True),
        ("group:eu/ops", asking("user:default/bob", "group:default/ops"), False),
    ],
)
def test_who_may_change(who: str, person: ChangeRequester, may: bool) -> None:  # noqa: FBT001 - a case
    verdict = ChangeVerdict((KitChange("note", ("note",), "Change the note", who=(who,)),))
    if may:
        judge_who(verdict, person)
        return
    with pytest.raises(RefusedError, match="may not change the note"):
        judge_who(verdict, person)
