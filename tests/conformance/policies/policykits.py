"""
The kits whose policies are tried: the pack's own, and some of other shapes.

``identity`` says, without the code under test, how a kit's orders and XRs are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of, read_pack
from orderkit.core.platform.installation import ARGOCD_ACCOUNT, CROSSPLANE_ACCOUNT

GROUP = "policies.orderkit.dev"
VALUES = {
    "FORGE_HOST": "forge.example.org",
    "CROSSPLANE_ACCOUNT": CROSSPLANE_ACCOUNT,
    "ARGOCD_ACCOUNT": ARGOCD_ACCOUNT,
}
"""What the platform bakes."""
Spec = Mapping[str, Any]
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


@dataclass(frozen=True)
class Tried:
    """A kit, and what an XR of it makes of order and name."""

    kit: Kit
    identity: Callable[[Spec], tuple[str, str]]
    """spec -> the order's id, the XR's name."""
    team: Callable[[Spec], str]

    @property
    def plural(self) -> str:
        return str(self.kit.xrd["spec"]["names"]["plural"])


def xrd(kind: str, properties: Spec, *, scope: str, legacy: bool = False) -> dict[str, Any]:
    """Return an XRD whose ``spec`` has these properties."""
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": dict(properties)}},
    }
    return {
        "apiVersion": f"apiextensions.crossplane.io/{'v1' if legacy else 'v2'}",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "scope": scope,
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def change(name: str, direction: str, *fields: str) -> dict[str, Any]:
    return {"name": name, "direction": direction, "fields": list(fields)}


def _list(items: Spec, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


AGENT = {
    "agentName": TEXT,
    "teamName": TEXT,
    "endpoint": TEXT,
    "budget": NUMBER,
    "size": {"type": "string", "enum": ["small", "medium", "large"]},
    "region": TEXT,
    "zones": _list(TEXT),
    "capacity": TEXT,
    "limits": {"type": "object", "additionalProperties": NUMBER},
    "disks": _list(
        {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "sizeGb": NUMBER},
        },
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
    "backup": {"type": "boolean"},
    "ratio": {"type": "number", "multipleOf": 0.25},
    "replicas": NUMBER,
    "memory": {"x-kubernetes-int-or-string": True},
    "labels": _list(TEXT),
    "tier": {"type": "integer", "enum": [10, 20, 40]},
    "note": TEXT,
}
AGENT_KIT = {
    "nameFrom": "agentName",
    "teamFrom": "teamName",
    "xrName": "agentName",
    "hidden": {"endpoint": {"from": "FORGE_HOST"}},
    "changes": [
        change("money", "grow", "budget", "zones", "capacity", "limits", "disks", "backup"),
        change("memory", "grow", "memory"),
        change("size", "step", "size", "ratio", "replicas", "labels", "tier"),
        change("place", "never", "region"),
        change("note", "any", "note"),
    ],
}
VAULT = {
    "owner": TEXT,
    "vaultName": TEXT,
    "class": {
        **TEXT,
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "class is fixed"}],
    },
    "storage": {
        "type": "object",
        "properties": {"sizeGb": NUMBER, "kind": TEXT, "copies": NUMBER},
    },
    "x-mode": TEXT,
}
VAULT_KIT = {
    "nameFrom": ["owner", "vaultName"],
    "teamFrom": "owner",
    "changes": [
        change("more", "grow", "storage"),
        change("kind", "any", "storage.kind"),
        change("mode", "never", "x-mode"),
    ],
}


def _nobody(_spec: Spec) -> str:
    return "crew"


def _garage() -> Kit:
    root = Path(__file__).parents[3]
    return read_pack(read_folder(root)).kit("garage")


KITS = {
    "garage": Tried(
        _garage(), lambda s: (f"garage-{s['teamName']}",) * 2, lambda s: str(s["teamName"])
    ),
    "agent": Tried(
        kit_of("agent", AGENT_KIT, xrd("XAgent", AGENT, scope="Namespaced")),
        lambda s: (f"agent-{s['agentName']}", str(s["agentName"])),
        lambda s: str(s["teamName"]),
    ),
    "vault": Tried(
        kit_of("vault", VAULT_KIT, xrd("XVault", VAULT, scope="Namespaced")),
        lambda s: (f"vault-{s['owner']}-{s['vaultName']}",) * 2,
        lambda s: str(s["owner"]),
    ),
    "bare": Tried(
        kit_of("bare", {}, xrd("XBare", {"title": TEXT, "note": TEXT}, scope="Cluster")),
        lambda s: (f"bare-{s['title']}",) * 2,
        _nobody,
    ),
    "own": Tried(
        kit_of("own", {"xrName": "slug"}, xrd("XOwn", {"slug": TEXT}, scope="Cluster")),
        lambda s: (f"own-of-{s['slug']}", str(s["slug"])),
        _nobody,
    ),
    "legacy": Tried(
        kit_of(
            "legacy",
            {"nameFrom": "title", "changes": [change("size", "grow", "size")]},
            xrd("XLegacy", {"title": TEXT, "size": NUMBER}, scope="LegacyCluster", legacy=True),
        ),
        lambda s: (f"legacy-{s['title']}",) * 2,
        _nobody,
    ),
}
