"""Options and the report's header for the whole tree of tests."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from lab import realargocd, realgitea, realkube
from lab.binaries import NotBuiltError, built
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea
from lab.realkube import Kube
from tests.conformance.forge.coverage import Counting
from tests.workers import Workers

SOAK_TIMEOUT_S = 7200
SHORT_SEED = 1
REAL = frozenset({"real", "argocd", "embedded-kube"})
"""How suites with several implementations name those that need a real system."""
CONFORMANCE, FAULTS = (Path(__file__).parent / name for name in ("conformance", "faults"))
"""Where those suites are."""
NEED_REAL = frozenset({"real_gitea", "real_kube", "real_argocd", "real", "readers"})
"""The fixtures of what ``make lab`` builds; `readers` are YAML readers, Go's among them."""
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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Workers())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counting())
    given, soak = config.getoption("--orderkit-seed"), config.getoption("--soak")
    fresh = random.SystemRandom().randrange(1_000_000) if soak else SHORT_SEED
    config.stash[_seed] = fresh if given is None else given
    # A short run must say the same of the same commit every time; exploring is the soak's part.
    settings.register_profile("short", derandomize=True, deadline=None)
    settings.load_profile("default" if soak or given is not None else "short")
    # A job in a shell's background ignores ctrl-C, and so do its children, to whom tests send it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    counts = "full (--soak)" if config.getoption("--soak") else "short"
    return f"orderkit: seed {config.stash[_seed]} (--orderkit-seed), random counts {counts}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    soak = config.getoption("--soak")
    if config.getoption("--only-real"):
        _deselect(config, items, lambda item: _is_two_sided(item) and not _needs_real(item))
    elif not (soak or config.getoption("--e2e") or _real_systems_named()):
        _deselect(config, items, lambda item: _is_two_sided(item) and _is_about_real(item))
    if not soak:
        _deselect(config, items, lambda item: item.get_closest_marker("soak") is not None)
        return
    for item in items:
        item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S), append=False)


def _is_two_sided(item: pytest.Item) -> bool:
    return item.path.is_relative_to(CONFORMANCE) or item.path.is_relative_to(FAULTS)


def _is_about_real(item: pytest.Item) -> bool:
    return not REAL.isdisjoint(_parameters(item))


def _needs_real(item: pytest.Item) -> bool:
    """Say whether a test meets something that ``make lab`` builds."""
    fixtures = getattr(item, "fixturenames", ())
    return _is_about_real(item) or not NEED_REAL.isdisjoint(fixtures)


def _deselect(
    config: pytest.Config, items: list[pytest.Item], unwanted: Callable[[pytest.Item], bool]
) -> None:
    config.hook.pytest_deselected(items=[item for item in items if unwanted(item)])
    items[:] = [item for item in items if not unwanted(item)]


def _real_systems_named() -> bool:
    named = (realgitea.named_by_environment(os.environ), realkube.named_by_environment(os.environ))
    return any(system is not None for system in named)


def _parameters(item: pytest.Item) -> set[str]:
    """Return the parameters of a test that are plain words: the names of implementations."""
    case = getattr(item, "callspec", None)
    return {value for value in case.params.values() if isinstance(value, str)} if case else set()


@dataclass(frozen=True)
class Chances:
    """The random choices of a run: its seed, and how many are wanted."""

    seed: int
    soak: bool

    def random(self, name: str) -> random.Random:
        """Return the choices of one test: the same for the same seed and name."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311  no secrets

    def count(self, short: int, full: int) -> int:
        return full if self.soak else short


@pytest.fixture(scope="session")
def real_gitea(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gitea]:
    """
    A real Gitea for all tests: the one the environment names, else one of our own.

    Ours runs with ``--e2e``, and with ``--soak`` where ``make lab`` was run; else the test is
    skipped.
    """
    named = realgitea.named_by_environment(os.environ)
    if named is not None:
        yield named
        return
    _skip_unless_wanted(request.config, "gitea")
    with realgitea.serving(tmp_path_factory.mktemp("gitea")) as found:
        yield found


@pytest.fixture(scope="session")
def real_kube(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kube]:
    """A real Kubernetes API server for all tests; the rules are those of `real_gitea`."""
    named = realkube.named_by_environment(os.environ)
    if named is not None:
        yield named
        return
    _skip_unless_wanted(request.config, "kube")
    with realkube.serving(tmp_path_factory.mktemp("kube")) as found:
        yield found


@pytest.fixture(scope="session")
def real_argocd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ArgoCD]:
    """
    A real Argo CD beside `real_kube` (its ``.kube``), with the reference pack's settings.

    It reads over HTTP, for example from `real_gitea`. Tests share it: names of their own, and
    no Application left behind. The rules are those of `real_gitea`; it is never one from outside.
    """
    _skip_unless_wanted(request.config, "argocd")
    kube = request.getfixturevalue("real_kube")
    with realargocd.serving(tmp_path_factory.mktemp("argocd"), kube) as found:
        yield found


def _skip_unless_wanted(config: pytest.Config, part: str) -> None:
    """Real systems run in whole journeys, and in a soak where they were built."""
    if config.getoption("--e2e"):
        return
    if not config.getoption("--soak"):
        pytest.skip(f"a real {part}: needs --e2e")
    try:
        built(part)
    except NotBuiltError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def chances(request: pytest.FixtureRequest) -> Chances:
    """Random choices that the seed in the report's header repeats."""
    return Chances(request.config.stash[_seed], soak=bool(request.config.getoption("--soak")))
