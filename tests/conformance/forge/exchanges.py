"""Exchanges of HTTP with a face of the embedded forge, as a judge reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass
class Exchange:
    """One request and its answer."""

    method: str
    path: str
    query: str
    sent: bytes
    status: int = 0
    received: bytes = b""


@dataclass(frozen=True)
class Watched:
    """An app around a forge's: each exchange below a prefix is shown to its judge."""

    app: ASGIApp
    judges: dict[str, Callable[[Exchange], None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and show it."""
        path = scope.get("raw_path", b"").decode() or str(scope.get("path", ""))
        found = [judge for prefix, judge in self.judges.items() if path.startswith(prefix)]
        if scope["type"] != "http" or not found:
            await self.app(scope, receive, send)
            return
        query = scope.get("query_string", b"").decode()
        exchange = Exchange(scope["method"], path.partition("?")[0], query, b"")

        async def read() -> Message:
            message = await receive()
            exchange.sent += message.get("body", b"")
            return message

        async def write(message: Message) -> None:
            exchange.status = message.get("status", exchange.status)
            exchange.received += message.get("body", b"")
            if message["type"] == "http.response.body" and not message.get("more_body"):
                found[0](exchange)
            await send(message)

        await self.app(scope, read, write)
