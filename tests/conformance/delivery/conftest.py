"""The platforms of the delivery scenarios, and what came of playing them; `platforms` says whom."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from lab import realkube
from lab.realargocd import ArgoCD
from tests.conformance.delivery import platforms, repositories
from tests.conformance.delivery.judging import as_recorded, otherwise
from tests.conformance.delivery.playing import Outcome, play_all, play_until
from tests.conformance.delivery.repositories import Repositories
from tests.workers import summary

Outcomes = dict[str, Outcome]


@pytest.fixture(scope="package")
def delivery_repositories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repositories]:
    """A forge over HTTP that all platforms clone from."""
    with repositories.serving(tmp_path_factory.mktemp("delivery-forge")) as found:
        yield found


@pytest.fixture(scope="package")
def on_embedded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    delivery_repositories: Repositories,
) -> Outcomes:
    """What the embedded Argo CD did on the embedded cluster."""
    folder = tmp_path_factory.mktemp("delivery-cluster")
    with platforms.embedded(folder, delivery_repositories) as platform:
        return play_all(platform, _wanted(request.session, "embedded"))


@pytest.fixture(scope="package")
def on_real_systems(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    delivery_repositories: Repositories,
) -> dict[str, Outcomes]:
    """
    What both deliverers did, each on a real API server of its own, at the same time.

    Only those that this run has tests of are started. What Argo CD does otherwise than was recorded
    is played again and told at the end of the run; ours has one try.
    """
    wanted = {name: _wanted(request.session, name) for name in ("embedded-kube", "argocd")}
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        playing = []
        if wanted["argocd"]:
            argocd: ArgoCD = request.getfixturevalue("real_argocd")
            real = platforms.argocd(argocd.kube.kubeconfig, delivery_repositories)
            playing.append(stack.enter_context(real))
        if wanted["embedded-kube"]:
            kube = stack.enter_context(realkube.serving(tmp_path_factory.mktemp("delivery-kube")))
            ours = platforms.embedded_kube(kube.kubeconfig, delivery_repositories)
            playing.append(stack.enter_context(ours))
        futures = {
            one.name: pool.submit(play_until, one, wanted[one.name], as_recorded)
            if one.name == "argocd"
            else pool.submit(play_all, one, wanted[one.name])
            for one in playing
        }
        found = {name: future.result() for name, future in futures.items()}
    played_again = [
        f"{name}, play {play}: {otherwise(name, before)}"
        for name, outcome in found.get("argocd", {}).items()
        for play, before in enumerate(outcome.earlier, 1)
    ]
    title = "delivery scenarios played again on Argo CD, and what it did otherwise before"
    summary(request.config).add(title, lambda: played_again)
    return found


def _wanted(session: pytest.Session, platform: str) -> list[str]:
    """Return the scenarios that this run plays on a platform, in order."""
    calls = [item.callspec.params for item in session.items if hasattr(item, "callspec")]
    mine = [call for call in calls if call.get("platform") == platform]
    return list(dict.fromkeys(str(call["name"]) for call in mine if "name" in call))
