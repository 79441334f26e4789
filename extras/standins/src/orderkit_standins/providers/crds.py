"""
The CRDs that the twins bring where a pack's ``schemas/`` has none.

Structural where a mistake should be refused (policies, references, what is required), open
elsewhere. Written for the embedded platform; real providers bring their own.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import Kind, Manifest, plural_of
from kubeschema.known.managed_kinds import OPEN, completed_crd, config_group, is_modern

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_READINESS = ("SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery")


def managed_crd(kind: Kind, for_provider: Schema = OPEN, **properties: Schema) -> Manifest:
    """Return the CRD of a managed resource, namespaced if its group is of the new flavour."""
    spec: Schema = {"properties": {"forProvider": for_provider, **properties}}
    return completed_crd(crd(kind, namespaced=is_modern(kind), spec=spec))


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


def crd(kind: Kind, *, namespaced: bool, spec: Schema) -> Manifest:
    """Return a CRD with a status subresource."""
    plural = plural_of(kind.kind)
    schema = {"type": "object", "properties": {"spec": spec, "status": OPEN}}
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
                "categories": ["crossplane"],
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
