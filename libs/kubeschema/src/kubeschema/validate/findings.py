"""
Findings about an object as data: stable reason codes, path, value, rule and hint; and as SARIF.

A finding can have its file, line and column.

SARIF 2.1.0 is what code hosts and editors show beside the lines. One run per command. The rules are
the reasons of ``validate`` unless the caller passes others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import quote

from ground.errors import shorten
from ground.objects.kube_objects import Kind, Manifest, metadata
from ground.shapes import Answer
from kubeschema.field_paths import steps_of
from yamlfiles.positions import LocatedManifest

if TYPE_CHECKING:
    from kubeschema.cel import Gap

__all__ = [
    "NOT_EVALUATED",
    "Finding",
    "FindingAnswer",
    "FindingSeverity",
    "Located",
    "Reason",
    "SarifResult",
    "answer",
    "explanation",
    "located",
    "remedy",
    "sarif",
    "sentence",
]


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
        """
        Whether there are no findings. Rules in `not_evaluated` may still refuse the object.

        Rules that do not compile are no part of it: `Validator.faults` has them.
        """
        return not self.findings


@dataclass(frozen=True, slots=True)
class Located:
    """A finding, or a rule that was not evaluated, with its position."""

    file: PurePath
    line: int | None
    column: int | None
    subject: str
    """Kind and name of the object; empty for a whole file."""
    about: Finding | Gap


def located(file: PurePath, manifest: LocatedManifest, path: str, about: Finding | Gap) -> Located:
    """Return the finding positioned at its field, or at the nearest enclosing field."""
    mark = manifest.find(steps_of(path))
    line, column = mark or (manifest.line, None)
    return Located(file, line, column, subject_of(manifest.manifest), about)


def subject_of(manifest: Manifest) -> str:
    """Return kind and name as messages show them."""
    return f"{manifest.get('kind')} {metadata(manifest).get('name') or ''}".strip()


def sentence(entry: Located) -> str:
    """Return file, line, field, message, value and rule of a finding, on one line."""
    place = f"{entry.file}:{entry.line}" if entry.line else str(entry.file)
    return f"{place}: {explanation(entry)}"


def explanation(entry: Located) -> str:
    """Return a finding's field and message, with value and rule where the message lacks them."""
    about = entry.about
    if not isinstance(about, Finding):
        return f"{about.path}: not evaluated: {about.rule} ({about.why})"
    head = f"{about.path}: {about.message}" if about.path else about.message
    notes = []
    if about.value and about.value.strip('"') not in head:
        notes.append(f"value: {about.value}")
    if about.rule and not _is_told(about.rule, head):
        notes.append(f"rule: {shorten(about.rule)}")
    return f"{head} ({'; '.join(notes)})" if notes else head


def _is_told(rule: str, text: str) -> bool:
    """Say whether a message has the rule already, as the API server's have."""
    argument = rule.partition(" ")[2].strip('"')
    return rule in ("required", text) or rule.startswith("enum ") or (argument or rule) in text


class PlaceAnswer(Answer, frozen=True):
    """Where a finding is."""

    file: str
    line: int | None
    column: int | None
    subject: str
    path: str


class FindingAnswer(PlaceAnswer, frozen=True):
    """A finding, as commands and the service show it."""

    component: ClassVar[str] = "Finding"
    """Its name in OpenAPI."""
    reason: str
    message: str
    rule: str
    value: str
    hint: str
    severity: str


class GapAnswer(PlaceAnswer, frozen=True):
    """A rule that was not evaluated, as ``orderkit validate`` shows it."""

    rule: str
    why: str


def answer(entry: Located) -> FindingAnswer | GapAnswer:
    """Return what commands and the service show."""
    about = entry.about
    place = (str(entry.file), entry.line, entry.column, entry.subject, about.path)
    if not isinstance(about, Finding):
        return GapAnswer(*place, about.rule, about.why)
    reason, severity = str(about.reason), about.severity.value
    return FindingAnswer(
        *place, reason, about.message, about.rule, about.value, about.hint, severity
    )


def remedy(entry: Located) -> str:
    """Return what a person can do about a finding."""
    return getattr(entry.about, "hint", "") or "correct the value, as the rule says"


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
NOT_EVALUATED = "not-evaluated"
_DESCRIPTIONS: dict[str, str] = {
    Reason.UNREADABLE: "The file is not YAML or JSON of Kubernetes objects, or beyond the limits.",
    Reason.UNKNOWN_KIND: "No XRD defines this kind.",
    Reason.UNKNOWN_VERSION: "The kind is not served in this version.",
    Reason.UNKNOWN_FIELD: "The schema has no such field.",
    Reason.NAME: "The name is not one that Kubernetes accepts.",
    Reason.REQUIRED: "A required field is missing.",
    Reason.WRONG_TYPE: "The value is of another type or format.",
    Reason.NOT_ALLOWED: "The value is none of those allowed.",
    Reason.TOO_LONG: "Too long, or too many entries.",
    Reason.DUPLICATE: "An entry is there twice.",
    Reason.INVALID: "The value breaks a rule of the schema.",
    Reason.RULE: "A CEL rule of the schema does not hold.",
    Reason.TRANSITION: "A CEL rule does not allow this change.",
    Reason.BROKEN_SCHEMA: "The API server would refuse the XRD's schema.",
    Reason.CUT: "Crossplane leaves this out of the CRD, without a word.",
    Reason.NO_XR: "The repository does not hold the order's XR where Argo CD reads it.",
    Reason.NOT_THE_ORDERS: "The object does not belong to the order.",
    Reason.HOOK: "The object is a hook of Argo CD, and an order has none.",
    Reason.STEERS: "The object steers how Argo CD delivers it.",
    Reason.NOT_READ: "Argo CD does not read this file.",
    Reason.UNMEANT: "Accepted, and hardly what was meant.",
}


@dataclass(frozen=True, slots=True)
class SarifResult:
    """One entry: a reason code or `NOT_EVALUATED`, the text, and the position."""

    rule: str
    level: Literal["error", "warning", "note"]
    text: str
    file: PurePath
    line: int | None = None
    column: int | None = None


def sarif(
    results: Iterable[SarifResult], *, version: str, descriptions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """
    Return the SARIF log.

    Args:
        version: Orderkit's own.
        descriptions: Rule codes and their descriptions; default: those of ``validate``.
    """
    if descriptions is None:
        not_evaluated = "Orderkit cannot evaluate this rule; the API server will."
        descriptions = {**_DESCRIPTIONS, NOT_EVALUATED: not_evaluated}
    rules = [(str(code), text) for code, text in descriptions.items()]
    numbers = {name: index for index, (name, _) in enumerate(rules)}
    driver = {
        "name": "orderkit",
        "version": version,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules],
    }
    entries = [_result(result, numbers[result.rule]) for result in results]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": entries}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(result: SarifResult, index: int) -> dict[str, Any]:
    physical_location: dict[str, Any] = {"artifactLocation": {"uri": _uri(result.file)}}
    if result.line is not None:
        column = {} if result.column is None else {"startColumn": result.column}
        physical_location["region"] = {"startLine": result.line, **column}
    return {
        "ruleId": result.rule,
        "ruleIndex": index,
        "level": result.level,
        "message": {"text": result.text},
        "locations": [{"physicalLocation": physical_location}],
    }


def _uri(file: PurePath) -> str:
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
