"""Options, random choices and the report's header for the tests of every house."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from chances import Chances
from hypothesis import settings
from scripts.houses import HOUSES, below
from tests.workers import Workers, deselect

SOAK_TIMEOUT_S = 7200
SHORT_SEED = 1
_seed = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("orderkit")
    group.addoption("--soak", action="store_true", help="full random counts, and tests marked soak")
    group.addoption("--e2e", action="store_true", help="whole journeys too: tests/e2e")
    group.addoption(
        "--only-real",
        action="store_true",
        help="leave out what suites say of the embedded stand-ins: `make test-all` judges those",
    )
    group.addoption(
        "--house",
        metavar="FOLDER",
        choices=[house.folder for house in HOUSES],
        help="refuse imports of the houses above this one: what `make test HOUSE=FOLDER` does",
    )
    group.addoption(
        "--leave-after",
        type=float,
        metavar="SECONDS",
        help="leave out modules that have not begun by then, and name them: for a slow machine",
    )
    group.addoption(
        "--orderkit-seed",
        type=int,
        default=None,
        help="seed of the random choices (default: always the same; with --soak a new one)",
    )
    group.addoption(
        "--orderkit-forge",
        choices=["gitea", "github", "gitlab"],
        default="gitea",
        help="whose dialect the forge of each embedded platform speaks that names none",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Workers())
    given, soak = config.getoption("--orderkit-seed"), config.getoption("--soak")
    fresh = random.SystemRandom().randrange(1_000_000) if soak else SHORT_SEED
    config.stash[_seed] = fresh if given is None else given
    # A short run must say the same of the same commit every time; exploring is the soak's part.
    settings.register_profile("short", derandomize=True, deadline=None)
    settings.load_profile("default" if soak or given is not None else "short")
    # A job in a shell's background ignores ctrl-C, and so do its children, to whom tests send it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--orderkit-forge") != "gitea":
        from orderkit_standins import serve_platform

        serve_platform.FIRST_FORGE = config.getoption("--orderkit-forge")
    house = config.getoption("--house")
    if house:
        sys.meta_path.insert(0, NotBelow(house))


class NotBelow:
    """Refuses imports of the houses that do not lie below one."""

    def __init__(self, house: str) -> None:
        self._house = house
        self._refused = {other.package for other in HOUSES} - below(house)

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ImportError: it is part of such a house."""
        if name.partition(".")[0] in self._refused:
            raise ImportError(f"{name} does not lie below {self._house}", name=name)
        return None


def pytest_report_header(config: pytest.Config) -> str:
    counts = "full (--soak)" if config.getoption("--soak") else "short"
    return f"orderkit: seed {config.stash[_seed]} (--orderkit-seed), random counts {counts}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        deselect(config, items, lambda item: item.get_closest_marker("soak") is not None)
        return
    for item in items:
        item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S), append=False)


@pytest.fixture(scope="session")
def chances(request: pytest.FixtureRequest) -> Chances:
    """Random choices that the seed in the report's header repeats."""
    return Chances(request.config.stash[_seed], soak=bool(request.config.getoption("--soak")))
