"""
Day-2 forms: one Template for each change of a kit's orders, and one for ending an order.

A change's form has the fields that the change may touch, shown as in the order form and filled in
with the values from Git: the service links to it (``core.kit.change_forms.form_data``). Choice
fields that may only grow or move step by step offer what the kit's rules allow next. The form
carries order and base commit as claims; the service checks everything again.

Without a base commit nobody filled the form in: it was opened from the portal's list of templates,
where no form can fetch values. Then it asks which order, and its task links to the filled-in form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.kit.approval_rules import foretold
from orderkit.core.kit.change_forms import (
    BASE,
    COMPONENT,
    CONFIRM,
    CURRENT,
    END,
    LEASE,
    LEAST,
    ORDER,
    ORDER_PICKED,
    REASON,
    TAKE,
    changes_of,
    parameter_of,
    shown_fields,
    template_name,
    text_of,
    title_of,
)
from orderkit.core.kit.kit_file import KitChange, Survivor
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.order.change.change_page import HIDDEN, LABEL, filled_in, reason_schema
from orderkit.core.portal.job_copy import refusal_step
from orderkit_workshop.generate.order_skeleton import SERVICE, member
from orderkit_workshop.generate.order_template import button_labels, template_text
from softwaretemplates.template import API_VERSION

Schema = dict[str, Any]

_REQUESTER = "${{ user.ref or 'user:default/unknown' }}"
_TIMEOUT_MS = 60_000
_NAMED = f'(parameters.{ORDER} or parameters.{ORDER_PICKED}) | replace("{COMPONENT}", "")'
"""The expression for the order's id, however the form knows it."""
_IS_FILLED = f"${{{{ parameters.{BASE} is defined }}}}"
_IS_EMPTY = f"${{{{ parameters.{BASE} is not defined }}}}"
_THEN_OPEN = "Which order; then you get a link to the form with the values that it has now."
_CHANGE, _LOOK = "ask", "look"
"""Ids of the steps that request the change or end, and that look whether the order is there."""
_EXTENSION = "extension"
_BUTTONS = {END: "End", LEASE: "Extend"}


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
    if kit.lease.is_declared and kit.lease.extend.times != 0:
        templates[LEASE] = _lease_template(kit)
    templates[END] = _end_template(kit)
    room = PurePosixPath("day2", kit.name)
    return {
        room / f"{name}.yaml": template_text(entity, kit).encode()
        for name, entity in templates.items()
    }


def _change_template(kit: Kit, change: KitChange) -> dict[str, Any]:
    change_fields = shown_fields(kit, change.fields)
    names = [parameter_of(kit, field) for field in change_fields]
    _check_free(kit, names)
    values = {name: f"${{{{ {member('parameters', name)} }}}}" for name in names}
    filled = filled_in(kit, change)
    if YAML_PARAMETER in filled["properties"]:
        # An emptied text arrives as such: a missing one means an older form without this field.
        values[YAML_PARAMETER] = f"${{{{ parameters.{YAML_PARAMETER} or '' }}}}"
    body = {
        **({"change": change.name} if kit.changes else {}),
        "values": values,
        "base": f"${{{{ parameters.{BASE} }}}}",
        "whole": True,
        "resend": True,
        "reason": f"${{{{ parameters.{REASON} }}}}",
        "requester": _REQUESTER,
    }
    description = " ".join(filter(None, (change.warning, foretold(kit))))
    page = {
        "title": title_of(change),
        **({"description": description} if description else {}),
        "properties": {
            BASE: {"title": "Seen at", "type": "string", "pattern": "^[0-9a-f]{40}$", **HIDDEN}
        },
        "if": {"required": [BASE]},
        "then": filled,
        "else": {
            "required": [ORDER_PICKED],
            "properties": {ORDER_PICKED: _picker_schema(kit, _THEN_OPEN)},
        },
        "ui:order": [
            ORDER_PICKED,
            ORDER,
            *([LEAST] if change.at_least else []),
            *values,
            REASON,
            "*",
        ],
    }
    steps = [
        _request("Look at the order", _LOOK, "GET", "", condition=_IS_EMPTY),
        _request("Request the change", _CHANGE, "POST", "/changes", body, condition=_IS_FILLED),
        refusal_step(_LOOK, _CHANGE),
    ]
    title = title_of(change)
    if kit.title.lower() not in title.lower():
        title = f"{title} ({kit.title})"
    description = (
        f"Change an order: {kit.title}. Its page in the catalog opens this form filled in."
    )
    entity = _template(kit, change.name, title=title, description=description, page=page)
    entity["spec"] |= {"steps": steps, "output": _change_output(change)}
    return entity


def _change_output(change: KitChange) -> Schema:
    """Return what the task shows: the change, or the way to the filled-in form."""
    answer = f"steps.{_CHANGE}.output.body"
    form = f"{SERVICE}/v1/orders/${{{{ {_NAMED} }}}}/changes/{change.name}/form"
    return {
        "links": [
            {"title": "See it in Git", "url": f"${{{{ {answer}.url }}}}", "if": _IS_FILLED},
            {"title": f"Continue: {title_of(change)}", "url": form, "if": _IS_EMPTY},
            {
                "title": "The order in the catalog",
                "icon": "catalog",
                "entityRef": f"{COMPONENT}${{{{ {_NAMED} }}}}",
            },
        ],
        "text": [
            {
                "title": title_of(change),
                "content": f"${{{{ {answer}.message }}}}",
                "if": _IS_FILLED,
            },
            {
                "title": "Nothing was changed yet",
                "content": f"*Continue: {title_of(change)}* opens the form of"
                f" `${{{{ {_NAMED} }}}}`, filled in with what Git holds now.",
                "if": _IS_EMPTY,
            },
        ],
    }


def _end_template(kit: Kit) -> dict[str, Any]:
    state = _repository_state(kit)
    summary = f"Everything that was made for the order is removed; its repository is {state}."
    survives = "".join(f" {_stays(survivor)}" for survivor in kit.end.survivors)
    takeable = [survivor for survivor in kit.end.survivors if survivor.name]
    title = f"End the {kit.title}"
    page = {
        "title": title,
        "description": f"{summary}{survives}",
        "required": [ORDER_PICKED, CONFIRM],
        "properties": {
            ORDER_PICKED: _picker_schema(kit, "Which order ends."),
            CONFIRM: {
                "title": "Type the order's id to confirm",
                "type": "string",
                "pattern": LABEL,
                "errorMessage": {"pattern": "must be the order's id"},
            },
            **{f"{TAKE}{survivor.name}": _take_schema(survivor) for survivor in takeable},
            REASON: reason_schema(),
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
    description = f"End an order: {kit.title}. What was made for it is removed."
    entity = _template(kit, END, title=title, description=description, page=page)
    entity["spec"] |= _one_request("Request the end", END, body, title)
    return entity


def _lease_template(kit: Kit) -> dict[str, Any]:
    """Return the form that lets an order live longer."""
    lease = kit.lease
    most = f"{lease.extend.by} at most. " if lease.extend.by else ""
    total = f"An order lives for {lease.maximum} at most. " if lease.maximum else ""
    page = {
        "title": "Extend it",
        "description": f"{most}{total}Then it {'pauses' if lease.then == 'pause' else 'ends'}.",
        "required": [ORDER_PICKED, _EXTENSION, REASON],
        "properties": {
            ORDER_PICKED: _picker_schema(kit, "Which order lives longer."),
            _EXTENSION: {
                "title": "By how long",
                "description": "For example 90m, 8h, 30d or 4w.",
                "type": "string",
                "pattern": DURATION,
                "default": lease.extend.by or lease.warn[0],
                "errorMessage": {"pattern": "must be a number and m, h, d or w, for example 8h"},
            },
            REASON: {**reason_schema(), "minLength": 1},
        },
    }
    body = {
        "by": f"${{{{ parameters.{_EXTENSION} }}}}",
        "reason": f"${{{{ parameters.{REASON} }}}}",
        "requester": _REQUESTER,
    }
    title = f"Extend the {kit.title}"
    description = f"Let an order live longer: {kit.title}."
    entity = _template(kit, LEASE, title=title, description=description, page=page)
    entity["spec"] |= _one_request("Request more time", LEASE, body, title)
    return entity


def _one_request(name: str, path: str, body: Mapping[str, Any], title: str) -> Schema:
    """Return the step that sends a form's values, and what the service answers."""
    message = f"${{{{ steps.{_CHANGE}.output.body.message }}}}"
    return {
        "steps": [
            _request(name, _CHANGE, "POST", f"/{path}", body),
            refusal_step(_CHANGE),
        ],
        "output": {"text": [{"title": title, "content": message}]},
    }


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
        if name in (ORDER, ORDER_PICKED, BASE, LEAST, REASON) or name.startswith(CURRENT):
            raise InvalidInputError(
                f"{kit.name}: {name}",
                name,
                "is a parameter that forms of changes need",
                hint="give the field another form parameter: aliases in kit.yaml",
            )


def _picker_schema(kit: Kit, description: str) -> Schema:
    """Return the field in which people pick one of the kit's orders from the catalog."""
    orders = {"kind": "Component", "spec.type": "order", "metadata.tags": kit.name}
    return {
        "title": "Order",
        "description": description,
        "type": "string",
        "pattern": f"^({COMPONENT})?{LABEL[1:]}",
        "errorMessage": {"pattern": f"must be an order of this kit, for example {kit.name}-ae86"},
        "ui:field": "EntityPicker",
        "ui:options": {"catalogFilter": [orders], "defaultKind": "Component"},
    }


def _request(
    name: str,
    step: str,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    condition: str = "",
) -> Schema:
    """Return a step that asks the service about the order; a refusal is the next step's."""
    inputs: Schema = {
        "method": method,
        "path": f"/proxy/orderkit/v1/orders/${{{{ {_NAMED} }}}}{path}",
        "timeout": _TIMEOUT_MS,
        "continueOnBadResponse": True,
    }
    if body is not None:
        inputs["headers"] = {
            "content-type": "application/json",
            "Idempotency-Key": "${{ context.task.id }}",
        }
        inputs["body"] = dict(body)
    return {
        "id": step,
        "name": name,
        **({"if": condition} if condition else {}),
        "action": "http:backstage:request",
        "input": inputs,
    }


def _template(kit: Kit, name: str, *, title: str, description: str, page: Schema) -> dict[str, Any]:
    """Return a Template without steps and output."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Template",
        "metadata": {
            "name": template_name(kit.name, name),
            "title": title,
            "description": description,
            "tags": list(dict.fromkeys(("orderkit", kit.name, *kit.tags))),
        },
        "spec": {
            "owner": kit.owner,
            "type": END if name == END else "change",
            "presentation": button_labels(_BUTTONS.get(name, "Change")),
            "parameters": [page],
        },
    }
