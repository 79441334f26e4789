"""HTTP requests as the service's code gets them, without a server."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request


def asked(
    path: str = "/",
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    client: tuple[str, int] | None = ("192.0.2.1", 40_000),
    scheme: str = "http",
) -> Request:
    """
    Return a request without a body.

    Args:
        path: With its query.
        method: Of HTTP.
        headers: Names in any letters.
        values: The parameters that the route found in the path.
        client: Who asks.
        scheme: How they reach the service.
    """
    route, _, query = path.partition("?")
    lines = {"host": "orderkit.example.com", **{k.lower(): v for k, v in (headers or {}).items()}}
    return Request({
        "type": "http",
        "method": method,
        "path": route,
        "query_string": query.encode(),
        "path_params": values or {},
        "headers": [(name.encode(), value.encode()) for name, value in lines.items()],
        "client": client,
        "scheme": scheme,
        "server": ("orderkit.example.com", 443 if scheme == "https" else 80),
        "orderkit.audit": {"request": "r1"},
    })  # fmt: skip
