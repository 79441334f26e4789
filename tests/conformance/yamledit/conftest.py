"""The judges of edits, and the account of what they judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab.binaries import NotBuiltError, built
from tests import workers
from yamlproof import Summary
from yamlreaders import GoReaders, PyYaml, Reader, Ruamel


@pytest.fixture(scope="package")
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
def summary(pytestconfig: pytest.Config) -> Summary:
    """Counts all edits of the run."""
    made = Summary()
    workers.summary(pytestconfig).add("edits", made.lines)
    return made
