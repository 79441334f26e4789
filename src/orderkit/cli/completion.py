"""
What the shell offers for orders, kits and fields when Tab is pressed (click's shell completion).

The platform is asked, for at most `_ASKING_S`. Whatever goes wrong offers nothing and says nothing.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform

_ASKING_S = 5.0
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@%+=,-]*")
"""Words that every shell takes literally."""


def orders(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the ids of the live orders."""
    return _beginning(incomplete, lambda: _orders(_platform(ctx)))


def teams(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the teams of the ledger."""

    def names() -> Iterable[str]:
        from orderkit.core.order import ledger
        from orderkit.flows.platform import ledger_snapshot

        return list(ledger.teams(ledger_snapshot(_platform(ctx)).blobs))

    return _beginning(incomplete, names)


def campaigns(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the campaigns of the ledger."""

    def names() -> Iterable[str]:
        from orderkit.core.campaign.definition import names_in
        from orderkit.flows.platform import ledger_snapshot

        return names_in(iter(ledger_snapshot(_platform(ctx)).blobs))

    return _beginning(incomplete, names)


def phases(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the phases of orders."""
    from orderkit.core.order.order_view import PHASES_BY_URGENCY

    typed = incomplete.lower()
    return [phase for phase in PHASES_BY_URGENCY if phase.lower().startswith(typed)]


def kits(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the kits of the platform's pack."""
    return _beginning(incomplete, lambda: _kits(_platform(ctx)))


def kits_of_pack(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the kits of the pack in ``--pack``, else in the current folder."""

    def names() -> Iterable[str]:
        from orderkit.core.kit.pack import read_pack

        return read_pack(ctx.params["pack"].files()).kit_names

    return _beginning(incomplete, names)


def form_fields(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer ``FIELD=`` of a kit's form, ``FIELD=VALUE`` where it has choices."""

    def assignments() -> Iterable[str]:
        from orderkit.flows.template.published_templates import kit_template

        template = kit_template(_platform(ctx), ctx.params["kit"]).template
        return _assignments(template.properties)

    return _beginning(incomplete, assignments)


def order_fields(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer ``FIELD=`` of an order's XR, ``FIELD=VALUE`` where it has choices."""

    def assignments() -> Iterable[str]:
        from orderkit.core.order.ledger import named_kit
        from orderkit.flows.platform import published_kit

        platform = _platform(ctx)
        kit = published_kit(platform, named_kit(ctx.params["order"], _kits(platform)))
        return _assignments(kit.spec_schema.get("properties") or {})

    return _beginning(incomplete, assignments)


def _assignments(schemas: dict[str, Any]) -> Iterable[str]:
    for name, schema in schemas.items():
        choices = schema.get("enum") or ("",)
        yield from (f"{name}={choice}" for choice in choices)
        for inner in schema.get("properties") or {}:
            yield f"{name}.{inner}="


def _orders(platform: Platform) -> Iterable[str]:
    from orderkit.core.order import ledger
    from orderkit.flows.platform import ledger_snapshot

    return [entry.order for entry in ledger.entries(ledger_snapshot(platform).blobs)]


def _kits(platform: Platform) -> Iterable[str]:
    from orderkit.flows.platform import published_pack

    return published_pack(platform).kit_names


def _platform(ctx: click.Context) -> Platform:
    from orderkit.cli.options import connect_to

    return connect_to(ctx.params.get("platform_file"))


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    """Return the plain names that begin with what was typed; none if they are not known in time."""
    matching: list[str] = []

    def ask() -> None:
        with contextlib.suppress(Exception):  # a shell has no place for errors while somebody types
            # plain words only: shells put what is offered into the command line as it is, and would
            # run a $(…) in it
            matching.extend(
                name for name in names() if name.startswith(incomplete) and _PLAIN.fullmatch(name)
            )

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_ASKING_S)
    return [] if asking.is_alive() else matching
