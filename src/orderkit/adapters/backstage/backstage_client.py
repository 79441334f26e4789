"""
A client of Backstage: one HTTP request, and the Portal and Catalog ports on its backend.

`send` sends one HTTP request to a portal or a service: time-outs, no redirects, a size cap, no
proxies. A connection per request: calls are few, and nothing stays open behind a command.
Credentials go over plain HTTP to this machine only.

`BackstagePortal` goes through a Backstage backend, or past it to the same services.
``/proxy/<endpoint>/…`` goes straight to the target configured for the endpoint, so that an order
can be placed by command when the portal has no such endpoint or there is no portal at all. Every
other path goes to the portal's ``/api``. A token is added only where the step sets none.

`BackstageCatalog` uses ``/api/catalog``. It works with a static token of the backend
(``externalAccess``) and with the embedded catalog, which answers the same calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlencode

import certifi
import urllib3
from urllib3 import exceptions

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.objects.kube_objects import Manifest, dig, metadata
from ground.secrets import redact, register
from orderkit.adapters.http import (
    CHUNK_BYTES,
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    check_url,
    joined,
    unsendable,
)
from orderkit.ports.catalog import Location
from orderkit.ports.portal import PortalResponse

ANSWER_MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BackstageResponse:
    """A complete answer, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """
        Return the body as JSON.

        Raises:
            RemoteError: It is none.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RemoteError(
                f"the portal answered {self.status} without JSON: {self.text}",
                hint="does the address point to Backstage's backend?",
            ) from error

    @property
    def text(self) -> str:
        """What the server says went wrong: cut, on one line, without secrets."""
        try:
            document = json.loads(self.body)
            message = document["error"]["message"]
        except (ValueError, RecursionError, KeyError, TypeError):
            message = self.body[:1000].decode(errors="replace")
        return shorten(redact(str(message)), limit=400)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout_s: float = READ_TIMEOUT_S,
    ca_file: PurePath | None = None,
) -> BackstageResponse:
    """
    Send one request, once.

    Args:
        ca_file: The certificates to trust; None: those of Mozilla.

    Raises:
        UnreachableError: No complete answer in time; it may have been carried out.
        RemoteError: The answer is too large.
        InvalidInputError: A header cannot be sent.
    """
    address = url.partition("?")[0]
    trusted = str(ca_file) if ca_file else certifi.where()
    with urllib3.PoolManager(ca_certs=trusted) as connections:
        try:
            response = connections.urlopen(
                method,
                url,
                headers={"Accept-Encoding": "gzip", **headers},
                body=body,
                timeout=urllib3.Timeout(CONNECT_TIMEOUT_S, timeout_s),
                # a 301 would turn a POST into a GET of another address
                redirect=False,
                retries=False,
                preload_content=False,
            )
            with response:
                return BackstageResponse(
                    response.status,
                    {name.lower(): value for name, value in response.headers.items()},
                    joined(response.stream(CHUNK_BYTES, decode_content=True), ANSWER_MAX_BYTES),
                )
        except exceptions.SSLError as error:
            raise UnreachableError(
                f"no trusted TLS connection to {address}: its certificate is not of a trusted CA,"
                " or for another host",
                hint="platform.yaml can name the certificate of a private CA: caFile",
            ) from error
        except (exceptions.HTTPError, OSError) as error:
            # a refused connection is one of urllib3's time-outs too
            is_refused = isinstance(error, exceptions.NewConnectionError)
            if isinstance(error, exceptions.TimeoutError) and not is_refused:
                raise UnreachableError(
                    f"{address} did not answer within {timeout_s:g} s", hint="repeat the command"
                ) from error
            raise UnreachableError(
                f"no server answers at {address}", hint="is the platform running? orderkit up"
            ) from error
        except ValueError:  # http.client's names the value
            raise unsendable("the portal's token") from None


_PROXY = "proxy"
_FORWARDED = frozenset(
    {
        *("accept", "accept-language", "cache-control", "content-language", "content-length"),
        *("content-type", "expires", "host", "last-modified", "pragma", "user-agent"),
        *("authorization", "idempotency-key"),
    }
)
"""Headers that the proxy lets through, both ways: Backstage's own list, and `allowedHeaders`."""


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """Where a proxy endpoint leads, and the headers added on the way. Never shown."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class BackstagePortal:
    """A Backstage backend and the targets of its proxy."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str,
        proxies: Mapping[str, ProxyTarget],
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: The backend, without ``/api``; empty: there is none.
            token: A static token of the backend.
            proxies: Targets by the names of their endpoints.

        Raises:
            InvalidInputError: An address is none.
            RefusedError: Plain HTTP to another machine.
        """
        self._api = f"{check_url('portal', base_url)}/api" if base_url else ""
        self._token = token
        register(token)
        self._proxies: dict[str, ProxyTarget] = {}
        for name, target in proxies.items():
            url = check_url(f"proxy {name}", target.url)
            self._proxies[name.strip("/")] = ProxyTarget(url, target.headers)
            for value in target.headers.values():
                register(value)

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float = 60.0,
    ) -> PortalResponse:
        """
        Send one request and return its answer, whatever its status.

        Raises:
            UnreachableError: No complete answer in time.
            RemoteError: The answer is too large.
            InvalidInputError: The path climbs, or names a proxy endpoint that is not configured.
            NotFoundError: It leads to the portal, and there is none.
        """
        url, added = self._resolve(path)
        names = {name.lower() for name in headers}
        # Configured headers win over a template's, or a template could spoof them.
        configured_names = {name.lower() for name in added}
        sent_headers = {
            name: value for name, value in headers.items() if name.lower() not in configured_names
        }
        past_the_portal = not (self._api and url.startswith(f"{self._api}/"))
        # with what the portal's proxy would add, and without what it would drop (docs/portal.md)
        if past_the_portal:
            sent_headers = _forwarded(sent_headers)
        elif "authorization" not in names:
            sent_headers["Authorization"] = f"Bearer {self._token}"
        sent_headers |= added
        answer = send(method, url, headers=sent_headers, body=body, timeout_s=timeout_s)
        answer_headers = _forwarded(answer.headers) if past_the_portal else answer.headers
        return PortalResponse(answer.status, answer_headers, answer.body)

    def _resolve(self, path: str) -> tuple[str, Mapping[str, str]]:
        plain = path.partition("?")[0]
        parts = plain.strip("/").split("/")
        # a template writes the path: it must not lead to more than its endpoint does
        if ".." in parts or "." in parts or "\\" in path or "%2e" in path.lower():
            raise InvalidInputError("path", path, "leaves its endpoint")
        if parts[0] != _PROXY:
            if not self._api:
                raise NotFoundError(
                    f"platform.yaml has no spec.portal, and {path} needs it",
                    hint="add spec.portal with url and tokenFile (docs/install.md)",
                )
            return f"{self._api}/{path.lstrip('/')}", {}
        name = parts[1] if len(parts) > 1 else ""
        target = self._proxies.get(name)
        if target is None:
            endpoint_names = ", ".join(self._proxies) or "none"
            raise InvalidInputError(
                "path",
                path,
                "names a proxy endpoint that is not configured",
                hint=f"known: {endpoint_names}; 'orderkit' is spec.service of platform.yaml",
            )
        path_below = path.lstrip("/").removeprefix(f"{_PROXY}/{name}")
        return f"{target.url}{path_below}", target.headers


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _FORWARDED}


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
        # Backstage makes a Location entity for each registered location
        refs = [ref for ref in map(entity_ref, entities) if not ref.startswith(_GENERATED)]
        # Backstage takes a file without entities for good
        if not refs:
            raise InvalidInputError("catalogInfoUrl", target, "holds no entity")
        stored = self._readable(target, self._post("/locations", location))
        # Backstage answers 409 for a location that it knows
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
        # Backstage may keep the entities as orphans
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
