"""
What other distributions use of this one, by the entry point ``orderkit.platforms``.

`orderkit.cli.extras.StandIns` describes it.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ground.objects.kube_objects import Kind
from orderkit.ports.forge import Forge


def serves(kind: Kind) -> bool:
    """Return whether the embedded cluster serves a kind of Kubernetes' own."""
    from kubeschema.known import built_in_kinds

    return kind in built_in_kinds()


@contextlib.contextmanager
def running_catalog(forge: Forge) -> Iterator[tuple[str, str]]:
    """
    Run a catalog of what a forge holds; hand out its URL, on the loopback, and its token.

    Raises:
        PortInUseError: No port is free.
    """
    from orderkit.web import serving
    from orderkit_standins.catalog import EmbeddedCatalog
    from orderkit_standins.catalog.http import catalog_app

    token = secrets.token_hex(16)
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="orderkit-"))
        catalog = EmbeddedCatalog(Path(folder) / "catalog.sqlite", forge)
        undo.callback(catalog.close)
        server = serving.HttpServer(catalog_app(catalog, token=token), serving.bind("portal", 0))
        server.start()
        undo.callback(server.stop)
        yield server.url, token
