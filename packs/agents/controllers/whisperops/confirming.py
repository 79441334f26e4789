"""
Ask a person to confirm a suspicious loss: a ConfigMap and an Event ask, an annotation answers.

The ConfigMap ``dataset-watcher-<source>`` says what is missing and identifies the listing with a
token. A person confirms exactly that listing by annotating the ConfigMap with the token. The next
listing that is not suspicious removes the annotation, so no answer is used twice. Nothing is
written while nothing changes.

Called by ``watching``.
"""

from __future__ import annotations

from orderkit.controllers import (
    CONFIG_MAP,
    Clock,
    Cluster,
    ConflictError,
    Kind,
    Manifest,
    NotFoundError,
    ObjectKey,
    annotations_of,
    metadata,
)
from whisperops.comparing import Loss
from whisperops.records import WATCHER

CONFIRM = "whisperops.io/confirm-removal"
_EVENT = Kind("", "v1", "Event")


class Confirmation:
    """Asks about one source, and reads the answer."""

    def __init__(self, cluster: Cluster, clock: Clock, *, namespace: str, source: str) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ObjectKey(CONFIG_MAP, f"{WATCHER}-{source}", namespace)
        self._asking: bool | None = None
        """Whether the ConfigMap asks a question; None: it was not read yet."""

    def is_confirmed(self, loss: Loss) -> bool:
        """
        Return whether a person confirmed this loss. Ask if it is suspicious, else withdraw.

        Raises:
            OrderkitError: The cluster failed; the caller must remove nothing then.
        """
        if not loss.suspicious and self._asking is False:
            return False
        question = self._cluster.get(self._key)
        if not loss.suspicious:
            self._withdraw(question)
            self._asking = False
            return False
        self._asking = True
        self._ask(question, loss)
        return question is not None and annotations_of(question).get(CONFIRM) == loss.token

    def _withdraw(self, question: Manifest | None) -> None:
        if question is None:
            return
        if CONFIRM in annotations_of(question):
            try:
                self._cluster.patch(
                    self._key, {"metadata": {"annotations": {CONFIRM: None}}}, owner=WATCHER
                )
            except NotFoundError:
                return
        self._write(question, {"suspicious": "false", "reason": "", "token": ""})

    def _ask(self, question: Manifest | None, loss: Loss) -> None:
        data = {"suspicious": "true", "reason": loss.reason, "token": loss.token}
        written = self._write(question, data)
        if written is not None:
            self._send_event(written, loss)

    def _write(self, question: Manifest | None, data: dict[str, str]) -> Manifest | None:
        """Write the ConfigMap if its data differs; return it if it was written."""
        if question is not None and question.get("data") == data:
            return None
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "data": data,
        }
        return self._cluster.apply(config_map, owner=WATCHER)

    def _send_event(self, question: Manifest, loss: Loss) -> None:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        version = metadata(question).get("resourceVersion")
        event = {
            "apiVersion": _EVENT.api_version,
            "kind": _EVENT.kind,
            "metadata": {
                "name": f"{self._key.name}.{loss.token}.{version}",
                "namespace": self._key.namespace,
            },
            "involvedObject": {
                **self._key.to_json(),
                "uid": metadata(question).get("uid"),
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
            return  # another watcher sent the same Event
