"""
What is between clients and servers, on 127.0.0.1: a line that can be cut, and a balancer.

Both pass bytes on and know nothing of HTTP, as a network does and a Service of Kubernetes.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

HOST = "127.0.0.1"
_PROBE_S, _PROBE_TIMEOUT_S = 0.2, 5.0


class _Listener:
    """Listens on a port that stays the same, and leads each connection to a server."""

    def __init__(self) -> None:
        self._passing = threading.Event()
        self._passing.set()
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self.port = 0
        self._listen()

    def _target(self) -> int | None:
        """Return the port to lead the next connection to; None: hang up."""
        raise NotImplementedError

    def _listen(self) -> None:
        self._socket = socket.create_server((HOST, self.port), backlog=128)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = listening.accept()
                threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with client:
            self._passing.wait()
            target = self._target()
            if target is None:
                return
            with suppress(OSError), socket.create_connection((HOST, target)) as server:
                ends = {client, server}
                for end in ends:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._guard:
                    self._open |= ends
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                with self._guard:
                    self._open -= ends

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passing.wait()
                sink.sendall(data)
            self._passing.wait()
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _hang_up(self) -> None:
        with self._guard:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._socket.close()
        self._passing.set()
        self._hang_up()


class Line(_Listener):
    """
    The network between one process and one server.

    What is sent while it swallows arrives when it passes again, also from a client that has given
    up: so does TCP, which sends again.
    """

    def __init__(self, target: int) -> None:
        self._port = target
        super().__init__()

    def _target(self) -> int:
        return self._port

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Break every connection and refuse new ones meanwhile."""
        self.close()
        yield
        self._listen()

    @contextlib.contextmanager
    def swallowing(self) -> Iterator[None]:
        """Accept everything and let nothing through meanwhile."""
        self._passing.clear()
        yield
        self._passing.set()


class Balancer(_Listener):
    """
    Leads each connection to one of the servers that are ready, in turn, and never to a second one.

    A server is ready while its ``/readyz`` answers 200, and until it is taken out: so Kubernetes
    forgets a Pod as soon as its end begins.
    """

    def __init__(self) -> None:
        self._turns = itertools.count()
        self._known: set[int] = set()
        self._ready: set[int] = set()
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def add(self, url: str) -> None:
        """Lead to this server whenever it is ready; return once it is."""
        port = urlsplit(url).port or 0
        self._known.add(port)
        threading.Thread(target=self._probe, args=(port,), daemon=True).start()
        deadline_s = time.monotonic() + 120
        while port not in self._ready:
            assert time.monotonic() < deadline_s, f"{url} does not get ready"
            time.sleep(0.05)

    def take_out(self, url: str) -> None:
        """Lead no more connections there."""
        port = urlsplit(url).port or 0
        self._known.discard(port)
        self._ready.discard(port)

    def is_ready(self, url: str) -> bool:
        return urlsplit(url).port in self._ready

    def _target(self) -> int | None:
        ready = sorted(self._ready)
        return ready[next(self._turns) % len(ready)] if ready else None

    def _probe(self, port: int) -> None:
        while port in self._known:
            connection = http.client.HTTPConnection(HOST, port, timeout=_PROBE_TIMEOUT_S)
            try:
                connection.request("GET", "/readyz")
                is_ready = connection.getresponse().status == http.client.OK
            except OSError:
                is_ready = False
            finally:
                connection.close()
            if is_ready and port in self._known:
                self._ready.add(port)
            else:
                self._ready.discard(port)
            time.sleep(_PROBE_S)
