"""
The registry: XDatasets of one source in the cluster, read and written through the Cluster port.

Writes are server-side apply under one field manager, so two watchers do the same twice and no
harm. A record is removed only as the object that was read (its uid).

Called by ``watching``.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core.errors import ConflictError, NotFoundError
from orderkit.core.objects.kube_objects import Manifest, ObjectKey, metadata
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster, InvalidObjectError
from whisperops.buckets import Blob
from whisperops.records import WATCHER, XDATASET, Origin, differs, status_due, wanted


@dataclass(frozen=True, slots=True)
class Put:
    """What became of one record: as it lives now (None: refused), and how often it was written."""

    living: Manifest | None
    writes: int
    refusal: str = ""


class Registry:
    """The records of one source."""

    def __init__(self, cluster: Cluster, origin: Origin, clock: Clock) -> None:
        self._cluster, self._origin, self._clock = cluster, origin, clock
        self._in_step: dict[str, tuple[Blob, object]] = {}
        """The blob of each record that needed no write, and the record's version then."""

    def living(self) -> list[Manifest]:
        """Return every XDataset, also those that others keep; raises what ``Cluster.list`` does."""
        return list(self._cluster.list(XDATASET).items)

    def put(self, name: str, blob: Blob, before: Manifest | None) -> Put:
        """
        Make the record say what the blob says; write only what differs. Idempotent.

        Raises:
            RemoteError, UnreachableError, AccessError: The cluster failed; call again.
        """
        seen = (blob, None if before is None else metadata(before).get("resourceVersion"))
        if self._in_step.get(name) == seen:
            return Put(before, 0)
        record, writes, living = wanted(name, blob, self._origin), 0, before
        try:
            if living is None or differs(living, record):
                living = self._cluster.apply(record, owner=WATCHER)
                writes += 1
            status = status_due(living, blob, self._origin, self._clock.now())
            if status is not None:
                said = {key: record[key] for key in ("apiVersion", "kind")}
                said |= {"metadata": {"name": name}, "status": status}
                living = self._cluster.apply(said, owner=WATCHER, status=True)
                writes += 1
        except InvalidObjectError as error:
            return Put(before, writes, str(error))
        except NotFoundError:  # somebody deleted it between the two: the next pass makes it anew
            return Put(None, writes, "it was deleted meanwhile")
        if not writes:
            self._in_step[name] = seen
        return Put(living, writes)

    def remove(self, record: Manifest) -> bool:
        """
        Ask for the deletion of a record. Idempotent. False if it is another one by now.

        Raises:
            RemoteError, UnreachableError, AccessError: The cluster failed; call again.
        """
        key = ObjectKey(XDATASET, str(metadata(record)["name"]))
        self._in_step.pop(key.name, None)
        try:
            self._cluster.delete(key, uid=str(metadata(record).get("uid", "")))
        except ConflictError:
            return False
        return True
