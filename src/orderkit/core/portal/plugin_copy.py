"""
Write the portal's copy of a form of a change or an end for a portal with Orderkit's plugins.

A step that asks Orderkit's service to change or end an order (``http:backstage:request`` to its
proxy) becomes the action ``orderkit:change`` or ``orderkit:end``: the log follows the order, and a
refusal is the task's own error. The actions put out the service's answer as ``body``, as the
request did, so outputs stay as they are. Any other request stays a request, with a step that fails
with the sentence of a refusal (``core.portal.refusal_step``).

Pure; called by ``core.portal.profile``, before the pack is baked. Templates of orders are copied by
``core.portal.service_copy``.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import dig
from orderkit.core.portal.job_copy import ORDER_PATH, PROXY, REQUEST
from orderkit.core.portal.template_copy import REFUSED, refusal_step, rewritten
from softwaretemplates.template import parse_template
from yamlfiles import yaml12

_ACTIONS = {
    "changes": (
        "orderkit:change",
        {"change", "values", "base", "whole", "resend", "how", "reason", "acceptLoss"},
    ),
    "end": ("orderkit:end", {"confirm", "repository", "reason", "take"}),
}
"""By the end of the path: the action, and the fields of the request that are its inputs."""
_TAKEN_FROM_TASK = {"requester"}
_HEAD = (
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
    steps = [_step(step) for step in natural]
    if steps == natural:
        return data
    refusal = refusal_step(*_requests(natural))
    left = _requests(steps)
    replacement = [refusal_step(*left)] if left else []
    kept = [part for step in steps for part in (replacement if step == refusal else [step])]
    return rewritten(data, {"steps": kept}, name=name, head=_HEAD)


def _requests(steps: list[dict[str, Any]]) -> list[str]:
    """Return the ids of requests, without the step that quotes a refusal."""
    ids = [step.get("id", "") for step in steps if step["action"] == REQUEST]
    return [step_id for step_id in ids if step_id not in ("", REFUSED)]


def _step(step: dict[str, Any]) -> dict[str, Any]:
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
