"""
Handler that tells a program whether the user of an XR may continue: 200, 402 or 503.

402 only means that the budget is used up. Any other reason is 503, so that a broken platform never
looks like an exhausted budget. Answers may not be cached: after a budget is raised, an agent
continues at once. One `GateHandler` per service.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from ground.objects.kube_objects import Manifest, metadata
from orderkit.core.kit.budget_gate import GateState, GateVerdict
from orderkit.flows.order.budget_gate_check import GateRequest, Gates, UnknownGateError, team_of
from orderkit.web.answers import Gate
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

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
        team = team_of(service.platform, xr) if xr else None
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
