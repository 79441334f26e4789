"""Who reaches the machine: a security group, one rule for each network, and one for what leaves."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from .workspace import Workspace

_SSH = 22
_EVERYWHERE = {"cidrIpv4": "0.0.0.0/0", "ipProtocol": "-1"}


def want_network(workspace: Workspace) -> None:
    """Want the security group, and its rules once it is ready."""
    group = workspace.group_part
    for_provider = {
        "name": workspace.parts.name(group),
        "description": "SSH to a GPU workspace",
        "tags": workspace.tags,
        **workspace.offered("vpcId"),
    }
    workspace.want(group, "SecurityGroup", for_provider, fixed=("vpcId",))
    _want_rule(workspace, f"out-{workspace.region}", "SecurityGroupEgressRule", _EVERYWHERE)
    networks = {IPv4Network(cidr, strict=False) for cidr in workspace.spec["sshFrom"]}
    for cidr in map(str, sorted(networks)):
        part = f"ssh-{workspace.region}-{cidr.replace('.', '-').replace('/', '-')}"
        rule = {"cidrIpv4": cidr, "ipProtocol": "tcp", "fromPort": _SSH, "toPort": _SSH}
        _want_rule(workspace, part, "SecurityGroupIngressRule", rule)


def _want_rule(workspace: Workspace, part: str, kind: str, rule: dict[str, Any]) -> None:
    group = workspace.group_part
    reference = {"securityGroupIdRef": workspace.parts.reference(group)}
    workspace.want(part, kind, {**reference, **rule}, needs=[group])
