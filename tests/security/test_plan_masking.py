"""Every text of a plan is masked unless its field is named: what is new in a plan is masked too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from compositions.layered_settings import LayeredValue
from orderkit.core.plan.assembly import Assembly, Fault, Note, SecretTraces
from orderkit.core.plan.comparison import Drift, Plan, ResourceChange
from orderkit.core.plan.dangers import Danger
from orderkit.core.plan.masking import masked

CANARY = "k4narie-wachtwoord-77"
TEXT = f"it holds {CANARY} in a sentence"
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a"},
    "status": {"text": TEXT},
}
NAMED_OPEN = {(Fault, "code"), (Note, "code"), (Plan, "costs")}
"""Fields that nothing is taken out of: codes of ours; costs, which are made of a masked plan."""
OF_THE_REQUESTER = {(Plan, "fields")}
"""Differences of the order's own fields, which the requester chose."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a later version might add to a plan."""

    names: frozenset[str]
    by_path: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LargerAssembly(Assembly):
    attached: tuple[Attachment, ...] = ()


def filled(hint: Any) -> Any:  # noqa: PLR0911 - one line for each kind of type
    """Return a value of a type with a secret in each of its texts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return filled(next(each for each in arguments if each is not NoneType))
    if origin is Literal:
        return arguments[0]
    if origin is dict or hint is dict:
        return OBJECT
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {filled(arguments[0]): filled(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, AbstractSet):
        return frozenset({filled(arguments[0])})
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return (filled(arguments[0]),)
    if hint in (str, Any):
        return TEXT
    if hint in (bool, int):
        return hint(1)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    assert is_dataclass(hint), f"say here how a {hint} is filled"
    return full(hint)


def full(record: Any, **given: Any) -> Any:
    hints = get_type_hints(record)
    left_out = {name for type_, name in NAMED_OPEN | OF_THE_REQUESTER if type_ is record}
    values = {name: filled(hints[name]) for name in hints if name not in left_out | given.keys()}
    named = {f.name: "schema" for f in fields(record) if f.name in left_out and f.name == "code"}
    return record(**values, **named, **given)


def full_plan() -> Plan:
    traces = SecretTraces(values=frozenset({CANARY}))
    assembly = full(LargerAssembly, secret_traces=traces)
    plan: Plan = full(Plan, before=assembly, after=assembly, fields=())
    return plan


def test_no_field_of_a_plan_shows_a_secret() -> None:
    """Fails for a field that is neither masked nor named, and for a type that nobody masks."""
    plan = full_plan()
    assert repr(plan).count(CANARY) > 50

    shown = masked(plan)

    assert [name for name, text in texts_of(shown) if CANARY in text] == []


def texts_of(value: Any, at: str = "plan") -> list[tuple[str, str]]:
    if is_dataclass(value):
        found = [texts_of(getattr(value, f.name), f"{at}.{f.name}") for f in fields(value)]
        return [pair for pairs in found for pair in pairs]
    return [(at, repr(value))]


@pytest.mark.parametrize("record", [Assembly, Plan, Drift, ResourceChange, Danger, LayeredValue])
def test_all_fields_of_a_record_are_filled(record: type) -> None:
    """The test above sees each field: none has its empty default."""
    plan = full_plan()
    [found] = [each for each in records_of(plan) if isinstance(each, record)][:1]
    left_out = {name for type_, name in NAMED_OPEN | OF_THE_REQUESTER if issubclass(record, type_)}

    assert {f.name for f in fields(record) if not getattr(found, f.name)} == left_out


def records_of(value: Any) -> list[Any]:
    if is_dataclass(value):
        below = [records_of(getattr(value, f.name)) for f in fields(value)]
        return [value, *(each for found in below for each in found)]
    if isinstance(value, Mapping):
        return [each for child in value.values() for each in records_of(child)]
    if isinstance(value, (tuple, frozenset)):
        return [each for child in value for each in records_of(child)]
    return []


def test_the_layer_and_the_path_of_a_setting_are_masked() -> None:
    """Stations say both; neither was masked."""
    traces = SecretTraces(values=frozenset({CANARY}))
    settings = {f"a.{CANARY}": LayeredValue(1, f"layer {CANARY}")}
    assembly = Assembly(OBJECT, {}, {}, secret_traces=traces, settings=settings)

    shown = masked(Plan(Assembly(OBJECT, {}, {}), assembly, (), (), 0, (), ()))

    assert CANARY not in repr(shown.settings)
    assert shown.settings[0].field.new == 1


def test_a_value_of_an_unknown_type_is_not_shown() -> None:
    class Opaque:
        text = CANARY

    assembly = full(LargerAssembly, secret_traces=SecretTraces(values=frozenset({CANARY})))
    plan = replace(full_plan(), after=replace(assembly, attached=(Opaque(),)))

    with pytest.raises(TypeError, match="a plan holds a Opaque, which may hold a secret"):
        masked(plan)
