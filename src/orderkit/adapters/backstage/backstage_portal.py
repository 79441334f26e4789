"""
The Portal port: HTTP through a Backstage backend, or past it to the same services.

``/proxy/<endpoint>/…`` goes straight to the target configured for the endpoint, with the
headers the portal's proxy would add and without those it would drop (as docs/portal.md sets it
up), so that an order can be placed by command when the portal has no such endpoint or there is no
portal at all. Every other path goes to the portal's ``/api``. A token is added only where the
step sets none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ground.errors import InvalidInputError, NotFoundError
from ground.secrets import register
from orderkit.adapters.backstage.backstage_http import send
from orderkit.adapters.http import check_url
from orderkit.ports.portal import PortalResponse

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
