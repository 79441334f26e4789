"""
Follow all objects of one kind: list them, then watch, for as long as the model lives.

A watch that breaks is resumed at the last version; one whose version is too old (410) begins with a
new list. Errors are retried with growing pauses. A kind that is not served (any more) has no
objects, and is asked for again; a kind that may not be listed is left out, and tried seldom.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ground.errors import AccessError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.ports.cluster import Cluster, ExpiredError, NoSuchKindError, WatchStop

WATCH_S, RESUMED_WATCH_S = 60.0, 5.0
"""How long a watch lasts, and one after a failure; its end proves that the server answers."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 10.0
_ABSENT_PAUSE_S, _REFUSED_PAUSE_S = 2.0, 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who takes what is read of a kind."""

    put: Callable[[Manifest], object]
    remove: Callable[[ObjectKey], object]
    known: Callable[[], set[ObjectKey]]
    """Returns the keys of the objects of this kind that are held."""


class KindFollower:
    """A thread that follows one kind. Make it, `start` it, `stop` and `join` it."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        receiver: Receiver,
        *,
        namespace: str | None = None,
        on_state: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Take what to follow.

        Args:
            cluster: Where.
            kind: What.
            receiver: Who takes the objects, in this follower's thread.
            namespace: Only objects there; None: everywhere.
            on_state: Called when `is_complete` or `refusal` changed.
        """
        self.kind = kind
        self.is_complete = False
        """All objects were read once, or there are none, or they may not be read."""
        self.refusal = ""
        """Why the kind is left out; empty if it is not."""
        self.restarts = 0
        """How often a watch broke or expired."""
        self._cluster, self._receiver, self._namespace = cluster, receiver, namespace
        self._on_state = on_state
        self._version = ""
        self._heard_s, self._is_lost = time.monotonic(), True
        self._stop = WatchStop()
        self._thread = threading.Thread(target=self._run, name=f"live {kind}", daemon=True)

    @property
    def age_s(self) -> float:
        """For how long what is known may be out of date; 0 unless the last watch failed."""
        return time.monotonic() - self._heard_s if self._is_lost else 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, at once."""
        self._stop.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                self._follow()
                pause_s = _FIRST_PAUSE_S
                continue
            except NoSuchKindError:
                self._leave_out("")
                pause_s = _ABSENT_PAUSE_S
            except AccessError as error:
                self._leave_out(str(error))
                pause_s = _REFUSED_PAUSE_S
            except ExpiredError:
                self._lose("")  # the version is too old (410): begin with a new list
            except OrderkitError as error:
                self._lose(self._version)  # resumed at the last version
                if not self._stop.is_set():
                    logger.warning("%s cannot be followed now: %s", self.kind, error)
            except Exception:
                self._lose("")
                logger.exception("a bug while following %s", self.kind)
            self._stop.wait(pause_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads requests
            pause_s = min(pause_s * 2, _LAST_PAUSE_S)

    def _follow(self) -> None:
        """List unless there is a version to resume from, then watch once."""
        if not self._version:
            self._version = self._list()
        events = self._cluster.watch(
            self.kind,
            namespace=self._namespace,
            since=self._version,
            timeout_s=RESUMED_WATCH_S if self._is_lost else WATCH_S,
            stop=self._stop,
        )
        for event in events:
            self._hear()
            if event.type == "DELETED":
                self._receiver.remove(ObjectKey.of(event.object))
            elif event.type != "BOOKMARK":
                self._put(event.object)
            self._version = metadata(event.object).get("resourceVersion") or self._version
        self._hear()

    def _list(self) -> str:
        version, listed = "", set()
        for page in self._cluster.list_pages(self.kind, namespace=self._namespace):
            for manifest in page.items:
                listed.add(ObjectKey.of(manifest))
                self._put(manifest)
            version = page.resource_version
            if self._stop.is_set():
                break
        else:
            # only after the last page: what was not listed before a stop is not gone
            self._keep_only(listed)
            self._hear()
            self._complete("")
        return version

    def _put(self, manifest: Manifest) -> None:
        try:
            self._receiver.put(manifest)
        except Exception:  # whoever made it: one object must not hide all others
            logger.exception("a %s has a shape that cannot be read", self.kind)

    def _keep_only(self, keys: set[ObjectKey]) -> None:
        for key in self._receiver.known() - keys:
            self._receiver.remove(key)

    def _leave_out(self, refusal: str) -> None:
        """Note that the kind is not served, or may not be read."""
        if refusal and refusal != self.refusal:
            logger.warning("%s is left out of the live model: %s", self.kind, refusal)
        self._version = ""
        self._hear()
        self._keep_only(set())
        self._complete(refusal)

    def _complete(self, refusal: str) -> None:
        if not self.is_complete or refusal != self.refusal:
            self.is_complete, self.refusal = True, refusal
            self._on_state()

    def _lose(self, version: str) -> None:
        """Note that the watch broke; an empty version: what is known begins with a new list."""
        self._version, self._is_lost = version, True
        self.restarts += 1

    def _hear(self) -> None:
        self._heard_s, self._is_lost = time.monotonic(), False
