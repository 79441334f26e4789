"""
A scaffolder Template (``scaffolder.backstage.io/v1beta3``): parsing, checks, form answers.

`parse_template` reads template.yaml. `Template.validate` applies the form's defaults
(``form_answers``) and checks each parameter page by JSON Schema draft 7, with patterns as
JavaScript reads them. `read_assignments` reads ``field=value``. Steps are read, not run. No I/O.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import (
    PROBLEMS_MAX,
    InvalidInputError,
    OrderkitError,
    raise_problems,
    with_article,
)
from ground.objects.kube_objects import dig
from ground.objects.values import with_value
from ground.suggestions import did_you_mean
from softwaretemplates.form_answers import WHEN, check_condition, fill, shown_pages
from softwaretemplates.form_schema import Schema, SchemaError, accepts, causes, check, problems
from softwaretemplates.placeholders import ReadBeside, resolve_placeholders
from yamlfiles import yaml12

__all__ = [
    "API_VERSION",
    "Template",
    "TemplateStep",
    "check_fixed",
    "parse_template",
    "read_assignments",
]

_CAUSES_MAX = 200
"""Problems of a page that are looked at: a list can have a wrong item very often."""
API_VERSION = "scaffolder.backstage.io/v1beta3"
KIND = "Template"
_NEAR = 0.75

_STEP: Schema = {
    "type": "object",
    "required": ["action"],
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "name": {"type": "string"},
        "action": {"type": "string", "minLength": 1},
        "input": {"type": "object"},
        "if": {"type": ["string", "boolean"]},
        "each": {"type": ["string", "array", "object"]},
        "backstage:permissions": {"type": "object"},
    },
}
_PAGE: Schema = {"type": "object", "properties": {WHEN: {"type": ["string", "boolean"]}}}
_TEMPLATE: Schema = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {
                    "type": "string",
                    "maxLength": 63,
                    "pattern": r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
                },
                "namespace": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                "title": {"type": "string"},
            },
        },
        "spec": {
            "type": "object",
            "required": ["type", "steps"],
            "properties": {
                "type": {"type": "string", "minLength": 1},
                "parameters": {
                    "anyOf": [_PAGE, {"type": "array", "items": _PAGE}],
                },
                "steps": {"type": "array", "items": _STEP},
                "output": {"type": "object"},
                "secrets": {"type": "object", "properties": {"schema": {"type": "object"}}},
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class TemplateStep:
    """One step as written; `each` and `condition` are None where absent."""

    id: str
    name: str
    action: str
    input: Mapping[str, Any]
    condition: str | bool | None
    each: Any


@dataclass(frozen=True, slots=True)
class Template:
    """A form and the steps that it starts."""

    name: str
    title: str
    pages: tuple[Schema, ...]
    steps: tuple[TemplateStep, ...]
    output: Mapping[str, Any]
    entity: Mapping[str, Any]
    secrets: Schema
    """``spec.secrets.schema``: the schema of posted secrets. Empty: anything."""
    notes: tuple[str, ...] = ()
    """What Backstage ignores in it, for its author."""

    @property
    def properties(self) -> dict[str, Schema]:
        """The schema of every parameter of every page, including conditional ones."""
        return {name: schema for page in self.pages for name, schema in _properties(page)}

    def validate(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the parameters with the form's defaults, all checked, without those of hidden pages.

        Raises:
            InvalidInputError: An unknown parameter (the nearest known one is named), a missing one,
                or a value that its schema refuses.
            RenderError: The condition of a page fails on the values.
            SeveralProblemsError: More than one of these.
        """
        values = self._filled(parameters)
        raise_problems(self._problems(parameters, values))
        return shown_pages(self.pages, values)[1]

    def shown_pages(self, parameters: Mapping[str, Any]) -> list[Schema]:
        """Return the pages that the form shows for these answers."""
        shown, _ = shown_pages(self.pages, self._filled(parameters))
        return list(itertools.compress(self.pages, shown))

    def problems(
        self, parameters: Mapping[str, Any], refused: Sequence[InvalidInputError]
    ) -> list[OrderkitError]:
        """Return problems that are known already, and the problems of all other parameters."""
        names = {problem.field for problem in refused}
        others = {name: value for name, value in parameters.items() if name not in names}
        return [*refused, *self._problems(others, self._filled(others), meant=names)]

    def _problems(
        self,
        parameters: Mapping[str, Any],
        values: Mapping[str, Any],
        *,
        meant: Iterable[str] = (),
    ) -> list[OrderkitError]:
        """Return what is wrong, one problem a field. A parameter that is `meant` is not missing."""
        known = self.properties
        problems: list[OrderkitError] = []
        meant = set(meant)
        unknown = [name for name in parameters if name not in known][:PROBLEMS_MAX]
        for name in (*unknown, *sorted(meant - known.keys())[:PROBLEMS_MAX]):
            meant.update(difflib.get_close_matches(name, known, n=1))
        for name in unknown:
            hint = did_you_mean(name, known, f"parameters: {', '.join(known)}")
            rule = "is not a parameter of this form"
            problems.append(InvalidInputError(name, parameters[name], rule, hint=hint))
        shown, _ = shown_pages(self.pages, values)
        for page in itertools.compress(self.pages, shown):
            refusals = (
                (p, {p.field, p.field.partition(".")[0]}) for p in _page_problems(page, values)
            )
            problems += (problem for problem, names in refusals if meant.isdisjoint(names))
        return problems

    def _filled(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Fill in page after page: the form's defaults, overridden by the passed values."""
        values: dict[str, Any] = {}
        for at, page in enumerate(self.pages):
            page_properties = dict(_properties(page))
            page_values = {n: v for n, v in parameters.items() if n in page_properties}
            if not shown_pages(self.pages[: at + 1], {**parameters, **values})[0][at]:
                values |= page_values  # a form fills in only the pages that it shows
                continue
            filled = fill(page, {**values, **page_values}, accepts)
            defaults = {n: v for n, v in filled.items() if n not in values and n not in page_values}
            values = {**values, **defaults, **{n: filled[n] for n in page_values}}
        return values


def read_assignments(
    template: Template, assignments: Mapping[str, str], other_values: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Return a form's values with ``field=value`` texts, each of the type that its field has.

    Text fields keep their text whatever it looks like: a team named ``yes`` stays a string. A field
    of a group has a dotted name: ``storage.sizeGb``.

    Raises:
        InvalidInputError: Unknown field (the nearest is named), or no JSON of that type.
        SeveralProblemsError: More than one of these, or other fields have problems too.
    """
    fields = template.properties
    values, problems = dict(other_values), []
    for name, text in assignments.items():
        try:
            steps = _steps(name, text, fields)
            values = with_value(values, steps, _typed(name, text, _schema_at(steps, fields)))
        except KeyError:  # its group is no group in the other values
            rule = "is in a group that has another value"
            problems.append(InvalidInputError(name, text, rule, hint="give the whole group"))
        except InvalidInputError as problem:
            problems.append(problem)
    if problems:
        raise_problems(template.problems(values, problems))
    return values


def _steps(name: str, text: str, fields: Mapping[str, Schema]) -> tuple[str, ...]:
    """Return the names that lead to a field, those of its groups first."""
    if name in fields:
        return (name,)
    steps = tuple(name.split("."))
    try:
        _schema_at(steps, fields)
    except KeyError:
        hint = did_you_mean(name, fields, f"fields: {', '.join(fields)}")
        rule = "is not a field of this form"
        raise InvalidInputError(name, text, rule, hint=hint) from None
    return steps


def _schema_at(steps: Sequence[str], fields: Mapping[str, Schema]) -> Schema:
    schema: Schema = {"properties": fields}
    for step in steps:
        schema = (schema.get("properties") or {})[step]
    return schema


def _typed(name: str, text: str, schema: Schema) -> object:
    type_ = schema.get("type", "string")
    if type_ == "string":
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            name,
            text,
            f"is not {with_article(type_)}",
            hint='write JSON, for example 3, true, ["a"]',
        ) from error


def check_fixed(template: Template, values: Mapping[str, Any]) -> None:
    """
    Refuse other values for hidden fields with a default: those are the platform's own.

    The portal's copy does not send them; what is sent is somebody's own call.
    """
    problems = []
    for name, value in values.items():
        schema = template.properties.get(name, {})
        hidden = schema.get("ui:widget") == "hidden" and "default" in schema
        if hidden and value != schema["default"]:
            way_out = "leave it out: the platform fills it in"
            problems.append(InvalidInputError(name, value, "is set by the platform", hint=way_out))
    if problems:
        raise_problems(template.problems(values, problems))


def parse_template(
    data: bytes, *, name: str, choice: str = "", read: ReadBeside | None = None
) -> Template:
    """
    Read and check template.yaml. `name` is the file's name in messages.

    Args:
        choice: The name of the Template to read, if the file has several, as Backstage's catalog
            allows. Entities of other kinds are passed over.
        read: Reads files beside it for its placeholders; None: they stay as they are.

    Raises:
        InvalidInputError: Not YAML, not a v1beta3 Template, two steps with the same id, or a form
            that browser, backend and Python would read differently. Or no Template, or several, of
            these documents are meant.
        SeveralProblemsError: More than one of these; all are named.
    """
    import jsonschema  # lazy: heavy

    document = _chosen(yaml12.load_all(data, name=name), name, choice)
    if read is not None:
        document = resolve_placeholders(document, read, name=name)
    problems: list[OrderkitError] = []
    for error in jsonschema.Draft7Validator(_TEMPLATE).iter_errors(document):
        problem = jsonschema.exceptions.best_match([error])
        path = ".".join(str(key) for key in problem.absolute_path)
        field = f"{name}: {path}" if path else name
        problems.append(
            InvalidInputError(field, problem.instance, f"is refused: {problem.message}")
        )
    raise_problems(problems)
    spec, metadata = document["spec"], document["metadata"]
    pages = spec.get("parameters") or []
    template = Template(
        name=metadata["name"],
        title=metadata.get("title", metadata["name"]),
        pages=tuple(pages if isinstance(pages, list) else [pages]),
        steps=tuple(_step(step, at) for at, step in enumerate(spec["steps"], start=1)),
        output=spec.get("output", {}),
        entity={
            "metadata": metadata,
            "ref": f"template:{metadata.get('namespace', 'default')}/{metadata['name']}".lower(),
        },
        secrets=spec.get("secrets", {}).get("schema", {}),
        notes=_ignored(spec["steps"], name),
    )
    _check(template, name)
    return template


def _chosen(documents: Sequence[Any], name: str, choice: str) -> Any:
    """Return the document of a file that is the Template to read."""
    if len(documents) <= 1 and not choice:
        return documents[0] if documents else None
    templates = [doc for doc in documents if isinstance(doc, dict) and doc.get("kind") == KIND]
    names = [str(dig(doc, "metadata", "name", default="")) for doc in templates]
    chosen = [doc for doc, n in zip(templates, names, strict=True) if choice in ("", n)]
    if len(chosen) == 1:
        return chosen[0]
    listed = f"Templates: {', '.join(names)}"
    if choice:
        rule = "is the name of several Templates" if chosen else f"is none of its {listed}"
        raise InvalidInputError(name, choice, rule)
    if not names:
        raise InvalidInputError(name, 0, f"Templates in {len(documents)} documents")
    hint = f"choose one: --template-name {names[0]}"
    raise InvalidInputError(name, len(names), f"{listed}; one is run", hint=hint)


def _ignored(steps: Sequence[Mapping[str, Any]], name: str) -> tuple[str, ...]:
    """
    Return notes on properties of steps that Backstage ignores.

    Raises:
        InvalidInputError: One is nearly the name of a property that it reads.
    """
    notes = []
    for at, step in enumerate(steps):
        for key in step.keys() - _STEP["properties"].keys():
            place = f"{name}: spec.steps[{at}].{key}"
            meant = difflib.get_close_matches(key, _STEP["properties"], n=1, cutoff=_NEAR)
            if meant:
                rule = "is no property of a step"
                raise InvalidInputError(place, step[key], rule, hint=f"did you mean '{meant[0]}'?")
            notes.append(f"{place}: is ignored, as by Backstage")
    return tuple(sorted(notes))


def _step(step: Mapping[str, Any], number: int) -> TemplateStep:
    identifier = step.get("id", f"step-{number}")
    return TemplateStep(
        id=identifier,
        name=step.get("name", identifier),
        action=step["action"],
        input=step.get("input") or {},
        condition=step.get("if"),
        each=step.get("each"),
    )


def _check(template: Template, name: str) -> None:
    problems: list[OrderkitError] = []
    conditions: dict[str, list[str | bool | None]] = {}
    for step in template.steps:
        conditions.setdefault(step.id, []).append(step.condition)
    for step_id, of_step in conditions.items():
        if len(of_step) > 1 and None in of_step:  # with conditions, they are alternatives
            rule = "is the id of two steps, and not all of them have an `if`"
            problems.append(InvalidInputError(f"{name}: spec.steps", step_id, rule))
    for at, page in enumerate(template.pages):
        try:
            check_condition(page, f"{name}: spec.parameters[{at}].{WHEN}")
        except OrderkitError as error:
            problems.append(error)
    for page in (*template.pages, template.secrets):
        try:
            check(page)
        except SchemaError as error:
            field = f"{name}: {error.path}" if error.path else name
            problems.append(InvalidInputError(field, error.value, error.problem, hint=error.hint))
    raise_problems(problems)


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield a page's parameters, including those that appear only with certain answers."""
    yield from (schema.get("properties") or {}).items()
    branches = [item for key in ("oneOf", "anyOf", "allOf") for item in schema.get(key, ())]
    branches += [schema[key] for key in ("then", "else") if key in schema]
    branches += (schema.get("dependencies") or {}).values()
    for branch in branches:
        if isinstance(branch, dict):
            yield from ((n, s) for n, s in _properties(branch) if set(s) - {"const", "enum"})


def _page_problems(page: Schema, values: Mapping[str, Any]) -> list[InvalidInputError]:
    """Return what the form refuses of a page: of each field the most telling problem."""
    import jsonschema  # lazy: heavy

    by_field: dict[str, list[Any]] = {}
    for problem in itertools.islice(problems(page, values), _CAUSES_MAX):
        for cause in causes(problem):
            for field in _fields(cause):
                by_field.setdefault(field, []).append(cause)
    return [
        _invalid(field, jsonschema.exceptions.best_match(causes), page)
        for field, causes in by_field.items()
    ]


def _fields(problem: Any) -> list[str]:
    """Return the dotted path of the field that a problem is about; of missing ones, of each."""
    path = ".".join(str(step) for step in problem.absolute_path)
    if problem.validator != "required":
        return [path]
    missing = (name for name in problem.validator_value if name not in problem.instance)
    return [f"{path}.{name}".lstrip(".") for name in missing]


def _invalid(path: str, problem: Any, page: Schema) -> InvalidInputError:
    in_form = _hint(page, path)
    if problem.validator == "required":
        rule = "is missing: the form requires it"
        hint = f"{path}=VALUE: {in_form}" if in_form else f"{path}=VALUE"
        return InvalidInputError(path, None, rule, hint=hint, form_hint=in_form)
    own_message = _own_message(problem)
    if problem.schema.get("ui:widget") == "hidden" and problem.instance != _default(page, path):
        own_message = f"leave {path} out: the form sets it"
    rule = {
        "pattern": f"does not match the pattern {problem.validator_value}",
        "enum": f"is none of {', '.join(map(str, problem.validator_value))}"
        if problem.validator == "enum"
        else "",
        "type": f"is not {with_article(str(problem.validator_value))}",
    }.get(problem.validator, f"is refused: {problem.message}")
    hint = own_message or in_form
    return InvalidInputError(path or "parameters", problem.instance, rule, hint=hint)


def _own_message(problem: Any) -> str:
    """Return the ``errorMessage`` that the form would show instead of its own."""
    message = problem.schema.get("errorMessage") if isinstance(problem.schema, dict) else None
    if isinstance(message, dict):
        message = message.get(problem.validator)
    return message if isinstance(message, str) else ""


def _default(page: Schema, field: str) -> object:
    return dict(_properties(page)).get(field, {}).get("default")


def _hint(page: Schema, field: str) -> str:
    schema = dict(_properties(page)).get(field.partition(".")[0], {})
    if "enum" in schema:
        return f"one of: {', '.join(map(str, schema['enum']))}"
    return str(schema.get("description") or schema.get("title") or "")
