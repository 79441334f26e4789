"""Findings about an object as data: stable reason codes, path, value, rule and hint."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ground.objects.kube_objects import Kind
from kubeschema.cel import Gap

__all__ = ["Finding", "FindingSeverity", "Reason"]


class Reason(StrEnum):
    """Reason codes of refusals. The values are stable: scripts and dashboards may use them."""

    UNREADABLE = "unreadable"
    """The file is not YAML or JSON with Kubernetes objects, or exceeds the limits."""
    UNKNOWN_KIND = "unknown-kind"
    UNKNOWN_VERSION = "unknown-version"
    UNKNOWN_FIELD = "unknown-field"
    NAME = "name"
    REQUIRED = "required"
    WRONG_TYPE = "wrong-type"
    NOT_ALLOWED = "not-allowed"
    TOO_LONG = "too-long"
    DUPLICATE = "duplicate"
    INVALID = "invalid"
    RULE = "rule"
    """A CEL rule is false, or fails to evaluate."""
    TRANSITION = "transition"
    """The same for a rule that compares with the object before the change."""
    BROKEN_SCHEMA = "broken-schema"
    """A fault of the XRD itself: the API server would refuse its CRD."""
    CUT = "cut"
    """Crossplane silently leaves this part of an XRD's schema out of the CRD."""
    UNMEANT = "unmeant"
    """Accepted, but probably not what the author intended."""
    NO_XR = "no-xr"
    """An order's repository delivers no XR of its kit."""
    NOT_THE_ORDERS = "not-the-orders"
    """An object, a name or a namespace that is not the order's own."""
    HOOK = "hook"
    """A hook of Argo CD in an order's repository."""
    STEERS = "steers"
    """An annotation with which an order's object steers Argo CD."""
    NOT_READ = "not-read"
    """A file that Argo CD passes over."""


class FindingSeverity(StrEnum):
    """How serious a finding is; the names are SARIF's levels."""

    ERROR = "error"
    """The API server refuses it, orders would fail, or a rule is lost. The command fails."""
    WARNING = "warning"
    """Works, with an effect that is seldom intended. The command fails with ``--strict``."""
    NOTE = "note"
    """For information. The command never fails."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One finding. ``str`` returns path and message."""

    path: str
    """
    As the API server writes it: ``spec.ports[0].name``; empty for the whole object. For a CEL rule
    of a parent, the first field that the rule is about (`place` is the parent).
    """
    reason: StrEnum
    """A `Reason`, or the rule of another checker."""
    message: str
    """The API server's own message where it has one."""
    rule: str = ""
    """The keyword and its argument, or the CEL rule."""
    value: str = ""
    """The offending value as JSON, shortened; empty if there is none."""
    hint: str = ""
    """How a person can fix it."""
    severity: FindingSeverity = FindingSeverity.ERROR
    """Warnings and notes: what the server accepts, and hardly anybody intends."""
    place: str | None = field(default=None, compare=False)
    """The path in the API server's words, if it is another one."""

    def __str__(self) -> str:
        return f"{self.path or 'the object'}: {self.message}"

    def to_json(self) -> dict[str, str]:
        return {
            "path": self.path,
            "reason": str(self.reason),
            "message": self.message,
            "rule": self.rule,
            "value": self.value,
            "hint": self.hint,
            "severity": self.severity.value,
        }


@dataclass(frozen=True, slots=True)
class DefaultedValue:
    """A value that defaulting adds, or puts in the place of a null."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The result of `Validator.check` for one object."""

    kind: Kind
    name: str
    findings: tuple[Finding, ...]
    not_evaluated: tuple[Gap, ...]
    """Rules without a verdict: neither passed nor failed. The API server will judge them."""
    defaulted: tuple[DefaultedValue, ...]
    pruned: tuple[str, ...]
    """Paths of unknown fields. Each of them is also a finding."""
    result: dict[str, Any]
    """The object as the server would store it: pruned, with defaults."""

    @property
    def valid(self) -> bool:
        """Whether there are no findings. Rules in `not_evaluated` may still refuse the object."""
        return not self.findings
