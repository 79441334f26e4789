"""
Ask a person whether a suspicious loss is true: a ConfigMap, an Event, and an annotation in answer.

The ConfigMap ``dataset-watcher-<source>`` says what is missing and names the listing by a token.
Who annotates it with that token confirms exactly that listing; with the next one that is not
suspicious the annotation is removed, so an answer is never used twice. Nothing is written while
nothing changes.

Called by ``watching``.
"""

from __future__ import annotations

from orderkit.core.errors import ConflictError, NotFoundError
from orderkit.core.objects.kube_objects import (
    CONFIG_MAP,
    EVENT,
    Manifest,
    ObjectKey,
    annotations_of,
    metadata,
)
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from whisperops.planning import Loss
from whisperops.records import WATCHER

CONFIRM = "whisperops.io/confirm-removal"


class Confirmation:
    """The question of one source, and its answer."""

    def __init__(self, cluster: Cluster, clock: Clock, *, namespace: str, source: str) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ObjectKey(CONFIG_MAP, f"{WATCHER}-{source}", namespace)
        self._asking: bool | None = None
        """Whether the cluster shows a question; None: not looked yet."""

    def given(self, loss: Loss) -> bool:
        """
        Say whether a person confirmed this loss; ask, or take the question back, if need be.

        Raises:
            OrderkitError: The cluster failed; nothing may be removed then.
        """
        if not loss.suspicious and self._asking is False:
            return False
        found = self._cluster.get(self._key)
        if not loss.suspicious:
            self._take_back(found)
            self._asking = False
            return False
        self._asking = True
        self._ask(found, loss)
        return bool(found) and annotations_of(found or {}).get(CONFIRM) == loss.token

    def _take_back(self, found: Manifest | None) -> None:
        if found is None:
            return
        if CONFIRM in annotations_of(found):
            try:
                self._cluster.patch(
                    self._key, {"metadata": {"annotations": {CONFIRM: None}}}, owner=WATCHER
                )
            except NotFoundError:
                return
        self._say(found, {"suspicious": "false", "reason": "", "token": ""})

    def _ask(self, found: Manifest | None, loss: Loss) -> None:
        data = {"suspicious": "true", "reason": loss.reason, "token": loss.token}
        living = self._say(found, data)
        if living is not None:
            self._tell(living, loss)

    def _say(self, found: Manifest | None, data: dict[str, str]) -> Manifest | None:
        """Write the ConfigMap if it says something else; return it if it was written."""
        if found is not None and found.get("data") == data:
            return None
        record = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "data": data,
        }
        return self._cluster.apply(record, owner=WATCHER)

    def _tell(self, living: Manifest, loss: Loss) -> None:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": f"{self._key.name}.{loss.token}.{metadata(living).get('resourceVersion')}",
                "namespace": self._key.namespace,
            },
            "involvedObject": {
                **self._key.to_json(),
                "uid": metadata(living).get("uid"),
            },
            "type": "Warning",
            "reason": "SuspiciousListing",
            "message": f"{loss.reason}; nothing is removed",
            "source": {"component": WATCHER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._cluster.create(event, owner=WATCHER)
        except ConflictError:
            return  # the other watcher told it
