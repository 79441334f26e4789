"""
The cluster: an object store with the Kubernetes semantics Orderkit relies on.

Argo CD and Crossplane are driven through their custom resources here, never through their
own APIs. Two adapters exist: ``adapters.kube`` (any API server) and
``orderkit_standins.cluster`` (ours, in process). Both pass ``tests/conformance/cluster``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ground.errors import ConflictError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey

Propagation = Literal["Background", "Foreground", "Orphan"]


class InvalidObjectError(OrderkitError):
    """
    The API server refused the object (422, or 400 for a wrong type or unknown field).

    The message is the server's own, for example ``XGarage.blog.opsbogus.dev "x" is invalid:
    spec.stage: Unsupported value: "stage9": supported values: "stage1", …``.
    """


class WrongTypeError(InvalidObjectError):
    """Server-side apply could not convert a value to its schema's type (Crossplane aborts)."""


class NoSuchKindError(OrderkitError):
    """The server does not serve the kind: ``no matches for kind "X" in version "y/v1"``."""

    retryable = True


class NoSuchNamespaceError(OrderkitError):
    """The namespace does not exist: ``namespaces "x" not found``."""

    retryable = True


class ApplyConflictError(ConflictError):
    """Another field manager owns a field and `force` was not set."""


class ExpiredError(OrderkitError):
    """The resourceVersion is too old to watch from (410): list again."""

    retryable = True


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects of one kind and the version to watch from."""

    items: tuple[Manifest, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. `object` of a DELETED event is the last known state."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Manifest


class WatchStop:
    """Ends watches from another thread, at once: those that are open, and those opened later."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []

    def set(self) -> None:
        """End every watch that has this stop."""
        self._event.set()
        with self._lock:
            ends = tuple(self._ends)
        for end in ends:
            end()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is set; False if `timeout_s` passes first."""
        return self._event.wait(timeout_s)

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Have `end` called, in whatever thread, when it is set inside the ``with`` block."""
        with self._lock:
            self._ends.append(end)
        try:
            if self.is_set():
                end()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)


class Cluster(Protocol):
    """
    Objects, addressed by group, version, kind, namespace and name.

    Every method may raise UnreachableError, AccessError (401, 403), NoSuchKindError and
    RemoteError. Returned manifests are the caller's own copies.
    """

    def version(self) -> str:
        """Return the server's version text, such as ``v1.37.2``."""
        ...

    def serves(self, kind: Kind) -> bool:
        """Say whether the kind is served now (asks again; a CRD may have just appeared)."""
        ...

    def is_namespaced(self, kind: Kind) -> bool: ...

    def plural(self, kind: Kind) -> str | None:
        """Return the resource name of a kind; None if it is not served now (asks again)."""
        ...

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        """Return the OpenAPI v3 document of a group's version; None if the server has none."""
        ...

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return the object, or None if it does not exist."""
        ...

    def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList:
        """Return all objects of a kind (`namespace` None: everywhere) that carry all `labels`."""
        ...

    def list_pages(self, kind: Kind, *, namespace: str | None = None) -> Iterator[ObjectList]:
        """
        Yield all objects of a kind page by page, so that not all are in memory at once.

        Every page has the version of the whole list.

        Raises:
            ExpiredError: The list took too long: begin again.
        """
        ...

    def create(self, manifest: Manifest, *, owner: str) -> Manifest:
        """
        Create an object; `owner` is its field manager.

        Raises:
            ConflictError: It exists already.
            InvalidObjectError: The server refused it.
            NoSuchNamespaceError: Its namespace does not exist.
        """
        ...

    def apply(
        self, manifest: Manifest, *, owner: str, force: bool = True, status: bool = False
    ) -> Manifest:
        """
        Server-side apply: `owner` owns exactly the fields of the manifest. Idempotent.

        Fields that `owner` applied before and now leaves out are removed unless another manager
        owns them too. With `status`, only the manifest's ``status`` is applied, to the status
        subresource, and the object must exist. A no-op does not change resourceVersion.

        Raises:
            ApplyConflictError: Another manager owns a field and `force` is False.
            InvalidObjectError: The server refused it. WrongTypeError: a value has the wrong type.
            NoSuchNamespaceError: Its namespace does not exist.
            NotFoundError: `status` and the object does not exist.
        """
        ...

    def replace(self, manifest: Manifest, *, owner: str, status: bool = False) -> Manifest:
        """
        Replace an object (or its status). The server checks the manifest's resourceVersion, if set.

        Raises:
            ConflictError: The object changed since that resourceVersion.
            NotFoundError: It does not exist. InvalidObjectError: the server refused it.
        """
        ...

    def patch(
        self, key: ObjectKey, patch: Manifest, *, owner: str, status: bool = False
    ) -> Manifest:
        """
        JSON merge patch (RFC 7386): null removes a field, lists are replaced.

        Raises:
            ConflictError: The patch contains a resourceVersion that is not the current one.
            NotFoundError: It does not exist. InvalidObjectError: the server refused it.
        """
        ...

    def delete(
        self, key: ObjectKey, *, propagation: Propagation = "Background", uid: str = ""
    ) -> bool:
        """
        Ask for deletion; finalizers may delay it. Idempotent. False if it did not exist.

        Raises:
            ConflictError: `uid` is given and another object now has that name.
        """
        ...

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        since: str,
        timeout_s: float,
        stop: WatchStop | None = None,
    ) -> Iterator[WatchEvent]:
        """
        Yield changes after the resourceVersion `since`, in order, until `timeout_s` passes.

        Raises:
            ExpiredError: `since` is too old: list again.
            UnreachableError: Also if `stop` was set meanwhile; or it just ends.
        """
        ...
