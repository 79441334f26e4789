"""A kit's page in ``docs/kits``: fields, rules, what can change and what cannot, how to order."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.kit import form_rules
from orderkit.core.kit.form_fields import is_machine_bound
from orderkit.core.kit.generated_mark import html_comment
from orderkit.core.kit.kit_file import Direction, Example, How, KindRef, KitChange, Survivor
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Nightly, Values
from orderkit.core.kit.xrd_fields import ABSENT, FieldShape, KitField, KitFields, fields_of

_DIRECTIONS = {
    Direction.ANY: "to any value",
    Direction.GROW: "only up",
    Direction.STEP: "one step at a time",
    Direction.NEVER: "never",
}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("minProperties", "at least {} entries"),
    ("maxProperties", "at most {} entries"),
    ("format", "format {}"),
)
_NOUNS = {
    FieldShape.TEXT: "text",
    FieldShape.INTEGER: "whole number",
    FieldShape.NUMBER: "number",
    FieldShape.BOOLEAN: "yes or no",
    FieldShape.INT_OR_STRING: "whole number or text",
    FieldShape.OBJECT: "group of fields",
    FieldShape.FREE: "any keys",
    FieldShape.EMPTY: "empty",
}


def page(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return the page of a kit."""
    fields = fields_of(kit)
    sections = [
        _head(kit),
        _fields(kit, fields),
        _rules(fields),
        _order(kit, fields),
        _changes(kit),
        _end(kit),
        _kinds(kit),
    ]
    text = html_comment(kit.name) + "\n".join(section for section in sections if section)
    return {PurePosixPath("docs", "kits", f"{kit.name}.md"): text.encode()}


def _head(kit: Kit) -> str:
    description = f"{' '.join(kit.description.split())}\n\n" if kit.description else ""
    name_fields = " and ".join(f"`{name}`" for name in kit.name_parameters)
    xr = "the order" if kit.xr_name == "order" else f"its `{kit.xr_name}`"
    return (
        f"# {_plain(kit.title)}\n\n{description}"
        "| | |\n|---|---|\n"
        f"| Order | `{kit.name}-…`, named by {name_fields} |\n"
        f"| Team | named by `{kit.team_parameter}` |\n"
        f"| Kind | `{kit.kind.kind}` of `{kit.kind.api_version}`, "
        f"{'in a namespace' if kit.namespaced else 'cluster-wide'}, called as {xr} |\n"
    )


def _fields(kit: Kit, fields: KitFields) -> str:
    rows = [row for field in _rows(fields.top) for row in [_row(kit, field)]]
    hidden = [field for field in fields.walk() if field.hidden]
    if not rows and not hidden:
        return ""
    table = (
        "## Fields\n\n| Field | Value | Default | What it is |\n|---|---|---|---|\n" + "".join(rows)
        if rows
        else "## Fields\n\n"
    )
    hidden_rows = "".join(
        f"| `{field.path}` | set by the platform | | {_cell(_help(field))} |\n" for field in hidden
    )
    return f"{table}{hidden_rows}"


def _rows(fields: Sequence[KitField]) -> Iterator[KitField]:
    """Yield the fields of the table, including those of entries."""
    for field in fields:
        if not field.visible and (field.unseen or not any(f.in_yaml for f in field.walk())):
            continue
        yield field
        yield from _rows(field.fields)
        if field.item is not None:
            yield from _rows(field.item.fields)


def _row(kit: Kit, field: KitField) -> str:
    default = "" if field.default is ABSENT else f"`{_json(field.default)}`"
    default = "required" if field.required else default
    name = kit.parameter(field.path)
    in_yaml = ("Entered as YAML.",) if field.in_yaml else ()
    remarks = " ".join((_help(field), *_condition(field), *field.sentences, *in_yaml)).strip()
    return f"| `{_cell(name)}` | {_cell(_value(field))} | {_cell(default)} | {_cell(remarks)} |\n"


def _condition(field: KitField) -> Iterator[str]:
    if field.hints.when:
        values = " or ".join(f"`{_json(value)}`" for value in field.hints.when.values)
        yield f"Only if `{field.hints.when.field}` is {values}."


def _help(field: KitField) -> str:
    text = field.hints.help or str(field.schema.get("description") or "")
    return form_rules.with_full_stop(text) if text.strip() else ""


def _value(field: KitField) -> str:
    """Describe the allowed values."""
    if field.item is not None:
        noun = "list" if field.shape is FieldShape.LIST else "map"
        return ", ".join((f"{noun} of: {_value(field.item)}", *_bounds(field)))
    choices = field.schema.get("enum")
    if choices:
        labels = field.hints.labels
        return ", ".join(
            f"`{_json(value)}`" + (f" ({labels[str(value)]})" if str(value) in labels else "")
            for value in choices
            if value is not None
        )
    phrases = [_NOUNS.get(field.shape, str(field.shape)), *_bounds(field)]
    pattern = field.schema.get("pattern")
    if isinstance(pattern, str):
        phrases.append(field.hints.error or f"matches `{pattern}`")
    return ", ".join(phrases)


def _bounds(field: KitField) -> Iterator[str]:
    keywords = {**field.schema, **{limit.keyword: limit.value for limit in field.limits}}
    for keyword, words in _BOUNDS:
        if keyword in keywords and not is_machine_bound(keyword, keywords[keyword]):
            exclusive = keywords.get(f"exclusive{keyword.capitalize()}") is True
            yield words.format(keywords[keyword]) + (" and not equal to it" if exclusive else "")


def _rules(fields: KitFields) -> str:
    rule_lines = "".join(f"- {sentence}\n" for _, sentence in fields.rules)
    return f"## Rules\n\n{rule_lines}" if rule_lines else ""


def _order(kit: Kit, fields: KitFields) -> str:
    examples = kit.examples or (Example("", _sketch(kit, fields)),)
    parts = []
    for example in examples:
        title = f"{example.title}:\n\n" if example.title else ""
        parts.append(f"{title}```sh\n{_command(kit, example)}\n```\n")
    text = "## Order\n\nIn the portal by its form, or by command:\n\n" + "\n".join(parts)
    return text + _lease(kit)


def _lease(kit: Kit) -> str:
    lease = kit.lease
    if not lease.is_declared:
        return ""
    asked = f"as long as `{kit.parameter(lease.term_field)}` says" if lease.term_field else ""
    default = f"{lease.default} without it" if asked and lease.default else lease.default
    length = ", ".join(filter(None, (asked, default)))
    length = f"for {length}" if length else "until it is ended or given a lease"
    maximum = f", at most {lease.maximum}" if lease.maximum else ""
    grace = f"{lease.grace} after its expiry" if lease.grace else "Then"
    follow = f"it pauses: {_values(lease.pause)}" if lease.then == "pause" else "it ends"
    exempt = f" Not for teams {', '.join(lease.exempt_teams)}." if lease.exempt_teams else ""
    return (
        f"\nAn order lives {length}{maximum}. Warnings are recorded {_listed(lease.warn)} before."
        f" {grace} {follow}. {_extensions(kit)}{_night(lease.nightly)}{exempt}\n"
    )


def _night(nightly: Nightly | None) -> str:
    if nightly is None:
        return ""
    unless = f", unless {_values(nightly.unless, 'is')}" if nightly.unless else ""
    return f" Each night at {nightly.at} ({nightly.zone}) {_values(nightly.values)}{unless}."


def _values(values: Values, verb: str = "becomes") -> str:
    return " and ".join(f"`{path}` {verb} `{_json(value)}`" for path, value in values.items())


def _extensions(kit: Kit) -> str:
    lease = kit.lease
    if lease.extend.times == 0:
        return "It cannot be extended."
    by = f" by {lease.extend.by} at most" if lease.extend.by else ""
    times = f", {lease.extend.times} times" if lease.extend.times else ""
    example = lease.extend.by or lease.warn[0]
    return f"Extend it{by}{times}: `orderkit lease extend {kit.name}-… {example} --reason TEXT`."


def _listed(texts: Sequence[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _command(kit: Kit, example: Example) -> str:
    values = [
        shlex.quote(f"{name}={value if isinstance(value, str) else _json(value)}")
        for name, value in example.values.items()
    ]
    return " ".join(("orderkit order", kit.name, *values))


def _sketch(kit: Kit, fields: KitFields) -> dict[str, Any]:
    """Return the required values, with words in place of values that cannot be guessed."""
    answers: dict[str, Any] = {}
    if not kit.name_from:
        answers[kit.name_parameters[0]] = "NAME"
    if not kit.team_from:
        answers[kit.team_parameter] = "TEAM"
    for field in fields.form:
        if field.required and field.visible:
            choices = field.schema.get("enum")
            answers[kit.parameter(field.path)] = choices[0] if choices else field.name.upper()
    return answers


def _changes(kit: Kit) -> str:
    if not kit.changes:
        return (
            "## Changes\n\nEvery field may change later, as far as the rules allow: edit the file "
            "under `manifests/` in the order's repository.\n"
        )
    table = "".join(map(_change, kit.changes))
    warnings = "".join(
        f"- {c.title}: {form_rules.with_full_stop(c.warning)}\n" for c in kit.changes if c.warning
    )
    text = (
        f"## Changes\n\n| Change | Fields | How far | Who | How |\n|---|---|---|---|---|\n{table}"
    )
    return text + (f"\n{warnings}" if warnings else "")


def _change(change: KitChange) -> str:
    fields = ", ".join(f"`{path}`" for path in change.fields)
    how = "at once" if change.how is How.DIRECT else "by review"
    if change.direction is Direction.NEVER:
        return f"| {_cell(change.title)} | {fields} | never | | |\n"
    who = ", ".join(change.who)
    return (
        f"| {_cell(change.title)} | {fields} | {_DIRECTIONS[change.direction]} | {who} | {how} |\n"
    )


def _end(kit: Kit) -> str:
    kept = "archived" if kit.end.repository == "archive" else "deleted"
    survives = "".join(_survivor(survivor) for survivor in kit.end.survivors)
    survivors_text = f"\nWhat is left:\n\n{survives}" if survives else ""
    return (
        f"## End\n\n`orderkit destroy {kit.name}-…` removes everything that was made; the order's "
        f"repository is {kept}.\n{_first_step(kit)}{survivors_text}"
    )


def _first_step(kit: Kit) -> str:
    first = kit.end.first
    if first is None:
        return ""
    assignments = " and ".join(
        f"`{path}` becomes `{_json(value)}`" for path, value in first.set.items()
    )
    why = f" ({_plain(first.why).rstrip('.')})" if first.why else ""
    return f"\nBefore that, {assignments}{why}, and that is waited for.\n"


def _survivor(survivor: Survivor) -> str:
    but = " and ".join(f"`{path}` is `{_json(value)}`" for path, value in survivor.unless.items())
    text = form_rules.with_full_stop(survivor.text)
    take_hint = f" `--take {survivor.name}` sets that first." if survivor.name else ""
    return f"- {text}{f' Not if {but}.' if but else ''}{take_hint}\n"


def _kinds(kit: Kit) -> str:
    kinds_by_verb = [("composes", kit.composes), ("reads", kit.requires)]
    lines = [f"- {verb} {', '.join(map(_kind, kinds))}\n" for verb, kinds in kinds_by_verb if kinds]
    return "## In the cluster\n\n" + "".join(lines) if lines else ""


def _kind(kind: KindRef) -> str:
    return f"`{kind.kind}` (`{kind.api_version}`)"


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    """Return a text for one cell of a table."""
    return _plain(text).replace("|", "\\|")
