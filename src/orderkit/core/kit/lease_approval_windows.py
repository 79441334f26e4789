"""``lease``, ``approval`` and ``windows`` of kit.yaml as values, with all defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NEVER = "never"
"""The default of a lease that an order gets only when somebody extends it."""
DEFAULT_WARNINGS = ("24h", "1h")
"""When an order's people are warned before its lease ends, unless the kit says otherwise."""


Values = Mapping[str, str | int | float | bool]
"""Values of fields of the XR, by dotted path."""


@dataclass(frozen=True, slots=True)
class Nightly:
    """Values that a kit's orders get each night, by a change that is committed directly."""

    at: str
    """``20:00``, by the clock of `zone`."""
    zone: str
    values: Values
    unless: Values
    """An order with these values is left alone; empty: none is."""


@dataclass(frozen=True, slots=True)
class Lease:
    """How long an order lives, in durations such as ``30d``."""

    is_declared: bool = False
    """Whether the kit has leases at all; otherwise orders live until somebody ends them."""
    default: str = ""
    """How long an order lives unless its `term_field` says so; empty: until it is given a lease."""
    maximum: str = ""
    """How long an order lives at most, extensions included; empty: as long as it is extended."""
    term_field: str = ""
    """The field of the XR that says how long, when the order is placed; empty: none."""
    extend_by: str = ""
    """The longest extension; empty: up to the maximum."""
    extend_times: int | None = None
    """How often it may be extended; None: any number of times."""
    warn: tuple[str, ...] = DEFAULT_WARNINGS
    """How long before its expiry warnings are recorded."""
    then: Literal["end", "pause"] = "end"
    pause: Values = field(default_factory=dict)
    """The values that pause an order."""
    grace: str = ""
    """Between the expiry and what follows; empty: none."""
    exempt_teams: tuple[str, ...] = ()
    """Teams whose orders have no expiry, and no nights: ``except`` in kit.yaml."""
    nightly: Nightly | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """Who has to agree to an order or a change for which a condition holds."""

    when: str
    """A CEL condition over ``old``, ``new``, ``cost``, ``requester`` and ``order``."""
    by: tuple[str, ...]
    """``team``, ``platform`` or references of people and groups; any of them."""
    count: int = 1
    """How many different people."""
    because: str = ""
    within: str = ""
    """How long ago is what a change is compared with, besides what is delivered; empty: not."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What needs approval, and what becomes of what bypasses it."""

    rules: tuple[ApprovalRule, ...] = ()
    bypass: Literal["refuse", "report"] = "refuse"
    """``refuse``: it is not delivered; ``report``: it is delivered and reported."""


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """When changes of a kit's orders are delivered; others wait."""

    days: tuple[str, ...]
    """``mon`` to ``sun``."""
    start: str
    """``22:00``, by the clock of `zone`."""
    end: str
    """Before `start`: on the next day."""
    zone: str


def lease_of(entry: Mapping[str, Any]) -> Lease:
    """Return ``lease`` of a kit.yaml that was checked, with all defaults."""
    extend = entry.get("extend", {})
    default = entry.get("default") or ("" if "field" in entry else entry.get("maximum", ""))
    return Lease(
        is_declared=bool(entry),
        default="" if default == NEVER else default,
        maximum=entry.get("maximum", ""),
        term_field=entry.get("field", ""),
        extend_by=extend.get("by", ""),
        extend_times=extend.get("times"),
        warn=tuple(entry.get("warn", DEFAULT_WARNINGS)),
        then=entry.get("then", "end"),
        pause=entry.get("pause", {}),
        grace=entry.get("grace", ""),
        exempt_teams=tuple(entry.get("except", ())),
        nightly=_nightly(entry.get("nightly")),
    )


def approval_of(entry: Mapping[str, Any]) -> Approval:
    """Return ``approval`` of a kit.yaml that was checked, with all defaults."""
    rules = tuple(
        ApprovalRule(
            rule["when"],
            tuple(rule["by"]),
            rule.get("count", 1),
            rule["because"],
            rule.get("within", ""),
        )
        for rule in entry.get("rules", ())
    )
    return Approval(rules, entry.get("bypass", "refuse"))


def windows_of(entries: Iterable[Mapping[str, Any]]) -> tuple[MaintenanceWindow, ...]:
    """Return ``windows`` of a kit.yaml that was checked."""
    return tuple(
        MaintenanceWindow(
            tuple(entry["days"]), entry["from"], entry["to"], entry.get("zone", "UTC")
        )
        for entry in entries
    )


def _nightly(entry: Mapping[str, Any] | None) -> Nightly | None:
    if not entry:
        return None
    return Nightly(entry["at"], entry.get("zone", "UTC"), entry["set"], entry.get("unless", {}))
