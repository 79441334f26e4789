"""
Handlers for changes of live orders: open their forms, change one, show its history.

A form of the portal sends all its values, the commit it was opened on and ``whole: true``; a
program sends only what it wants to change. ``flows.change`` detects conflicts in both cases.

A link of an order's page redirects a browser to a form of the portal, filled in with the values in
Git. A link that a person clicks carries no token. So the forms of an order are open to everybody
who may read its repository: if that is private, only to authenticated callers, or to all if
platform.yaml says ``openForms``. An order that has ended is told to the same people. The form's
values are a claim; the request that the form sends is checked. ``service`` makes pages for people
of what is refused.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from msgspec.structs import asdict

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, OrderId, TeamName
from orderkit.core.kit.change_forms import (
    COMPONENT,
    END,
    LEASE,
    LEAST,
    ORDER_PICKED,
    change_named,
    form_data,
    template_name,
)
from orderkit.core.kit.kit_file import How
from orderkit.core.order import ledger
from orderkit.core.order.change import FieldConflictError
from orderkit.core.order.end_record import parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.change import Changed, ChangeRequest
from orderkit.flows.change.applying import FormEntry, change_by_form
from orderkit.flows.change.plan_requests import plan_form_entry
from orderkit.flows.change.request import least_value
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.order.live_order import LiveOrder, find_living, main_head, read_xr
from orderkit.flows.order.order_history import History, history
from orderkit.flows.platform import ledger_snapshot, read_text
from orderkit.ports.forge import agent_notes
from orderkit.ports.requesters import Requester
from orderkit.web import messages
from orderkit.web.messages import Body, Change, Revert, planned
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, living_for, must_propose


class EndedOrderError(NotFoundError):
    """The order was there and has ended."""

    http_status = 410


def get_change_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of a change."""
    live = _living(service, call)
    if call.path["change"] == LEASE and live.kit.lease.is_declared:
        return _redirect(service, live, LEASE, {ORDER_PICKED: f"{COMPONENT}{live.entry.order}"})
    change = change_named(live.kit, call.path["change"])
    head = main_head(service.platform, live.repository)
    xr_file = read_xr(service.platform, live, head)
    data = form_data(live.kit, change, order=live.entry.order, base=head, spec=xr_file.spec)
    if change.at_least is not None:
        least = least_value(service.platform.cluster, live, xr_file.xr, change.at_least)
        data[LEAST] = "not known" if least is None else f"{least}"
    return _redirect(service, live, change.name, data)


def get_end_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of the end."""
    live = _living(service, call)
    return _redirect(service, live, END, {ORDER_PICKED: f"{COMPONENT}{live.entry.order}"})


def _redirect(
    service: Service, live: LiveOrder, change: str, data: dict[str, Any]
) -> ServiceResponse:
    name = template_name(live.kit.name, change)
    form = quote(json.dumps(data, ensure_ascii=False, separators=(",", ":")), safe="")
    url = f"{service.options.portal_url}/create/templates/default/{name}?formData={form}"
    return ServiceResponse(302, None, {"Location": url, "Cache-Control": "no-store"})


def _living(service: Service, call: ServiceRequest) -> LiveOrder:
    """
    Find the order of a link, if whoever follows it may know of it.

    Raises:
        NotFoundError: It does not exist, or they may not know whether it does.
        EndedOrderError: It has ended. RefusedError: It is ending, or cannot be changed.
    """
    order = call.path["order"]
    ledger_files = ledger_snapshot(service.platform)
    paths = ledger_files.blobs
    entry = ledger.living_order(paths, order) or ledger.ending_order(paths, order)
    tombstone = None if entry else next(reversed(ledger.tombstones(paths, order)), None)
    if tombstone is not None:
        entry = OrderEntry(TeamName(tombstone.parts[1]), OrderId(order))
    if entry is None or not _may_know(service, call, entry):
        raise NotFoundError(
            f"there is no order '{order}' whose forms are open",
            hint="if its repository is private: send a token, or set service.access.openForms",
        )
    call.audit_fields["team"] = entry.team
    if tombstone is not None:
        raise _ended(service, order, tombstone)
    if entry.end_path in paths:
        raise RefusedError(
            f"{order} is ending and cannot be changed any more",
            hint="open this link again in a while: it will say when the order has ended",
        )
    return find_living(service.platform, order, ledger_files)


def _may_know(service: Service, call: ServiceRequest, entry: OrderEntry) -> bool:
    if call.caller is not None:
        teams = call.caller.teams("read")
        if teams is None or entry.team in teams:
            return True
    # a link carries no token: who may read the repository may know the order
    repository = service.platform.forge.repo(entry.repository)
    return repository is not None and (service.options.open_forms or not repository.private)


def _ended(service: Service, order: str, path: PurePosixPath) -> EndedOrderError:
    text = read_text(service.platform.forge, service.platform.ledger, path, "main")
    record = parse(text or "", name=str(path))
    kept = {
        "archive": "its repository is archived and keeps its history",
        "delete": f"its repository is {record.repository_is}",
    }[record.repository]
    return EndedOrderError(
        f"{order} ended on {record.ended_at[:10]}; {record.requester} asked for it",
        hint=f"what was made for it is gone; {kept}. To have one again, order it again",
    )


_DIGITS_MAX = 9
_SHOWN_MAX = 1_000
"""How many shown conflicts are remembered."""


class ChangeHandler:
    """
    Changes fields of orders, and remembers which conflicts a portal has shown.

    What a conflict named does not conflict when the same person sends the same base in another
    task. Lost memory, after a restart or in another replica, shows the conflict once more.
    """

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str, str], tuple[str, CommitSha]] = OrderedDict()
        self._lock = threading.Lock()

    def post(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Change fields of an order, or propose to. 201 if something was written, else 200."""
        live = living_for(service, call, "change")
        body = call.read(Change)
        form_entry = FormEntry(body.values, whole_form=body.whole)
        request = _request(call, live)
        command = f"orderkit change {live.entry.order} FIELD=VALUE"
        if must_propose(service, call, live.entry.team, body.agent, command):
            request = replace(request, how=How.REVIEW)
        task = (request.requester.ref, request.order, request.base or "")
        resends = bool(body.resend and call.key and request.base)
        # a refused task that is started over sends its old form again (observed on Backstage 1.55):
        # it would conflict for ever
        if resends:
            request = replace(request, read_to=self._read_to(task, call.key))
        try:
            outcome = change_by_form(service.platform, live, form_entry, request)
        except FieldConflictError as conflict:
            if resends:
                self._remember(task, call.key, conflict.head)
            raise
        return _changed(service, call, live, outcome)

    def _read_to(self, task: tuple[str, str, str], key: str) -> CommitSha | None:
        """Return the commit of the conflict that another task has shown to this person."""
        with self._lock:
            shown_key, head = self._shown.get(task, (key, None))
        return head if shown_key != key else None

    def _remember(self, task: tuple[str, str, str], key: str, head: CommitSha) -> None:
        with self._lock:
            self._shown[task] = (key, head)
            self._shown.move_to_end(task)
            if len(self._shown) > _SHOWN_MAX:
                self._shown.popitem(last=False)


def post_plan(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Return the plan of a change, with the same checks as the change."""
    live = living_for(service, call, "read")
    body = call.read(Change)
    form_entry = FormEntry(body.values, whole_form=body.whole)
    plan = plan_form_entry(service.platform, live, form_entry, _request(call, live))
    return ServiceResponse(200, planned(plan, live.entry.order).to_json())


def _request(call: ServiceRequest, live: LiveOrder) -> ChangeRequest:
    """Return the request of a change, or of its plan, whose body has a part of the same fields."""
    body = call.read(Change)
    return ChangeRequest(
        order=live.entry.order,
        edits=(),
        requester=member(call, body.requester, live.entry.team),
        base=body.base,
        reason=body.reason,
        change=body.change,
        how=body.how,
        operation=_operation(call),
        dry_run=body.dry_run,
        accept_loss=body.accept_loss,
        trailers=agent_notes(body.agent or ""),
    )


def post_revert(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Take back what one commit did to an order. 201 if something was written, else 200."""
    live = living_for(service, call, "change")
    body = call.read(Revert)
    request = RevertRequest(
        order=live.entry.order,
        commit=body.commit,
        requester=member(call, body.requester, live.entry.team),
        reason=body.reason,
        how=body.how,
        operation=_operation(call),
        dry_run=body.dry_run,
        accept_loss=body.accept_loss,
    )
    outcome = revert(service.platform, request)
    return _changed(service, call, live, outcome)


def _changed(
    service: Service, call: ServiceRequest, live: LiveOrder, outcome: Changed
) -> ServiceResponse:
    call.audit_fields.update(state=outcome.state, commit=outcome.commit)
    is_written = outcome.state in ("committed", "proposed") and not outcome.repeated
    return ServiceResponse(201 if is_written else 200, _body(service, live, outcome))


def _operation(call: ServiceRequest) -> str | None:
    """Derive the operation's id from the caller's key and the request."""
    if not call.key:
        return None
    text = json.dumps([call.who.name, call.path, call.key, call.body], sort_keys=True)
    return f"change-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def member(call: ServiceRequest, claimed: str | None, team: TeamName) -> Requester:
    """Return the requester. A caller that may act for every team counts as a member."""
    requester = call.who.requester(claimed)
    if call.who.teams("read") is None and requester.proof:
        return replace(requester, groups=requester.groups | {f"group:default/{team}"})
    return requester


def _body(service: Service, live: LiveOrder, outcome: Changed) -> Mapping[str, Any]:
    """Add a message for people and the address to look at next."""
    url = f"{service.platform.forge.base_url}/{live.repository}"
    if outcome.pull is not None:
        url = outcome.pull.web_url
    elif outcome.commit:
        url = service.platform.forge.capabilities.pages.commit_page(url, outcome.commit)
    answer = messages.Changed(**asdict(outcome.answer), message=_message(outcome), url=url)
    return answer.to_json()


def _message(outcome: Changed) -> str:
    edits = "".join(f"\n- {edit}" for edit in outcome.edits)
    follow = f"`orderkit status {outcome.order}` shows how far it is."
    match outcome.state:
        case "unchanged":
            return f"`{outcome.order}` has these values already; nothing was written."
        case "planned":
            return f"It would change `{outcome.order}`; nothing was written.{edits}"
        case "proposed":
            number = f"#{outcome.pull.number}" if outcome.pull else ""
            return f"Pull request {number} waits for review; `orderkit merge` delivers it.{edits}"
        case "committed":
            return f"Committed as {short(outcome.commit or '')}; {follow}{edits}"


def post_merge(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Merge a pull request of an order that somebody else has approved."""
    entry = entry_for(service, call, "change")
    person = member(call, call.read(Body).requester, entry.team)
    text = call.path["number"]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise InvalidInputError("number", text, "is not a number of a pull request")
    merged = merge_reviewed(
        service.platform, entry.order, int(text), requester=person.ref, proof=person.proof
    )
    call.audit_fields.update(commit=merged.commit, pull=merged.number)
    return ServiceResponse(200, merged.to_json())


def get_history(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show who changed what in an order, when and why, newest first."""
    entry = entry_for(service, call, "read")
    limit = int(call.query.get("limit", "50"))
    entries = history(service.platform, entry.order, limit=limit)
    return ServiceResponse(
        200,
        History(entry.order, tuple(found.answer for found in entries)).to_json(),
    )
