"""
`KubeCluster`: the ``Cluster`` port on a real (or the embedded) Kubernetes API server.

Creates, replacements and patches are strict: the server refuses a field that the schema does not
know instead of dropping it silently. A watch reconnects from the last version it received until its
time is over. No object is cached.

`Discovery` knows which kinds an API server serves, and under which paths. One request finds a kind
of a group and version, and the answer is kept for the life of the client. An unknown kind is always
asked for again, because a CustomResourceDefinition may have been created in the meantime.

``tests/conformance/cluster`` is the contract.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from ground.errors import NotFoundError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.adapters.kube.transport import (
    APPLY_PATCH,
    MERGE_PATCH,
    READ_TIMEOUT_S,
    KubeRequest,
    KubeTransport,
    Method,
)
from orderkit.ports.cluster import (
    ExpiredError,
    InvalidObjectError,
    NoSuchKindError,
    ObjectList,
    Propagation,
    WatchEvent,
    WatchStop,
)


@dataclass(frozen=True, slots=True)
class ApiResource:
    """The paths under which the objects of a kind are served."""

    root: str
    plural: str
    namespaced: bool
    has_status: bool

    def collection(self, namespace: str | None) -> str:
        """Return the path of all objects, or of those in one namespace."""
        if self.namespaced and namespace:
            return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"

    def item(self, namespace: str, name: str, *, status: bool = False) -> str:
        """Return the path of one object or of its status."""
        path = f"{self.collection(namespace)}/{quote(name, safe='')}"
        return f"{path}/status" if status else path


class Discovery:
    """The kinds of one API server."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._known: dict[Kind, ApiResource] = {}

    def resource(self, kind: Kind) -> ApiResource:
        """
        Return the resource of a kind.

        Raises:
            NoSuchKindError: The server does not serve it (asked just now).
        """
        # an unknown kind is asked for again: its CustomResourceDefinition may be there by now
        resource = self._known.get(kind) or self.ask(kind)
        if resource is None:
            raise NoSuchKindError(
                f'no matches for kind "{kind.kind}" in version "{kind.api_version}"',
                hint="is its CustomResourceDefinition or XRD applied and established?",
            )
        return resource

    def ask(self, kind: Kind) -> ApiResource | None:
        """Ask the server now; None if it does not serve the kind."""
        if not kind.group and kind in self._known:
            return self._known[kind]  # no server stops to serve a kind of the core group
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        try:
            answer = self._transport.json(KubeRequest("GET", root))
        except (NoSuchKindError, NotFoundError):
            self.forget(kind)
            return None
        entries = answer.get("resources") or ()
        names = {entry["name"] for entry in entries}
        for entry in entries:
            # "/": a subresource, which may have a kind of its own
            if entry.get("kind") == kind.kind and "/" not in entry["name"]:
                plural = entry["name"]
                has_status = f"{plural}/status" in names
                resource = ApiResource(root, plural, bool(entry.get("namespaced")), has_status)
                self._known[kind] = resource
                return resource
        self.forget(kind)
        return None

    def forget(self, kind: Kind) -> None:
        """Ask again the next time, because the server no longer answers under that path."""
        self._known.pop(kind, None)


PAGE_SIZE = 500
RECONNECT_PAUSE_S = 0.2
"""Pause between two connections of a watch: a server that hangs up at once is not flooded."""
END_LATE_S = 5.0
"""How late the server may end a watch. One that does not is gone, however quiet the kind is."""


class KubeCluster:
    """An API server behind a kubeconfig. Safe to use from several threads."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._discovery = Discovery(transport)

    @classmethod
    def from_kubeconfig(
        cls, path: Path, context: str | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
    ) -> Self:
        """
        Connect as a kubeconfig says. Nothing is sent before the first request.

        Args:
            path: The kubeconfig file.
            context: One of its contexts; None means the current one.
            read_timeout_s: The longest wait for the next byte of an answer.

        Raises:
            InvalidInputError: The file cannot be used or has no such context.
        """
        return cls(KubeTransport.from_kubeconfig(path, context, read_timeout_s=read_timeout_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._transport.server

    def version(self) -> str:
        return str(self._json(KubeRequest("GET", "/version")).get("gitVersion", ""))

    def serves(self, kind: Kind) -> bool:
        return self._discovery.ask(kind) is not None

    def clock(self) -> datetime | None:
        """Return the time by the API server's clock; None if it does not say."""
        with suppress(OrderkitError):
            return self._transport.date()
        return None

    def is_namespaced(self, kind: Kind) -> bool:
        return self._discovery.resource(kind).namespaced

    def plural(self, kind: Kind) -> str | None:
        resource = self._discovery.ask(kind)
        return resource.plural if resource else None

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        root = f"apis/{group}/{version}" if group else f"api/{version}"
        try:
            return self._json(KubeRequest("GET", f"/openapi/v3/{root}"))
        except (NoSuchKindError, NotFoundError):
            return None

    def get(self, key: ObjectKey) -> Manifest | None:
        with self._resource(key.kind) as resource:
            if resource.namespaced and not key.namespace:
                return None
            try:
                return self._json(KubeRequest("GET", resource.item(key.namespace, key.name)))
            except NotFoundError:
                return None

    def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList:
        query = {"limit": str(PAGE_SIZE)}
        if labels:
            query["labelSelector"] = ",".join(f"{k}={v}" for k, v in labels.items())
        with self._resource(kind) as resource:
            path = resource.collection(namespace)
            try:
                return _joined(self._pages(kind, path, query))
            except (
                ExpiredError
            ):  # the continue token expired between two pages: read all in one page
                return _joined(self._pages(kind, path, {**query, "limit": "0"}))

    def list_pages(self, kind: Kind, *, namespace: str | None = None) -> Iterator[ObjectList]:
        with self._resource(kind) as resource:
            yield from self._pages(kind, resource.collection(namespace), {"limit": str(PAGE_SIZE)})

    def _pages(self, kind: Kind, path: str, query: Mapping[str, str]) -> Iterator[ObjectList]:
        token = ""
        while True:
            page = self._json(
                KubeRequest("GET", path, {**query, **({"continue": token} if token else {})})
            )
            items = tuple(_complete(kind, item) for item in page.get("items") or ())
            yield ObjectList(items, metadata(page).get("resourceVersion") or "")
            token = metadata(page).get("continue") or ""
            if not token:
                return

    def create(self, manifest: Manifest, *, owner: str) -> Manifest:
        with self._resource(Kind.of(manifest)) as resource:
            namespace = _namespace(resource, manifest)
            return self._write("POST", resource.collection(namespace), manifest, owner)

    def apply(
        self, manifest: Manifest, *, owner: str, force: bool = True, status: bool = False
    ) -> Manifest:
        path = self._item(manifest, status=status)
        with self._resource(Kind.of(manifest)):
            query = {"fieldManager": owner, "force": str(force).lower()}
            return self._json(KubeRequest("PATCH", path, query, manifest, APPLY_PATCH))

    def replace(self, manifest: Manifest, *, owner: str, status: bool = False) -> Manifest:
        path = self._item(manifest, status=status)
        with self._resource(Kind.of(manifest)):
            return self._write("PUT", path, manifest, owner)

    def patch(
        self, key: ObjectKey, patch: Manifest, *, owner: str, status: bool = False
    ) -> Manifest:
        with self._resource(key.kind) as resource:
            _check_status(resource, key.kind, status=status)
            path = resource.item(key.namespace, key.name, status=status)
            query = {"fieldManager": owner, "fieldValidation": "Strict"}
            return self._json(KubeRequest("PATCH", path, query, patch, MERGE_PATCH))

    def delete(
        self, key: ObjectKey, *, propagation: Propagation = "Background", uid: str = ""
    ) -> bool:
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        with self._resource(key.kind) as resource:
            if resource.namespaced and not key.namespace:
                return False
            try:
                path = resource.item(key.namespace, key.name)
                self._json(KubeRequest("DELETE", path, body=options))
            except NotFoundError:
                return False
        return True

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        since: str,
        timeout_s: float,
        stop: WatchStop | None = None,
    ) -> Iterator[WatchEvent]:
        deadline = time.monotonic() + timeout_s
        version = since
        with self._resource(kind) as resource:
            path = resource.collection(namespace)
            while (left_s := deadline - time.monotonic()) > 0:
                # timeoutSeconds has whole seconds
                whole_s = round(left_s)
                call = _watch(path, version, whole_s)
                silence_s = whole_s + END_LATE_S if whole_s else left_s
                for event in self._transport.events(call, silence_s=silence_s, stop=stop):
                    item = _complete(kind, event["object"])
                    version = metadata(item).get("resourceVersion") or version
                    yield WatchEvent(event["type"], item)
                    if time.monotonic() >= deadline:
                        return
                if stop is not None and stop.is_set():
                    return
                time.sleep(max(0.0, min(RECONNECT_PAUSE_S, deadline - time.monotonic())))

    def _item(self, manifest: Manifest, *, status: bool) -> str:
        """Return the path of the object that a manifest describes."""
        key = ObjectKey.of(manifest)
        resource = self._discovery.resource(key.kind)
        _check_status(resource, key.kind, status=status)
        return resource.item(_namespace(resource, manifest), key.name, status=status)

    def _write(self, method: Method, path: str, manifest: Manifest, owner: str) -> Manifest:
        query = {"fieldManager": owner, "fieldValidation": "Strict"}
        return self._json(KubeRequest(method, path, query, manifest))

    def _json(self, call: KubeRequest) -> Manifest:
        answer: Manifest = self._transport.json(call)
        return answer

    @contextmanager
    def _resource(self, kind: Kind) -> Iterator[ApiResource]:
        """Yield the resource of a kind; forget it if the server no longer knows its path."""
        try:
            yield self._discovery.resource(kind)
        except NoSuchKindError:
            self._discovery.forget(kind)
            raise


def _joined(pages: Iterator[ObjectList]) -> ObjectList:
    """Return the pages of a list as one."""
    items: list[Manifest] = []
    version = ""
    for page in pages:
        items.extend(page.items)
        version = page.resource_version
    return ObjectList(tuple(items), version)


def _watch(path: str, version: str, whole_s: int) -> KubeRequest:
    query = {
        "watch": "true",
        "resourceVersion": version,
        # they move the version on while nothing happens, so that it does not expire
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(max(1, whole_s)),
    }
    return KubeRequest("GET", path, query)


def _complete(kind: Kind, item: Manifest) -> Manifest:
    """Add kind and version to an item of a list: the server omits them for built-in types."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **item}


def _namespace(resource: ApiResource, manifest: Manifest) -> str:
    namespace = str(metadata(manifest).get("namespace") or "")
    if resource.namespaced and not namespace:
        name = metadata(manifest).get("name")
        raise InvalidObjectError(
            f'{Kind.of(manifest)} "{name}" is invalid: metadata.namespace: Required value',
            hint="name the namespace in the manifest",
        )
    return namespace


def _check_status(resource: ApiResource, kind: Kind, *, status: bool) -> None:
    if status and not resource.has_status:
        raise NotFoundError(
            f"{kind} has no status subresource",
            hint="write the status with the object, or enable the subresource in its CRD",
        )
