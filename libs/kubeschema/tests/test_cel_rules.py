"""CEL rules beside the recorded verdicts: what is not evaluated, and why; limits of the library."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ground.objects.quantities import NoQuantity, Unsure, parse
from kubeschema.cel import RuleSet, has_rules, rules_of
from kubeschema.cel.type_shapes import Unbound, duration, escape, timestamp

Schema = dict[str, Any]


def ruled(schema: Schema, *rules: str) -> RuleSet:
    field = {**schema, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}
    return RuleSet({"type": "object", "properties": {"spec": field}})


@pytest.mark.parametrize(
    ("rule", "value", "why"),
    [
        ("isSemver(self)", "1.0.0", "does not offer"),
        ("!format.dns1123Label().validate(self).hasValue()", "a", "does not offer"),
        ("string(ip(self)) == self", "::1", "does not offer"),
        ("isURL(self)", "http://[::1]/ü", "unusual URL"),
        ("quantity(self).isInteger()", "1e100", "beyond what a quantity holds"),
        ("self.findAll('x*').size() == 0", "a", "matches nothing"),
    ],
)
def test_what_is_not_exact_is_a_gap_and_never_passed(rule: str, value: str, why: str) -> None:
    verdicts = ruled({"type": "string"}, rule).check({"spec": value})

    assert not verdicts.broken
    assert [gap.rule for gap in verdicts.gaps] == [rule]
    assert why in verdicts.gaps[0].why


@pytest.mark.parametrize(
    "rule",
    [
        "self == ['a', 'b']",
        "self + ['a'] == self",
        "self == oldSelf && self[0] == 'a'",
        "self == oldSelf && self.join('') == 'ab'",
        "self.filter(t, t != 'c') == oldSelf",
        "self in [oldSelf]",
    ],
)
def test_a_set_whose_order_could_matter_is_a_gap(rule: str) -> None:
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    found = ruled(tags, rule).check({"spec": ["a", "b"]}, {"spec": ["b", "a"]})

    assert not found.broken
    assert [gap.rule for gap in found.gaps] == [rule]


def test_a_gap_beside_a_true_alternative_does_not_matter() -> None:
    found = ruled({"type": "string"}, "self == 'a' || isURL(self)").check({"spec": "a"})

    assert not found.broken
    assert not found.gaps


def test_a_gap_that_decides_stays_a_gap() -> None:
    found = ruled({"type": "string"}, "self == 'b' || isURL(self)").check({"spec": "ü:"})

    assert len(found.gaps) == 1


def test_a_text_that_is_no_address_is_in_no_network_and_told_as_the_server_does() -> None:
    rules = ruled({"type": "string"}, "cidr('10.0.0.0/8').containsIP(self)")

    (broken,) = rules.check({"spec": "x"}).broken
    assert "'no such overload': call arguments did not match" in broken.problem.message


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("isQuantity(self)", "1.5Gi", "1.5gi"),
        ("isIP(self)", "::1", "::1%eth0"),
        ("isCIDR(self)", "10.0.0.0/8", "10.0.0.0/33"),
        ("isURL(self)", "https://example.org/a", "example"),
    ],
)
def test_a_question_about_a_text_has_two_answers(rule: str, good: str, bad: str) -> None:
    rules = ruled({"type": "string"}, rule)

    assert [len(rules.check({"spec": text}).broken) for text in (good, bad)] == [0, 1]


def test_integers_beyond_64_bits_are_not_evaluated() -> None:
    found = ruled({"type": "integer"}, "self > 1").check({"spec": 2**70})

    assert "64 bits" in found.gaps[0].why


def test_without_the_library_every_rule_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    rules = ruled({"type": "string"}, "self == 'a'", "self.zz")

    assert rules.faults() == []
    found = rules.check({"spec": "b"})
    assert not found.broken
    assert [(gap.path, gap.rule) for gap in found.gaps] == [
        ("spec", "self == 'a'"),
        ("spec", "self.zz"),
    ]


def test_a_broken_rule_judges_nothing_and_is_told_with_its_place() -> None:
    rules = ruled({"type": "string"}, "self.zz == 1", "self != 'b'")

    assert [path for path, _ in rules.faults(at="at")] == [
        "at.properties[spec].x-kubernetes-validations[0].rule"
    ]
    assert [broken.rule for broken in rules.check({"spec": "b"}).broken] == ["self != 'b'"]


def test_a_schema_without_rules_costs_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert not has_rules(schema)
    assert RuleSet(schema).check({"a": 1}).broken == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "a"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("in", "__in__"),
        ("a b", None),
        ("1a", None),
    ],
)
def test_names_are_escaped_as_kubernetes_does(name: str, expected: str | None) -> None:
    assert escape(name) == expected


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("1.5h", 5_400_000_000_000), ("-1ms", -1_000_000), ("1h30m", 5_400_000_000_000), ("0", 0)],
)
def test_durations_are_exact(text: str, nanoseconds: int) -> None:
    assert duration(text).ToNanoseconds() == nanoseconds


def test_times_keep_their_nanoseconds_and_lose_their_zone() -> None:
    found = timestamp("2020-01-01T02:00:00.123456789+02:00")

    assert found.ToJsonString() == "2020-01-01T00:00:00.123456789Z"


@pytest.mark.parametrize("text", ["2020-01-01T23:59:60Z", "2020-01-01 00:00:00Z", "soon"])
def test_times_that_cannot_be_held_are_refused(text: str) -> None:
    with pytest.raises(Unbound):
        timestamp(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", "1"), ("1.5Gi", "1610612736"), ("500m", "0.5"), ("1e3", "1000"), ("-2k", "-2000")],
)
def test_quantities_are_read_exactly(text: str, value: str) -> None:
    assert f"{parse(text).normalize():f}" == value


@pytest.mark.parametrize("text", ["", "x", "1ki", "1.1.1", "12e", "1 "])
def test_what_is_no_quantity_is_told(text: str) -> None:
    with pytest.raises(NoQuantity):
        parse(text)


@pytest.mark.parametrize("text", ["0.0000000001", "100E", "1e100", "."])
def test_what_the_server_would_round_gives_no_verdict(text: str) -> None:
    with pytest.raises(Unsure):
        parse(text)


def test_equal_schemas_share_their_rules_and_a_later_edit_changes_none() -> None:
    def schema() -> dict[str, Any]:
        rules = [{"rule": "self.a > 0"}]
        fields = {"a": {"type": "integer"}}
        return {"type": "object", "properties": fields, "x-kubernetes-validations": rules}

    edited = schema()
    shared = rules_of(edited)
    edited["x-kubernetes-validations"][0]["rule"] = "self.a > 1"

    assert rules_of(schema()) is shared
    assert shared.check({"a": 1}).broken == ()
    assert rules_of(edited).check({"a": 1}).broken != ()
