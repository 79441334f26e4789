"""
The CRDs that the twins bring, as far as people and kits rely on them.

Structural where a mistake should be refused (policies, references, what is required), open
elsewhere. Written for the embedded platform; real providers bring their own.

Called by ``packages``.
"""

from __future__ import annotations

from typing import Any

from orderkit.adapters.embedded.providers.managed import config_group, is_modern
from orderkit.core.objects.kube_objects import Kind, Manifest, plural_of

Schema = dict[str, Any]

OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT: Schema = {"type": "string"}
_POLICY: Schema = {
    "type": "string",
    "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"],
}
_REFERENCE: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": _TEXT, "kind": _TEXT},
}
_COLUMNS = (
    ("SYNCED", ".status.conditions[?(@.type=='Synced')].status"),
    ("READY", ".status.conditions[?(@.type=='Ready')].status"),
    ("EXTERNAL-NAME", ".metadata.annotations.crossplane\\.io/external-name"),
)
_READINESS = ("SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery")


def managed_crd(kind: Kind, for_provider: Schema = OPEN, **properties: Schema) -> Manifest:
    """Return the CRD of a managed resource, namespaced if its group is of the new flavour."""
    modern = is_modern(kind)
    config = "ClusterProviderConfig" if modern else "ProviderConfig"
    default = {"name": "default", **({"kind": config} if modern else {})}
    spec: Schema = {
        "type": "object",
        "required": ["forProvider"],
        "properties": {
            "forProvider": for_provider,
            "initProvider": OPEN,
            "managementPolicies": {"type": "array", "items": _POLICY, "default": ["*"]},
            "providerConfigRef": {**_REFERENCE, "default": default},
            "writeConnectionSecretToRef": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _TEXT, "namespace": _TEXT},
            },
            **properties,
        },
    }
    return crd(kind, namespaced=modern, spec=spec, status=OPEN, categories=("managed",))


def object_crd(kind: Kind) -> Manifest:
    """Return the CRD of provider-kubernetes' Object."""
    manifest = {**OPEN, "x-kubernetes-embedded-resource": True}
    for_provider: Schema = {
        "type": "object",
        "required": ["manifest"],
        "properties": {"manifest": manifest, "deletionPropagationPolicy": _TEXT},
    }
    readiness: Schema = {
        "type": "object",
        "properties": {
            "policy": {**_TEXT, "enum": list(_READINESS), "default": "SuccessfulCreate"},
            "celQuery": _TEXT,
        },
    }
    lists: Schema = {"type": "array", "items": OPEN}
    return managed_crd(
        kind,
        for_provider,
        readiness=readiness,
        references=lists,
        connectionDetails=lists,
        watch={"type": "boolean"},
    )


def config_crds(kind: Kind, version: str) -> list[Manifest]:
    """Return the CRDs of the configs that a managed kind refers to."""
    group = config_group(kind)
    config_crd = crd(Kind(group, version, "ProviderConfig"), namespaced=is_modern(kind), spec=OPEN)
    if not is_modern(kind):
        return [config_crd]
    return [
        config_crd,
        crd(Kind(group, version, "ClusterProviderConfig"), namespaced=False, spec=OPEN),
    ]


def crd(
    kind: Kind,
    *,
    namespaced: bool,
    spec: Schema,
    status: Schema | None = None,
    categories: tuple[str, ...] = (),
) -> Manifest:
    """Return a CRD with a status subresource and the columns that people look for."""
    plural = plural_of(kind.kind)
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS]
    age = {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": plural,
                "singular": kind.kind.lower(),
                "categories": ["crossplane", *categories],
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [*columns, age] if categories else [age],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": spec, "status": status or OPEN},
                        }
                    },
                }
            ],
        },
    }
