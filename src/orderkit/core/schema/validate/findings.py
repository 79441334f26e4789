"""What is wrong with an object, as data: stable reason codes, path, value, rule, way out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orderkit.core.objects.kube_objects import Kind
from orderkit.core.schema.cel import Gap


class Reason(StrEnum):
    """Why something is refused. The values are stable: scripts and dashboards may use them."""

    UNREADABLE = "unreadable"
    """The file is no YAML or JSON of Kubernetes objects, or beyond the limits."""
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
    """A CEL rule is false, or ends in an error."""
    TRANSITION = "transition"
    """The same of a rule that compares with the object before the change."""
    BROKEN_SCHEMA = "broken-schema"
    """The XRD's own fault: the API server would refuse its CRD."""
    CUT = "cut"
    """Crossplane leaves this part of an XRD's schema out of the CRD, without a word."""
    UNMEANT = "unmeant"
    """Accepted, and yet hardly what the author of an XRD wanted."""


class FindingSeverity(StrEnum):
    """What a finding weighs; the names are SARIF's levels."""

    ERROR = "error"
    """Refused, or orders would fail or a rule be lost. The command fails."""
    WARNING = "warning"
    """Works, with an effect that is seldom wanted. The command fails with ``--strict``."""
    NOTE = "note"
    """Something to know. The command never fails."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One fault. ``str`` gives path and sentence."""

    path: str
    """As the API server writes it: ``spec.ports[0].name``; empty for the whole object."""
    reason: StrEnum
    """A `Reason`, or the rule of another judge (``core.check.rules``)."""
    message: str
    """The API server's own sentence, wherever it has one."""
    rule: str = ""
    """The keyword and its argument, or the CEL rule."""
    value: str = ""
    """The offending value as JSON, cut; empty if there is none."""
    hint: str = ""
    """The way out, for a person."""
    severity: FindingSeverity = FindingSeverity.ERROR
    """Only XRDs have findings that are no errors."""

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
    """A value that defaulting adds, or replaces if it was a null."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What `Validator.check` says of one object."""

    kind: Kind
    name: str
    findings: tuple[Finding, ...]
    not_evaluated: tuple[Gap, ...]
    """Rules without a verdict: neither passed nor failed. The API server will judge them."""
    defaulted: tuple[DefaultedValue, ...]
    pruned: tuple[str, ...]
    """Paths of unknown fields; each is a finding too."""
    result: dict[str, Any]
    """The object as the server would store it: pruned, with defaults."""

    @property
    def valid(self) -> bool:
        """Say whether nothing was found. Rules in `not_evaluated` may still refuse it."""
        return not self.findings
