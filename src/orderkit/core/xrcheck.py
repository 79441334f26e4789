"""
Check an order's files against its kit before anything is written.

The XR among ``manifests/`` must be of the kit's kind, bear the order's name, and hold only
values its XRD accepts: wrong type, unknown field, pattern, enum. CEL rules are left to the API
server for now. Called by the ordering flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from orderkit.core import structural
from orderkit.core.errors import InvalidInputError
from orderkit.core.manifests import parse_manifests
from orderkit.core.names import OrderId
from orderkit.core.objects import Kind, Manifest, dig, metadata
from orderkit.core.pack import Kit

MANIFESTS = PurePosixPath("manifests")


def check_order_files(kit: Kit, order: OrderId, files: Mapping[PurePosixPath, bytes]) -> Manifest:
    """
    Return the order's XR, proved to fit its XRD.

    Raises:
        InvalidInputError: No XR or more than one, another name, or a value the XRD refuses.
        ManifestError: A file below ``manifests/`` is no readable manifest.
    """
    xr = _only_xr(kit, files)
    if metadata(xr).get("name") != order:
        raise InvalidInputError(
            "metadata.name", metadata(xr).get("name"), f"is not the order's id '{order}'"
        )
    schema, spec = kit.spec_schema, xr.get("spec", {})
    _, unknown = structural.prune(schema, spec)
    if unknown:
        raise InvalidInputError(
            f"spec.{unknown[0]}",
            "",
            f"is no field of {kit.kind}",
            hint=f"fields: {', '.join(schema.get('properties', ()))}",
        )
    for problem in structural.problems(schema, spec):
        value = dig(spec, *problem.path.split("."))
        raise InvalidInputError(_field(kit, problem.path), value, f"is refused: {problem.message}")
    return xr


def _only_xr(kit: Kit, files: Mapping[PurePosixPath, bytes]) -> Manifest:
    found = [
        manifest
        for path in sorted(files)
        if path.is_relative_to(MANIFESTS) and path.suffix in (".yaml", ".yml", ".json")
        for manifest in parse_manifests(str(path), files[path])
        if Kind.of(manifest) == kit.kind
    ]
    if len(found) != 1:
        raise InvalidInputError(
            "manifests/", len(found), f"objects of {kit.kind}: an order has exactly one"
        )
    return found[0]


def _field(kit: Kit, path: str) -> str:
    """Name the form parameter where the XRD property has one of its own."""
    return kit.parameter(path) if path in kit.aliases else f"spec.{path}"
