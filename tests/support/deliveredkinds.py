"""
Our own shapes of what a delivery tree holds beside Argo CD's kinds, for checks without a cluster.

Structural and closed: a misspelt field is found. Written from the facts about Crossplane 2.3 and
provider-kubernetes 1.2 to 1.4, only as far as packs use them; the CRDs that the embedded platform
serves are used where it has the kind.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import CRD, Manifest
from kubeschema.validate import Validator
from orderkit_standins.crossplane.crds import crossplane_crds

TEXT: dict[str, Any] = {"type": "string"}
OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def shape(*required: str, **properties: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return {**found, "required": list(required)} if required else found


def several(items: dict[str, Any], *, at_least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": at_least}


NAMED = shape("name", name=TEXT)
LABELS = {"type": "object", "additionalProperties": TEXT}
META = shape(name=TEXT, labels=LABELS, annotations=LABELS)
RULE = shape(
    "verbs",
    apiGroups=several(TEXT),
    resources=several(TEXT),
    resourceNames=several(TEXT),
    nonResourceURLs=several(TEXT),
    verbs=several(TEXT, at_least=1),
)
SUBJECT = shape("kind", "name", kind=TEXT, name=TEXT, namespace=TEXT, apiGroup=TEXT)
KINDS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("pkg.crossplane.io", "v1beta1", "DeploymentRuntimeConfig"): {
        "spec": shape(
            deploymentTemplate=OPEN,
            serviceTemplate=OPEN,
            serviceAccountTemplate=shape(metadata=META),
        )
    },
    ("pkg.crossplane.io", "v1beta1", "ImageConfig"): {
        "spec": shape(
            "matchImages",
            matchImages=several(
                shape("prefix", prefix=TEXT, type={"type": "string", "enum": ["Prefix"]}),
                at_least=1,
            ),
            rewriteImage=shape("prefix", prefix=TEXT),
            registry=shape(authentication=shape("pullSecretRef", pullSecretRef=NAMED)),
            runtime=shape(configRef=shape("name", apiVersion=TEXT, kind=TEXT, name=TEXT)),
        )
    },
    ("kubernetes.m.crossplane.io", "v1alpha1", "ClusterProviderConfig"): {
        "spec": shape(
            "credentials",
            credentials=shape(
                "source",
                source={
                    "type": "string",
                    "enum": ["None", "Secret", "InjectedIdentity", "Environment", "Filesystem"],
                },
                secretRef=shape("name", "namespace", "key", name=TEXT, namespace=TEXT, key=TEXT),
            ),
            identity=OPEN,
        )
    },
    ("", "v1", "ConfigMap"): {"data": LABELS},
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"): {
        "rules": several(RULE),
        "aggregationRule": shape(clusterRoleSelectors=several(shape(matchLabels=LABELS))),
    },
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"): {
        "roleRef": shape("apiGroup", "kind", "name", apiGroup=TEXT, kind=TEXT, name=TEXT),
        "subjects": several(SUBJECT, at_least=1),
    },
}


def validators() -> dict[tuple[str, str], Validator]:
    """Return what judges each kind, by group and kind."""
    made = [Validator(_crd(*key, fields)) for key, fields in KINDS.items()]
    served = [Validator(crd) for crd in crossplane_crds()]
    return {(one.group, one.kind): one for one in (*served, *made)}


def _crd(group: str, version: str, kind: str, fields: dict[str, Any]) -> Manifest:
    schema = shape(apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, **fields)
    if "spec" in fields:
        schema["required"] = ["spec"]
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
