"""
Which kinds an API server serves, and under which paths.

One request finds a kind of a group and version, and the answer is kept for the life of the client.
An unknown kind is always asked for again, because a CustomResourceDefinition may have been created
in the meantime.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from ground.errors import NotFoundError
from ground.objects.kube_objects import Kind
from orderkit.adapters.kube.transport import KubeRequest, KubeTransport
from orderkit.ports.cluster import NoSuchKindError


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
