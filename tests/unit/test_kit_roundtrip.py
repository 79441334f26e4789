"""What is valid for a generated form arrives in the XR as it was entered, and the XRD takes it."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kitforms import Made, xrd_of
from yamllint import linter
from yamllint.config import YamlLintConfig

from orderkit.core import yaml12
from orderkit.core.formschema import accepts
from orderkit.core.manifests import parse_manifests
from orderkit.core.structural.patterns import compile_pattern
from orderkit.core.validate import Validator

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
            floats = st.floats(allow_nan=False, allow_infinity=False)
            return st.one_of(st.integers(-(10**6), 10**6), floats)
    return st.booleans()


def _fits(schema: Schema, text: str) -> bool:
    return "pattern" not in schema or bool(compile_pattern(schema["pattern"]).search(text))


def is_group(schema: Schema) -> bool:
    return "properties" in schema


def without_empties(value: Any, schema: Schema) -> Any:
    """Return a value as the XR has it: what may be left out and has nothing in it is."""
    if isinstance(value, list):
        return [without_empties(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if "additionalProperties" in schema:
        return {k: without_empties(v, schema["additionalProperties"]) for k, v in value.items()}
    known = schema["properties"]
    return {
        name: without_empties(item, known[name])
        for name, item in value.items()
        if name in schema.get("required", []) or not nothing_in(item, known[name])
    }


def nothing_in(value: Any, schema: Schema) -> bool:
    """Say whether nothing is entered: an empty list or map, or a group with nothing in it."""
    if isinstance(value, dict) and is_group(schema):
        return all(nothing_in(item, schema["properties"][name]) for name, item in value.items())
    return value in ([], {}) if isinstance(value, dict | list) else False


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_entered_is_what_the_xr_has(data: st.DataObject) -> None:
    spec = data.draw(SPECS, label="spec")
    made = Made(spec)
    entered = data.draw(values_of(spec), label="values")

    files = made.render(entered)
    (xr,) = parse_manifests("x.yaml", files["manifests/xthing.yaml"])

    assert xr["spec"] == without_empties(entered, spec)
    assert Validator(xrd_of(spec)).check(xr).findings == ()
    for path in ("manifests/xthing.yaml", ".orderkit/order.yaml"):
        in_old = yaml.safe_load(files[path])
        in_new = yaml12.load(files[path], name=path)
        key = "ordered" if path.startswith(".orderkit") else None
        for read in (in_old, in_new):
            found = read["spec"][key] if key else read["spec"]
            assert texts(found) == texts(xr["spec"])


def texts(value: Any) -> Any:
    """Return the texts of a value: YAML 1.1 reads some numbers as text, which is not ours."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return value if isinstance(value, str | bool) or value is None else float(value)


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(SPECS)
def test_generated_files_pass_yamllint_and_twice_are_the_same(spec: Schema) -> None:
    made = Made(spec)

    template = made.files[next(path for path in made.files if path.name == "template.yaml")]
    assert list(linter.run(template.decode(), LINT)) == []
    assert made.files == Made(spec).files


LINT = YamlLintConfig(
    "{extends: default, rules: {line-length: {max: 120}, truthy: {check-keys: false}}}"
)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(SPECS, st.data())
def test_the_form_refuses_what_the_xrd_refuses(spec: Schema, data: st.DataObject) -> None:
    """A scalar of another kind, or out of its bounds, is no value of the form either."""
    made = Made(spec)
    name = data.draw(st.sampled_from(list(spec["properties"])))
    wrong: Any = data.draw(st.sampled_from(["A b\n", 99, 1.5, True, None, [], {}, [[]], {"x": {}}]))
    xr = {
        "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "a"},
        "spec": {name: wrong},
    }  # fmt: skip
    findings = Validator(xrd_of({**spec, "required": []})).check(xr).findings
    parameter = made.kit.parameter(name)

    if accepts(made.properties[parameter], wrong):
        assert findings == () or "unknown field" in findings[0].message or wrong == []
