"""
Check a kit: its files, its XRD and Composition, and what its pipeline does when it runs.

`check_kit` returns findings with file, line, rule and advice; the rules are in one table
(``rule_codes.KitRule``). Stations run as the caller has loaded them.

Done elsewhere: reading the pack's folder, and the second process that proves stations deterministic
(``stories.check_kits``). Not done: the API server's verdict on composed resources.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubeschema.validate.findings import FindingSeverity, Located
from orderkit_workshop.check.file_checks import (
    DEFAULT_STYLE,
    check_generated,
    check_prices,
    check_style,
)
from orderkit_workshop.check.interface_checks import (
    check_changes,
    check_definition,
    check_form_patterns,
    check_hand_written_form,
    check_import,
    check_kit_yaml,
    check_public_keys,
    check_readable,
    check_visible,
)
from orderkit_workshop.check.kind_checks import check_rights, check_schema_files
from orderkit_workshop.check.kit_under_check import KitUnderCheck, PackFacts
from orderkit_workshop.check.layer_checks import check_layers, layer_orders
from orderkit_workshop.check.pipeline_run_checks import check_behaviour
from orderkit_workshop.check.pipeline_text_checks import check_compositions, check_station_sources
from orderkit_workshop.check.rule_codes import Coded, KitRule
from orderkit_workshop.check.trial_runs import Run, orders_of, runs_of

__all__ = [
    "DEFAULT_STYLE",
    "Checked",
    "KitRule",
    "KitUnderCheck",
    "PackFacts",
    "check_kit",
    "try_kit",
]


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of one kit, sorted by file and line, and the runs that led to them."""

    kit: str
    findings: tuple[Located, ...]
    runs: tuple[Run, ...]


def check_kit(subject: KitUnderCheck, *, style: str = DEFAULT_STYLE) -> Checked:
    """
    Check one kit by every rule that needs only one process.

    Args:
        style: A yamllint configuration.

    Raises:
        ValueError: `style` is not a valid configuration.
    """
    findings = [*check_kit_yaml(subject), *check_definition(subject), *check_compositions(subject)]
    findings += [entry for entry in subject.pack.unreadable if _is_ours(subject, entry)]
    runs: list[Run] = []
    kit = subject.kit
    if kit is None:
        explained = any(is_error(entry) for entry in findings)
        findings += () if explained else check_readable(subject)
    else:
        findings += [*check_generated(subject, kit), *check_hand_written_form(subject, kit)]
        findings += [*check_changes(subject, kit), *check_visible(subject, kit)]
        findings += check_schema_files(subject, kit)
        orders = orders_of(subject, kit)
        all_orders = [*orders.orders, *layer_orders(subject, kit, orders.orders)]
        runs = runs_of(subject, all_orders)
        findings += [*orders.findings, *check_import(subject, kit, orders.orders)]
        findings += [*check_behaviour(subject, kit, runs), *check_rights(subject, kit, runs)]
        findings += [*check_layers(subject, kit), *check_public_keys(subject, kit, runs)]
    findings += [*check_station_sources(subject), *check_style(subject, style)]
    findings += [*check_form_patterns(subject), *check_prices(subject)]
    findings.sort(key=_order)
    return Checked(subject.name, tuple(dict.fromkeys(findings)), tuple(runs))


def try_kit(subject: KitUnderCheck) -> tuple[Run, ...]:
    """Run the kit's pipeline for its examples without checks; empty if it is unreadable."""
    if subject.kit is None:
        return ()
    return tuple(runs_of(subject, orders_of(subject, subject.kit).orders, twice=False))


def is_error(entry: Located) -> bool:
    """Say whether a finding fails the check."""
    rule = getattr(entry.about, "reason", None)
    return isinstance(rule, Coded) and rule.severity is FindingSeverity.ERROR


def _is_ours(subject: KitUnderCheck, entry: Located) -> bool:
    return str(entry.file).startswith(f"{subject.room}/")


def _order(entry: Located) -> tuple[str, int, int, str]:
    return str(entry.file), entry.line or 0, entry.column or 0, str(entry.about)
