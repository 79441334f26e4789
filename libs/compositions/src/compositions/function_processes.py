"""
Composition functions that run as processes of their own, and their addresses.

Three sources: ``platform.yaml`` (``spec.plans.functions``), the option ``--function``, and the
annotations with which ``crossplane render`` finds functions under development. This module contacts
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from msgspec import Meta

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest, annotations_of, metadata
from ground.shapes import StrictShape

__all__ = [
    "FunctionAddress",
    "FunctionAddresses",
    "FunctionProcess",
    "development_processes",
    "processes_of",
    "read_processes",
]

CALL_S = 20.0
"""The default timeout of a call. Crossplane allows 120 s for a whole reconcile."""
_CALL_MAX_S = 120
"""The time that Crossplane allows for a whole reconcile."""
_ADDRESS = r"(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}"
_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_RUNTIME = "render.crossplane.io/runtime"
_TARGET = "render.crossplane.io/runtime-development-target"
_TARGET_DEFAULT = "localhost:9443"


class FunctionAddress(StrictShape, frozen=True):
    """Where a function runs, as platform.yaml says it."""

    address: Annotated[str, Meta(pattern=f"^{_ADDRESS}$")]
    """HOST:PORT."""
    certificates: PurePath | None = None
    """Folder with tls.crt, tls.key and ca.crt; None: plain text."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=_CALL_MAX_S)] = CALL_S


FunctionAddresses = Annotated[
    Mapping[str, FunctionAddress],
    Meta(extra_json_schema={"propertyNames": {"pattern": f"^{_NAME}$"}}),
]
"""By the name that steps use."""


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


def read_processes(addresses: Mapping[str, FunctionAddress]) -> tuple[FunctionProcess, ...]:
    """Return the functions of platform.yaml."""
    return tuple(
        FunctionProcess(name, at.address, at.certificates, at.timeout_seconds)
        for name, at in addresses.items()
    )


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
