"""
The registry: the XDatasets of one source in the cluster.

Writes are server-side apply with one field manager, so two watchers that do the same do no harm.
A record is removed only if it is still the object that was read (its uid).

Called by ``watching``.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.controllers import (
    Clock,
    Cluster,
    ConflictError,
    InvalidObjectError,
    Manifest,
    NotFoundError,
    ObjectKey,
    metadata,
)
from whisperops.buckets import Blob
from whisperops.records import WATCHER, XDATASET, Origin, desired_record, differs, status_change


@dataclass(frozen=True, slots=True)
class PutResult:
    """What `Registry.put` did."""

    record: Manifest | None
    """As it is in the cluster now; None: there is none."""
    writes: int
    refusal: str = ""


class Registry:
    """The records of one source."""

    def __init__(self, cluster: Cluster, origin: Origin, clock: Clock) -> None:
        self._cluster, self._origin, self._clock = cluster, origin, clock
        self._unchanged: dict[str, tuple[Blob, object]] = {}
        """The blob and the resourceVersion of each record that needed no write."""

    def records(self) -> list[Manifest]:
        """Return all XDatasets, also those of other sources; raises what ``Cluster.list`` does."""
        return list(self._cluster.list(XDATASET).items)

    def put(self, name: str, blob: Blob, before: Manifest | None) -> PutResult:
        """
        Make the record agree with the blob; write only what differs. Idempotent.

        Raises:
            RemoteError: The cluster failed; call again.
        """
        version = (blob, None if before is None else metadata(before).get("resourceVersion"))
        if self._unchanged.get(name) == version:
            return PutResult(before, 0)
        desired, writes, record = desired_record(name, blob, self._origin), 0, before
        try:
            if record is None or differs(record, desired):
                record = self._cluster.apply(desired, owner=WATCHER)
                writes += 1
            status = status_change(record, blob, self._origin, self._clock.now())
            if status is not None:
                patch = {key: desired[key] for key in ("apiVersion", "kind")}
                patch |= {"metadata": {"name": name}, "status": status}
                record = self._cluster.apply(patch, owner=WATCHER, status=True)
                writes += 1
        except InvalidObjectError as error:
            return PutResult(before, writes, str(error))
        except NotFoundError:  # deleted between the two writes: the next pass creates it again
            return PutResult(None, writes, "it was deleted meanwhile")
        if not writes:
            self._unchanged[name] = version
        return PutResult(record, writes)

    def remove(self, record: Manifest) -> bool:
        """
        Delete a record. Idempotent. False if another object has its name now.

        Raises:
            RemoteError: The cluster failed; call again.
        """
        key = ObjectKey(XDATASET, str(metadata(record)["name"]))
        self._unchanged.pop(key.name, None)
        try:
            self._cluster.delete(key, uid=str(metadata(record).get("uid", "")))
        except ConflictError:
            return False
        return True
