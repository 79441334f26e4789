"""What people see of a workspace: what it is doing, and how to reach it."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address

from orderkit.stations import Ready

from .cloudinit import USER
from .workspace import Workspace

_FAILURES = ("Synced", "LastAsyncOperation")
"""Conditions that are False when the provider could not do what it should."""


def report(workspace: Workspace) -> None:
    """Write the status from what was observed, and nothing that is not known."""
    instance = workspace.at_provider(workspace.instance_part)
    state = workspace.at_provider(workspace.state_part).get("state")
    _hold_back(workspace, workspace.instance_part, instance.get("instanceType"), "instanceType")
    _hold_back(workspace, workspace.state_part, state, "state")
    address = (
        "" if state == "stopped" and not workspace.spec["elasticAddress"] else _address(workspace)
    )
    phase = _phase(workspace, str(state), address)
    status = {
        "phase": phase,
        "owner": workspace.spec["owner"],
        "instanceType": instance.get("instanceType"),
        "instanceId": instance.get("id"),
        "publicIp": address,
        "sshCommand": f"ssh {USER}@{address}" if phase == "Ready" else "",
    }
    workspace.response.merge_status({key: value for key, value in status.items() if value})


def _hold_back(workspace: Workspace, part: str, value: object, field: str) -> None:
    """Report a part as not ready while AWS has another value: Ready keeps the last one's."""
    resource = workspace.response.desired.resources.get(part)
    if resource and value not in (None, resource.resource["spec"]["forProvider"][field]):
        workspace.response.set_ready(part, ready=False)


def _phase(workspace: Workspace, state: str, address: str) -> str:
    resources = workspace.response.desired.resources
    if any(_has_failed(workspace, part) for part in resources):
        return "Failed"
    is_held_back = any(resource.ready is Ready.FALSE for resource in resources.values())
    if is_held_back or not workspace.is_ready(workspace.instance_part):
        return "Provisioning"
    if state == "stopped":
        return "Stopped"
    return "Ready" if state == "running" and address else "Provisioning"


def _has_failed(workspace: Workspace, part: str) -> bool:
    conditions = (workspace.condition(part, type_) for type_ in _FAILURES)
    return any(
        condition.get("status") == "False" and condition.get("reason") != "ReconcilePaused"
        for condition in conditions
    )


def _address(workspace: Workspace) -> str:
    """Return the address that people connect to; empty if there is none. It goes into a command."""
    part = workspace.address_part if workspace.spec["elasticAddress"] else workspace.instance_part
    try:
        return str(IPv4Address(str(workspace.at_provider(part).get("publicIp"))))
    except AddressValueError:
        return ""
