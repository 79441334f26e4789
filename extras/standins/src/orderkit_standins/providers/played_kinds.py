"""
The kinds that twins play: what a pack's ``schemas/`` say of them, and the CRDs that twins bring.

A CRD does not name the kind that a reference is about. In this order: ``references`` of
behaviour.yaml, the description of the reference in a provider's own CRD, the name of the field.

Where ``schemas/`` has no CRD, the twins bring one: structural where a mistake should be refused
(policies, references, what is required), open elsewhere. Written for the embedded platform; real
providers bring their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ground.names import Files
from ground.objects.kube_objects import Kind, Manifest, dig, plural_of
from kubeschema.known import Behaviour, read_behaviours, read_crds
from kubeschema.known.managed_behaviour import (
    OPEN,
    Reference,
    behaviour_of,
    completed_crd,
    config_group,
    is_managed,
    is_modern,
    kinds_of,
)

CrdSchema = dict[str, Any]

_TEXT: CrdSchema = {"type": "string"}
CONFIG_NAMES = ("ProviderConfig", "ClusterProviderConfig")
_READINESS = ("SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery")


def managed_crd(kind: Kind, for_provider: CrdSchema = OPEN, **properties: CrdSchema) -> Manifest:
    """Return the CRD of a managed resource, namespaced if its group is of the new flavour."""
    spec: CrdSchema = {"properties": {"forProvider": for_provider, **properties}}
    if for_provider is OPEN:  # what the provider has beside it is not known either
        spec = {**OPEN, **spec}
    return completed_crd(crd(kind, namespaced=is_modern(kind), spec=spec))


def object_crd(kind: Kind) -> Manifest:
    """Return the CRD of provider-kubernetes' Object; the classic one also serves v1alpha1."""
    manifest = {**OPEN, "x-kubernetes-embedded-resource": True}
    for_provider: CrdSchema = {
        "type": "object",
        "required": ["manifest"],
        "properties": {"manifest": manifest, "deletionPropagationPolicy": _TEXT},
    }
    readiness: CrdSchema = {
        "type": "object",
        "properties": {
            "policy": {**_TEXT, "enum": list(_READINESS), "default": "SuccessfulCreate"},
            "celQuery": _TEXT,
        },
    }
    lists: CrdSchema = {"type": "array", "items": OPEN}
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
    spec: CrdSchema = {"properties": {"forProvider": OPEN}}
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
    """Return the CRDs of the configs that a managed kind refers to."""
    found = []
    for name in CONFIG_NAMES if is_modern(kind) else CONFIG_NAMES[:1]:
        is_local = is_modern(kind) and name == CONFIG_NAMES[0]
        config_crd = crd(Kind(config_group(kind), version, name), namespaced=is_local, spec=OPEN)
        (stored,) = versions = config_crd["spec"]["versions"]
        # providers have one of them, which no kind tells
        others = [other for other in ("v1beta1", "v1alpha1") if other != version]
        versions += [{**stored, "name": other, "storage": False} for other in others]
        found.append(config_crd)
    return found


def crd(kind: Kind, *, namespaced: bool, spec: CrdSchema) -> Manifest:
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


Schema = Mapping[str, Any]
_DESCRIBED = re.compile(
    r"(?:References?|Selector) (?:to|for) (?:an? )?(?:list of )?(\w+) in (\w+) to"
)
_ENDINGS = re.compile(r"(ids?|arns?|names?|selflinks?|emails?|s)$")


def is_of_provider(kind: Kind) -> bool:
    """Say whether a kind is a managed resource by its group: those of Crossplane's families."""
    is_family = kind.group.endswith((".upbound.io", ".crossplane.io")) and "." in kind.group
    return is_family and "platform" not in kind.group.split(".") and kind.kind not in CONFIG_NAMES


class ManagedLibrary:
    """CRDs and behaviours of managed kinds, by kind."""

    def __init__(self, files: Files, composed: Iterable[Kind] = ()) -> None:
        """
        Read the files of a pack's ``schemas/``.

        Args:
            composed: Kinds that kits compose; those without a schema are played openly.

        Raises:
            InvalidInputError: One of them cannot be read.
        """
        self.crds = {kind: crd for crd in read_crds(files) for kind in kinds_of(crd)}
        self._behaviours = read_behaviours(files)
        self.played: dict[object, frozenset[Kind]] = {}
        """Kinds that are played now, by the twin."""
        known = {(kind.group, kind.kind) for kind in self.crds}
        newest = {(kind.group, kind.kind): kind for kind in sorted(composed)}
        self._open = frozenset(kind for pair, kind in newest.items() if pair not in known)
        self.operated_kinds = frozenset(k for k in newest.values() if not is_of_provider(k))
        """Kinds that kits compose and that no provider has: an operator's, or another cluster's."""

    @property
    def managed_kinds(self) -> frozenset[Kind]:
        """The managed kinds of the pack's ``schemas/``, as stored, and what kits compose beyond."""
        return frozenset(filter(is_of_provider, self._open)) | frozenset(
            kind
            for crd in self.crds.values()
            if is_managed(crd)
            for kind, version in zip(kinds_of(crd), crd["spec"]["versions"], strict=True)
            if version["storage"]
        )

    def behaviour(self, kind: Kind) -> Behaviour:
        """Return how resources of a kind behave."""
        return behaviour_of(self._behaviours, kind.group, kind.kind)

    def schema(self, kind: Kind, *path: str) -> Schema:
        """Return the schema of a part of a kind; an open one if none is known."""
        crd: Manifest = self.crds.get(kind, {})
        versions: list[Any] = dig(crd, "spec", "versions", default=[])
        version: Schema = next((entry for entry in versions if entry["name"] == kind.version), {})
        schema: Any = dig(version, "schema", "openAPIV3Schema", default=OPEN)
        for step in path:
            schema = dig(schema, "properties", step, default=OPEN)
        return schema if isinstance(schema, Mapping) else OPEN

    def reference(self, kind: Kind, field: str) -> Reference:
        """Return what behaviour.yaml says of references that set a field."""
        return self.behaviour(kind).references.get(field, Reference())

    def referents(self, kind: Kind, field: str, description: str) -> list[Kind]:
        """Return the kinds that a reference may be about, the most probable first."""
        family = self._family(kind)
        target = self.reference(kind, field).group_kind
        if target is not None:
            return [member for member in family if (member.group, member.kind) == target]
        if described := _DESCRIBED.match(description):
            groups = {config_group(kind), f"{described[2]}.{config_group(kind)}"}
            return [k for k in family if k.kind == described[1] and k.group in groups]
        return self._guessed(kind, field.lower(), family)

    def _family(self, kind: Kind) -> list[Kind]:
        """Return the kinds of the same provider."""
        group = config_group(kind)
        played = set[Kind]().union(*self.played.values()) | self.managed_kinds
        return sorted(member for member in played if config_group(member) == group)

    def _guessed(self, kind: Kind, field: str, family: Iterable[Kind]) -> list[Kind]:
        stem = field
        while (shorter := _ENDINGS.sub("", stem)) not in {"", stem}:
            stem = shorter
        stems = {field, stem}
        by_full_name = [k for k in family if any(text.endswith(k.kind.lower()) for text in stems)]
        by_last_word = [k for k in family if k.kind.lower().endswith(stem)]

        def rank(member: Kind) -> tuple[bool, int, Kind]:
            return member.group != kind.group, -len(member.kind), member

        longest = max((len(member.kind) for member in by_full_name), default=0)
        best = [member for member in by_full_name if len(member.kind) == longest]
        less_likely = [member for member in (*by_full_name, *by_last_word) if member not in best]
        return [*sorted(best, key=rank), *sorted(dict.fromkeys(less_likely), key=rank)]
