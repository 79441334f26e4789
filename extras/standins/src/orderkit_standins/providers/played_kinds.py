"""
What the twins know of managed kinds: a pack's ``schemas/``, and which kinds are played now.

A CRD does not name the kind that a reference is about. In this order: ``references`` of
behaviour.yaml, the description of the reference in a provider's own CRD, the name of the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.known import Behaviour, read_behaviours, read_crds
from kubeschema.known.behaviours import Reference, behaviour_of
from kubeschema.known.managed_kinds import OPEN, config_group, is_managed, kinds_of
from orderkit_standins.providers.crds import CONFIG_NAMES
from yamlfiles.documents import Files

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
        target = self.reference(kind, field).kind
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
