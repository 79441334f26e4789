"""Who reaches the machine: a security group, one rule for each network, and one for what leaves."""

from __future__ import annotations

from ipaddress import IPv4Network

from .workspace import Manifest, Workspace

_SSH = 22


def want_network(workspace: Workspace) -> None:
    """Want the security group, and its rules once it exists."""
    group = workspace.group_part
    for_provider = {
        "name": workspace.object_name(group),
        "description": "SSH to a GPU workspace",
        "tags": workspace.tags(),
    }
    if workspace.region_settings.get("vpcId"):
        for_provider["vpcId"] = workspace.region_settings["vpcId"]
    workspace.want(group, "SecurityGroup", for_provider, fixed=("vpcId",))
    out = f"out-{workspace.region}"
    _want_rule(
        workspace, out, "SecurityGroupEgressRule", {"cidrIpv4": "0.0.0.0/0", "ipProtocol": "-1"}
    )
    networks = {IPv4Network(cidr, strict=False) for cidr in workspace.spec["sshFrom"]}
    for cidr in map(str, sorted(networks)):
        part = f"ssh-{workspace.region}-{cidr.replace('.', '-').replace('/', '-')}"
        rule = {"cidrIpv4": cidr, "ipProtocol": "tcp", "fromPort": _SSH, "toPort": _SSH}
        _want_rule(workspace, part, "SecurityGroupIngressRule", rule)


def _want_rule(workspace: Workspace, part: str, kind: str, rule: Manifest) -> None:
    group = workspace.group_part
    if workspace.may_want(part, group):
        reference = {"name": workspace.object_name(group)}
        workspace.want(part, kind, {"securityGroupIdRef": reference, **rule})
