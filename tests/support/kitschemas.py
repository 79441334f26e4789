"""Hypothesis strategies: schemas of an XRD's ``spec``, and values that a form can send for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kubeschema.re2_patterns import compile_pattern

Schema = dict[str, Any]

# Left out: what YAML cannot hold unescaped and JSON does not escape (xrcheck refuses it).
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"]), max_size=12)
NASTY = st.sampled_from(
    ["yes", "no", "null", "1e3", "0x10", "~", "017", "12:30", 'a "b"\n: #x', "${{ values.x }}",
     "{% if x %}", "{#", "'", "- a", "😀", " ", "\\", "\t", "a\r\nb", "<<", "=", "2020-01-01"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["size", "teamName", "none", "yes", "a-b", "on", "items", "length", "1st", "with space",
     "quote'd", 'dou"ble', "ключ", "${{ x }}", "true", "n", "x.y", "default", "not"]
)  # fmt: skip


def scalar() -> st.SearchStrategy[Schema]:
    bounds = st.integers(-5, 5)
    return st.one_of(
        st.just({"type": "string"}),
        st.sampled_from(["^[a-z]*$", r"^\S*$", "^.+$", "[[:alpha:]]"]).map(
            lambda pattern: {"type": "string", "pattern": pattern}
        ),
        st.lists(st.one_of(NASTY, TEXT), min_size=1, max_size=4, unique=True).map(
            lambda values: {"type": "string", "enum": values}
        ),
        st.tuples(bounds, st.integers(0, 9)).map(
            lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]}
        ),
        st.just({"type": "integer", "format": "int32"}),
        st.just({"type": "number"}),
        st.just({"type": "boolean"}),
        st.just({"x-kubernetes-int-or-string": True}),
    )


def some(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Return lists, maps and objects of something."""
    sizes = st.sampled_from([{}, {"minItems": 1}, {"minItems": 2, "maxItems": 3}])
    return st.one_of(
        st.tuples(inner, sizes).map(lambda t: {"type": "array", "items": t[0], **t[1]}),
        inner.map(lambda value: {"type": "object", "additionalProperties": value}),
        st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        objects(inner),
    )


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    """Return an object, some of whose properties are required."""
    properties = draw(st.dictionaries(NAMES, inner, min_size=1, max_size=4))
    required = [name for name in properties if draw(st.booleans())]
    found: Schema = {"type": "object", "properties": properties}
    return {**found, "required": required} if required else found


SPECS = objects(st.recursive(scalar(), some, max_leaves=5))


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Return values that the XRD's schema takes, as a form can send them."""
    if "x-kubernetes-int-or-string" in schema:
        return st.one_of(st.integers(-99, 99), TEXT, NASTY)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return st.dictionaries(NAMES, st.one_of(TEXT, st.integers(-9, 9), st.none()), max_size=3)
    if schema["type"] == "array":
        sizes = {"min_size": schema.get("minItems", 0), "max_size": schema.get("maxItems", 3)}
        return st.lists(values_of(schema["items"]), **sizes)
    if schema["type"] != "object":
        return scalars_of(schema)
    if "additionalProperties" in schema:
        keys = st.one_of(NAMES, TEXT)
        return st.dictionaries(keys, values_of(schema["additionalProperties"]), max_size=3)
    required = schema.get("required", [])
    inner = {name: values_of(found) for name, found in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: value for name, value in inner.items() if name in required},
        optional={name: value for name, value in inner.items() if name not in required},
    )


def scalars_of(schema: Schema) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "string":
            found = st.one_of(TEXT, NASTY, st.from_regex("[a-z]{1,5}", fullmatch=True))
            return found.filter(lambda text: _fits(schema, text))
        case "integer":
            return st.integers(schema.get("minimum", -(2**31)), schema.get("maximum", 2**31 - 1))
        case "number":
            floats = st.floats(-1e15, 1e15)  # beyond, JavaScript prints another whole number
            return st.one_of(st.integers(-(10**6), 10**6), floats)
    return st.booleans()


def _fits(schema: Schema, text: str) -> bool:
    return "pattern" not in schema or bool(compile_pattern(schema["pattern"]).search(text))
