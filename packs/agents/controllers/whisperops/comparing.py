"""
Compare a bucket's listing with its registry: which records to write, and which to remove.

No single listing removes a record: its blob has to be missing from several listings in a row. If
the bucket is suddenly empty, or misses more blobs than `LossRule` allows, no record is removed
until a person confirms exactly this listing (`Loss.token`).

Pure; called by ``watching``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orderkit.controllers import Manifest, metadata
from whisperops.buckets import Blob
from whisperops.naming import allot, refusal
from whisperops.records import Origin

_TOKEN_LENGTH = 12


@dataclass(frozen=True, slots=True)
class LossRule:
    """How many blobs may vanish before a person has to confirm it."""

    passes: int = 2
    """How many listings in a row a blob must be missing from."""
    most: int = 3
    most_percent: int = 10
    """How many may be missing at once: the larger of `most` and this percentage."""

    def allowed(self, registered: int) -> int:
        return max(self.most, registered * self.most_percent // 100)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a listing differs from a registry."""

    blobs_by_name: Mapping[str, Blob]
    """Every blob that can be registered, by the name of its record."""
    refusals: Mapping[str, str]
    """Why a blob cannot be registered, by its path."""
    missing: frozenset[str]
    """Names of records whose blob is not listed."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How much is missing, and whether a person has to confirm it."""

    missing: int
    registered: int
    suspicious: bool
    token: str
    """Identifies this listing. A person confirms the loss by repeating it."""
    reason: str = ""


@dataclass(slots=True)
class MissingCounts:
    """In how many listings in a row each record's blob was missing. A restart begins at 0."""

    _counts: dict[str, int] = field(default_factory=dict)

    def note(self, names: Iterable[str]) -> None:
        """Count a listing in which the blobs of exactly these records were missing."""
        self._counts = {name: self._counts.get(name, 0) + 1 for name in names}

    def count(self, name: str) -> int:
        return self._counts.get(name, 0)


def compare(blobs: Sequence[Blob], records: Sequence[Manifest], origin: Origin) -> Comparison:
    """
    Give every blob a name, and find the records whose blob is missing.

    A registered path keeps its name. Records of other sources are left alone; their names are
    not given to a second record.
    """
    refusals = {blob.path: reason for blob in blobs if (reason := refusal(blob.path))}
    listed = {blob.path: blob for blob in blobs if blob.path not in refusals}
    kept_names, missing = _match(records, origin, listed)
    used_names = {_name(record) for record in records}
    names = {**kept_names, **allot(listed.keys() - kept_names.keys(), used_names)}
    blobs_by_name = {names[path]: blob for path, blob in listed.items()}
    return Comparison(blobs_by_name, refusals, missing)


def _match(
    records: Sequence[Manifest], origin: Origin, listed: Mapping[str, Blob]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the names of the listed paths, and the records whose path is not listed."""
    names: dict[str, str] = {}
    missing: set[str] = set()
    for record in sorted(filter(origin.owns, records), key=_name):
        path = origin.path_of(record)
        if path in listed and path not in names:
            names[path] = _name(record)
        else:
            missing.add(_name(record))
    return names, frozenset(missing)


def judge_loss(comparison: Comparison, registered: int, rule: LossRule) -> Loss:
    """Decide whether a person has to confirm the missing blobs."""
    token = _listing_token(comparison)
    lost, allowed = len(comparison.missing), rule.allowed(registered)
    if lost and not comparison.blobs_by_name:
        reason = f"the bucket is empty, and {registered} datasets are registered"
    elif lost > allowed:
        reason = f"{lost} of {registered} datasets are missing, at most {allowed} at once"
    else:
        return Loss(lost, registered, suspicious=False, token=token)
    return Loss(lost, registered, suspicious=True, token=token, reason=reason)


def removable(
    comparison: Comparison,
    loss: Loss,
    missing_counts: MissingCounts,
    rule: LossRule,
    *,
    confirmed: bool,
) -> list[str]:
    """Return the names of the records to remove now, sorted."""
    if loss.suspicious and not confirmed:
        return []
    return sorted(
        name
        for name in comparison.missing
        if confirmed or missing_counts.count(name) >= rule.passes
    )


def _listing_token(comparison: Comparison) -> str:
    digest = hashlib.sha256()
    for path in sorted(blob.path for blob in comparison.blobs_by_name.values()):
        digest.update(path.encode() + b"\0")
    return digest.hexdigest()[:_TOKEN_LENGTH]


def _name(record: Manifest) -> str:
    return str(metadata(record).get("name"))
