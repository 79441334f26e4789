"""
Write the portal's copies of templates that leave the work to Orderkit's service.

The natural template.yaml says what happens, but its ``publish:gitea`` fails on a second run in
Backstage. The copy has the same form, byte for byte, and one step instead of the natural ones: it
names the template and sends the form's values, never a template. If the service refuses, the next
step fails with its sentence (`refusal_step`). ``catalog:register`` stays after them, and so do the
outputs, which read each natural step's outputs from the service's answer. Baked values (a parameter
whose default is a sentinel of ``core.platform.baking``) are not sent: the service takes them from
the platform's own pack. What cannot be done this way is refused, with the step's name.

For a portal with Orderkit's plugins there is one step, the action ``orderkit:order``, which sends
the same request and fails with the sentence; nothing is registered, because a plugin of the catalog
reads the orders. The team is asked for with the field ``OrderkitTeam``, which offers only teams
that may order the kit. A last page shows plan, price and approval with the field ``OrderkitPlan``.
Without the plugin, Backstage shows the first as a text and the second not at all. The result says
how the order is.

Forms of a change or an end have the actions ``orderkit:change`` and ``orderkit:end`` there: the log
follows the order, and a refusal is the task's own error. The actions put out the service's answer
as ``body``, as the request did, so outputs stay as they are. Any other request stays a request,
with a step that fails with the sentence of a refusal.

Pure. Works on the pack before it is baked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import dig
from orderkit.core.portal.job_copy import (
    NEXT_TITLE,
    ORDER_PATH,
    PROXY,
    REFUSED,
    REQUEST,
    refusal_step,
    rewritten,
)
from softwaretemplates.placeholders import ReadBeside, resolve_placeholders
from softwaretemplates.render.lexer import BACKSTAGE, Lexer, Tag, TemplateToken, TokenKind
from softwaretemplates.template import Template, TemplateStep, parse_template
from yamlfiles import yaml12

PLAN = "orderkit_plan"
"""The parameter of the page with the plan; it has no value, and nothing sends it."""


def plugin_form(
    parameters: Any, output: Any, *, kit: str, team: str, sent: Sequence[str]
) -> dict[str, Any]:
    """
    Return what to replace in a template's ``spec``: ``parameters`` and ``output``.

    Args:
        parameters: As the template has them. What is no list of plain pages stays as it is.
        team: The parameter that names the team.
        sent: The parameters that the order is made of.
    """
    replacement: dict[str, Any] = {}
    if isinstance(parameters, list) and all(isinstance(page, dict) for page in parameters):
        pages = [_with_team(page, kit, team) for page in parameters]
        replacement["parameters"] = [*pages, _plan_page(kit, sent)]
    if isinstance(output, dict) and isinstance(output.get("text"), list):
        replacement["output"] = {**output, "text": [_text(text) for text in output["text"]]}
    return replacement


def _with_team(page: Mapping[str, Any], kit: str, team: str) -> Mapping[str, Any]:
    properties = page.get("properties")
    if not isinstance(properties, dict):
        return page
    field = properties.get(team)
    if not isinstance(field, dict) or field.get("ui:field") != "OwnerPicker":
        return page
    asked = {**field, "ui:field": "OrderkitTeam", "ui:options": {"kit": kit}}
    return {**page, "properties": {**properties, team: asked}}


def _plan_page(kit: str, sent: Sequence[str]) -> dict[str, Any]:
    field = {
        "type": "null",
        "ui:field": "OrderkitPlan",
        "ui:options": {"kit": kit, "parameters": [*sent]},
        "ui:backstage": {"review": {"show": False}},
    }
    return {"title": "Plan and price", "properties": {PLAN: field}}


def _text(text: Any) -> Any:
    if not isinstance(text, dict) or text.get("title") != NEXT_TITLE:
        return text
    return {"title": "How it is", "content": "${{ steps.service.output.message }}"}


STEP = "service"
"""The id of the copy's own step."""
TASKS_PATH = "/proxy/orderkit/v1/tasks"
TIMEOUT_MS = 60_000
"""How long the portal waits. The service answers earlier (``web.operations``)."""
ANSWERED = f"steps.{STEP}.output.body.steps"
"""Where the copy finds the outputs of the natural steps."""
_KEPT = "catalog:register"
ACTION = "orderkit:order"
_HEAD = (
    "Written from natural.yaml beside it when the pack was published (portal profile '{}').\n"
    "What is edited here is lost. The service runs the natural steps."
)
_SENTINEL = "__ORDERKIT_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TAGS = ("${{", "{%", "{#", "#}")
_OUT_OF_REACH = {
    "secrets": "secrets of the form, which never leave the portal",
    "environment": "the portal's environment, which the service does not know",
}


def service_copy(
    data: bytes,
    *,
    name: str,
    folder: str,
    actions: Collection[str],
    plugin: bool = False,
    team_parameter: str = "",
    read: ReadBeside | None = None,
) -> bytes:
    """
    Return the copy of a template.yaml. Deterministic; without `plugin` the form stays as it is.

    Args:
        name: The file's name in messages.
        folder: The template's folder in the pack, by which the service finds it.
        actions: Ids of the actions that the service can run.
        plugin: The portal has Orderkit's plugins.
        team_parameter: The kit's parameter that names the team; empty: the template has no kit.
        read: Reads the files that its placeholders name; those of the form stay placeholders.

    Raises:
        InvalidInputError: It is not a template, or one of its steps cannot run in the service.
    """
    template = parse_template(data, name=name, read=read)
    _check(template, name, actions)
    document = yaml12.load(data, name=name)
    if read is not None:
        document = resolve_placeholders(document, read, name=name)
    _check_permissions(template, document)
    steps = (
        [_plugin_step(template, folder)]
        if plugin
        else [_step(template, folder), refusal_step(STEP), *_kept_steps(document)]
    )
    new_spec: dict[str, Any] = {"steps": steps}
    if "output" in document["spec"]:
        new_spec["output"] = _readdressed(document["spec"]["output"])
    if plugin and team_parameter:
        new_spec |= plugin_form(
            yaml12.load(data, name=name)["spec"].get("parameters"),
            new_spec.get("output"),
            kit=folder,
            team=team_parameter,
            sent=list(_values(template)),
        )
    head = _HEAD.format("plugin" if plugin else "service")
    return rewritten(data, new_spec, name=name, head=head)


def _check(template: Template, name: str, actions: Collection[str]) -> None:
    """Refuse steps that the service could not run as the portal would."""
    secret = [n for n, s in template.properties.items() if s.get("ui:field") == "Secret"]
    if secret or template.secrets:
        field = f"parameters.{secret[0]}" if secret else "secrets"
        raise _refused(name, field, "a secret of the form, which never leaves the portal")
    for step in template.steps:
        if step.action not in actions:
            raise _refused(name, f"steps.{step.id}", f"action {step.action}, which is unknown here")
        expressions: list[Any] = [step.input, step.condition, step.each]
        _check_names(expressions, f"{name}: steps.{step.id}")
        if step.action == _KEPT:
            _check_kept(name, step)
    _check_names([template.output], f"{name}: output")


def _check_kept(name: str, step: TemplateStep) -> None:
    if step.id in (STEP, REFUSED):
        raise InvalidInputError(
            f"{name}: steps.{step.id}.id", step.id, "is the id of a step that asks the service"
        )
    if {"always", "failure"} & set(_names(step.condition)):
        raise _refused(name, f"steps.{step.id}", "always() or failure() behind the service's step")


def _check_names(values: list[Any], location: str) -> None:
    for name in _names(values):
        if name in _OUT_OF_REACH:
            raise _refused(location, "", _OUT_OF_REACH[name])


def _refused(name: str, field: str, feature: str) -> InvalidInputError:
    location = f"{name}: {field}" if field else name
    return InvalidInputError(
        location,
        None,
        f"cannot run in the service, because it uses {feature}",
        hint="keep the natural steps: metadata.annotations 'orderkit.dev/profile: natural'",
    )


def _check_permissions(template: Template, document: Mapping[str, Any]) -> None:
    permitted = [s.get("id", "") for s in document["spec"]["steps"] if "backstage:permissions" in s]
    if permitted:
        raise _refused(
            template.name, f"steps.{permitted[0]}", "permissions, which only the portal can check"
        )


def _plugin_step(template: Template, folder: str) -> dict[str, Any]:
    return {
        "id": STEP,
        "name": "Place the order",
        "action": ACTION,
        "input": {"kit": folder, "values": _values(template)},
    }


def _step(template: Template, folder: str) -> dict[str, Any]:
    return {
        "id": STEP,
        "name": "Place the order",
        "action": "http:backstage:request",
        "input": {
            "method": "POST",
            "path": TASKS_PATH,
            "timeout": TIMEOUT_MS,
            "continueOnBadResponse": True,
            "headers": {"content-type": "application/json"},
            "body": {
                "template": folder,
                "id": "${{ context.task.id }}",
                "requester": "${{ user.ref }}",
                "values": _values(template),
            },
        },
    }


def _values(template: Template) -> dict[str, str]:
    return {
        parameter: f"${{{{ {_member('parameters', parameter)} }}}}"
        for parameter, schema in template.properties.items()
        if not _baked(schema)
    }


def _baked(schema: Mapping[str, Any]) -> bool:
    return _SENTINEL in str(schema.get("default", ""))


def _member(of: str, name: str) -> str:
    if _NAME.match(name):
        return f"{of}.{name}"
    return f"{of}[{json.dumps(name, ensure_ascii=False)}]"


def _kept_steps(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps that stay: the catalog's."""
    kept = []
    for at, step in enumerate(document["spec"]["steps"], start=1):
        if step["action"] == _KEPT:
            identified = {"id": step.get("id", f"step-{at}"), **step}
            # optional: Backstage fails if the catalog already knows the address. Nothing is lost:
            # the service has registered the same one, and would have reported what is wrong with it
            inputs = {**_readdressed(step.get("input") or {}), "optional": True}
            other = {k: _readdressed(v) for k, v in identified.items() if k in ("if", "each")}
            kept.append({**identified, **other, "input": inputs})
    return kept


def _readdressed(value: Any) -> Any:
    """Rewrite expressions to find the natural steps' outputs in the service's answer."""
    if isinstance(value, str):
        return _renamed(value)
    if isinstance(value, list):
        return [_readdressed(item) for item in value]
    if isinstance(value, dict):
        return {key: _readdressed(item) for key, item in value.items()}
    return value


def _renamed(source: str) -> str:
    text, position = "", 0
    for token in _free_names(source):
        if token.text == "steps":
            text += source[position : token.offset] + ANSWERED
            position = token.offset + len(token.text)
    return text + source[position:]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (token.text for token in _free_names(value))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _names(item)


def _free_names(source: str) -> Iterator[TemplateToken]:
    """Yield the names in a text's expressions that are not a member and not a key of a map."""
    if not any(mark in source for mark in _TAGS):
        return
    for piece in Lexer(source, BACKSTAGE).parts():
        if not isinstance(piece, Tag):
            continue
        blank = TemplateToken(TokenKind.OPERATOR, "", 0)
        around = (blank, *piece.tokens, blank)
        for before, token, after in zip(around, around[1:], around[2:], strict=False):
            if token.kind is TokenKind.NAME and before.text != "." and after.text != ":":
                yield token


_ACTIONS = {
    "changes": (
        "orderkit:change",
        {"change", "values", "base", "whole", "resend", "how", "reason", "acceptLoss"},
    ),
    "end": ("orderkit:end", {"confirm", "repository", "reason", "take"}),
}
"""By the end of the path: the action, and the fields of the request that are its inputs."""
_TAKEN_FROM_TASK = {"requester"}
_PLUGIN_HEAD = (
    "Written when the pack was published (portal profile 'plugin'); what is edited here is lost."
)


def plugin_copy(data: bytes, *, name: str) -> bytes:
    """
    Return the copy of a template, or the template unchanged if no step changes or ends an order.

    Raises:
        InvalidInputError: It is not a template.
    """
    parse_template(data, name=name)
    natural = yaml12.load(data, name=name)["spec"]["steps"]
    steps = [_action_step(step) for step in natural]
    if steps == natural:
        return data
    refusal = refusal_step(*_requests(natural))
    left = _requests(steps)
    replacement = [refusal_step(*left)] if left else []
    kept = [part for step in steps for part in (replacement if step == refusal else [step])]
    return rewritten(data, {"steps": kept}, name=name, head=_PLUGIN_HEAD)


def _requests(steps: list[dict[str, Any]]) -> list[str]:
    """Return the ids of requests, without the step that quotes a refusal."""
    ids = [step.get("id", "") for step in steps if step["action"] == REQUEST]
    return [step_id for step_id in ids if step_id not in ("", REFUSED)]


def _action_step(step: dict[str, Any]) -> dict[str, Any]:
    path = str(dig(step, "input", "path", default=""))
    match = ORDER_PATH.fullmatch(path.removeprefix(PROXY))
    is_request = step.get("action") == REQUEST and path.startswith(PROXY)
    if not is_request or match is None or match["what"] not in _ACTIONS:
        return step
    action, fields = _ACTIONS[match["what"]]
    body = dig(step, "input", "body", default={})
    inputs = {key: value for key, value in body.items() if key not in _TAKEN_FROM_TASK}
    if not fields.issuperset(inputs) or dig(step, "input", "method") != "POST":
        return step
    return {**step, "action": action, "input": {"order": match["order"], **inputs}}
