"""
XDatasets: the record that a blob should have, and how the record in the cluster differs.

A record is written when its blob changed, and never just to update a time: a changed status makes
Crossplane reconcile every agent of that dataset. So ``lastSeen`` is the time of the last change;
the watcher's Lease and metrics show that it is alive.

Pure; called by ``comparing`` and ``registry``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orderkit.controllers import Kind, Manifest, condition, dig, labels_of, metadata
from whisperops.buckets import Blob
from whisperops.naming import title

XDATASET = Kind("whisperops.io", "v1alpha1", "XDataset")
MANAGED_BY = "app.kubernetes.io/managed-by"
WATCHER = "dataset-watcher"
"""The field manager, and the value of `MANAGED_BY`."""
SOURCE = "whisperops.io/source"
"""The label that names the watcher of a record."""
LARGEST_BYTES = 100 * 1024**3
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class Origin:
    """What all records of one watcher share."""

    root: str
    source: str
    largest_bytes: int = LARGEST_BYTES
    """Larger blobs are registered, but never ready."""

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: WATCHER, SOURCE: self.source}

    def path_of(self, record: Manifest) -> str:
        """Return the path of a record's blob relative to the root; empty if it is elsewhere."""
        full_path = str(dig(record, "spec", "gcsPath", default=""))
        prefix = f"{self.root}/"
        return full_path.removeprefix(prefix) if full_path.startswith(prefix) else ""

    def owns(self, record: Manifest) -> bool:
        return self.labels.items() <= labels_of(record).items()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an agent may use a dataset, in the terms of a condition."""

    ready: bool
    reason: str
    message: str


def verdict(blob: Blob, *, largest_bytes: int) -> Verdict:
    """Judge a blob by its listing; it is never opened."""
    if blob.size_bytes == 0:
        return Verdict(ready=False, reason="Empty", message="the blob has 0 bytes")
    if blob.size_bytes > largest_bytes:
        limit = human(largest_bytes)
        message = f"the blob has {human(blob.size_bytes)}, at most {limit} can be analysed"
        return Verdict(ready=False, reason="TooLarge", message=message)
    return Verdict(ready=True, reason="Listed", message="")


def human(size_bytes: int) -> str:
    """Return a size for people: ``90.4 MiB``."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - binary units
        size, unit = size / 1024, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def desired_record(name: str, blob: Blob, origin: Origin) -> Manifest:
    """Return the record to apply for a blob, without its status."""
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


def differs(live: Manifest, desired: Manifest) -> bool:
    """Return whether a record in the cluster has another spec, or lacks a label."""
    labels: Mapping[str, str] = desired["metadata"]["labels"]
    return live.get("spec") != desired["spec"] or not labels.items() <= labels_of(live).items()


def status_change(live: Manifest, blob: Blob, origin: Origin, now: datetime) -> Manifest | None:
    """Return the status to apply, or None if the record has it already."""
    judged = verdict(blob, largest_bytes=origin.largest_bytes)
    generation = metadata(live).get("generation", 1)
    live_ready = condition(live, "Ready") or {}
    new_ready = {
        "type": "Ready",
        "status": str(judged.ready),
        "reason": judged.reason,
        "message": judged.message,
        "observedGeneration": generation,
    }
    facts = {
        "ready": judged.ready,
        "sizeHuman": human(blob.size_bytes),
        "version": short_version(blob.version),
        "observedGeneration": generation,
    }
    status = live.get("status") or {}
    if facts.items() <= status.items() and new_ready.items() <= live_ready.items():
        return None
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    same = live_ready.get("status") == new_ready["status"]
    since = live_ready.get("lastTransitionTime", time) if same else time
    return {**facts, "lastSeen": time, "conditions": [{**new_ready, "lastTransitionTime": since}]}


def short_version(version: str) -> str:
    """Return a version as the status keeps it: unchanged, or as a digest if it is long."""
    short = 64
    if len(version) <= short:
        return version
    return hashlib.sha256(version.encode(errors="surrogateescape")).hexdigest()[:40]
