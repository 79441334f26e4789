"""Options and the report's header for the whole tree of tests."""

from __future__ import annotations

import random

import pytest

SOAK_TIMEOUT_S = 7200
_seed = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("orderkit")
    group.addoption("--soak", action="store_true", help="full random counts, and tests marked soak")
    group.addoption(
        "--orderkit-seed",
        type=int,
        default=None,
        help="seed of the random choices in this run (default: a new one, shown in the header)",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--orderkit-seed")
    config.stash[_seed] = random.SystemRandom().randrange(1_000_000) if given is None else given


def pytest_report_header(config: pytest.Config) -> str:
    counts = "full (--soak)" if config.getoption("--soak") else "short"
    return f"orderkit: seed {config.stash[_seed]} (--orderkit-seed), random counts {counts}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    soak = config.getoption("--soak")
    for item in items:
        if soak:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S), append=False)
        elif item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="full random counts: needs --soak"))


@pytest.fixture(scope="session")
def soak(request: pytest.FixtureRequest) -> bool:
    """Whether full random counts are wanted."""
    return bool(request.config.getoption("--soak"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run's random choices."""
    return request.config.stash[_seed]
