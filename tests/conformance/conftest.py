"""
Backstage's engines for rendering and forms, and both sides of the ports Catalog and Portal.

Figures of the engines stand at the end of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from portalsides import Side, embedded_side, real_side
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


@pytest.fixture(scope="session")
def real_portal(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Side]:
    """A real Backstage for the contracts of Catalog and Portal: starting one takes a minute."""
    if not pytestconfig.getoption("--e2e"):
        pytest.skip("a real Backstage: needs --e2e")
    with real_side(tmp_path_factory.mktemp("contracts")) as side:
        yield side


@pytest.fixture(scope="package", params=["embedded", "real"])
def side(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Side]:
    """The stand-in, and with ``--e2e`` a real Backstage."""
    if request.param == "real":
        yield request.getfixturevalue("real_portal")
        return
    with embedded_side(tmp_path_factory.mktemp("portal")) as embedded:
        yield embedded
