"""What the suite asks: a schema of ``spec``, an object, perhaps the object before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

GROUP, VERSION = "validate.orderkit.dev", "v1"


@dataclass(frozen=True)
class Case:
    """One question to every judge."""

    id: str
    reason: str
    schema: dict[str, Any]
    new: dict[str, Any]
    old: dict[str, Any] | None = None
    root_rules: tuple[dict[str, Any], ...] = ()
    name: str = "judged"

    @property
    def digest(self) -> str:
        """Tells whether a recorded verdict is about this case."""
        text = json.dumps([self.schema, self.new, self.old, self.root_rules, self.name])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def schema_key(self) -> str:
        """Equal for cases that share a definition."""
        text = json.dumps([self.schema, self.root_rules])
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def definition(self) -> dict[str, Any]:
        """Return the CRD."""
        kind = f"K{self.schema_key}"
        root: dict[str, Any] = {"type": "object", "properties": {"spec": self.schema}}
        if self.root_rules:
            root["x-kubernetes-validations"] = list(self.root_rules)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Cluster",
                "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()},
                "versions": [
                    {
                        "name": VERSION,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": root},
                    }
                ],
            },
        }

    def manifest(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Return an object with that ``spec``."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": f"K{self.schema_key}",
            "metadata": {"name": self.name},
            "spec": spec,
        }


@dataclass(frozen=True)
class Verdict:
    """
    What a judge says of a case.

    `outcome` is ``definition-refused``, ``old-refused``, ``refused`` or ``accepted``.
    """

    outcome: str
    stored: Any = None
    """``spec`` as it is kept, with defaults and without unknown fields."""
    faults: tuple[tuple[str, str], ...] = ()
    """Path and sentence of everything that was refused, sorted."""
    not_evaluated: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "stored": self.stored,
            "faults": [list(f) for f in self.faults],
        }

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Verdict:
        return cls(read["outcome"], read["stored"], tuple((f[0], f[1]) for f in read["faults"]))
