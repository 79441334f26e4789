"""``orderkit support-bundle``: an archive for whoever helps you, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import PathOption, connect_to, json_option, platform_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_ORDERS_WITH_EVENTS = 20
_LOG_BYTES = 1_000_000
"""The end of each log."""


@click.command("support-bundle", short_help="Write an archive for support, without secrets.")
@click.argument("file", metavar="FILE.tar.gz", type=PathOption(dir_okay=False))
@click.option(
    "--log",
    "logs",
    type=PathOption(exists=True, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Add the end of this log, for example the service's. Repeatable.",
)
@platform_option
@json_option
def support_bundle_command(
    file: Path, logs: tuple[Path, ...], platform_file: str | None, as_json: bool
) -> int:
    """
    Write versions, checks, settings, orders, events and logs into FILE.

    Secrets that Orderkit knows are masked; addresses of channels are cut. What cannot be read is
    named in errors.json. Look into the archive before you send it.

    Example: orderkit support-bundle support.tar.gz --log service.log
    """
    from orderkit.cli.output import emit_json

    errors: dict[str, str] = {}
    parts = {**_gathered(platform_file, errors), **_ends(logs)}
    if errors:
        parts["errors.json"] = _json(errors)
    _write(file, parts)
    if as_json:
        emit_json(
            "orderkit.support-bundle/v1",
            {"file": str(file), "parts": sorted(parts), "errors": errors},
        )
    else:
        say(f"{file}: {', '.join(sorted(parts))}")
    return 0


def _gathered(platform_file: str | None, errors: dict[str, str]) -> dict[str, str]:
    """Return the parts that can be made; what cannot is a part of the finding."""
    from ground.errors import OrderkitError

    makers: Mapping[str, Callable[[str | None], str]] = {
        "doctor.json": _doctor,
        "platform.yaml": _settings,
        "orders.json": _orders,
        "events.json": _events,
    }
    parts = {"versions.json": _versions()}
    for name, make in makers.items():
        try:
            parts[name] = make(platform_file)
        except (OrderkitError, OSError) as error:
            errors[name] = str(error)
    return parts


def _versions() -> str:
    import importlib.metadata
    import platform
    import sys

    installed = {
        found.name: found.version for found in importlib.metadata.distributions() if found.name
    }
    return _json(
        {
            "orderkit": installed.get("orderkit"),
            "python": sys.version,
            "system": platform.platform(),
            "distributions": dict(sorted(installed.items())),
        }
    )


def _doctor(platform_file: str | None) -> str:
    from orderkit.cli.commands.doctor import findings, row

    return _json([row(finding) for finding in findings(platform_file)])


def _settings(platform_file: str | None) -> str:
    from orderkit.cli.connecting import settings_path
    from orderkit.core.platform.settings import redacted

    path = settings_path(platform_file)
    return redacted(path.read_text(encoding="utf-8"), name=str(path))


def _rows(platform_file: str | None) -> Sequence[Mapping[str, Any]]:
    from orderkit.core.order.order_view import OrderQuery
    from orderkit.flows.order.order_watch import selected_orders

    return selected_orders(connect_to(platform_file, reads_only=True), OrderQuery())


def _orders(platform_file: str | None) -> str:
    from collections import Counter

    rows = _rows(platform_file)
    phases = Counter(row["phase"] for row in rows)
    return _json({"phases": dict(phases), "orders": list(rows)})


def _events(platform_file: str | None) -> str:
    """Return the events of some orders, first those that are not Ready."""
    from ground.errors import OrderkitError
    from orderkit.flows.order.order_objects import order_events

    platform, told = connect_to(platform_file, reads_only=True), {}
    rows = sorted(_rows(platform_file), key=lambda row: row["phase"] == "Ready")
    for order in [row["order"] for row in rows[:_ORDERS_WITH_EVENTS]]:
        try:
            told[order] = [event.to_json() for event in order_events(platform, order, limit=50)]
        except OrderkitError as error:
            told[order] = [{"error": str(error)}]
    return _json(told)


def _ends(logs: Sequence[Path]) -> dict[str, str]:
    def end(path: Path) -> str:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _LOG_BYTES))
            text = stream.read().decode(errors="replace")
        return text.partition("\n")[2] if size > _LOG_BYTES else text

    return {f"logs/{number}-{path.name}": end(path) for number, path in enumerate(logs, 1)}


def _json(value: object) -> str:
    import json

    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def _write(file: Path, parts: Mapping[str, str]) -> None:
    """Write the archive for its owner only, whole or not at all; every part is masked."""
    import io
    import os
    import tarfile
    import time

    from ground.secrets import redact

    def entries() -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        for name, text in sorted(parts.items()):
            data = redact(text).encode(errors="replace")
            info = tarfile.TarInfo(f"orderkit-support/{name}")
            info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
            yield info, data

    new = file.with_name(f".{file.name}.new")
    # made anew: what lies there could be a link, or readable to others
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with (
        os.fdopen(descriptor, "wb") as stream,
        tarfile.open(fileobj=stream, mode="w:gz") as archive,
    ):
        for info, data in entries():
            archive.addfile(info, io.BytesIO(data))
    new.replace(file)
