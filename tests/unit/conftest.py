"""The embedded forge and API of the unit tests of a process, started for the first in need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ownforge import OwnForge, SharedForge
    from refusedreads import RefusedReads

    from orderkit_standins.catalog import EmbeddedCatalog


@pytest.fixture(scope="session")
def one_forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedForge]:
    from ownforge import shared_forge  # most unit tests need no forge

    with shared_forge(tmp_path_factory.mktemp("forge")) as found:
        yield found


@pytest.fixture
def forge(one_forge: SharedForge) -> Iterator[OwnForge]:
    """What this test has on the forge."""
    from ownforge import OwnForge

    with ExitStack() as undo:
        yield OwnForge(one_forge, undo)


@pytest.fixture(scope="session")
def catalog(
    one_forge: SharedForge, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCatalog]:
    """A catalog that knows nobody."""
    from orderkit_standins.catalog import EmbeddedCatalog

    path = tmp_path_factory.mktemp("catalog") / "catalog.sqlite"
    with one_forge.client() as client, closing(EmbeddedCatalog(path, client)) as found:
        yield found


@pytest.fixture(scope="session")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusedReads]:
    """Clients of a test's cluster that may not read all of it."""
    from refusedreads import refused_reads

    with refused_reads(tmp_path_factory.mktemp("kube")) as found:
        yield found
