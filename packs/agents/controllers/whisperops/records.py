"""
XDatasets: what the record of a blob says, and how a living one differs from it.

A record is written when its blob says something new and never for the sake of a clock: a changed
status makes Crossplane look at every agent of that dataset. ``lastSeen`` is therefore the time of
the last news; that the watcher is alive is told by its Lease and its metrics.

Pure; called by ``planning`` and ``registry``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orderkit.core.objects.kube_objects import Kind, Manifest, condition, dig, labels_of, metadata
from whisperops.buckets import Blob
from whisperops.naming import title

XDATASET = Kind("whisperops.io", "v1alpha1", "XDataset")
MANAGED_BY = "app.kubernetes.io/managed-by"
WATCHER = "dataset-watcher"
"""The field manager, and the value of the label above."""
SOURCE = "whisperops.io/source"
"""The label that says which watcher keeps a record."""
LARGEST_BYTES = 100 * 1024**3
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class Origin:
    """What all records of one watcher have in common."""

    root: str
    source: str
    largest_bytes: int = LARGEST_BYTES
    """Larger blobs are registered and never ready."""

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: WATCHER, SOURCE: self.source}

    def path_of(self, record: Manifest) -> str:
        """Return the path below the root that a record stands for; empty if it is elsewhere."""
        full = str(dig(record, "spec", "gcsPath", default=""))
        return full.removeprefix(f"{self.root}/") if full.startswith(f"{self.root}/") else ""

    def owns(self, record: Manifest) -> bool:
        return self.labels.items() <= labels_of(record).items()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an agent may use a dataset, as a condition says it."""

    ready: bool
    reason: str
    message: str


def verdict(blob: Blob, *, largest_bytes: int) -> Verdict:
    """Judge a blob by what its listing tells; it is never opened."""
    if blob.size_bytes == 0:
        return Verdict(ready=False, reason="Empty", message="the blob has 0 bytes")
    if blob.size_bytes > largest_bytes:
        most = human(largest_bytes)
        told = f"the blob has {human(blob.size_bytes)}, at most {most} can be analysed"
        return Verdict(ready=False, reason="TooLarge", message=told)
    return Verdict(ready=True, reason="Listed", message="")


def human(size_bytes: int) -> str:
    """Write a size as people read it: ``90.4 MiB``."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - binary units
        size, unit = size / 1024, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def wanted(name: str, blob: Blob, origin: Origin) -> Manifest:
    """Return the record of a blob without its status, as it is applied."""
    spec: dict[str, Any] = {
        "gcsPath": f"{origin.root}/{blob.path}",
        "displayName": title(blob.path),
    }
    if blob.size_bytes:
        spec["sizeBytes"] = blob.size_bytes
    return {
        "apiVersion": XDATASET.api_version,
        "kind": XDATASET.kind,
        "metadata": {"name": name, "labels": origin.labels},
        "spec": spec,
    }


def differs(living: Manifest, record: Manifest) -> bool:
    """Say whether a living record has another spec, or lacks a label."""
    labels: Mapping[str, str] = record["metadata"]["labels"]
    return living.get("spec") != record["spec"] or not labels.items() <= labels_of(living).items()


def status_due(living: Manifest, blob: Blob, origin: Origin, now: datetime) -> Manifest | None:
    """Return the status to apply, or None if the living one says the same already."""
    found = verdict(blob, largest_bytes=origin.largest_bytes)
    generation = metadata(living).get("generation", 1)
    before = condition(living, "Ready") or {}
    said = {
        "type": "Ready",
        "status": str(found.ready),
        "reason": found.reason,
        "message": found.message,
        "observedGeneration": generation,
    }
    facts = {
        "ready": found.ready,
        "sizeHuman": human(blob.size_bytes),
        "version": short_version(blob.version),
        "observedGeneration": generation,
    }
    status = living.get("status") or {}
    if facts.items() <= status.items() and said.items() <= before.items():
        return None
    seen = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    same = before.get("status") == said["status"]
    since = before.get("lastTransitionTime", seen) if same else seen
    return {**facts, "lastSeen": seen, "conditions": [{**said, "lastTransitionTime": since}]}


def short_version(version: str) -> str:
    """Return a version as the status keeps it: as it is, or a digest of a long one."""
    short = 64
    if len(version) <= short:
        return version
    return hashlib.sha256(version.encode(errors="surrogateescape")).hexdigest()[:40]
