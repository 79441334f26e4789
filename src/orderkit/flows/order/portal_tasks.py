"""
Run a template of the published pack for a portal: the same natural steps, with *ensure*.

The template is read from the platform's own pack repository, never from the request; the values
pass the same form. A kit's order is checked against the ledger before anything is written, so
that a team that may not order leaves nothing behind. It is finished when the order is
registered, not when it is Ready. The same values again find what is there; other values for an
order that exists are refused.

Called by the service, for the portal's copy of a template (written by
``core.portal.service_copy``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orderkit.core.errors import InvalidInputError, RemoteError
from orderkit.core.names import OrderId, TeamName
from orderkit.core.order import ledger
from orderkit.core.portal.template import Template
from orderkit.flows.order import interpreting, ordering
from orderkit.flows.order.interpreting import TemplateRunRequest, TemplateSource
from orderkit.flows.order.registering import check_free
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import check_may_order
from orderkit.flows.template.scaffolder import TaskOptions, TaskResult
from orderkit.ports.portal import Portal, PortalResponse
from orderkit.ports.requesters import Requester

_PROXY = "proxy/"


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """
    What a portal asks for: a template of the pack, by its folder or name, and form values.

    `id` is the portal's own id of its task. `authorization` goes along with what the steps send
    through the portal's proxy, as it would from the portal. `permit` raises unless the caller may
    order for the team that the values name; None: the template is no kit's, and names no team.
    """

    template: str
    values: Mapping[str, Any]
    requester: Requester
    id: str = ""
    authorization: str = field(default="", repr=False)
    permit: Callable[[TeamName | None], None] = field(default=lambda _: None, repr=False)


@dataclass(frozen=True, slots=True)
class TaskDone:
    """`created` is False where the same order was there already. `steps` are outputs by id."""

    template: str
    order: OrderId | None
    created: bool
    steps: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Any]


def run_task(platform: Platform, wanted: TaskRequest) -> TaskDone:
    """
    Run the steps, each making sure. Idempotent; returns when the order is registered.

    Raises:
        NotFoundError: No such template or team.
        InvalidInputError: A value that form, XRD or naming rules refuse, or that the platform sets.
        AlreadyOrderedError: The order exists with other values, ended, or is another team's.
        IncompleteError: The order is published and not registered; the same request finishes it.
        RefusedError: What `permit` says, or the team may not have it.
    """
    source = interpreting.published_template(platform, wanted.template)
    _check_fixed(source.template, wanted.values)
    entry = _entry(source, wanted.values)
    wanted.permit(entry.team if entry else None)
    if entry is None:
        return _done(source, None, _run(platform, source, wanted), created=False)
    seen = ledger_snapshot(platform)
    check_free(entry, seen.blobs)
    if source.kit is not None:
        check_may_order(platform, entry, source.kit.name, seen)
    before = platform.forge.head(entry.repository)
    try:
        result = _run(platform, source, wanted)
    except RemoteError as error:
        if before is None and ordering.published(platform, entry.repository):
            raise ordering.half_done(entry.order, error) from error
        raise
    created = before is None or entry.application_path not in seen.blobs
    return _done(source, entry.order, result, created=created)


def _entry(source: TemplateSource, values: Mapping[str, Any]) -> ledger.OrderEntry | None:
    """Name the order of a kit's template by its checked values."""
    if source.kit is None:
        return None
    answered = source.template.validate(values)
    return ledger.OrderEntry(source.kit.team(answered), source.kit.order_id(answered))


def _check_fixed(template: Template, values: Mapping[str, Any]) -> None:
    """
    Refuse other values for hidden fields with a default: those are the platform's own.

    The portal's copy does not send them; what is sent is somebody's own call.
    """
    for name, value in values.items():
        schema = template.properties.get(name, {})
        hidden = schema.get("ui:widget") == "hidden" and "default" in schema
        if hidden and value != schema["default"]:
            raise InvalidInputError(
                name, value, "is set by the platform", hint="leave it out: the platform fills it in"
            )


def _run(platform: Platform, source: TemplateSource, wanted: TaskRequest) -> TaskResult:
    authorized = replace(platform, portal=_OnBehalf(platform.portal, wanted.authorization))
    request = TemplateRunRequest(
        assignments={},
        values=wanted.values,
        requester=wanted.requester.ref,
        options=TaskOptions(),
        proof=wanted.requester.proof,
        task_id=wanted.id,
    )
    return interpreting.run(source, request, authorized, on_step=lambda _event: None)


def _done(
    source: TemplateSource, order: OrderId | None, result: TaskResult, *, created: bool
) -> TaskDone:
    return TaskDone(source.template.name, order, created, result.steps, result.outputs)


@dataclass(frozen=True, slots=True)
class _OnBehalf:
    """A portal whose proxied requests carry the token that came with the task."""

    portal: Portal
    authorization: str = field(repr=False)

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float = 60.0,
    ) -> PortalResponse:
        names = {name.lower() for name in headers}
        proxied = path.lstrip("/").startswith(_PROXY)
        if self.authorization and proxied and "authorization" not in names:
            headers = {**headers, "Authorization": self.authorization}
        return self.portal.request(method, path, headers=headers, body=body, timeout_s=timeout_s)
