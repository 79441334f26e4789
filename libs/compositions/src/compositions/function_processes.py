"""
Composition functions that run as processes of their own, and their addresses.

Three sources: ``platform.yaml`` (``spec.plans.functions``), the option ``--function``, and the
annotations with which ``crossplane render`` finds functions under development. This module contacts
nothing. Used by plans and ``kit test``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest, annotations_of, metadata

__all__ = [
    "SCHEMA",
    "FunctionProcess",
    "development_processes",
    "processes_of",
    "processes_spec",
    "read_processes",
]

CALL_S = 20.0
"""The default timeout of a call. Crossplane allows 120 s for a whole reconcile."""
_CALL_MAX_S = 120
_ADDRESS = r"(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}"
_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_RUNTIME = "render.crossplane.io/runtime"
_TARGET = "render.crossplane.io/runtime-development-target"
_TARGET_DEFAULT = "localhost:9443"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_NAME}$"},
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "required": ["address"],
        "properties": {
            "address": {"type": "string", "pattern": f"^{_ADDRESS}$"},
            "certificates": {"type": "string", "minLength": 1},
            "timeoutSeconds": {
                "type": "number", "exclusiveMinimum": 0, "maximum": _CALL_MAX_S
            },
        },
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FunctionProcess:
    """A running function, by the name that steps use."""

    name: str
    address: str
    """HOST:PORT."""
    certificates: PurePath | None = None
    """Folder with tls.crt, tls.key and ca.crt; None: plain text."""
    timeout_s: float = CALL_S
    is_asked: bool = False
    """Named on the command line: then it is an error if no step calls it."""


def read_processes(
    spec: Mapping[str, Mapping[str, Any]], path: Callable[[str], PurePath]
) -> tuple[FunctionProcess, ...]:
    """Read what `SCHEMA` describes; `path` makes a path of a text."""
    return tuple(
        FunctionProcess(
            name,
            entry["address"],
            path(entry["certificates"]) if "certificates" in entry else None,
            float(entry.get("timeoutSeconds", CALL_S)),
        )
        for name, entry in spec.items()
    )


def processes_spec(processes: Iterable[FunctionProcess]) -> dict[str, dict[str, Any]]:
    """Return them as `SCHEMA` describes, without default values."""
    entries: dict[str, dict[str, Any]] = {}
    for process in processes:
        entries[process.name] = {"address": process.address}
        if process.certificates is not None:
            entries[process.name]["certificates"] = str(process.certificates)
        if process.timeout_s != CALL_S:
            entries[process.name]["timeoutSeconds"] = process.timeout_s
    return entries


def processes_of(texts: Iterable[str]) -> tuple[FunctionProcess, ...]:
    """
    Parse values of ``--function``: NAME=HOST:PORT.

    Raises:
        InvalidInputError: A value has another form.
    """
    return tuple(_process_of(text) for text in texts)


def _process_of(text: str) -> FunctionProcess:
    name, _, address = text.partition("=")
    if not re.fullmatch(_NAME, name) or not re.fullmatch(_ADDRESS, address):
        raise InvalidInputError(
            "--function",
            text,
            "is not a NAME=HOST:PORT",
            hint="for example function-go-templating=127.0.0.1:9443",
        )
    return FunctionProcess(name, address, is_asked=True)


def development_processes(manifests: Iterable[Manifest]) -> Iterator[FunctionProcess]:
    """Yield the functions whose annotations mark them as running for ``crossplane render``."""
    for manifest in manifests:
        marks = annotations_of(manifest)
        if marks.get(_RUNTIME) == "Development":
            target = marks.get(_TARGET) or _TARGET_DEFAULT
            address = target.removeprefix("dns:///")
            yield FunctionProcess(str(metadata(manifest).get("name", "")), address)
