"""A pack of kits that ``kit import`` made of XRDs as other people write them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from published import Up

from ground.names import RepoId
from orderkit.cli.main import run
from yamlfiles import yaml11
from yamlfiles.manifests import parse_manifests

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}


def group(*required: str, **properties: Schema) -> Schema:
    """Return the schema of an object."""
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def wild_xrd(kind: str, spec: Schema) -> dict[str, Any]:
    """Return an XRD with this schema of ``spec``."""
    plural = f"x{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1alpha1", "served": True, "referenceable": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.wild.example.org"},
        "spec": {
            "scope": "Cluster",
            "group": "wild.example.org",
            "names": {"kind": f"X{kind}", "plural": plural},
            "versions": [version],
        },
    }


def postgres() -> Schema:
    """Everything below ``parameters``, with fields of a provider and a password among them."""
    network = group(vpcId=TEXT, subnetIds={"type": "array", "items": TEXT}, deletionPolicy=TEXT)
    parameters = group(
        "region",
        "diskSizeGb",
        region={**TEXT, "enum": ["eu", "us"]},
        diskSizeGb={**NUMBER, "format": "int64", "minimum": 10, "maximum": 2**63 - 1},
        adminPassword=TEXT,
        adminPasswordSecretRef=group(name=TEXT, key=TEXT),
        deletionPolicy={**TEXT, "enum": ["Delete", "Orphan"], "default": "Delete"},
        providerConfigName={**TEXT, "default": "default"},
        managementPolicies={"type": "array", "items": TEXT},
        network=network,
    )
    connection = group(name=TEXT, namespace=TEXT)
    return group("parameters", parameters=parameters, writeConnectionSecretToRef=connection)


def fleet() -> Schema:
    """258 values, as XRDs have that repeat a provider's whole schema."""
    deep = group(enabled={"type": "boolean"}, mode=TEXT, copies=NUMBER)
    inner = group(**{f"setting{n:02d}": TEXT for n in range(18)}, advancedMode=deep)
    names = ("compute", "storage", "network", "backup", "logging", "alerts")
    more = ("cache", "queue", "dns", "tls", "audit", "quota")
    scalars: dict[str, Schema] = {
        "region": {**TEXT, "enum": ["eu", "us"]},
        "vmCount": {**NUMBER, "minimum": 1, "description": "How many machines there are."},
        "osImage": {**TEXT, "default": "debian-13"},
        "publicUrl": TEXT,
        "monitoring": {"type": "boolean"},
        "zone": TEXT,
    }
    groups = dict.fromkeys((*names, *more), inner)
    return group("parameters", parameters=group("region", "vmCount", **scalars, **groups))


SPECS = {
    "Postgres": postgres(),
    "Fleet": fleet(),
}
RARE_TEXT = """\
tls:
  setting00: strict
  advancedMode: {enabled: true, copies: 3}
quota: {setting01: '1.0'}
"""
"""What somebody enters as YAML for a fleet, for fields without an input of their own."""
RARE = {
    "tls": {"setting00": "strict", "advancedMode": {"enabled": True, "copies": 3}},
    "quota": {"setting01": "1.0"},
}
"""The same in the XR."""


def imported_pack(folder: Path) -> Path:
    """Write a pack with all of them as ``kit import`` makes it."""
    pack = folder / "pack"
    assert run(["init", str(pack), "--no-git"]) == 0
    for kind in SPECS:
        import_kit(kind, pack, folder)
    return pack


def import_kit(kind: str, pack: Path, folder: Path) -> None:
    """Import one of them into a pack; its XRD is written to `folder`."""
    file = folder / f"{kind.lower()}.yaml"
    file.write_text(yaml11.dump(wild_xrd(kind, SPECS[kind])))
    assert run(["kit", "import", str(file), "--pack", str(pack)]) == 0


def fleet_parameters(up: Up, team: str, order: str) -> Any:
    """Return what the XR of an ordered fleet holds, as it is in its repository."""
    repo = RepoId(team, order)
    head = up.platform.forge.head(repo)
    assert head is not None
    path = PurePosixPath("manifests/xfleet.yaml")
    file = up.platform.forge.read(repo, path, head)
    assert file is not None
    (xr,) = parse_manifests(path.name, file.data)
    return xr["spec"]["parameters"]
