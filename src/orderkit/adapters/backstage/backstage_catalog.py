"""
The Catalog port on Backstage's ``/api/catalog``.

Works with a static token of the backend (``externalAccess``) and with the embedded catalog,
which answers the same calls. Registering is made idempotent here: Backstage answers 409 for a
location it knows. Unregistering also deletes the entities, which Backstage may keep as
orphans. Backstage makes a Location entity for each registered location, and takes a file without
entities for good: references to the former are left out, and the latter is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    UnreachableError,
)
from ground.objects.kube_objects import Manifest, dig, metadata
from ground.secrets import register
from orderkit.adapters.backstage.backstage_http import BackstageResponse, send
from orderkit.adapters.http import check_url
from orderkit.ports.catalog import Location

_PAGE = 500
_GENERATED = "location:default/generated-"
"""How references to the entities begin that Backstage makes for registered locations."""


def entity_ref(entity: Manifest) -> str:
    """Return ``kind:namespace/name`` in lower case, as the portal writes references."""
    meta = metadata(entity)
    namespace = meta.get("namespace") or "default"
    return f"{entity.get('kind', '')}:{namespace}/{meta.get('name', '')}".lower()


class BackstageCatalog:
    """A Backstage backend's catalog."""

    def __init__(self, base_url: str, *, token: str) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `base_url` is not an address.
            RefusedError: Plain HTTP to another machine.
        """
        self._base = f"{check_url('portal', base_url)}/api/catalog"
        register(token)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def register(self, target: str) -> Sequence[str]:
        """
        Register the URL of a ``catalog-info.yaml``. Idempotent.

        Raises:
            InvalidInputError: The portal cannot read an entity there.
        """
        location = {"type": "url", "target": target}
        dry_run = self._readable(target, self._post("/locations?dryRun=true", location))
        entities = self._good(dry_run, "register").get("entities", ())
        refs = [ref for ref in map(entity_ref, entities) if not ref.startswith(_GENERATED)]
        if not refs:
            raise InvalidInputError("catalogInfoUrl", target, "holds no entity")
        stored = self._readable(target, self._post("/locations", location))
        if stored.status != 409:  # noqa: PLR2004 - known already
            self._good(stored, "register")
        return refs

    @staticmethod
    def _readable(target: str, answer: BackstageResponse) -> BackstageResponse:
        if answer.status == 400:  # noqa: PLR2004
            raise InvalidInputError(
                "catalogInfoUrl", target, f"is refused by the catalog: {answer.text}"
            )
        return answer

    def unregister(self, target: str) -> bool:
        """Remove the location and its entities. Idempotent. True if it was registered."""
        registered = [location for location in self.locations() if location.target == target]
        for location in registered:
            self._delete(f"/locations/{quote(location.id, safe='')}")
        location_filter = f"metadata.annotations.backstage.io/managed-by-location=url:{target}"
        for entity in self._query(location_filter):
            uid = metadata(entity).get("uid")
            if uid:
                self._delete(f"/entities/by-uid/{quote(str(uid), safe='')}")
        return bool(registered)

    def locations(self) -> Sequence[Location]:
        entries = self._good(self._get("/locations"), "list locations")
        return [
            Location(str(dig(entry, "data", "id")), str(dig(entry, "data", "target")))
            for entry in entries
            if dig(entry, "data", "type", default="url") == "url"
        ]

    def entity(self, ref: str) -> Manifest | None:
        """
        Return an entity by ``kind:namespace/name``, or None.

        Raises:
            InvalidInputError: `ref` is not a full reference.
        """
        kind, colon, namespaced_name = ref.partition(":")
        namespace, slash, name = namespaced_name.partition("/")
        if not (kind and colon and namespace and slash and name):
            raise InvalidInputError("entity", ref, "is not a reference", hint="kind:namespace/name")
        path = "/".join(quote(segment, safe="") for segment in (kind, namespace, name))
        answer = self._get(f"/entities/by-name/{path}")
        if answer.status == 404:  # noqa: PLR2004
            return None
        entity: Manifest = self._good(answer, f"read {ref}")
        return entity

    def _query(self, filter_text: str) -> list[Manifest]:
        """Read every page of entities that match one filter."""
        query = {"limit": str(_PAGE), "filter": filter_text}
        entities: list[Manifest] = []
        while True:
            page = self._good(self._get(f"/entities/by-query?{urlencode(query)}"), "list entities")
            entities.extend(page.get("items", ()))
            cursor = dig(page, "pageInfo", "nextCursor")
            if not cursor:
                return entities
            query = {"limit": str(_PAGE), "cursor": str(cursor)}

    def _get(self, path: str) -> BackstageResponse:
        return send("GET", self._base + path, headers=self._headers)

    def _post(self, path: str, value: object) -> BackstageResponse:
        headers = self._headers | {"Content-Type": "application/json"}
        return send("POST", self._base + path, headers=headers, body=json.dumps(value).encode())

    def _delete(self, path: str) -> None:
        answer = send("DELETE", self._base + path, headers=self._headers)
        if answer.status != 404:  # noqa: PLR2004 - gone already
            self._good(answer, "delete")

    @staticmethod
    def _good(answer: BackstageResponse, doing: str) -> Manifest:
        """
        Return the JSON of a success.

        Raises:
            OrderkitError: It was none: AccessError, NotFoundError, UnreachableError (503) or
                RemoteError.
        """
        if 200 <= answer.status < 300:  # noqa: PLR2004
            document: Manifest = answer.json() if answer.body else {}
            return document
        problem = f"catalog, {doing}: {answer.status} {answer.text}"
        kinds: dict[int, tuple[type[OrderkitError], str]] = {
            401: (AccessError, "check the portal's token"),
            403: (AccessError, "the token lacks the right"),
            404: (NotFoundError, "does the address point to Backstage's backend?"),
            503: (UnreachableError, "the portal is starting, or what it reads from is down"),
        }
        kind, hint = kinds.get(answer.status, (RemoteError, ""))
        raise kind(problem, hint=hint)


class NoCatalog:
    """The catalog of a platform without a portal: empty, and it stays so."""

    def register(self, target: str) -> Sequence[str]:  # noqa: ARG002 - nothing reads it
        return ()

    def unregister(self, target: str) -> bool:  # noqa: ARG002
        return False

    def locations(self) -> Sequence[Location]:
        return ()

    def entity(self, ref: str) -> Manifest | None:  # noqa: ARG002
        return None
