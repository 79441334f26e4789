"""One process of Backstage's engines for rendering and forms; figures at the end of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.engines.process import Engines, running

_figures = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    with running() as found:
        yield found


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Keep a text for the end of the report."""
    return pytestconfig.stash.setdefault(_figures, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for text in config.stash.get(_figures, []):
        terminalreporter.section("rendering and forms against Backstage's engines", sep="-")
        terminalreporter.write_line(text)
