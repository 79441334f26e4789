"""
Write findings as SARIF 2.1.0, which code hosts and editors show beside the lines.

One run per command. The rules are the reasons of ``validate`` unless the caller passes others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import quote

from kubeschema.validate.findings import Reason

__all__ = ["NOT_EVALUATED", "SarifResult", "sarif"]

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
