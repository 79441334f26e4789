"""
Compare a bucket with its registry: what to write, and what may be removed.

Nothing is removed because of one listing. A path has to be missing from several listings in a
row; and a bucket that is suddenly empty, or has lost more than it may lose at once, removes
nothing at all until a person says that exactly this listing is right (`Loss.token`).

Pure; called by ``watching``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orderkit.core.objects.kube_objects import Manifest, metadata
from whisperops.buckets import Blob
from whisperops.naming import allot, refusal
from whisperops.records import Origin

_TOKEN = 12


@dataclass(frozen=True, slots=True)
class LossRule:
    """What a bucket may lose without anybody being asked."""

    passes: int = 2
    """In how many listings in a row a blob must be missing."""
    most: int = 3
    most_percent: int = 10
    """How many may be missing at once: the larger of the two."""

    def allowed(self, registered: int) -> int:
        return max(self.most, registered * self.most_percent // 100)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a listing means for a registry."""

    named: Mapping[str, Blob]
    """Every blob that can be registered, by the name of its record."""
    refused: Mapping[str, str]
    """Paths that cannot be, and why."""
    missing: frozenset[str]
    """Names of records whose blob is not listed."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What is missing, and whether that is believed."""

    missing: int
    registered: int
    suspicious: bool
    token: str
    """Names this listing; a person who gives it back confirms the loss."""
    reason: str = ""


@dataclass(slots=True)
class Absences:
    """How often in a row each record's blob was missing. In memory: a restart begins anew."""

    _counts: dict[str, int] = field(default_factory=dict)

    def note(self, names: Iterable[str]) -> None:
        """Count one listing in which the blobs of exactly these records were missing."""
        self._counts = {name: self._counts.get(name, 0) + 1 for name in names}

    def count(self, name: str) -> int:
        return self._counts.get(name, 0)


def plan(blobs: Sequence[Blob], living: Sequence[Manifest], origin: Origin) -> Plan:
    """
    Give every blob a name, and find the records whose blob is gone.

    A path that is registered keeps its name. Names of records that somebody else keeps are
    taken; those records are not touched.
    """
    refused = {blob.path: why for blob in blobs if (why := refusal(blob.path))}
    listed = {blob.path: blob for blob in blobs if blob.path not in refused}
    kept, missing = _kept(living, origin, listed)
    taken = {_name(record) for record in living}
    names = {**kept, **allot(listed.keys() - kept.keys(), taken)}
    named = {names[path]: blob for path, blob in listed.items()}
    return Plan(named, refused, missing)


def _kept(
    living: Sequence[Manifest], origin: Origin, listed: Mapping[str, Blob]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the names that listed paths have, and the records whose path is not listed."""
    kept: dict[str, str] = {}
    missing: set[str] = set()
    for record in sorted(filter(origin.owns, living), key=_name):
        path = origin.path_of(record)
        if path in listed and path not in kept:
            kept[path] = _name(record)
        else:
            missing.add(_name(record))
    return kept, frozenset(missing)


def judge(found: Plan, registered: int, rule: LossRule) -> Loss:
    """Say whether what is missing is believed to be gone."""
    token = _token(found)
    lost, allowed = len(found.missing), rule.allowed(registered)
    if lost and not found.named:
        reason = f"the bucket is empty, and {registered} datasets are registered"
    elif lost > allowed:
        reason = f"{lost} of {registered} datasets are missing, at most {allowed} at once"
    else:
        return Loss(lost, registered, suspicious=False, token=token)
    return Loss(lost, registered, suspicious=True, token=token, reason=reason)


def removable(
    found: Plan, loss: Loss, absences: Absences, rule: LossRule, *, confirmed: bool
) -> list[str]:
    """Return the names of the records to remove now, sorted."""
    if loss.suspicious and not confirmed:
        return []
    return sorted(
        name for name in found.missing if confirmed or absences.count(name) >= rule.passes
    )


def _token(found: Plan) -> str:
    digest = hashlib.sha256()
    for path in sorted(blob.path for blob in found.named.values()):
        digest.update(path.encode() + b"\0")
    return digest.hexdigest()[:_TOKEN]


def _name(record: Manifest) -> str:
    return str(metadata(record).get("name"))
