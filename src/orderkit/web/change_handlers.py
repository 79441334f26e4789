"""
Handlers for changes of live orders: change one, show its history.

A form of the portal sends all its values, the commit it was opened on and ``whole: true``; a
program sends only what it wants to change. ``flows.change`` detects conflicts in both cases. Called
by ``request_pipeline``, listed in ``operation_table``.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import asdict

from ground.errors import InvalidInputError
from ground.names import CommitSha, TeamName
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import FieldConflictError
from orderkit.core.order.order_state import short
from orderkit.core.plan.plan_json import to_json
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.change import Changed, ChangeRequest
from orderkit.flows.change.form_entry import FormEntry, change_by_form
from orderkit.flows.change.plan_requests import plan_form_entry
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.order.order_history import History, history
from orderkit.ports.forge import agent_notes
from orderkit.ports.requesters import Requester
from orderkit.web import answers
from orderkit.web.agents import must_propose
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, living_for
from orderkit.web.request_bodies import Body, Change, Revert

_DIGITS_MAX = 9
_SHOWN_MAX = 1_000
"""How many shown conflicts are remembered."""


class ChangeHandler:
    """
    Changes fields of orders, and remembers which conflicts a portal has shown.

    A portal that starts a refused task over sends the old form again, with the commit on which it
    was opened (observed on Backstage 1.55): it would conflict for ever. So what a conflict named
    does not conflict when the same person sends the same base in another task. Lost memory, after a
    restart or in another replica, shows the conflict once more.
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
    answer = {"order": live.entry.order, **to_json(plan), "markdown": to_markdown(plan)}
    return ServiceResponse(200, answer)


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
    answer = answers.Changed(**asdict(outcome.answer), message=_message(outcome), url=url)
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
