"""
Label and field selectors as text: ``a=b,c!=d,e in (f,g),h notin (i),j,!k``.

Field selectors know ``metadata.name`` and ``metadata.namespace`` everywhere, and for Events
``involvedObject.*``, ``type`` and ``reason``, the ones that kubectl uses. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ground.objects.kube_objects import Manifest, dig
from orderkit_standins.cluster.refusals import BadRequest

LabelTest = Callable[[Mapping[str, str]], bool]
FieldTest = Callable[[Manifest], bool]

_SET = re.compile(r"(?P<key>\S+)\s+(?P<op>in|notin)\s+\((?P<values>[^()]*)\)\Z")
_EQUAL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<op>==|!=|=)\s*(?P<value>[^\s=!]*)\Z")
_KEY = re.compile(r"(?P<not>!?)\s*(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)\Z")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")


def label_selector(text: str) -> LabelTest | None:
    """
    Read a label selector; None if it selects everything.

    Raises:
        BadRequest: The text is not a selector.
    """
    parts = [
        requirement.strip()
        for requirement in _COMMA_OUTSIDE_PARENTHESES.split(text)
        if requirement.strip()
    ]
    tests = [_requirement(requirement) for requirement in parts]
    return (lambda labels: all(test(labels) for test in tests)) if tests else None


def _requirement(text: str) -> LabelTest:
    if match := _SET.match(text):
        key = match["key"]
        values = {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(text):
        key, value = match["key"], match["value"]
        if match["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _KEY.match(text):
        key, negated = match["key"], bool(match["not"])
        return lambda labels: (key in labels) != negated
    raise BadRequest(
        f"unable to parse requirement: found '{text}', expected: a label selector such as "
        "a=b, a!=b, a in (b,c), a notin (b), a, !a"
    )


_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
_EVENT_FIELDS = _FIELDS | {
    "type",
    "reason",
    "reportingComponent",
    "source",
    *(
        f"involvedObject.{name}"
        for name in (
            "kind",
            "namespace",
            "name",
            "uid",
            "apiVersion",
            "resourceVersion",
            "fieldPath",
        )
    ),
}


def field_selector(text: str, *, events: bool = False) -> FieldTest | None:
    """
    Read a field selector; None if it selects everything.

    Raises:
        BadRequest: The text is not a selector, or names a field that cannot be selected by.
    """
    fields = _EVENT_FIELDS if events else _FIELDS
    tests: list[FieldTest] = []
    for requirement in filter(None, text.split(",")):
        match = _EQUAL.match(requirement.strip())
        if match is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{requirement}'")
        if match["key"] not in fields:
            raise BadRequest(f"field label not supported: {match['key']}")
        tests.append(_field_test(match["key"], match["op"], match["value"]))
    return (lambda manifest: all(test(manifest) for test in tests)) if tests else None


def _field_test(key: str, operator: str, value: str) -> FieldTest:
    steps = key.split(".")
    equals = operator != "!="
    return lambda manifest: ((dig(manifest, *steps) or "") == value) == equals
