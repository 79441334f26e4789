"""What is valid for a generated form arrives in the XR as it was entered, and the XRD takes it."""

from __future__ import annotations

from typing import Any

import yaml
from chances import Chances
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kitforms import Made, xrd_of
from kitschemas import SPECS, Schema, values_of
from yamllint import linter
from yamllint.config import YamlLintConfig

from kubeschema.validate import Validator
from softwaretemplates.form_schema import accepts
from yamlfiles import yaml12
from yamlfiles.manifests import parse_manifests


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


def random_cases(chances: Chances, short: int) -> settings:
    """Return how many random specifications a test tries."""
    examples = chances.count(short, 2000)
    return settings(deadline=None, max_examples=examples, suppress_health_check=list(HealthCheck))


def test_what_is_entered_is_what_the_xr_has(chances: Chances) -> None:
    random_cases(chances, 20)(given(st.data())(xr_has_what_is_entered))()


def xr_has_what_is_entered(data: st.DataObject) -> None:
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


def test_generated_files_pass_yamllint_and_twice_are_the_same(chances: Chances) -> None:
    random_cases(chances, 15)(given(SPECS)(generated_files_are_clean))()


def generated_files_are_clean(spec: Schema) -> None:
    made = Made(spec)

    template = made.files[next(path for path in made.files if path.name == "template.yaml")]
    assert list(linter.run(template.decode(), LINT)) == []
    assert made.files == Made(spec).files


LINT = YamlLintConfig(
    "{extends: default, rules: {line-length: {max: 120}, truthy: {check-keys: false}}}"
)


def test_the_form_refuses_what_the_xrd_refuses(chances: Chances) -> None:
    """What is empty is left out of the XR, so a form may take it."""
    random_cases(chances, 25)(given(SPECS, st.data())(form_refuses_what_the_xrd_refuses))()


def form_refuses_what_the_xrd_refuses(spec: Schema, data: st.DataObject) -> None:
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
        assert findings == () or "unknown field" in findings[0].message or wrong in ([], {})
