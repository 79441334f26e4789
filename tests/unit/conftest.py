"""One embedded forge for all unit tests of a process, started for the first that needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ownforge import OwnForge, SharedForge


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
