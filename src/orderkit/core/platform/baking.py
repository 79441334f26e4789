"""
Bake a platform's values into a pack's files.

A pack knows no installation: where one is needed it has a sentinel such as
``__ORDERKIT_FORGE_URL__``, which the form's guard patterns and Kubernetes refuse. Publishing
the pack to a platform replaces each of them by plain text. Values are limited to characters
that need no quoting in YAML, JSON or a URL, so replacing cannot change a file's structure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import Files

NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"
"""Allowed names of values."""
SENTINEL = re.compile(rf"__ORDERKIT_({NAME})__".encode())
_LIKE = re.compile(rb"__ORDERKIT_[A-Za-z0-9_]{1,40}__")
SAFE = r"[A-Za-z0-9][A-Za-z0-9._:/-]*"
"""Allowed values: text that needs no quotes anywhere."""
_SAFE = re.compile(rf"{SAFE}(@sha256:[0-9a-f]{{64}})?\Z")
"""The same, and a release with its digest."""
BUILT_IN: Mapping[str, str] = {
    "FORGE_URL": "address of the forge",
    "FORGE_HOST": "the same without its scheme, as Backstage's `repoUrl` wants it",
    "PACK_COMMIT": "commit of the pack that was published",
    "REGISTRY": "registry of the pinned packages and images",
    "SERVICE_URL": "address of Orderkit's service as browsers reach it",
    "PORTAL_URL": "address of the portal as browsers reach it",
    "CLUSTER_NAME": "what the portal calls the cluster (profile `job`)",
    "PACK_REPOSITORY": "owner and name of the pack's repository on the forge",
    "LEDGER_REPOSITORY": "owner and name of the ledger's repository on the forge",
    "CROSSPLANE_ACCOUNT": "user as which Crossplane writes to the API server",
    "ARGOCD_ACCOUNT": "user as which Argo CD's controller writes to the API server",
    "CROSSPLANE_CHARTS": "chart repository of Crossplane, where the platform installs it",
}
"""Values that every platform has, and what each is; platform.yaml may add others."""
VERSION = "VERSION_"
"""Prefix of the values from ``spec.versions`` of pack.yaml."""
BAKED_FOLDERS = ("templates", "day2", "gitops")
"""Files that may contain sentinels. Other files are published unchanged."""


def bake(files: Files, values: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    """
    Replace every sentinel below the baked folders.

    Args:
        values: By the sentinel's inner name, for example ``FORGE_URL``.

    Raises:
        InvalidInputError: A sentinel has no value, a value has unsafe characters, or something
            that looks like a sentinel would be left.
    """
    for name, value in values.items():
        if not _SAFE.match(value):
            raise InvalidInputError(
                name, value, "may hold letters, digits and . _ : / - only, because it is baked"
            )
    return {
        path: _bake_one(path, data, values) if path.parts[0] in BAKED_FOLDERS else data
        for path, data in files.items()
    }


def _bake_one(path: PurePosixPath, data: bytes, values: Mapping[str, str]) -> bytes:
    def value(match: re.Match[bytes]) -> bytes:
        name = match[1].decode()
        if name not in values:
            raise InvalidInputError(
                where(match),
                match[0].decode(),
                "is a sentinel this platform has no value for",
                hint=_hint(name, values),
            )
        return values[name].encode()

    def where(match: re.Match[bytes]) -> str:
        return f"{path}:{match.string.count(bytes([10]), 0, match.start()) + 1}"

    baked = SENTINEL.sub(value, data)
    unbaked = _LIKE.search(baked)
    if unbaked is not None:
        raise InvalidInputError(
            where(unbaked),
            unbaked[0].decode(),
            "looks like a sentinel and is none",
            hint="write __ORDERKIT_NAME__ in capitals",
        )
    return baked


def _hint(name: str, values: Mapping[str, str]) -> str:
    if name.startswith(VERSION):
        pin = name.removeprefix(VERSION).lower().replace("_", "-")
        return f"pin {pin} in spec.versions of pack.yaml"
    return (
        f"give it as spec.values.{name} in platform.yaml, or to 'orderkit up' as"
        f" --value {name}=TEXT; values: {', '.join(sorted(values))}"
    )
