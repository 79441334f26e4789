"""
What is wrong with a kit although kit.yaml and XRD are well-formed each on its own.

`problems` finds all of it, each with the file it stands in, the place there, and the way out.
`import_problems` finds what is wrong with ``import`` of kit.yaml.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground import regular_expressions
from ground.objects.kube_objects import dig
from kubeschema.pruning import PRESERVE
from orderkit.core.kit.approval_rules import approval_problems, window_problems
from orderkit.core.kit.conversion_proof import conversion_problems
from orderkit.core.kit.field_problems import (
    KitProblem,
    Steps,
    direction_problems,
    label_problems,
    lease_problems,
    nearest,
    pattern_problems,
    picker_problems,
    status_field,
    view_problems,
    xrd_problems,
)
from orderkit.core.kit.form_fields import guard_of
from orderkit.core.kit.form_layout import form_layout
from orderkit.core.kit.form_rules import to_javascript
from orderkit.core.kit.kit_file import Direction, How, Import
from orderkit.core.kit.kit_file_parts import Hints
from orderkit.core.kit.literals import RESERVED, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import is_covered
from orderkit.core.kit.xrd_fields import SCALARS, FieldShape, KitField, KitFields, fields_of


def import_problems(kit: Kit, fields: KitFields, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong.

    Args:
        spec: ``spec`` of kit.yaml as it was written.
    """
    if kit.imports is None:
        return
    yield from _field_problems(kit.imports, fields)
    if not spec.get("changes"):
        rule = "needs changes: without them every field may change directly"
        hint = "name what else may change below spec.changes; those of the import are added"
        yield KitProblem("kit", ("spec", "import"), kit.imports.manage, rule, hint)
    for at, change in enumerate(kit.changes):
        if change.how is How.REVIEW or change.direction is Direction.NEVER:
            continue
        for path in (*dict.fromkeys(kit.imports.names.values()), kit.imports.manage):
            if is_covered(path, change.fields):
                rule = "is a field of an import: its change needs a review"
                yield KitProblem("kit", ("spec", "changes", at), path, rule, "write how: review")


def _field_problems(imports: Import, fields: KitFields) -> Iterator[KitProblem]:
    name_fields = [
        (("names", part_name), path, FieldShape.TEXT) for part_name, path in imports.names.items()
    ]
    for key, path, shape in (*name_fields, (("manage",), imports.manage, FieldShape.BOOLEAN)):
        field, steps = fields.find(path), ("spec", "import", *key)
        if field is None:
            hint = nearest(path, fields.paths) or f"fields: {', '.join(fields.paths) or 'none'}"
            yield KitProblem("kit", steps, path, "is not a field of the XRD", hint)
        elif field.shape is not shape:
            rule = f"is not {'a text' if shape is FieldShape.TEXT else 'yes-or-no'}"
            yield KitProblem("kit", steps, path, rule)
        elif field.required or field.schema.get("default"):
            hint = "make it optional in the XRD, without a default"
            yield KitProblem("kit", steps, path, "is set in every order", hint)


_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def problems(kit: Kit, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong, the XRD's own faults first.

    Args:
        spec: ``spec`` of kit.yaml as it was written.

    Raises:
        BrokenXrdError: Crossplane could make no CRD of the XRD.
    """
    fields = fields_of(kit)
    yield from xrd_problems(kit, fields)
    checks = _Checks(kit, fields, spec)
    for check in (
        checks.names, checks.aliases, checks.pages, checks.hints, checks.hidden, checks.naming,
        checks.layout, checks.changes, checks.gate, checks.rest, checks.compositions,
    ):  # fmt: skip
        yield from check()
    yield from lease_problems(kit, fields, spec)
    yield from view_problems(kit, spec)
    yield from import_problems(kit, fields, spec)
    yield from approval_problems(kit)
    yield from window_problems(kit)
    yield from conversion_problems(kit)


@dataclass(frozen=True, slots=True)
class _Checks:
    """Checks of one kit.yaml against its XRD."""

    kit: Kit
    fields: KitFields
    spec: Mapping[str, Any]

    def names(self) -> Iterator[KitProblem]:
        """Every field that is named is one of the XRD."""
        for steps, path in self._named():
            if self.fields.find(path) is None:
                near = nearest(path, self.fields.paths) or (
                    f"fields: {', '.join(self.fields.paths) or 'none'}"
                )
                yield KitProblem("kit", ("spec", *steps), path, "is not a field of the XRD", near)

    def _named(self) -> Iterator[tuple[Steps, str]]:
        kit, spec = self.kit, self.spec
        for key in ("aliases", "fields", "hidden"):
            yield from (((key, path), path) for path in spec.get(key) or ())
        if isinstance(spec.get("nameFrom"), str):
            yield ("nameFrom",), kit.name_from[0]
        else:
            yield from ((("nameFrom", at), path) for at, path in enumerate(kit.name_from))
        if kit.team_from:
            yield ("teamFrom",), kit.team_from
        if kit.unfold:
            yield ("unfold",), kit.unfold
        yield from ((("yamlFields", at), path) for at, path in enumerate(kit.yaml_fields))
        if kit.xr_name != "order":
            yield ("xrName",), kit.xr_name
        yield from ((("xrNamespace",), path) for _, path in kit.namespace_parts if path)
        field_lists = [(("pages", at), page.fields) for at, page in enumerate(kit.pages)]
        field_lists += [(("changes", at), change.fields) for at, change in enumerate(kit.changes)]
        for steps, paths in field_lists:
            yield from (((*steps, "fields", n), path) for n, path in enumerate(paths))
        first = kit.end.first
        yield from ((("end", "first", "set", path), path) for path in (first.set if first else ()))
        for number, survivor in enumerate(kit.end.survivors):
            yield from ((("end", "survives", number, "unless", p), p) for p in survivor.unless)
        for path, hints in kit.fields.items():
            if hints.when:
                yield ("fields", path, "when", hints.when.field), hints.when.field

    def _find(self, path: str) -> KitField | None:
        return self.fields.find(path)

    def compositions(self) -> Iterator[KitProblem]:
        """Each Composition is offered once, and the XRD lets an order have another than one."""
        enforced = dig(self.kit.xrd, "spec", "enforcedCompositionRef", "name")
        if enforced and self.kit.compositions:
            yield KitProblem("kit", ("spec", "compositions"), enforced,
                          "is the only Composition that the XRD allows",
                          "write defaultCompositionRef instead of enforcedCompositionRef in the "
                          "XRD, or take out spec.compositions")  # fmt: skip
        for name, count in Counter(self.kit.offered).items():
            if count > 1:
                yield KitProblem("kit", ("spec", "compositions"), name, "is offered twice",
                              "name each Composition once")  # fmt: skip

    def aliases(self) -> Iterator[KitProblem]:
        """Every parameter of the form has one field."""
        reserved = [*RESERVED]
        if not self.kit.name_from:
            reserved.extend(self.kit.name_parameters)
        if not self.kit.team_from:
            reserved.append(self.kit.team_parameter)
        owners: dict[str, str] = dict.fromkeys(reserved, "")
        for path, parameter in self.kit.aliases.items():
            steps = ("spec", "aliases", path)
            if "." in path:
                yield KitProblem("kit", steps, path, "is inside another field", "only fields "
                              "directly below spec can have an alias")  # fmt: skip
            if not _PARAMETER.match(parameter):
                yield KitProblem("kit", steps, parameter, "is not a name of a form parameter",
                              "letters, digits and '_', for example team_name")  # fmt: skip
        if self.kit.yaml_fields:
            owners[YAML_PARAMETER] = ""
        for field in self.fields.form:
            parameter = self.kit.parameter(field.path)
            if parameter in owners:
                rule = f"is the parameter of '{owners[parameter]}' too" if owners[parameter] else (
                    "is a parameter of every form"
                )  # fmt: skip
                aliased = field.path in self.kit.aliases
                field_steps: Steps = ("spec", "aliases", field.path) if aliased else ("spec",)
                hint = f"give '{field.path}' another name under spec.aliases"
                yield KitProblem("kit", field_steps, parameter, rule, hint)
            owners.setdefault(parameter, field.path)

    def pages(self) -> Iterator[KitProblem]:
        """A page has fields directly below spec, each on one page, none hidden."""
        placed_paths: set[str] = set()
        for at, page in enumerate(self.kit.pages):
            for n, path in enumerate(page.fields):
                steps = ("spec", "pages", at, "fields", n)
                field = self._find(path)
                if field and field not in self.fields.form:
                    outer = path.partition(".")[0]
                    yield KitProblem(
                        "kit",
                        steps,
                        path,
                        *(
                            ("is unfolded", "name its fields")
                            if path == self.kit.unfold
                            else ("is inside another field", f"name '{outer}'")
                        ),
                    )
                elif path in placed_paths:
                    yield KitProblem("kit", steps, path, "is on a page already")
                elif field and not field.visible:
                    yield KitProblem("kit", steps, path, "is not shown in the form", "leave it out")
                elif field and not field.asked:
                    yield KitProblem("kit", steps, path, "is asked for in changes only",
                                  "take it off the page, or drop 'ask: later'")  # fmt: skip
                placed_paths.add(path)

    def layout(self) -> Iterator[KitProblem]:
        """What is unfolded is a group; what is entered as YAML is optional."""
        yield from self._unfold()
        for at, path in enumerate(self.kit.yaml_fields):
            field, steps = self._find(path), ("spec", "yamlFields", at)
            if field is None:
                continue
            inner = list(field.walk())
            if field.required:
                yield KitProblem("kit", steps, path, "is required by the XRD",
                              "only optional fields can be entered as YAML")  # fmt: skip
            for other in self.kit.yaml_fields:
                if path.startswith(f"{other}."):
                    yield KitProblem("kit", steps, path, f"is inside '{other}'", "leave it out")
            if any(f.hidden or f.hints.when or f.path in self._naming for f in inner):
                yield KitProblem("kit", steps, path, "cannot be entered as YAML",
                              "it is hidden, depends on an answer, or names the order")  # fmt: skip

    def _unfold(self) -> Iterator[KitProblem]:
        field, steps = self._find(self.kit.unfold), ("spec", "unfold")
        if field is None:
            return
        if "." in field.path or field.shape is not FieldShape.OBJECT or field.schema.get(PRESERVE):
            yield KitProblem("kit", steps, field.path, "is not a group directly below spec",
                          "leave it out")  # fmt: skip
        elif not field.required and any(inner.required for inner in field.fields):
            yield KitProblem("kit", steps, field.path, "is optional and has required fields",
                          "leave it out: a form asks for them only in a group")  # fmt: skip
        elif field.path in self.kit.aliases or field.hints.when or field.path == "":
            yield KitProblem("kit", steps, field.path, "has an alias or a condition of its own",
                          "leave that out")  # fmt: skip

    @property
    def _naming(self) -> set[str]:
        kit = self.kit
        return {*kit.name_from, kit.team_from, kit.xr_name}

    def hints(self) -> Iterator[KitProblem]:
        """What ``fields`` says fits the field."""
        for path, hints in self.kit.fields.items():
            field = self._find(path)
            if field is None:
                continue
            steps = ("spec", "fields", path)
            yield from label_problems(field, hints, steps)
            if hints.picker and field.shape is not FieldShape.TEXT:
                rule = f"cannot be picked from the catalog: it is not a text but {field.shape}"
                yield KitProblem("kit", (*steps, "picker"), path, rule)
            if hints.error and "pattern" not in field.schema and path not in self.kit.name_from:
                yield KitProblem("kit", (*steps, "error"), path, "has no pattern to explain",
                              "say it in 'help'")  # fmt: skip
            yield from picker_problems(self.kit, field, hints, steps)
            if hints.ask == "later" and (field.required or field not in self.fields.form):
                yield KitProblem("kit", (*steps, "ask"), path, "must be asked for when ordering",
                              "make it optional in the XRD, directly below spec")  # fmt: skip
            if hints.when:
                yield from self._when_problems(field, hints, steps)

    def _when_problems(self, field: KitField, hints: Hints, steps: Steps) -> Iterator[KitProblem]:
        when = hints.when
        question = self._find(when.field) if when else None
        if when is None or question is None:
            return
        when_steps = (*steps, "when", when.field)
        if question.path.rpartition(".")[0] != field.path.rpartition(".")[0]:
            yield KitProblem("kit", when_steps, when.field, f"does not stand beside '{field.path}'",
                          "a form can only look at fields of the same object")  # fmt: skip
        elif question.shape not in SCALARS or not question.visible or question.path == field.path:
            yield KitProblem("kit", when_steps, when.field, "cannot be a condition",
                          "name a visible text, number or yes-or-no")  # fmt: skip
        elif self._leads_back(question):
            yield KitProblem("kit", when_steps, when.field, "depends on this field itself")
        elif self._page_of(question) != self._page_of(field):
            yield KitProblem("kit", when_steps, when.field, "is on another page",
                          "put both on one page")  # fmt: skip
        if field.required:
            yield KitProblem("kit", (*steps, "when"), field.path, "is required by the XRD",
                          "what is asked for only sometimes must be optional there")  # fmt: skip
        for value in when.values:
            choices = _answers(question)
            if choices is not None and value not in choices:
                yield KitProblem("kit", when_steps, value, f"is not a value of '{when.field}'",
                              nearest(value, choices))  # fmt: skip

    def _leads_back(self, field: KitField) -> bool:
        """Say whether a field depends on itself, by way of others."""
        visited: set[str] = set()
        current: KitField | None = field
        while current is not None and current.hints.when:
            if current.path in visited:
                return True
            visited.add(current.path)
            current = self._find(current.hints.when.field)
        return False

    def _page_of(self, field: KitField) -> int:
        pages = form_layout(self.kit, self.fields)
        return next(
            (
                at
                for at, (_, page_fields) in enumerate(pages)
                for outer in page_fields
                if field.path == outer.path or field.path.startswith(f"{outer.path}.")
            ),
            0,
        )

    def hidden(self) -> Iterator[KitProblem]:
        """A hidden field can be baked, and an unbaked one is noticed."""
        for path, hidden in self.kit.hidden.items():
            field = self._find(path)
            if field is None:
                continue
            steps: Steps = ("spec", "hidden", path)
            if field.shape not in SCALARS:
                yield KitProblem("kit", steps, path, f"cannot be baked: it is {field.shape}",
                              "only texts, numbers and yes-or-no can")  # fmt: skip
                continue
            pattern = guard_of(hidden, field)
            if not pattern:
                yield KitProblem("kit", steps, path, "is hidden without a pattern",
                              "give it one: it refuses what was never baked")  # fmt: skip
                continue
            pattern_steps = (*steps, "pattern") if hidden.pattern else steps
            refusals = list(pattern_problems("kit", pattern_steps, pattern))
            yield from refusals
            if not refusals and regular_expressions.compile_pattern(to_javascript(pattern)).search(
                hidden.sentinel
            ):
                yield KitProblem("kit", pattern_steps, pattern, f"lets {hidden.sentinel} through",
                              "a pattern that the value matches and '__' does not")  # fmt: skip
            if path in (self.spec.get("fields") or ()):
                yield KitProblem("kit", ("spec", "fields", path), path, "is hidden", "leave it out")

    def naming(self) -> Iterator[KitProblem]:
        """What names an order, its team and its XR is always there and is plain."""
        kit = self.kit
        naming_fields = [("nameFrom", path) for path in kit.name_from]
        naming_fields += [("teamFrom", kit.team_from)] if kit.team_from else []
        naming_fields += [("xrName", kit.xr_name)] if kit.xr_name != "order" else []
        if kit.xr_namespace and not kit.namespaced:
            yield KitProblem("kit", ("spec", "xrNamespace"), kit.xr_namespace,
                          "is for XRs that live in a namespace", "leave it out")  # fmt: skip
        for _, path in kit.namespace_parts:
            if path and path not in {*kit.name_from, kit.xr_name}:
                yield KitProblem("kit", ("spec", "xrNamespace"), path,
                              "can change, a namespace not",
                              "name a field of nameFrom")  # fmt: skip
        for key, path in naming_fields:
            field = self._find(path)
            if field is None:
                continue
            good = (
                (FieldShape.TEXT, FieldShape.INTEGER) if key == "nameFrom" else (FieldShape.TEXT,)
            )
            if field.shape not in good or not field.visible:
                yield KitProblem("kit", ("spec", key), path, f"cannot name it: it is {field.shape}"
                              if field.visible else "is not shown in the form")  # fmt: skip
            elif not field.always or field.hints.when:
                yield KitProblem("kit", ("spec", key), path, "may be left out",
                              "make it required in the XRD, or give it a default")  # fmt: skip

    def changes(self) -> Iterator[KitProblem]:
        """A change names fields that can go its direction."""
        for name in _twice(change.name for change in self.kit.changes):
            at = max(n for n, change in enumerate(self.kit.changes) if change.name == name)
            yield KitProblem(
                "kit", ("spec", "changes", at, "name"), name, "is the name of two changes"
            )
        for at, change in enumerate(self.kit.changes):
            for n, path in enumerate(change.fields):
                field = self._find(path)
                if field:
                    steps = ("spec", "changes", at, "fields", n)
                    yield from direction_problems(change, field, steps)

    def _first(self) -> Iterator[KitProblem]:
        """What an end sets first is something that a change may set at once."""
        first = self.kit.end.first
        for number, survivor in enumerate(self.kit.end.survivors):
            for path, value in survivor.unless.items():
                unless_steps: Steps = ("spec", "end", "survives", number, "unless", path)
                yield from self._no_value(unless_steps, path, value)
        for path, value in first.set.items() if first else ():
            steps: Steps = ("spec", "end", "first", "set", path)
            yield from self._no_value(steps, path, value)
            direct = [c for c in self.kit.changes if path in c.fields and c.how is How.DIRECT]
            if self.kit.changes and not direct:
                yield KitProblem("kit", steps, path, "is in no change that is committed directly",
                              "an end cannot wait for a review")  # fmt: skip

    def _no_value(self, steps: Steps, path: str, value: object) -> Iterator[KitProblem]:
        """Tell of a value that a field can never have."""
        field = self._find(path)
        choices = _answers(field) if field else None
        if choices is not None and value not in choices:
            hint = nearest(value, choices)
            yield KitProblem("kit", steps, value, f"is not a value of '{path}'", hint)

    def gate(self) -> Iterator[KitProblem]:
        """What programs are told stands in the XRD's status."""
        gate = self.kit.gate
        if gate is None:
            return
        for name, path, type_ in (
            ("paused", gate.paused, "boolean"),
            ("cause", gate.cause, "string"),
        ):
            schema = status_field(self.kit, path)
            if schema is None:
                yield KitProblem(
                    "kit", ("spec", "gate", name), path, "is not a field of the XRD's status"
                )
            elif schema.get("type") != type_:
                rule = f"is a {schema.get('type')} in the XRD's status, not a {type_}"
                yield KitProblem("kit", ("spec", "gate", name), path, rule)
        choices = (status_field(self.kit, gate.cause) or {}).get("enum") or gate.exhausted
        for at, cause in enumerate(gate.exhausted):
            if cause not in choices:
                steps = ("spec", "gate", "exhausted", at)
                near = nearest(cause, choices)
                yield KitProblem("kit", steps, cause, "is not a value of the cause's enum", near)

    def rest(self) -> Iterator[KitProblem]:
        """Links lead somewhere, examples have names of their own."""
        for at, link in enumerate(self.kit.links):
            if bool(link.url) == bool(link.entity_ref):
                yield KitProblem("kit", ("spec", "links", at), link.title,
                              "needs url or entityRef, one of the two")  # fmt: skip
        yield from self._first()
        for name in _twice(example.name for example in self.kit.examples):
            yield KitProblem("kit", ("spec", "examples"), name, "is the name of two examples")


def _answers(field: KitField) -> Sequence[object] | None:
    if field.shape is FieldShape.BOOLEAN:
        return (True, False)
    choices: Sequence[object] | None = field.schema.get("enum")
    return choices


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
