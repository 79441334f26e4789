"""
Handlers for the end of an order, and for its lease.

They say what an end would leave, begin or continue it, and report progress. An end takes minutes.
It runs in its own thread, one per order; the answer waits a while and then says where to look. Each
step is recorded in the ledger before it is taken, so an interrupted end (the service was stopped)
continues when it is requested again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ground.errors import ConflictError, InvalidInputError, NotFoundError, OrderkitError
from ground.names import OrderId, TeamName
from ground.shapes import changed, json_schema
from orderkit.core.durations import parse_duration
from orderkit.core.order import ledger
from orderkit.core.order.end_record import EndRecord, Phase, parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.service_access import Right
from orderkit.flows.end.destroying import destroy, survivors
from orderkit.flows.end.end_request import Ended, EndRequest
from orderkit.flows.lease.extending import (
    ExtendRequest,
    extend_lease,
    lease_of,
    propose_end,
    propose_extension,
)
from orderkit.flows.order.live_order import find_living
from orderkit.flows.platform import Platform, ledger_snapshot, read_text
from orderkit.web.change_handlers import member
from orderkit.web.messages import End, EndOrder, EndPreview, EndStep, Extend, TakenAlong
from orderkit.web.openapi_schemas import named
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, located_for, must_propose

_GRACE_S = 10.0
"""How much earlier than the request pipeline the answer stops waiting."""
_KEPT = 200
"""How many finished ends are kept in memory; the ledger has all."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """One end, running or finished."""

    request: EndRequest
    steps: list[EndStep] = field(default_factory=list)
    ended: Ended | None = None
    error: BaseException | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def covers(self, request: EndRequest) -> bool:
        """Say whether it does what another request asks for too."""
        is_kept = request.repository in (None, self.request.repository)
        return is_kept and set(request.take) <= set(self.request.take)

    def on_step(self, step: Phase, detail: str) -> None:
        self.steps.append(EndStep(step, detail))


def get_preview(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Say what an end would leave; nothing certain if the order's kit cannot be read any more."""
    entry, ledger_files = located_for(service, call, "read")
    try:
        kit = find_living(service.platform, entry.order, ledger_files).kit
    except OrderkitError as error:
        return ServiceResponse(200, EndPreview(entry.order, unread=str(error)).to_json())
    stays = survivors(service.platform, entry.order, kit)
    takes = tuple(TakenAlong(kept.name, kept.ask) for kept in kit.end.survivors if kept.name)
    preview = EndPreview(entry.order, stays, takes, kit.end.repository)
    return ServiceResponse(200, preview.to_json())


class EndRuns:
    """The ends that this process runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}

    def post(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """End an order; its id confirms that. 200 if it has ended, else 202."""
        entry = find_entry(service, call, "end")
        body = call.read(EndOrder)
        if body.confirm != entry.order:
            raise InvalidInputError(
                "confirm", body.confirm, "is not the order's id", hint=f"type {entry.order}"
            )
        requester = call.who.requester(body.requester)
        request = EndRequest(
            entry.order,
            requester.ref,
            body.repository,
            proof=requester.proof,
            reason=body.reason,
            take=tuple(name for name, yes in body.take.items() if yes),
            agent=body.agent or "",
        )
        command = f"orderkit destroy {entry.order}"
        if must_propose(service, call, entry.team, body.agent, command):
            return _proposed(service, call, request)
        run = self._start(service.platform, request)
        run.over.wait(max(0.0, service.options.answer_s - _GRACE_S))
        if not run.over.is_set():
            return ServiceResponse(
                202, _ending(entry, run.steps).to_json(), {"Location": _status_path(entry)}
            )
        if run.error is not None:
            raise run.error
        if run.ended is None:
            raise AssertionError("a finished end has a result")
        call.audit_fields["repository"] = run.ended.record.repository
        return ServiceResponse(200, _ended(entry, run.ended.record))

    def get(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Report the progress of an end."""
        entry = find_entry(service, call, "read")
        with self._lock:
            run = self._runs.get(entry.order)
        if run is not None and not run.over.is_set():
            return ServiceResponse(200, _ending(entry, run.steps).to_json())
        paths = ledger_snapshot(service.platform).blobs
        if entry.end_path in paths:
            reason = str(run.error) if run and run.error else "it was cut off"
            stopped = changed(_ending(entry, ()), state="stopped", reason=reason)
            return ServiceResponse(200, stopped.to_json())
        tombstones = ledger.tombstones(paths, entry.order)
        if entry.application_path in paths or not tombstones:
            raise NotFoundError(f"{entry.order} is not ending", hint="the order is live")
        text = read_text(service.platform.forge, service.platform.ledger, tombstones[-1], "main")
        return ServiceResponse(200, _ended(entry, parse(text or "", name=str(tombstones[-1]))))

    def _start(self, platform: Platform, request: EndRequest) -> _Run:
        with self._lock:
            run = self._runs.get(request.order)
            if run is None or run.over.is_set():
                self._forget()
                run = self._runs[request.order] = _Run(request)
                name = f"end of {request.order}"
                thread = threading.Thread(target=_carry_out, args=(platform, run), name=name)
                thread.daemon = True  # its steps are recorded, so the process may stop without it
                thread.start()
            elif not run.covers(request):
                raise ConflictError(
                    f"{request.order} is already ending, and not with these options",
                    hint="leave repository and take out, or wait until it has ended",
                )
            return run

    def _forget(self) -> None:
        over = [order for order, run in self._runs.items() if run.over.is_set()]
        for order in over[: max(0, len(over) - _KEPT)]:
            del self._runs[order]


def _proposed(service: Service, call: ServiceRequest, request: EndRequest) -> ServiceResponse:
    """Propose an end; raises InvalidInputError for options that the sweep, which ends it, lacks."""
    if request.repository or request.take:
        name = "repository" if request.repository else "take"
        raise InvalidInputError(
            name, call.body[name], "is decided by the kit if an agent asks", hint="leave it out"
        )
    url = propose_end(service.platform, request).web_url
    answer = End(
        order=request.order,
        state="proposed",
        status=f"/v1/orders/{request.order}/end",
        message=f"a person ends it by merging {url}",
        url=url,
    )
    return ServiceResponse(202, answer.to_json())


def _carry_out(platform: Platform, run: _Run) -> None:
    try:
        run.ended = destroy(platform, run.request, on_step=run.on_step)
    except OrderkitError as error:
        run.error = error
    except Exception as error:
        logger.exception("the end of %s", run.request.order)
        run.error = error
    finally:
        run.over.set()


def find_entry(service: Service, call: ServiceRequest, right: Right) -> OrderEntry:
    """
    Return the order that the path names, live, ending or ended, if the caller may see it.

    Raises:
        NotFoundError: There was never one, and the caller may see all.
        RefusedError: There was never one, or it is of another team.
    """
    order, teams = call.path["order"], call.who.teams(right)
    paths = ledger_snapshot(service.platform).blobs
    entry = ledger.living_order(paths, order)
    entry = entry or ledger.ending_order(paths, order)
    if entry is None and (ended := ledger.tombstones(paths, order)):
        entry = OrderEntry(TeamName(ended[-1].parts[1]), OrderId(order))
    if teams is not None and (entry is None or entry.team not in teams):
        raise call.who.foreign(f"order '{order}'", teams)
    if entry is None:
        raise NotFoundError(f"no order '{order}' in the ledger", hint="see 'orderkit list'")
    call.audit_fields["team"] = entry.team
    return entry


def _status_path(entry: OrderEntry) -> str:
    return f"/v1/orders/{entry.order}/end"


def _ending(entry: OrderEntry, steps: Iterable[EndStep]) -> End:
    return End(
        order=entry.order,
        state="ending",
        status=_status_path(entry),
        steps=tuple(steps),
        message=f"`{entry.order}` is ending; repeat the request if it was interrupted.",
    )


def _ended(entry: OrderEntry, record: EndRecord) -> dict[str, Any]:
    gone_lines = "".join(f"\n- {key}" for key in record.must_be_gone)
    stays = "".join(f"\n- {text}" for text in record.survives)
    answer = End(
        order=entry.order,
        state="ended",
        status=_status_path(entry),
        ended_at=record.ended_at,
        repository=record.repository,
        gone=record.must_be_gone,
        survives=record.survives,
        message=f"`{entry.order}` has ended; its repository is {record.repository_is}. "
        f"Verified to be gone:{gone_lines or ' nothing was there'}"
        + (stays and f"\n\nSurvives:{stays}"),
    )
    return answer.to_json()


def get_lease(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show when an order expires, and how it was extended."""
    entry = entry_for(service, call, "read")
    return ServiceResponse(200, lease_of(service.platform, entry.order).answer.to_json())


def post_lease(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Extend the lease of an order, or propose to. 201 if it is new, 200 if it was done before."""
    entry = entry_for(service, call, "change")
    body = call.read(Extend)
    request = ExtendRequest(
        entry.order,
        parse_duration(body.by, field="by"),
        replace(member(call, body.requester, entry.team), agent=body.agent or ""),
        body.reason,
        _operation(call),
    )
    command = f"orderkit lease extend {entry.order} {body.by} --reason TEXT"
    if must_propose(service, call, entry.team, body.agent, command):
        pull = propose_extension(service.platform, request)
        answer = changed(
            lease_of(service.platform, entry.order).answer,
            message=f"a person extends it by merging {pull.web_url}",
            url=pull.web_url,
        )
        return ServiceResponse(201, answer.to_json())
    view = extend_lease(service.platform, request)
    return ServiceResponse(201 if view.changed else 200, view.answer.to_json())


def _operation(call: ServiceRequest) -> str:
    """Derive the operation's name from the caller's key and the request."""
    if not call.key:
        return ""
    text = json.dumps([call.who.name, call.path, call.key, call.body], sort_keys=True)
    return f"extend-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def operations(order: str) -> tuple[ServiceOperation, ...]:
    """Return the operations on the lease of an order; `order` is the path of one."""
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "orderLease",
            "GET",
            f"{order}/lease",
            "Show when an order expires, its warnings, and how it was extended.",
            get_lease,
            {
                200: ("Its lease; expires is null if it lives until it is ended.", named("Lease")),
                **missing,
            },
            "read",
        ),
        ServiceOperation(
            "extendLease",
            "POST",
            f"{order}/lease",
            "Let an order live longer, as far as its kit allows; gives a lease to one without.",
            post_lease,
            {
                200: ("The same request extended it before.", named("Lease")),
                201: ("It is extended, or an agent's pull request asks for it.", named("Lease")),
                **missing,
            },
            "change",
            body=json_schema(Extend),
            slow=True,
            person=True,
            keyed=True,
        ),
    )
