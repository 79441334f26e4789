"""What is wrong with what a kit reads of the status; part of ``core.kit.consistency``."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ground.objects.kube_objects import dig
from kubeschema.cel.conditions import Subject
from orderkit.core.kit.field_problems import KitProblem, Steps, nearest
from orderkit.core.kit.kit_file import is_fixture
from orderkit.core.kit.model import Kit

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NUMBERS = ("integer", "number")


def view_problems(kit: Kit, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong, in the order of the file.

    Args:
        spec: ``spec`` of kit.yaml as it was written.
    """
    outputs = list(spec.get("outputs") or ())
    facts = list(spec.get("facts") or ())
    subject = Subject.of_object(kit.spec_schema, kit.status_schema)
    for at, entry in enumerate(outputs):
        yield from _output(kit, subject, entry, ("spec", "outputs", at))
    for at, entry in enumerate(facts):
        if not is_fixture(entry):
            yield from _fact(kit, entry, ("spec", "facts", at))
    for key, entries in (("outputs", outputs), ("facts", facts)):
        yield from _names(key, entries)
    for at, entry in enumerate(spec.get("attention") or ()):
        yield from _attention(kit, subject, entry, ("spec", "attention", at))
    for at, entry in enumerate(spec.get("changes") or ()):
        if "atLeast" in entry:
            yield from _at_least(kit, entry, ("spec", "changes", at))


def _names(key: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[KitProblem]:
    names: set[str] = set()
    for at, entry in enumerate(entries):
        name = entry.get("name")
        if name in names:
            yield KitProblem("kit", ("spec", key, at, "name"), name, f"is the name of two {key}")
        names.update([name] if name else [])


def _output(
    kit: Kit, subject: Subject, entry: Mapping[str, Any], steps: Steps
) -> Iterator[KitProblem]:
    secret = entry.get("secret")
    if isinstance(secret, Mapping):
        for key in ("name", "namespace"):
            yield from _placeholders(subject, str(secret.get(key, "")), (*steps, "secret", key))
        return
    schema = yield from _shown(kit, entry["path"], (*steps, "path"))
    if entry.get("link") and schema is not None and schema.get("type", "string") != "string":
        rule = f"cannot be a link: it is a {schema['type']} in the XRD's status, not a string"
        yield KitProblem("kit", (*steps, "link"), entry["path"], rule, "leave 'link' out")
    if entry.get("link") and secret:
        yield KitProblem("kit", (*steps, "link"), entry["path"], "cannot be a link and a secret",
                      "leave one of the two out")  # fmt: skip


def _fact(kit: Kit, entry: Mapping[str, Any], steps: Steps) -> Iterator[KitProblem]:
    schema = yield from _shown(kit, entry["path"], (*steps, "path"))
    type_ = (schema or {}).get("type", "number")
    if "format" in entry and type_ not in _NUMBERS:
        rule = f"is for numbers: '{entry['path']}' is a {type_} in the XRD's status"
        yield KitProblem("kit", (*steps, "format"), entry["format"], rule, "leave it out")
    if entry.get("spend") and not entry.get("unit"):
        rule = "is money, and 'unit' does not say in which currency"
        yield KitProblem("kit", (*steps, "spend"), True, rule, "add for example 'unit: USD'")  # noqa: FBT003 - the value


def _at_least(kit: Kit, entry: Mapping[str, Any], steps: Steps) -> Iterator[KitProblem]:
    path = entry["atLeast"]["path"]
    schema = yield from _shown(kit, path, (*steps, "atLeast", "path"))
    if schema is not None and schema.get("type") not in _NUMBERS:
        rule = f"is a {schema.get('type', 'value')} in the XRD's status, not a number"
        yield KitProblem("kit", (*steps, "atLeast", "path"), path, rule, "name a number")
    types = [(field_at(kit.spec_schema, field) or {}).get("type") for field in entry["fields"]]
    if len(types) != 1 or types[0] not in _NUMBERS:
        rule = "belongs to a change of exactly one field, a number"
        hint = "make a change of that field alone"
        yield KitProblem("kit", (*steps, "atLeast"), entry["fields"], rule, hint)


def _shown(
    kit: Kit, path: str, steps: Steps
) -> Generator[KitProblem, None, Mapping[str, Any] | None]:
    """Yield why a field of the status cannot be shown; return its schema."""
    schema = status_field(kit, path)
    if schema is None:
        rule = "is not a field of the XRD's status"
        yield KitProblem("kit", steps, path, rule, nearest(path, _paths(kit.status_schema)))
    elif schema.get("type") in ("object", "array"):
        rule = f"cannot be shown: it is an {schema['type']} in the XRD's status"
        yield KitProblem("kit", steps, path, rule, "name a text, number or yes-or-no in it")
    return schema


def _attention(
    kit: Kit, subject: Subject, entry: Mapping[str, Any], steps: Steps
) -> Iterator[KitProblem]:
    fault = subject.fault(entry["when"])
    if fault:
        hint = "write a CEL condition over spec, status and metadata: status.paused"
        yield KitProblem("kit", (*steps, "when"), entry["when"], f"is refused: {fault}", hint)
    yield from _placeholders(subject, entry["sentence"], (*steps, "sentence"))
    name = entry.get("change")
    names = [change.name for change in kit.changes if change.direction != "never"]
    if name is not None and name not in names:
        hint = nearest(name, names) or f"changes: {', '.join(names) or 'none'}"
        yield KitProblem("kit", (*steps, "change"), name, "is not a change of this kit", hint)


def _placeholders(subject: Subject, text: str, steps: Steps) -> Iterator[KitProblem]:
    for match in PLACEHOLDER.finditer(text):
        if field_at(subject.schema, match[1]) is None:
            known = [
                f"{name}.{path}"
                for name, schema in subject.schema["properties"].items()
                for path in _paths(schema)
            ]
            hint = nearest(match[1], known) or "name a field: {spec.size}, {status.url}"
            rule = "is not a field of spec, status or metadata"
            yield KitProblem("kit", steps, match[1], rule, hint)


def status_field(kit: Kit, path: str) -> Mapping[str, Any] | None:
    """Return the schema of a field below ``status``; None if the XRD has none there."""
    return field_at(kit.status_schema, path)


def field_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the schema of a property, by its dotted path; None if there is none."""
    steps = [step for name in path.split(".") for step in ("properties", name)]
    field: Mapping[str, Any] | None = dig(schema, *steps)
    return field


def _paths(schema: Mapping[str, Any], above: str = "") -> Iterable[str]:
    for name, child in (schema.get("properties") or {}).items():
        yield f"{above}{name}"
        yield from _paths(child, f"{above}{name}.")
