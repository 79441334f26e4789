"""
The values that an order gets, worked out from its own. Pure.

Edits are whole values, never sums, and only of fields that differ: computed again after a change
that somebody else made meanwhile, they are right again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, every
from ground.objects.kube_objects import Manifest
from ground.objects.values import ABSENT, same, value_at
from kubeschema.cel.expressions import (
    METADATA_SCHEMA,
    Subject,
    condition,
    expression,
    plain_result,
)
from kubeschema.pruning import default
from orderkit.core.campaign.definition import Campaign, FieldValues
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import FieldEdit, resolve
from orderkit.core.order.ledger import OrderEntry

_TEXT = {"type": "string"}
_ORDER = {"properties": {"name": _TEXT, "team": _TEXT, "kit": _TEXT}}
Variables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Match:
    """Whether an order belongs to a campaign, and why not if that cannot be known."""

    holds: bool
    why: str = ""


@dataclass(frozen=True)
class Computer:
    """Evaluates the expressions of campaigns over the orders of one kit."""

    kit: Kit

    @cached_property
    def _subject(self) -> Subject:
        return Subject(
            {
                "spec": self.kit.spec_schema,
                "status": self.kit.status_schema,
                "metadata": METADATA_SCHEMA,
                "order": _ORDER,
            }
        )

    def variables(self, entry: OrderEntry, xr: Manifest, live: Manifest | None) -> Variables:
        """
        Return what expressions read: the XR with the XRD's defaults, and the order.

        Args:
            xr: As Git has it; its spec counts.
            live: As the cluster has it; its status and metadata count. None: it is not there.
        """
        return {
            "spec": default(self.kit.spec_schema, xr.get("spec") or {}),
            "status": (live or {}).get("status") or {},
            "metadata": (live or xr).get("metadata") or {},
            "order": {"name": entry.order, "team": entry.team, "kit": self.kit.name},
        }

    def matches(self, source: str, values: Variables) -> Match:
        """Say whether a condition holds for an order; an empty one always does."""
        if not source:
            return Match(holds=True)
        verdict = condition(source).judge(self._subject.values(values))
        return Match(verdict.holds, verdict.why_unknown)

    def check(self, campaign: Campaign) -> None:
        """
        Check a campaign's fields and expressions.

        Raises:
            InvalidInputError, SeveralProblemsError: An unknown field, or what is no expression.
        """
        at = f"campaigns/{campaign.name}.yaml: spec"
        problems: list[OrderkitError] = []
        conditions = (("which.where", campaign.which.where), ("gates.when", campaign.gates.when))
        for field, source in conditions:
            if source and (fault := self._subject.fault(source)):
                hint = "write a CEL condition over spec, status, metadata, order: spec.size > 3"
                problems.append(InvalidInputError(f"{at}.{field}", source, _rule(fault), hint=hint))
        fields = campaign.what.fields or FieldValues()
        for field, source in fields.compute.items():
            if fault := self._subject.fault(source, is_condition=False):
                hint = "write CEL over spec, status, metadata and order: spec.size * 2"
                name = f"{at}.what.fields.compute.{field}"
                problems.append(InvalidInputError(name, source, _rule(fault), hint=hint))
        names = (FieldEdit(name, "unset") for name in fields.named)
        every([partial(resolve, self.kit, edit) for edit in names], problems)

    def edits_of(
        self, fields: FieldValues, spec: Mapping[str, Any], values: Variables
    ) -> tuple[FieldEdit, ...]:
        """
        Return the edits that an order needs; empty if it has all values.

        Args:
            spec: The XR's own, without defaults.

        Raises:
            InvalidInputError, SeveralProblemsError: A value cannot be computed, or cannot grow.
        """
        edits = [FieldEdit(field, "set", value) for field, value in fields.set.items()]
        computed = every(
            [partial(self._computed, *pair, values) for pair in fields.compute.items()]
        )
        grown = every([partial(self._grown, *pair, values) for pair in fields.grow.items()])
        edits += [*computed, *(edit for found in grown for edit in found)]
        edits += [FieldEdit(field, "unset") for field in fields.remove]
        return tuple(edit for edit in edits if self._differs(edit, spec))

    def _differs(self, edit: FieldEdit, spec: Mapping[str, Any]) -> bool:
        target = resolve(self.kit, edit)
        now = value_at(spec, target.steps)
        return not same(now, target.result(now))

    def _computed(self, field: str, source: str, values: Variables) -> FieldEdit:
        bound = self._subject.values(values)
        why = bound if isinstance(bound, str) else ""
        if not isinstance(bound, str):
            outcome = expression(source).evaluate(bound)
            why = outcome.gap or outcome.error
            try:
                if not why:
                    return FieldEdit(field, "set", plain_result(outcome.value))
            except TypeError as error:
                why = str(error)
        hint = "leave such orders out in spec.which.where, or write: has(spec.x) ? spec.x * 2 : 1"
        raise InvalidInputError(field, source, f"cannot be computed: {why}", hint=hint)

    def _grown(self, field: str, least: Any, values: Variables) -> list[FieldEdit]:
        """Return the edits after which a field is at least as much."""
        now = value_at(values["spec"], resolve(self.kit, FieldEdit(field, "unset")).steps)
        if isinstance(least, list):
            if now is not ABSENT and not isinstance(now, list):
                raise InvalidInputError(field, now, "is not a list", hint="set it instead")
            missing = _missing(least, [] if now is ABSENT else now)
            return [FieldEdit(field, "add", element) for element in missing]
        if not _is_number(least):
            raise InvalidInputError(field, least, "cannot grow", hint="give a number or a list")
        if now is not ABSENT and not _is_number(now):
            raise InvalidInputError(field, now, "is not a number", hint="set it instead")
        return [] if now is not ABSENT and now >= least else [FieldEdit(field, "set", least)]


def _rule(fault: str) -> str:
    return f"is refused: {fault}"


def _missing(wanted: Sequence[Any], have: Sequence[Any]) -> Iterator[Any]:
    return (element for element in wanted if not any(same(element, other) for other in have))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
