"""The judges of edits, and the account of what they judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab.binaries import NotBuiltError, built
from yamlproof import Summary
from yamlreaders import GoReaders, PyYaml, Reader, Ruamel

_summary = pytest.StashKey[Summary]()


@pytest.fixture(scope="session")
def readers(request: pytest.FixtureRequest) -> Iterator[list[Reader]]:
    """
    PyYAML, ruamel and Go's two.

    Go's are left out where ``make lab`` has not built them, unless ``--e2e`` asks for real systems.
    """
    try:
        go = GoReaders(built("yamlreader"))
    except NotBuiltError:
        if request.config.getoption("--e2e"):
            raise
        yield [Ruamel(), PyYaml()]
        return
    yield [Ruamel(), PyYaml(), *go.readers()]
    go.close()


@pytest.fixture(scope="session")
def summary(request: pytest.FixtureRequest) -> Summary:
    """Counts all edits of the run."""
    return request.config.stash.setdefault(_summary, Summary())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    found = config.stash.get(_summary, None)
    if found is not None:
        terminalreporter.section("edits")
        for line in found.lines():
            terminalreporter.write_line(line)
