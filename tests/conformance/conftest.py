"""One process of Backstage's engines for rendering and forms; figures at the end of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.engines.process import Engines, running
from tests.workers import summary


@pytest.fixture(scope="package")
def engines() -> Iterator[Engines]:
    with running() as found:
        yield found


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Keep a text for the end of the report."""
    texts: list[str] = []
    summary(pytestconfig).add("rendering and forms against Backstage's engines", lambda: texts)
    return texts.append
