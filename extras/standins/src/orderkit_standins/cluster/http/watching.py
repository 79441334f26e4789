"""
Watches over HTTP: one line of JSON per change, pushed by the store, no thread held.

A watch ends when its time is over, the client goes away, the reader is too slow (410), or the
cluster closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ground.objects.kube_objects import Manifest, labels_of, metadata
from orderkit_standins.cluster.cluster import EmbeddedCluster, bookmark
from orderkit_standins.cluster.documents import encode
from orderkit_standins.cluster.http import exchange
from orderkit_standins.cluster.http.resources import ClusterRequest, selection, shown
from orderkit_standins.cluster.http.tables import partial, table
from orderkit_standins.cluster.refusals import BadRequest, Expired
from orderkit_standins.cluster.store import JournalEntry, Watcher

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

DEFAULT_TIMEOUT_S = 1800.0
"""An API server's `--min-request-timeout`."""
BOOKMARK_EVERY_S = 60.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchResponse(Response):
    """Stream the changes a request asks for."""

    def __init__(self, cluster: EmbeddedCluster, call: ClusterRequest) -> None:
        """
        Read the request; nothing is opened yet.

        Raises:
            BadRequest: A selector, resourceVersion or timeout cannot be read.
        """
        super().__init__(media_type="application/json")
        del self.headers["content-length"]
        self._cluster, self._call = cluster, call
        self._selection = selection(call)
        since = call.query.get("resourceVersion", "")
        self._from_now = since in {"", "0"} or call.flag("sendInitialEvents")
        self._since = None if self._from_now else _number("resourceVersion", since)
        timeout = call.query.get("timeoutSeconds", "")
        self._timeout_s = (
            float(_number("timeoutSeconds", timeout)) if timeout else DEFAULT_TIMEOUT_S
        )
        self._bookmarks = call.flag("allowWatchBookmarks")

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the watch until it ends."""
        loop, wake = asyncio.get_running_loop(), asyncio.Event()

        def on_ready() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone: so is the reader
                loop.call_soon_threadsafe(wake.set)

        with contextlib.ExitStack() as stack:
            try:
                opened = await run_in_threadpool(self._open, stack, on_ready)
            except Expired as error:
                await self._start(send)
                await _send(send, [_line("ERROR", exchange.status_of(error))], is_open=False)
                return
            disconnect = asyncio.create_task(_disconnected(receive, wake))
            try:
                await self._start(send)
                await self._stream(send, opened, wake, disconnect)
            finally:
                disconnect.cancel()

    def _open(
        self, stack: contextlib.ExitStack, on_ready: Callable[[], None]
    ) -> tuple[Watcher, list[bytes]]:
        """Open the watch and read the present state, if wanted, in one step."""
        kind, target = self._call.target.served.kind, self._call.target
        store = self._cluster.store
        with store.lock:
            watcher = stack.enter_context(
                store.watching(
                    (kind.group, kind.kind),
                    namespace=target.namespace,
                    since=self._since,
                    on_ready=on_ready,
                )
            )
            if not self._from_now:
                return watcher, []
            stored = store.scan(kind.group, kind.kind, target.namespace)
            version = store.version
        lines = [self._event("ADDED", m) for m in stored if self._selection(m)]
        if self._call.flag("sendInitialEvents"):
            lines.append(self._bookmark(version, initial=True))
        return watcher, lines

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

    async def _stream(
        self,
        send: Send,
        opened: tuple[Watcher, list[bytes]],
        wake: asyncio.Event,
        disconnect: asyncio.Task[None],
    ) -> None:
        watcher, lines = opened
        deadline = time.monotonic() + self._timeout_s
        await _send(send, lines)
        while (
            not disconnect.done()
            and not watcher.closed
            and (left_s := deadline - time.monotonic()) > 0
        ):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), min(left_s, BOOKMARK_EVERY_S))
            woken = wake.is_set()
            wake.clear()
            lines = [line for change in watcher.take() for line in self._lines(change)]
            if not woken and self._bookmarks and time.monotonic() < deadline:
                lines += self._position(watcher)
            if lines:
                await _send(send, lines)
        if disconnect.done():
            return
        if watcher.overrun:
            error = Expired(self._since or 0, self._cluster.store.version)
            await _send(send, [_line("ERROR", exchange.status_of(error))], is_open=False)
            return
        await _send(send, self._position(watcher) if self._bookmarks else [], is_open=False)

    def _position(self, watcher: Watcher) -> list[bytes]:
        """Return what is still queued, then a bookmark of the position reached by it."""
        with self._cluster.store.lock:
            version, queued = self._cluster.store.version, watcher.take()
        lines = [line for change in queued for line in self._lines(change)]
        return [*lines, self._bookmark(version)]

    def _lines(self, change: JournalEntry) -> Iterator[bytes]:
        """Yield the event a change is to this watch; labels may make it appear or vanish."""
        chosen_objects = self._selection
        if not chosen_objects.has_fields(change.manifest):
            return
        now = chosen_objects.has_labels(labels_of(change.manifest))
        before = change.old_labels is not None and chosen_objects.has_labels(change.old_labels)
        if change.type == "DELETED":
            if now or before:
                yield self._event("DELETED", change.manifest)
        elif now:
            yield self._event("MODIFIED" if before else "ADDED", change.manifest)
        elif before:
            yield self._event("DELETED", change.manifest)

    def _event(self, type_: str, manifest: Manifest) -> bytes:
        served = self._call.target.served
        body = shown(served, manifest)
        if self._call.wants == "table":
            version = metadata(manifest)["resourceVersion"]
            body = table(served, [body], version=version, include=self._call.include)
        elif self._call.wants == "partial":
            body = partial(body)
        return _line(type_, body)

    def _bookmark(self, version: int, *, initial: bool = False) -> bytes:
        served = self._call.target.served
        body = bookmark(served, version)
        if initial:
            body["metadata"]["annotations"] = {_INITIAL_EVENTS_END: "true"}
        if self._call.wants == "table":
            body = {**table(served, [], version=str(version)), "rows": []}
        return _line("BOOKMARK", body)


def _number(name: str, text: str) -> int:
    if not text.isdigit():
        raise BadRequest(f'{name}: Invalid value: "{text}": must be a number')
    return int(text)


def _line(type_: str, body: Manifest) -> bytes:
    return encode({"type": type_, "object": body}).encode() + b"\n"


async def _send(send: Send, lines: list[bytes], *, is_open: bool = True) -> None:
    await send({"type": "http.response.body", "body": b"".join(lines), "more_body": is_open})


async def _disconnected(receive: Receive, wake: asyncio.Event) -> None:
    """Return when the client is gone, and wake the stream."""
    while (await receive())["type"] != "http.disconnect":
        pass
    wake.set()
