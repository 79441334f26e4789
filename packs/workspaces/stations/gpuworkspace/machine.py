"""
The machine: key pair, instance, whether it runs, and an address that it keeps.

The instance's external name is never set: AWS assigns it, and a provider that is given another one
looks for an instance that does not exist. Its type, disk and security group are updated in place;
the provider stops and starts it for another type.
"""

from __future__ import annotations

from .cloudinit import cloud_config
from .workspace import Workspace


def want_machine(workspace: Workspace, ami: str) -> None:
    """Want the key pair, the instance once its security group is ready, and what refers to it."""
    parts, key_pair, instance = workspace.parts, workspace.key_part, workspace.instance_part
    key = {"publicKey": workspace.spec["publicKey"], "tags": workspace.tags}
    workspace.want(key_pair, "KeyPair", key)
    _want_instance(workspace, ami)
    state = {
        "instanceIdRef": parts.reference(instance),
        "state": "running" if workspace.spec["running"] else "stopped",
    }
    workspace.want(workspace.state_part, "InstanceState", state, needs=[instance], awaited="state")
    if workspace.spec["elasticAddress"]:
        _want_address(workspace)


def _want_address(workspace: Workspace) -> None:
    """
    Want the address once the instance is ready.

    It outlives a machine that another one replaces: it stays with the old one until the new one is
    ready.
    """
    part, parts = workspace.address_part, workspace.parts
    if parts.is_ready(workspace.instance_part):
        reference = {**parts.reference(workspace.instance_part), "policy": {"resolve": "Always"}}
        holder: dict[str, object] = {"instanceRef": reference}
    elif parts.exists(part):
        former = parts.observed(part, "spec", "forProvider", "instance")
        holder = {"instance": former} if former else {}
    else:
        return
    workspace.want(part, "EIP", {"domain": "vpc", "tags": workspace.tags, **holder})


def _want_instance(workspace: Workspace, ami: str) -> None:
    group, key_pair = workspace.group_part, workspace.key_part
    for_provider = {
        "ami": ami,
        "instanceType": workspace.spec["instanceType"],
        "keyName": workspace.parts.name(key_pair),
        "associatePublicIpAddress": True,
        "vpcSecurityGroupIdRefs": [workspace.parts.reference(group)],
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required"},
        "rootBlockDevice": {
            "volumeSize": workspace.spec["diskGb"],
            "volumeType": "gp3",
            "encrypted": True,
            "deleteOnTermination": True,
        },
        "userData": cloud_config(workspace.spec),
        "tags": workspace.tags,
        **workspace.offered("subnetId"),
    }
    workspace.want(
        workspace.instance_part,
        "Instance",
        for_provider,
        needs=[group, key_pair],
        fixed=("ami", "userData", "subnetId"),
        awaited="instanceType",
    )
