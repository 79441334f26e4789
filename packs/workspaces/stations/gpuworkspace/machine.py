"""
The machine: key pair, instance, whether it runs, and an address that it keeps.

The instance's external name is never set: AWS assigns it, and a provider that is given another one
looks for an instance that does not exist. Its type, disk and security group are updated in place;
the provider stops and starts it for another type.
"""

from __future__ import annotations

from .cloudinit import cloud_config
from .workspace import Workspace

_FIXED = ("ami", "userData", "subnetId")


def want_machine(workspace: Workspace, ami: str) -> None:
    """Want the key pair, the instance once it has a security group, and what refers to it."""
    key_pair = f"key-pair-{workspace.build}"
    key = {"publicKey": workspace.spec["publicKey"], "tags": workspace.tags()}
    workspace.want(key_pair, "KeyPair", key)
    part, state, address = workspace.instance_part, workspace.state_part, workspace.address_part
    if workspace.may_want(part, workspace.group_part, key_pair):
        _want_instance(workspace, ami, workspace.object_name(key_pair))
    reference = {"name": workspace.object_name(part)}
    if workspace.may_want(state, part):
        running = "running" if workspace.spec["running"] else "stopped"
        workspace.want(state, "InstanceState", {"instanceIdRef": reference, "state": running})
    if workspace.spec["elasticAddress"] and workspace.may_want(address, part):
        # It outlives a machine that another one replaces, so its reference is resolved again.
        reference = {**reference, "policy": {"resolve": "Always"}}
        for_provider = {"domain": "vpc", "instanceRef": reference, "tags": workspace.tags()}
        workspace.want(address, "EIP", for_provider)


def _want_instance(workspace: Workspace, ami: str, key_name: str) -> None:
    for_provider = {
        "ami": ami,
        "instanceType": workspace.spec["instanceType"],
        "keyName": key_name,
        "associatePublicIpAddress": True,
        "vpcSecurityGroupIdRefs": [{"name": workspace.object_name(workspace.group_part)}],
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required"},
        "rootBlockDevice": {
            "volumeSize": workspace.spec["diskGb"],
            "volumeType": "gp3",
            "encrypted": True,
            "deleteOnTermination": True,
        },
        "userData": cloud_config(workspace.spec),
        "tags": workspace.tags(),
    }
    if workspace.region_settings.get("subnetId"):
        for_provider["subnetId"] = workspace.region_settings["subnetId"]
    workspace.want(workspace.instance_part, "Instance", for_provider, fixed=_FIXED)
