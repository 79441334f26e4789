"""
The portal's forms as plain HTML: fields from a Template's pages, and values from what was sent.

The schema is the one that the portal's form has, so both ask for the same and the same verdicts
apply; nothing is judged here. What no single input can hold (lists of objects, maps) is entered as
YAML. A field that depends on an answer is shown with its condition, and dropped if that is not met.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError, shorten
from orderkit.web.console.page_exchange import last
from yamlfiles import yaml11

Schema = Mapping[str, Any]
Values = dict[str, Any]
PREFIX = "v."
"""Of the inputs that hold values of the form."""
_SCALARS = ("string", "number", "integer", "boolean")
_LONG = 120
_START = re.compile(r"\A---[ \t]*\r?\n")
"""The first line of a YAML document; what a form holds is only a part of one."""
_DEPTH_MAX = 12
_PATTERN = re.compile(r"does not match|pattern|\^|\[a-z")
"""In a rule: a regular expression, which tells most people nothing."""


@dataclass(frozen=True, slots=True)
class _Property:
    """One property of a form, and the answers that show it."""

    name: str
    schema: Schema
    required: bool
    when: tuple[str, tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True)
class FormPage:
    """One page of a form; `known` are answers that no field asks for, such as the order's id."""

    schema: Schema
    known: Mapping[str, Any]

    def fields(
        self, values: Mapping[str, Any], current: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """
        Return what a template shows.

        Args:
            values: What the fields hold.
            current: What the order has now, if it exists.
        """
        return [
            _field(entry, PREFIX, values.get(entry.name), (current or {}).get(entry.name))
            for entry in self._properties()
        ]

    def read(self, form: Mapping[str, Any]) -> Values:
        """
        Return the values that a browser sent; what is empty is left out.

        Raises:
            InvalidInputError: A text is no number or no YAML.
        """
        values: Values = {}
        for entry in self._properties():
            value = _read(entry.schema, f"{PREFIX}{entry.name}", form, entry.name)
            if value is not None:
                values[entry.name] = value
        for entry in self._properties():
            if entry.when and values.get(entry.when[0]) not in entry.when[1]:
                values.pop(entry.name, None)
        return values

    def _properties(self) -> list[_Property]:
        """Return what the form asks for, in its order, each name once."""
        found: dict[str, _Property] = {}
        for entry in _walk(self.schema, self.known, None, 0):
            hidden = entry.schema.get("ui:widget") == "hidden" or "const" in entry.schema
            if entry.name in self.known or hidden or set(entry.schema) <= {"enum"}:
                continue
            before = found.get(entry.name)
            if before is None or (before.when and entry.when is None):
                found[entry.name] = entry
        order = [name for name in self.schema.get("ui:order", ()) if name in found]
        return [found[name] for name in dict.fromkeys([*order, *found])]


def _walk(
    schema: Schema, known: Mapping[str, Any], when: tuple[str, tuple[Any, ...]] | None, depth: int
) -> Iterator[_Property]:
    """Yield a schema's properties, and those of its branches that can be reached."""
    if depth > _DEPTH_MAX:
        return
    required = schema.get("required") or ()
    for name, property_ in (schema.get("properties") or {}).items():
        if isinstance(property_, dict):
            yield _Property(name, property_, name in required, when)
    for question, dependency in (schema.get("dependencies") or {}).items():
        for branch in dependency.get("oneOf", ()) if isinstance(dependency, dict) else ():
            yield from _branch(branch, question, known, depth)
    for part in schema.get("allOf") or ():
        then, test = part.get("then"), (part.get("if") or {}).get("properties") or {}
        for question, asked in test.items():
            if then:
                properties = {**(then.get("properties") or {}), question: asked}
                yield from _branch({**then, "properties": properties}, question, known, depth)


def _branch(
    branch: Schema, question: str, known: Mapping[str, Any], depth: int
) -> Iterator[_Property]:
    """Yield what a branch adds if `question` has an answer of it; a known one decides now."""
    asked = (branch.get("properties") or {}).get(question) or {}
    answers = tuple(asked.get("enum") or ((asked["const"],) if "const" in asked else ()))
    rest = {name: s for name, s in (branch.get("properties") or {}).items() if name != question}
    if question in known:
        if known[question] in answers:
            yield from _walk({**branch, "properties": rest}, known, None, depth + 1)
    else:
        yield from _walk({**branch, "properties": rest}, known, (question, answers), depth + 1)


def _field(entry: _Property, prefix: str, value: Any, current: Any, depth: int = 0) -> Values:
    schema, name = entry.schema, f"{prefix}{entry.name}"
    shown = schema.get("default") if value is None else value
    kind = _kind(schema)
    field: Values = {
        "name": name,
        "path": name.removeprefix(PREFIX),
        "kind": kind,
        "title": schema.get("title") or entry.name,
        "help": schema.get("description") or schema.get("ui:help") or "",
        "placeholder": schema.get("ui:placeholder") or "",
        "required": entry.required,
        "when": {"field": entry.when[0], "values": list(entry.when[1])} if entry.when else None,
        "team": schema.get("ui:field") in ("OwnerPicker", "OwnedEntityPicker"),
        "minimum": schema.get("minimum"),
        "maximum": schema.get("maximum"),
        "limit": schema.get("maxLength"),
        "current": None if current is None else _text(kind, current),
        "changed": current is not None and value is not None and current != value,
        "wrong": "",
        "focus": False,
    }
    if kind == "group":
        values, present = (x if isinstance(x, dict) else {} for x in (shown, current))
        required = schema.get("required") or ()
        inner = [
            _field(
                _Property(key, sub, key in required),
                f"{name}.",
                values.get(key),
                present.get(key),
                depth + 1,
            )
            for key, sub in schema["properties"].items()
            if sub.get("ui:widget") != "hidden"
        ]
        return {**field, "fields": inner, "value": None}
    return {**field, "value": _text(kind, shown), "choices": _choices(schema, kind)}


def with_problems(fields: Sequence[Values], error: Mapping[str, Any] | None) -> list[Values]:
    """Return fields with what is wrong with each, in its own words; the first gets the focus."""
    problems = list(error["problems"]) if error else []
    is_first = [True]
    return [_judged(field, problems, is_first) for field in fields]


def _judged(field: Values, problems: Sequence[Mapping[str, Any]], is_first: list[bool]) -> Values:
    if field["kind"] == "group":
        return {**field, "fields": [_judged(f, problems, is_first) for f in field["fields"]]}
    wrong = next((p for p in problems if _is_about(str(p["field"]), field["path"])), None)
    focus = wrong is not None and is_first[0]
    if focus:
        is_first[0] = False
    return {**field, "wrong": _words(field, wrong) if wrong else "", "focus": focus}


def _is_about(asked: str, path: str) -> bool:
    return asked == path or asked.endswith(f".{path}") or asked.startswith(f"{path}.")


def _words(field: Values, problem: Mapping[str, Any]) -> str:
    """Say what is wrong as the kit would: its title, what it wants, an example; no pattern."""
    title, rule, value = field["title"], str(problem["rule"]), problem["value"]
    if value is None or value == "":
        text = f"{title} is missing."
    elif _PATTERN.search(rule):
        text = f"{title} cannot be {shorten(repr(value))}."
    else:
        text = f"{title}: {shorten(repr(value))} {rule}."
    example = field["placeholder"] or next((c["value"] for c in field["choices"]), "")
    hint = str(problem["hint"] or "")
    if hint and not _PATTERN.search(hint):
        text = f"{text} {hint[:1].upper()}{hint[1:]}."
    return f"{text} For example: {example}" if example else text


def _kind(schema: Schema) -> str:
    """Return how a field is entered."""
    items = schema.get("items")
    match schema.get("type"):
        case "object" if schema.get("properties"):
            kind = "group"
        case "boolean":
            kind = "choice" if schema.get("default") is None else "flag"
        case "array" if isinstance(items, dict) and items.get("type") in _SCALARS:
            kind = "choices" if items.get("enum") else "lines"
        case "string" | "number" | "integer" if schema.get("enum"):
            kind = "choice"
        case "number" | "integer":
            kind = "number"
        case "string":
            is_long = int(schema.get("maxLength") or 0) > _LONG
            kind = "long" if is_long or schema.get("ui:widget") == "textarea" else "text"
        case _:
            kind = "yaml"
    return kind


def _choices(schema: Schema, kind: str) -> list[dict[str, str]]:
    if schema.get("type") == "boolean" and kind == "choice":
        return [{"value": "true", "title": "yes"}, {"value": "false", "title": "no"}]
    of = schema["items"] if kind == "choices" else schema
    enum = [value for value in of.get("enum") or () if value is not None]
    titles = list(of.get("enumNames") or schema.get("ui:enumNames") or ())
    return [
        {"value": _scalar(value), "title": str(titles[at]) if at < len(titles) else _scalar(value)}
        for at, value in enumerate(enum)
    ]


def _text(kind: str, value: Any) -> Any:
    """Return a value as its input holds it."""
    if kind == "choices":
        return [_scalar(item) for item in value] if isinstance(value, list) else []
    if value is None:
        return ""
    if kind == "lines":
        items = value if isinstance(value, list) else [value]
        return "\n".join(_scalar(item) for item in items)
    if kind in ("yaml", "group"):
        return yaml11.dump_block(value).strip()
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _read(schema: Schema, name: str, form: Mapping[str, Any], path: str) -> Any:
    kind = _kind(schema)
    if kind == "group":
        inner = {
            key: _read(sub, f"{name}.{key}", form, f"{path}.{key}")
            for key, sub in schema["properties"].items()
        }
        return {key: value for key, value in inner.items() if value is not None} or None
    if kind == "choices":
        items: Sequence[str] = form.get(name) or ()
        chosen = [_parsed(schema["items"], item, path) for item in items if item]
        return chosen or ([] if f"{name}.asked" in form else None)
    text = last(form, name)
    if kind == "flag":
        return text == "true" if f"{name}.asked" in form else None
    if kind == "lines":
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return [_parsed(schema["items"], line, path) for line in lines] or None
    if not text.strip():
        return None
    return _yaml(text, path) if kind == "yaml" else _parsed(schema, text, path)


def _yaml(text: str, path: str) -> Any:
    document = f"value:\n{textwrap.indent(_START.sub('', text), '  ')}\n"
    try:
        return yaml11.load(document, name=path, schema={"type": "object"})["value"]
    except InvalidInputError as error:
        raise InvalidInputError(path, text, f"is not YAML: {error}") from error


def _parsed(schema: Schema, text: str, path: str) -> Any:
    """Return a text as the schema's type; as text if it is none, for the schema to refuse."""
    match schema.get("type"):
        case "integer" | "number":
            return _number(text.strip(), path)
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
    return text


def _number(text: str, path: str) -> int | float:
    try:
        number = float(text)
        whole = int(text) if text.lstrip("+-").isdecimal() else None
    except ValueError as error:
        raise InvalidInputError(path, text, "is not a number") from error
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - only NaN differs from itself
        raise InvalidInputError(path, text, "is not a number of JSON")
    return number if whole is None else whole
