"""What an object of a plan grants, and which of two amounts is less."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orderkit.core.plan.dangers.exposure import _grants
from orderkit.core.plan.dangers.immutable_fields import _is_less, _is_size

Manifest = dict[str, Any]


def thing(kind: str, api_version: str = "v1", **more: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **more}


def role(*, verbs: Any = (), resources: Any = (), **more: Any) -> Manifest:
    rule = {"verbs": [*verbs], "resources": [*resources], **more}
    return thing("ClusterRole", "rbac.authorization.k8s.io/v1", rules=[rule])


def managed(**for_provider: Any) -> Manifest:
    return thing("Policy", "iam.aws.example.org/v1", spec={"forProvider": for_provider})


def statement(**fields: Any) -> str:
    return json.dumps({"Statement": {"Effect": "Allow", **fields}})


POD = {"containers": [], "volumes": ["odd", {"emptyDir": {}}, {"hostPath": {"path": "/etc"}}]}


@pytest.mark.parametrize(
    ("manifest", "grants"),
    [
        (role(verbs=["get", "list"], resources=["pods"]), []),
        (role(verbs=["*"], resources=["pods", "jobs"]), ["may use every verb on pods, jobs"]),
        (role(verbs=["bind"], resources=["roles"]), ["may use bind on roles"]),
        (role(verbs=["get"], resources=["*"]), ["has a rule for every resource"]),
        (role(verbs=["get"], resources=["secrets"]), ["may read every Secret"]),
        (role(verbs=["list"], resources=["secrets"]), ["may read every Secret"]),
        (role(verbs=["watch"], resources=["secrets"]), ["may read every Secret"]),
        (role(verbs=["create", "patch"], resources=["secrets"]), []),
        (role(verbs=["get"], resources=["secrets"], resourceNames=["a"]), []),
        (
            role(verbs=["*"], resources=["secrets"]),
            ["may use every verb on secrets", "may read every Secret"],
        ),
        (thing("Role", rules=["odd", {}, {"verbs": None}]), []),
        (thing("RoleBinding", roleRef={"name": "cluster-admin"}), ["binds cluster-admin"]),
        (thing("RoleBinding", roleRef={"name": "view"}), []),
        (
            thing("RoleBinding", subjects=[{"name": "system:authenticated"}]),
            ["system:authenticated means everybody"],
        ),
        (managed(role="roles/owner"), ["grants roles/owner"]),
        (managed(roleDefinitionName="Contributor"), ["grants Contributor"]),
        (managed(role="roles/viewer"), []),
        (managed(policy=statement(Principal="*")), ["its policy lets everybody in"]),
        (managed(policy=statement(Principal={"AWS": "*"})), ["its policy lets everybody in"]),
        (managed(policy=statement(Principal={"AWS": "arn"})), []),
        (managed(assumeRolePolicy=statement(Action="*")), ["its policy allows every action"]),
        (managed(policy=statement(Action="s3:Get")), []),
        (managed(policy=json.dumps({"Statement": [{"Effect": "Deny", "Principal": "*"}]})), []),
        (managed(policy="{"), []),
        (managed(policy={"Statement": []}), []),
        (managed(cidr="0.0.0.0/0", description="::/0"), ["0.0.0.0/0 means everybody"]),
        (thing("Pod", spec=POD), ["mounts /etc of the node"]),
        (
            thing("Service", spec={"type": "NodePort"}),
            ["is reachable from outside the cluster (NodePort)"],
        ),
        (thing("Service", spec={"type": "ClusterIP"}), []),
        (thing("Gateway", spec={"type": "LoadBalancer"}), []),
        (
            thing("NetworkPolicy", spec={"ingress": [{"cidr": "::/0"}], "egress": ["0.0.0.0/0"]}),
            ["::/0 means everybody"],
        ),
        (thing("ConfigMap", data={"a": "0.0.0.0/0"}), []),
    ],
)
def test_what_is_granted_broadly_is_told(manifest: Manifest, grants: list[str]) -> None:
    assert list(_grants(manifest)) == grants


@pytest.mark.parametrize(
    ("new", "old", "is_less"),
    [
        (1, 2, True),
        (2, 2, False),
        (3, 2, False),
        ("1Gi", "1.5Gi", True),
        ("1Gi", "1000Mi", False),
        ("59m", "1h", True),
        ("7d", "1w", False),
        ("6d", "1w", True),
        ("90s", "2m", True),
        (True, 2, False),
        (1, True, False),
        (None, 2, False),
        (1, None, False),
        ("soon", 2, False),
        ("1h30", "2h", False),
    ],
)
def test_an_amount_is_less_as_people_read_it(new: object, old: object, *, is_less: bool) -> None:
    assert _is_less(new, old) is is_less


@pytest.mark.parametrize(
    ("steps", "is_size"),
    [
        (("spec", "storage"), True),
        (("spec", "diskSizeGb"), True),
        (("spec", "retentionDays"), True),
        (("spec", "name"), False),
        (("spec", "resources", "requests", "storage"), True),
        (("spec", "size", "limits", "memory"), False),
        (("spec", "storageClass"), False),
    ],
)
def test_a_size_is_known_by_its_name(steps: tuple[str, ...], *, is_size: bool) -> None:
    assert _is_size(steps) is is_size
