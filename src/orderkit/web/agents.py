"""What a request may become that an AI agent sends on behalf of a person: its team decides."""

from __future__ import annotations

from ground.errors import RefusedError
from ground.names import TeamName
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.web.operations import Service, ServiceRequest


def must_propose(
    service: Service, call: ServiceRequest, team: TeamName, agent: str | None, command: str
) -> bool:
    """
    Return whether a request becomes a proposal; False without an agent. The audit log names it.

    Args:
        command: What a person types instead.

    Raises:
        RefusedError: The team lets agents only read.
    """
    if not agent:
        return False
    call.audit_fields["agent"] = agent
    right = team_of(service.platform, team, ledger_snapshot(service.platform)).agents
    if right == "read":
        raise RefusedError(
            f"agents may only read the orders of team {team}", hint=f"a person types: {command}"
        )
    return right == "propose"
