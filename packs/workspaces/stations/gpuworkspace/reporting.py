"""What people see of a workspace: what it is doing, and how to reach it."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address

from .cloudinit import USER
from .workspace import Workspace


def report(workspace: Workspace) -> None:
    """Write the status from what was observed, and nothing that is not known."""
    instance = workspace.instance_part
    is_stopped = workspace.at_provider(workspace.state_part, "state") == "stopped"
    has_address = workspace.spec["elasticAddress"] or not is_stopped
    address = _address(workspace) if has_address else ""
    phase: str = workspace.parts.phase()
    if phase == "Ready":
        phase = "Stopped" if is_stopped else phase if address else "Provisioning"
    status = {
        "phase": phase,
        "owner": workspace.spec["owner"],
        "instanceType": workspace.at_provider(instance, "instanceType"),
        "instanceId": workspace.at_provider(instance, "id"),
        "publicIp": address,
        "sshCommand": f"ssh {USER}@{address}" if phase == "Ready" else "",
    }
    known_values = {key: value for key, value in status.items() if value}
    workspace.parts.response.merge_status(known_values)


def _address(workspace: Workspace) -> str:
    """Return the address that people connect to; empty if there is none. It goes into a command."""
    part = workspace.address_part if workspace.spec["elasticAddress"] else workspace.instance_part
    try:
        return str(IPv4Address(str(workspace.at_provider(part, "publicIp"))))
    except AddressValueError:
        return ""
