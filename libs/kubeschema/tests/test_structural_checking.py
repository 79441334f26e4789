"""Structural schemas: which schemas and patterns an API server takes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubeschema.re2_patterns import PatternError, compile_pattern
from kubeschema.structural import check_schema

PRESERVE = "x-kubernetes-preserve-unknown-fields"
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
INT_OR_STRING = "x-kubernetes-int-or-string"

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


MATCHES = [
    ("dollar is the end of the text", "^a$", "a", True),
    ("dollar is not before a newline", "^a$", "a\n", False),
    ("patterns search", "b", "abc", True),
    ("POSIX classes", "^[[:alpha:]_]+$", "ab_", True),
    ("digits are ASCII", r"^\d$", "٣", False),
    ("words are ASCII", r"^\w$", "é", False),
    ("absolute end", r"a\z", "a\n", False),
    ("a bracket that begins with its end", "^[]a]+$", "]a", True),
    ("a set of its own brackets", r"^[\[\]]$", "[", True),
    ("braces without a count are text", "^a{,3}$", "a{,3}", True),
    ("flags at the start", "(?i)^A$", "a", True),
    ("lines", "(?m)^b$", "a\nb\nc", True),
    ("hexadecimal", r"^\x41\x{42}$", "AB", True),
    ("lazy repetition", "^a+?b$", "aab", True),
    ("vertical tab is not a space in RE2", r"^\s$", "\v", False),
    ("no space", r"^\S$", "a", True),
    ("escaped dollar", r"^\$$", "$", True),
    ("dollar in brackets", "^[$]$", "$", True),
    ("Unicode classes", r"^\p{Greek}+$", "αβγ", True),
    ("quoted text", r"^\Qa.b\E$", "a.b", True),
    ("quoted text has no escapes", r"^\Q\C\E$", r"\C", True),
    ("flags in the middle", "^a(?i)b$", "aB", True),
    ("ignoring case folds the Kelvin sign", "(?i)^k$", "\u212a", True),
    ("half a character is U+FFFD", "^\ufffd$", "\ud800", True),
]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"), [pytest.param(p, t, e, id=r) for r, p, t, e in MATCHES]
)
def test_patterns_mean_what_they_mean_in_re2(pattern: str, text: str, *, expected: bool) -> None:
    assert bool(compile_pattern(pattern).search(text)) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "(?>a)", "a++", "a**", "(?P=x)", "(?#x)", "*a"),
        *("a{1001}", "(", "[", "[z-a]", r"\p{Nope}", r"\C", "[[:nope:]]", r"\Z", "\\"),
    ],
)
def test_patterns_that_cannot_be_read_as_re2_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=re.escape(repr(pattern))):
        compile_pattern(pattern)


SCHEMAS = [
    ("structural", obj(spec=obj(a=TEXT)), []),
    (
        "no type at the root",
        {"properties": {}},
        ["at.type: Required value: must not be empty at the root"],
    ),
    (
        "another type at the root",
        {"type": "string"},
        ['at.type: Invalid value: "string": must be object at the root'],
    ),
    (
        "field without type",
        obj(a={}),
        ["at.properties[a].type: Required value: must not be empty for specified object fields"],
    ),
    (
        "item without type",
        obj(a={"type": "array", "items": {}}),
        [
            (
                "at.properties[a].items.type: Required value: must not be empty for "
                "specified array items"
            )
        ],
    ),
    (
        "list without items",
        obj(a={"type": "array"}),
        ["at.properties[a].items: Required value: must be specified"],
    ),
    ("int-or-string needs no type", obj(a={INT_OR_STRING: True}), []),
    (
        "int-or-string as Go writes it",
        obj(a={INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        [],
    ),
    ("anything needs no type", obj(a={PRESERVE: True}), []),
    (
        "type in a junctor",
        obj(a={**TEXT, "anyOf": [{"type": "string"}]}),
        ["at.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        "field declared in a junctor only",
        {**obj(), "anyOf": [{"properties": {"b": {"minLength": 1}}}]},
        [("at.properties[b]: Required value: because it is defined in at.anyOf[0].properties[b]")],
    ),
    (
        "map key that may be missing",
        obj(a={**LIST, "items": obj(k=TEXT), **KEYED}),
        [
            (
                "at.properties[a].items.properties[k].default: Required value: this property is in "
                "x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
        ],
    ),
    (
        "fields and an open map",
        obj(a={**obj(b=TEXT), "additionalProperties": TEXT}),
        [
            (
                "at.properties[a].additionalProperties: Forbidden: additionalProperties and "
                "properties are mutual exclusive"
            )
        ],
    ),
    (
        "reference",
        obj(a={**TEXT, "$ref": "#/x"}),
        ["at.properties[a].$ref: Forbidden: $ref is not supported"],
    ),
    ("closed map", obj(a={"type": "object", "additionalProperties": False}), []),
    (
        "more than names in metadata",
        obj(metadata=obj(labels={"type": "object"})),
        [
            (
                "at.properties[metadata]: Forbidden: must not specify anything other than name and "
                "generateName, but metadata is implicitly specified"
            )
        ],
    ),
    ("names in metadata", obj(metadata=obj(name={**TEXT, "maxLength": 20})), []),
    (
        "default of another type",
        obj(a={**TEXT, "default": 5}),
        [
            (
                'at.properties[a].default: Invalid value: "integer":  in body must be of '
                'type string: "integer"'
            )
        ],
    ),
    (
        "default with an unknown field",
        obj(a={**obj(), "default": {"b": 1}}),
        ['at.properties[a].default: Invalid value: {"b":1}: must not have unknown fields'],
    ),
    (
        "enum of another type",
        obj(a={**TEXT, "enum": ["x", 5]}),
        ["at.properties[a].enum[1]: Invalid value: 5: must be of type string"],
    ),
    ("no schema", None, ["at: Required value: schemas are required"]),
]


@pytest.mark.parametrize(("schema", "lines"), [pytest.param(s, e, id=r) for r, s, e in SCHEMAS])
def test_schemas_are_checked(schema: object, lines: list[str]) -> None:
    assert check_schema(schema, at="at") == lines


def test_a_pattern_that_is_none_is_found_in_the_schema() -> None:
    (line,) = check_schema(obj(a={**TEXT, "pattern": "(?=x)"}))

    assert line.startswith('properties[a].pattern: Invalid value: "(?=x)": must be a valid regular')
