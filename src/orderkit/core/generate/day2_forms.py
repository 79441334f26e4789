"""
Day-2 forms: one Template for each change of a kit's orders, and one for ending an order.

A change's form has the fields that the change may touch, shown as in the order form and filled in
with the values from Git: the service links to it (``core.kit.change_forms.form_data``). Choice
fields that may only grow or move step by step offer what the kit's rules allow next. The form
carries order and base commit as claims; the service checks everything again.

Called by ``core.generate.kit_files``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.errors import InvalidInputError, OrderkitError
from orderkit.core.generate.form_fields import entry_schema, properties_of
from orderkit.core.generate.order_skeleton import member
from orderkit.core.generate.order_template import template_text
from orderkit.core.kit.change_forms import (
    BASE,
    CONFIRM,
    CURRENT,
    END,
    LEASE,
    ORDER,
    REASON,
    TAKE,
    changes_of,
    is_stepping,
    parameter_of,
    shown_fields,
    template_name,
    text_of,
    title_of,
)
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit, KitChange, Survivor
from orderkit.core.kit.xrd_fields import KitField
from orderkit.core.kit.yaml_settings import yaml_property, yaml_roots
from orderkit.core.objects.values import ABSENT
from orderkit.core.order.change.change_rules import judge_rules
from orderkit.core.order.change.differences import FieldDifference
from orderkit.core.portal.template import API_VERSION

Schema = dict[str, Any]

_HIDDEN = {"ui:widget": "hidden", "ui:backstage": {"review": {"show": False}}}
_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_REQUESTER = "${{ user.ref or 'user:default/unknown' }}"
_TIMEOUT_MS = 60_000
_EXTENSION = "extension"
_FROM_THE_ORDER = "Open this form from the order's page in the catalog: it is filled in there."


def day2(kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return the Templates of a kit's changes and of the end of its orders.

    Raises:
        InvalidInputError: A change or a form parameter has a reserved name.
        FormError: A field's pattern cannot be expressed in JavaScript.
    """
    templates = {change.name: _change_template(kit, change) for change in changes_of(kit)}
    for name, what in ((END, "the end"), (LEASE, "extending a lease")):
        if name in templates and (name == END or kit.lease.is_declared):
            raise InvalidInputError(
                "changes.name", name, f"is the name of {what}", hint="rename it"
            )
    if kit.lease.is_declared and kit.lease.extend_times != 0:
        templates[LEASE] = _lease_template(kit)
    templates[END] = _end_template(kit)
    room = PurePosixPath("day2", kit.name)
    return {
        room / f"{name}.yaml": template_text(entity, kit).encode()
        for name, entity in templates.items()
    }


def _change_template(kit: Kit, change: KitChange) -> dict[str, Any]:
    change_fields = shown_fields(kit, change.fields)
    plain = [field for field in change_fields if not is_stepping(change, field)]
    stepping = [field for field in change_fields if is_stepping(change, field)]
    page = properties_of(kit, plain)
    names = [parameter_of(kit, field) for field in change_fields]
    _check_free(kit, names)
    values = {name: f"${{{{ {member('parameters', name)} }}}}" for name in names}
    roots = yaml_roots(kit, change.fields)
    if roots:
        page["properties"][YAML_PARAMETER] = yaml_property(kit, roots)
        names.append(YAML_PARAMETER)
        # An emptied text arrives as such: a missing one means an older form without this field.
        values[YAML_PARAMETER] = f"${{{{ parameters.{YAML_PARAMETER} or '' }}}}"
    page["required"] = [ORDER, BASE, *page.get("required", ())]
    page["properties"] = {
        ORDER: _order_schema(),
        **page["properties"],
        REASON: _reason_schema(),
        BASE: {"title": "Seen at", "type": "string", "pattern": "^[0-9a-f]{40}$", **_HIDDEN},
    }
    for field in stepping:
        name = parameter_of(kit, field)
        title = f"{field.hints.title or name} now"
        page["properties"][f"{CURRENT}{name}"] = {"title": title, "type": "string", **_HIDDEN}
        page.setdefault("dependencies", {})[f"{CURRENT}{name}"] = _choices_by_current(
            kit, change, field
        )
    page["ui:order"] = [ORDER, *names, REASON, "*"]
    warned = {"description": change.warning} if change.warning else {}
    body = {
        **({"change": change.name} if kit.changes else {}),
        "values": values,
        "base": f"${{{{ parameters.{BASE} }}}}",
        "whole": True,
        "reason": f"${{{{ parameters.{REASON} }}}}",
        "requester": _REQUESTER,
    }
    return _template(
        kit,
        change.name,
        title=title_of(change),
        page={"title": title_of(change), **warned, **page},
        step=_step("Change the order", "changes", body),
    )


def _choices_by_current(kit: Kit, change: KitChange, field: KitField) -> Schema:
    """Return the choices for each current value, as the kit's rules allow them."""
    name = parameter_of(kit, field)
    choices = [choice for choice in field.schema["enum"] if choice is not None]
    schema = entry_schema(kit, field)
    labels = dict(zip(choices, schema.get("enumNames", ()), strict=False))
    branches = []
    for now in [*choices, ABSENT]:
        offered = [
            new_value for new_value in choices if _allowed(kit, change, field, now, new_value)
        ]
        field_schema = {**schema, "enum": offered}
        if labels:
            field_schema["enumNames"] = [labels[value] for value in offered]
        if now is ABSENT:
            field_schema.pop("default", None)
        present = {"enum": [text_of(now)]}
        branch: Schema = {"properties": {f"{CURRENT}{name}": present, name: field_schema}}
        if field.required:
            branch["required"] = [name]
        branches.append(branch)
    return {"oneOf": branches}


def _allowed(kit: Kit, change: KitChange, field: KitField, old: Any, new: Any) -> bool:
    if old == new:
        return True
    difference = FieldDifference(tuple(field.path.split(".")), old, new)
    try:
        judge_rules(kit, (difference,), change=change.name)
    except OrderkitError:
        return False
    return True


def _end_template(kit: Kit) -> dict[str, Any]:
    state = _repository_state(kit)
    summary = f"Everything that was made for the order is removed; its repository is {state}."
    survives = "".join(f" {_stays(survivor)}" for survivor in kit.end.survives)
    takeable = [survivor for survivor in kit.end.survives if survivor.name]
    page = {
        "title": f"End the {kit.title}",
        "description": f"{summary}{survives}",
        "required": [ORDER, CONFIRM],
        "properties": {
            ORDER: _order_schema(),
            CONFIRM: {
                "title": "Type the order's id to confirm",
                "type": "string",
                "pattern": _LABEL,
                "errorMessage": {"pattern": "must be the order's id"},
            },
            **{f"{TAKE}{survivor.name}": _take_schema(survivor) for survivor in takeable},
            REASON: _reason_schema(),
        },
    }
    body = {
        "confirm": f"${{{{ parameters.{CONFIRM} }}}}",
        **(
            {"take": {survivor.name: _take_expression(survivor) for survivor in takeable}}
            if takeable
            else {}
        ),
        "reason": f"${{{{ parameters.{REASON} }}}}",
        "requester": _REQUESTER,
    }
    title = f"End the {kit.title}"
    return _template(kit, END, title=title, page=page, step=_step("End the order", END, body))


def _lease_template(kit: Kit) -> dict[str, Any]:
    """Return the form that lets an order live longer."""
    lease = kit.lease
    most = f"{lease.extend_by} at most. " if lease.extend_by else ""
    total = f"An order lives for {lease.maximum} at most. " if lease.maximum else ""
    page = {
        "title": "Extend it",
        "description": f"{most}{total}Then it {'pauses' if lease.then == 'pause' else 'ends'}.",
        "required": [ORDER, _EXTENSION, REASON],
        "properties": {
            ORDER: _order_schema(),
            _EXTENSION: {
                "title": "By how long",
                "description": "For example 90m, 8h, 30d or 4w.",
                "type": "string",
                "pattern": DURATION,
                "default": lease.extend_by or lease.warn[0],
                "errorMessage": {"pattern": "must be a number and m, h, d or w, for example 8h"},
            },
            REASON: {**_reason_schema(), "minLength": 1},
        },
    }
    body = {
        "by": f"${{{{ parameters.{_EXTENSION} }}}}",
        "reason": f"${{{{ parameters.{REASON} }}}}",
        "requester": _REQUESTER,
    }
    title = f"Extend the {kit.title}"
    return _template(kit, LEASE, title=title, page=page, step=_step("Extend it", LEASE, body))


def _take_schema(survivor: Survivor) -> Schema:
    return {"title": survivor.ask, "type": "boolean", "default": False}


def _take_expression(survivor: Survivor) -> str:
    return f"${{{{ {member('parameters', f'{TAKE}{survivor.name}')} }}}}"


def _stays(survivor: Survivor) -> str:
    if survivor.name:
        return f"What stays, unless you ask for it below: {survivor.text.rstrip('.')}."
    but = " and ".join(f"{path} is {text_of(value)}" for path, value in survivor.unless.items())
    return f"What stays{f' (unless {but})' if but else ''}: {survivor.text.rstrip('.')}."


def _repository_state(kit: Kit) -> str:
    return {"archive": "archived", "delete": "deleted"}[kit.end.repository]


def _check_free(kit: Kit, names: Sequence[str]) -> None:
    for name in names:
        if name in (ORDER, BASE, REASON) or name.startswith(CURRENT):
            raise InvalidInputError(
                f"{kit.name}: {name}",
                name,
                "is a parameter that forms of changes need",
                hint="give the field another form parameter: aliases in kit.yaml",
            )


def _order_schema() -> Schema:
    return {
        "title": "Order",
        "description": _FROM_THE_ORDER,
        "type": "string",
        "pattern": _LABEL,
        "errorMessage": {"pattern": "is not filled in: open the form from the order's page"},
        "ui:readonly": True,
    }


def _reason_schema() -> Schema:
    return {
        "title": "Reason",
        "description": "Why; it is kept in Git.",
        "type": "string",
        "maxLength": 500,
    }


def _step(name: str, leads_to: str, body: Mapping[str, Any]) -> Schema:
    return {
        "id": "ask",
        "name": name,
        "action": "http:backstage:request",
        "input": {
            "method": "POST",
            "path": f"/proxy/orderkit/v1/orders/${{{{ parameters.{ORDER} }}}}/{leads_to}",
            "timeout": _TIMEOUT_MS,
            "headers": {
                "content-type": "application/json",
                "Idempotency-Key": "${{ context.task.id }}",
            },
            "body": dict(body),
        },
    }


def _template(kit: Kit, name: str, *, title: str, page: Schema, step: Schema) -> dict[str, Any]:
    response_body = "steps.ask.output.body"
    links = [{"title": "See it in Git", "url": f"${{{{ {response_body}.url }}}}"}]
    catalog = {
        "title": "The order in the catalog",
        "icon": "catalog",
        "entityRef": f"component:default/${{{{ parameters.{ORDER} }}}}",
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Template",
        "metadata": {
            "name": template_name(kit.name, name),
            "title": title,
            "description": _FROM_THE_ORDER,
            "tags": list(dict.fromkeys(("orderkit", kit.name, *kit.tags))),
        },
        "spec": {
            "owner": kit.owner,
            "type": END if name == END else "change",
            "parameters": [page],
            "steps": [step],
            "output": {
                **({"links": [*links, catalog]} if name not in (END, LEASE) else {}),
                "text": [{"title": title, "content": f"${{{{ {response_body}.message }}}}"}],
            },
        },
    }
