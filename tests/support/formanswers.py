"""Answers somebody could give to a form: strategies made of its pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from corpuspack import BAKED, DOMAIN, Made
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ground.regular_expressions import to_python

Schema = Mapping[str, Any]

_CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Co", "Cs", "Zl", "Zp"])
_TEXT = st.text(_CHARACTERS, max_size=25)
_FORMATS = {
    "date": ["2026-02-28"],
    "date-time": ["2026-02-28T23:59:59Z", "2026-02-28T23:59:59.5+01:00"],
    "email": ["a@example.org"],
    "hostname": ["example.org", "a"],
    "ipv4": ["10.0.0.1"],
    "uri": ["https://example.org/a?b=c", "urn:a:b"],
    "uuid": ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
}
TEAMS = {"team": "group:default/ae86", "name": "n1"}
"""What the form's own parameters get."""
_SPAN = 1000
"""How far numbers without a bound go."""


def fill(kit: Made, count: int) -> list[dict[str, Any]]:
    """Fill all pages of a kit's form in, so many times."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=count,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
    )
    @given(_pages(kit))
    def collect(values: dict[str, Any]) -> None:
        found.append(values)

    collect()
    return found


def _pages(kit: Made) -> st.SearchStrategy[dict[str, Any]]:
    """Fill in every page; teams and hidden values are as a portal has them."""
    hidden = {kit.kit.parameter(path): DOMAIN for path in kit.kit.hidden}
    pages = []
    for page in kit.pages:
        known = {**TEAMS, **BAKED, **hidden}
        fixed = {name: known[name] for name in page["properties"] if name in known}
        if kit.kit.team_from:
            team = kit.kit.team_parameter
            fixed |= {team: "ae86"} if team in page["properties"] else {}
        pages.append(answers(page, fixed))
    return st.tuples(*pages).map(lambda found: {k: v for page in found for k, v in page.items()})


def answers(page: Schema, given: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """
    Fill one page in: everything that must be, and any of the rest.

    Args:
        given: Values that stand already, whatever their schema.
    """
    return _object(page, given).flatmap(lambda found: _dependent(page, found))


def _object(schema: Schema, given: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = {
        name: value(inner)
        for name, inner in (schema.get("properties") or {}).items()
        if name not in given
    }
    needed = {name for name in schema.get("required") or () if name in properties}
    return st.fixed_dictionaries(
        {name: properties[name] for name in properties if name in needed},
        optional={name: properties[name] for name in properties if name not in needed},
    ).map(lambda found: {**given, **found})


def _dependent(page: Schema, found: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Add what the answers so far bring up."""
    shown: dict[str, st.SearchStrategy[Any]] = {}
    for question, asked in (page.get("dependencies") or {}).items():
        for branch in asked["oneOf"] if question in found else ():
            if found[question] in branch["properties"][question].get("enum", ()):
                more = branch["properties"].items()
                shown |= {name: value(inner) for name, inner in more if name != question}
    return st.fixed_dictionaries({}, optional=shown).map(lambda more: {**found, **more})


def value(schema: Schema) -> st.SearchStrategy[Any]:
    """Return values of a schema; a few may be too long or too many, which the form refuses."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*(value(inner) for inner in schema["anyOf"]))
    return _BY_TYPE[schema["type"]](schema)


def _text(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 200)
    if schema.get("format") in _FORMATS:
        found: st.SearchStrategy[str] = st.sampled_from(_FORMATS[schema["format"]])
    elif "pattern" in schema:
        found = st.from_regex(
            re.compile(to_python(schema["pattern"]), re.ASCII), alphabet=_CHARACTERS
        )
    else:
        found = _TEXT
    return found.filter(lambda text: least <= len(text) <= most)


def _integer(schema: Schema) -> st.SearchStrategy[int]:
    step = int(schema.get("multipleOf", 1))
    least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    most = schema.get("maximum", schema.get("exclusiveMaximum", _SPAN) - 1)
    most = min(most, max(least, 0) + _SPAN)
    return st.integers(-(-max(least, -_SPAN) // step), most // step).map(lambda n: n * step)


def _number(schema: Schema) -> st.SearchStrategy[float | int]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -_SPAN))
    most = schema.get("maximum", schema.get("exclusiveMaximum", _SPAN))
    hundredths = st.integers(int(least * 100), int(most * 100)).map(lambda n: n / 100)
    if "multipleOf" in schema:
        step = schema["multipleOf"]
        count = round((most - least) / step)
        hundredths = st.integers(0, count).map(lambda n: round(least + n * step, 8))
    open_ends = {schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")}
    return hundredths.filter(lambda n: n not in open_ends)


def _list(schema: Schema) -> st.SearchStrategy[list[Any]]:
    most = min(schema.get("maxItems", 3), schema.get("minItems", 0) + 3)
    items = value(schema["items"])
    unique = repr if schema.get("uniqueItems") else None
    return st.lists(items, min_size=schema.get("minItems", 0), max_size=most, unique_by=unique)


def _map(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    extra = schema.get("additionalProperties")
    if "properties" in schema or not extra:
        return _object(schema, {})
    inner = value(extra) if isinstance(extra, Mapping) else _TEXT
    keys = st.from_regex(r"\A[a-z][a-z0-9-]{0,8}\Z")
    least = schema.get("minProperties", 0)
    most = min(schema.get("maxProperties", 3), least + 3)
    return st.dictionaries(keys, inner, min_size=least, max_size=most)


_BY_TYPE = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": lambda _: st.booleans(),
    "array": _list,
    "object": _map,
}
