"""Real systems for the tests of the product, and which tests run when none is wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import realargocd, realgitea, realkube
from lab.binaries import NotBuiltError, built
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea
from lab.realkube import Kube
from tests.conformance.forge.coverage import Counting
from tests.workers import deselect

REAL = frozenset({"real", "argocd", "embedded-kube"})
"""How suites with several implementations name those that need a real system."""
CONFORMANCE, FAULTS = (Path(__file__).parent / name for name in ("conformance", "faults"))
"""Where those suites are."""
NEED_REAL = frozenset({"real_gitea", "real_kube", "real_argocd", "real", "readers"})
"""The fixtures of what ``make lab`` builds; `readers` are YAML readers, Go's among them."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counting())


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.items and not session.config.getoption("--house"):
        from tests.conformance.forge.judged import Judging  # it needs the stand-ins

        session.config.pluginmanager.register(Judging())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only-real"):
        deselect(config, items, lambda item: _is_two_sided(item) and not _needs_real(item))
    elif not (config.getoption("--soak") or config.getoption("--e2e") or _real_systems_named()):
        deselect(config, items, lambda item: _is_two_sided(item) and _is_about_real(item))


def _is_two_sided(item: pytest.Item) -> bool:
    return item.path.is_relative_to(CONFORMANCE) or item.path.is_relative_to(FAULTS)


def _is_about_real(item: pytest.Item) -> bool:
    return not REAL.isdisjoint(_parameters(item))


def _needs_real(item: pytest.Item) -> bool:
    """Say whether a test meets something that ``make lab`` builds."""
    fixtures = getattr(item, "fixturenames", ())
    return _is_about_real(item) or not NEED_REAL.isdisjoint(fixtures)


def _real_systems_named() -> bool:
    named = (realgitea.named_by_environment(os.environ), realkube.named_by_environment(os.environ))
    return any(system is not None for system in named)


def _parameters(item: pytest.Item) -> set[str]:
    """Return the parameters of a test that are plain words: the names of implementations."""
    case = getattr(item, "callspec", None)
    return {value for value in case.params.values() if isinstance(value, str)} if case else set()


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
