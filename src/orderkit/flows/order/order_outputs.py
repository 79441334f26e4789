"""
Read what an order was made for: its outputs, for programs, and its secret outputs on request.

A Secret is read only if it is the order's own: whoever pushes values may choose its name.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import Manifest, ObjectKey, controller, dig, metadata
from ground.secrets import register
from ground.suggestions import did_you_mean
from orderkit.core.kit.kit_file_parts import Connection, KitOutput
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_summary import filled
from orderkit.core.secret_values import SECRET
from orderkit.flows.order import awaiting, order_report
from orderkit.flows.order.order_report import KnownReads, OrderReport
from orderkit.flows.order.tracing import secrets_of, trace_of
from orderkit.flows.platform import Platform, RepositorySnapshot, get_object
from orderkit.ports.cluster import Cluster

SECRET_MAX = 20_000
"""Characters of a secret output that people are shown."""
_VALUE_MAX = 20_000
"""Characters of an output for programs; a longer one is refused, because half of it is wrong."""


@dataclass(frozen=True, slots=True)
class OutputValue:
    """An output with its value as the status has it; None: it has none yet."""

    name: str
    value: Any
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class OrderOutputs:
    """The outputs of a Ready order, in the order of its kit."""

    report: OrderReport
    values: tuple[OutputValue, ...]
    withheld: tuple[str, ...]
    """Secret outputs that were not asked for."""


def outputs(platform: Platform, order: str, *, secrets: bool) -> OrderOutputs:
    """
    Return the outputs of a Ready order.

    Args:
        secrets: Read secret outputs, too; their values are never part of a message afterwards.

    Raises:
        NotReadyError, StuckOrderError, ApprovalError, EndedError, UnknownOrderError: It is not
            Ready, for this reason.
        RefusedError: A Secret is not the order's; or the status has a Secret's value in an output
            that is not declared secret, and secrets were not asked for.
        InvalidInputError: A value is too long, or is not a text in its Secret.
        AccessError: These credentials may not read a Secret.
    """
    report = awaiting.report_of(platform, order)
    awaiting.check_ready(report)
    kit, xr = report.declared, report.sources.xr
    declared = kit.outputs if kit else ()
    readable = [output for output in declared if secrets or not output.is_secret]
    withheld = tuple(output.name for output in declared if output not in readable)
    if xr is None:
        return OrderOutputs(report, (), withheld)
    values = tuple(_value(platform, report, output, xr, secrets=secrets) for output in readable)
    return OrderOutputs(report, values, withheld)


def _value(
    platform: Platform, report: OrderReport, output: KitOutput, xr: Manifest, *, secrets: bool
) -> OutputValue:
    if output.connection:
        value: Any = _secret_text(platform, report, output, output.connection, xr)
    else:
        value = dig(xr, "status", *output.path.split("."))
    if value is None:
        return OutputValue(output.name, None, output.is_secret)
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > _VALUE_MAX:
        raise InvalidInputError(
            "output", output.name, f"has {len(text)} characters, more than {_VALUE_MAX}",
            hint="look at the XR's status: a station or a provider wrote that",
        )  # fmt: skip
    is_secret = output.is_secret or _holds_secret(platform, report, text)
    if is_secret and not secrets:
        raise RefusedError(
            f"output '{output.name}' of {report.entry.order} has the value of a Secret in it",
            hint=f"declare it 'secret: true' in kit.yaml of {report.kit}, or, if everybody may see "
            "it, the Secret's key in secrets.public; --secrets reads it now",
        )
    if is_secret:
        register(text)
    return OutputValue(output.name, value, is_secret)


def _holds_secret(platform: Platform, report: OrderReport, text: str) -> bool:
    texts = report.secrets() if report.secrets else secrets_of(platform, report)
    return texts.in_text(text)


def reveal(
    platform: Platform,
    order: str,
    names: Iterable[str],
    ledger_files: RepositorySnapshot | None = None,
) -> dict[str, str | None]:
    """
    Return the values of secret outputs by name; None if one is not there yet.

    A Secret is read only if the order composes it, or if one of its parts owns it: its name may
    come from a value that somebody pushed.

    Raises:
        NotFoundError: No such order.
        InvalidInputError: The kit declares no such secret output, or its value is not a text.
        RefusedError: The Secret is not the order's.
    """
    report = order_report.status(platform, order, KnownReads(ledger_files))
    outputs = [_secret_output(report.declared, name) for name in names]
    xr = report.sources.xr
    return {
        output.name: None if xr is None else _revealed(platform, report, output, xr)
        for output in outputs
    }


def _revealed(
    platform: Platform, report: OrderReport, output: KitOutput, xr: Manifest
) -> str | None:
    if output.connection is None:
        value = dig(xr, "status", *output.path.split("."))
        return None if value is None else str(value)[:SECRET_MAX]
    text = _secret_text(platform, report, output, output.connection, xr)
    return None if text is None else text[:SECRET_MAX]


def _secret_text(
    platform: Platform, report: OrderReport, output: KitOutput, source: Connection, xr: Manifest
) -> str | None:
    # the order's own only: whoever pushes values may choose the Secret's name
    secret = _own_secret(platform, report, source, xr)
    encoded = dig(secret, "data", source.key)
    try:
        return None if encoded is None else base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidInputError("output", output.name, "is not a text in its Secret") from error


def _secret_output(kit: Kit | None, name: str) -> KitOutput:
    secret = {output.name: output for output in (kit.outputs if kit else ()) if output.is_secret}
    if name not in secret:
        hint = did_you_mean(name, secret, f"secret outputs: {', '.join(secret) or 'none'}")
        raise InvalidInputError("output", name, "is not a secret output of its kit", hint=hint)
    return secret[name]


def _own_secret(
    platform: Platform, report: OrderReport, source: Connection, xr: Manifest
) -> Manifest | None:
    name = filled(source.name, xr)
    parts = list(trace_of(platform, report).parts())
    composed = [key for key in parts if key.kind == SECRET and key.name == name]
    namespace = filled(source.namespace, xr) or str(metadata(xr).get("namespace") or "")
    keys = [key for key in composed if namespace in ("", key.namespace)]
    if keys:
        return get_object(platform.cluster, keys[0])
    secret = get_object(platform.cluster, ObjectKey(SECRET, name, namespace)) if namespace else None
    if secret is not None and not _is_owned(platform.cluster, secret, parts):
        raise RefusedError(
            f"Secret {namespace}/{name} is not one of {report.entry.order}",
            hint="an output names a Secret that the order composes, or that a part of it owns",
        )
    return secret


def _is_owned(cluster: Cluster, secret: Manifest, parts: list[ObjectKey]) -> bool:
    """Say whether one of the order's parts made a Secret, by its uid and not by its name."""
    owner = controller(secret)
    if owner is None:
        return False
    for key in parts:
        if (key.kind.kind, key.name) == (owner.get("kind"), owner.get("name")):
            resource = get_object(cluster, key)
            if resource is not None and metadata(resource).get("uid") == owner.get("uid"):
                return True
    return False
