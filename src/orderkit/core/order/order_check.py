"""
Check an order's files against its kit before anything is written.

The XR in ``manifests/`` must have the kit's kind and the right name, and ``kubeschema.validate``
must accept it; all findings are raised. Rules that cannot be evaluated here are left to the API
server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, raise_problems
from ground.names import OrderId
from ground.objects.kube_objects import Kind, Manifest, metadata
from kubeschema.field_paths import value_at
from kubeschema.validate import Validator
from orderkit.core.kit.compositions import choice_findings
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_file import MANIFESTS
from yamlfiles.manifests import parse_manifests

_LINE_BREAKS = re.compile("\x85|\u2028|\u2029".encode())


def check_order_files(
    kit: Kit,
    order: OrderId,
    files: Mapping[PurePosixPath, bytes],
    validator: Validator | None = None,
) -> Manifest:
    """
    Return the order's XR, proved to fit its XRD.

    Args:
        validator: The kit's validator, if the caller has one already.

    Raises:
        InvalidInputError: No XR or more than one, another name, or a value the XRD refuses.
        SeveralProblemsError: The XRD refuses several values.
        ManifestError: A file below ``manifests/`` is not a readable manifest.
    """
    _check_breaks(files)
    xr = _only_xr(kit, files)
    _check_name(kit, order, xr)
    raise_problems(
        [
            InvalidInputError(
                _field(kit, finding.path),
                value_at(xr, finding.path),
                f"is refused: {finding.message}",
                hint=finding.hint,
            )
            for finding in (
                *(validator or Validator(kit.xrd)).check(xr).findings,
                *choice_findings(kit, xr),
            )
        ]
    )
    return xr


def _check_breaks(files: Mapping[PurePosixPath, bytes]) -> None:
    """Refuse characters that some YAML readers treat as line breaks and replace by spaces."""
    for path, data in files.items():
        match = _LINE_BREAKS.search(data) if path.suffix in (".yaml", ".yml") else None
        if match:
            raise InvalidInputError(
                str(path),
                match[0].decode(),
                "is a line break for some YAML readers, so the text would change",
                hint="write a normal line break or a space",
            )


def _check_name(kit: Kit, order: OrderId, xr: Manifest) -> None:
    """Refuse an XR whose name or namespace is not the one that kit.yaml prescribes."""
    spec = xr.get("spec") or {}
    expected, name = kit.xr_name_of(order, spec), metadata(xr).get("name")
    if name != expected:
        origin = "the order's id" if kit.xr_name == "order" else kit.xr_name
        raise InvalidInputError(
            "metadata.name",
            name,
            f"is not {origin} '{expected}'",
            hint=f"metadata.name: {expected}",
        )
    home = kit.namespace_of(spec)
    namespace = metadata(xr).get("namespace")
    if home and namespace != home:
        raise InvalidInputError(
            "metadata.namespace",
            namespace,
            f"is not '{home}', the namespace of this order",
            hint=f"metadata.namespace: {home}",
        )


def _only_xr(kit: Kit, files: Mapping[PurePosixPath, bytes]) -> Manifest:
    xrs = [
        manifest
        for path in sorted(files)
        if path.is_relative_to(MANIFESTS) and path.suffix in (".yaml", ".yml", ".json")
        for manifest in parse_manifests(str(path), files[path])
        if Kind.of(manifest) == kit.kind
    ]
    if len(xrs) != 1:
        raise InvalidInputError(
            "manifests/",
            len(xrs),
            f"objects of {kit.kind}; an order has exactly one",
            hint=f"keep one {kit.kind} in manifests/, and order the others with 'orderkit order'",
        )
    return xrs[0]


def _field(kit: Kit, path: str) -> str:
    """Return the form parameter of a field if it has another name than the XRD property."""
    name = path.removeprefix("spec.")
    return kit.parameter(name) if name in kit.aliases else path
