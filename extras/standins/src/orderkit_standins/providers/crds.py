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
CONFIG_NAMES = ("ProviderConfig", "ClusterProviderConfig")
_READINESS = ("SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery")


def managed_crd(kind: Kind, for_provider: Schema = OPEN, **properties: Schema) -> Manifest:
    """Return the CRD of a managed resource, namespaced if its group is of the new flavour."""
    spec: Schema = {"properties": {"forProvider": for_provider, **properties}}
    if for_provider is OPEN:  # what the provider has beside it is not known either
        spec = {**OPEN, **spec}
    return completed_crd(crd(kind, namespaced=is_modern(kind), spec=spec))


def object_crd(kind: Kind) -> Manifest:
    """Return the CRD of provider-kubernetes' Object; the classic one also serves v1alpha1."""
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
    found = managed_crd(
        kind,
        for_provider,
        readiness=readiness,
        references=lists,
        connectionDetails=lists,
        watch={"type": "boolean"},
    )
    if not is_modern(kind):
        (stored,) = found["spec"]["versions"]
        found["spec"]["versions"].append({**stored, "name": "v1alpha1", "storage": False})
    return found


def nop_crd(kind: Kind) -> Manifest:
    """Return the CRD of a resource of provider-nop."""
    spec: Schema = {"properties": {"forProvider": OPEN}}
    return completed_crd(crd(kind, namespaced=not kind.kind.startswith("Cluster"), spec=spec))


def operated_crd(kind: Kind) -> Manifest:
    """Return the CRD of a kind of which nothing is known: any field, in a namespace."""
    for config_crd in config_crds(kind, kind.version) if kind.kind in CONFIG_NAMES else ():
        if config_crd["spec"]["names"]["kind"] == kind.kind:
            return config_crd
    manifest = crd(kind, namespaced=True, spec=OPEN)
    manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"] |= OPEN
    return manifest


def config_crds(kind: Kind, version: str) -> list[Manifest]:
    """
    Return the CRDs of the configs that a managed kind refers to.

    Each is served as v1alpha1 and v1beta1 too: providers have one of them, which no kind tells.
    """
    found = []
    for name in CONFIG_NAMES if is_modern(kind) else CONFIG_NAMES[:1]:
        is_local = is_modern(kind) and name == CONFIG_NAMES[0]
        config_crd = crd(Kind(config_group(kind), version, name), namespaced=is_local, spec=OPEN)
        (stored,) = versions = config_crd["spec"]["versions"]
        others = [other for other in ("v1beta1", "v1alpha1") if other != version]
        versions += [{**stored, "name": other, "storage": False} for other in others]
        found.append(config_crd)
    return found


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
