"""
Handlers for approvals (what waits for the caller, and their decision), and for the budget gate.

For approvals the caller's teams do not matter: who is asked is what the order's kit says, and the
forge knows its groups.

`GateHandlers` tells a program whether the user of an XR may continue: 200, 402 or 503. There is one
per service.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from ground.errors import NotFoundError, RefusedError
from ground.objects.kube_objects import Manifest, metadata
from ground.shapes import json_schema
from orderkit.core.kit.budget_gate import GateState, GateVerdict
from orderkit.core.order import ledger
from orderkit.flows.approval.deciding import Decided, approve, decline
from orderkit.flows.approval.pending import pending
from orderkit.flows.order.budget_gate_check import GateRequest, Gates, UnknownGateError, team_of
from orderkit.flows.platform import ledger_snapshot
from orderkit.ports.requesters import UnprovedError
from orderkit.web.messages import Approvals, Decide, Gate
from orderkit.web.openapi_schemas import LABEL, named
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse


def post_approval(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Agree or decline. Only a proved person can: the portal's secret proves nobody."""
    person, order = call.who.proof, call.path["order"]
    if person is None:
        raise UnprovedError(
            "nothing proves who approves",
            hint="send Authorization: Bearer <token> of a person, or sign in to the console",
        )
    teams = call.who.teams("approve")
    try:
        decision = _decide(service, call)
    except (NotFoundError, RefusedError):
        entry = ledger.living_order(ledger_snapshot(service.platform).blobs, order)
        # else the answer would tell other teams that the order exists
        if teams is not None and (entry is None or entry.team not in teams):
            raise call.who.foreign(f"order '{order}'", teams) from None
        raise
    call.audit_fields.update(team=decision.team, state=decision.state)
    service.model.reread()
    return ServiceResponse(200, decision.to_json())


def _decide(service: Service, call: ServiceRequest) -> Decided:
    body, order, person = call.read(Decide), call.path["order"], call.who.requester(None)
    call.audit_fields["decision"] = body.decision
    if body.decision == "approve":
        return approve(service.platform, order, person, number=body.number, head=body.head)
    return decline(service.platform, order, person, number=body.number, reason=body.reason)


def get_approvals(service: Service, call: ServiceRequest) -> ServiceResponse:
    """List what waits for the caller; for the portal itself, everything that waits."""
    teams = call.who.teams("read")
    order = call.query.get("order")
    entries = pending(service.platform, call.who.proof, order=order, teams=teams)
    return ServiceResponse(200, Approvals(tuple(entries)).to_json())


def operations(order: str) -> tuple[ServiceOperation, ...]:
    """Return the operations on approvals; `order` is the path of an order."""
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "decideApproval",
            "POST",
            f"{order}/approval",
            "Approve an order or a change, or decline it, as the person whom a token proves.",
            post_approval,
            {
                200: ("What became of it.", named("Decided")),
                409: ("What is proposed changed since.", named("Error")),
                **missing,
            },
            "approve",
            body=json_schema(Decide),
            slow=True,
            person=True,
        ),
        ServiceOperation(
            "listApprovals",
            "GET",
            "/v1/approvals",
            "List the orders and changes that wait for the caller's approval.",
            get_approvals,
            {200: ("What waits, by team and id; orders first.", named("Approvals"))},
            "read",
            query={"order": LABEL},
            slow=True,
        ),
    )


# after a budget is raised, an agent continues at once
_NEVER_KEPT = {"Cache-Control": "no-store"}


class GateHandlers:
    """Answers for the gates of one platform."""

    def __init__(self) -> None:
        self._gates = Gates()

    def get(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Read the XR and say what its status says."""
        gate_query = GateRequest(
            call.path["kit"], call.path["name"], call.query.get("namespace", "")
        )
        xr = self._gates.xr(service.platform, gate_query)
        self._check_team(service, call, gate_query, xr)
        if xr is None:
            raise UnknownGateError(
                f"there is no {gate_query.kit} '{gate_query.name}' now",
                hint="it is being created or deleted, or the name or namespace is wrong",
            )
        verdict = self._gates.verdict(service.platform, gate_query, xr)
        call.audit_fields["gate"] = verdict.state.value
        # 402 only means a used-up budget: a broken platform must not look like one
        if verdict.state is GateState.UNKNOWN:
            raise UnknownGateError(f"{gate_query.kit} '{gate_query.name}': {verdict.why}")
        return _answer(gate_query, xr, verdict)

    @staticmethod
    def _check_team(
        service: Service, call: ServiceRequest, gate_query: GateRequest, xr: Manifest | None
    ) -> None:
        """Check that the caller may read it; another team's XR looks as if it did not exist."""
        teams = call.who.teams("read")
        if teams is None:
            return
        team = team_of(service.platform.cluster, xr) if xr else None
        if team not in teams:
            raise call.who.foreign(f"{gate_query.kit} '{gate_query.name}'", teams)
        call.audit_fields["team"] = team


def _answer(gate_query: GateRequest, xr: Manifest, verdict: GateVerdict) -> ServiceResponse:
    exhausted = verdict.state is GateState.EXHAUSTED
    namespace = str(metadata(xr).get("namespace", ""))
    state: Literal["open", "exhausted"] = "exhausted" if exhausted else "open"
    gate = Gate(gate_query.kit, gate_query.name, namespace, state, verdict.cause)
    status = HTTPStatus.PAYMENT_REQUIRED if exhausted else HTTPStatus.OK
    return ServiceResponse(status.value, gate.to_json(), _NEVER_KEPT)
