"""
From a commit to the cluster on a real Argo CD: with our refresh, and left to its polling.

Needs what ``scripts/lab.sh`` builds. The polling is set to 10 s here, for a figure in two minutes:
by default Argo CD looks every 120 to 180 s, and its repo-server answers with what it saw up to 180
s ago (docs/figures.md has a run with that).
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figure import Figure, size, timed_s
from ground.argocd.delivery_obstacles import obstacle_of
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster

if TYPE_CHECKING:
    from deliveries import Delivery

ROOT = Path(__file__).parents[1]
POLLING_S, REFRESHED, POLLED = size((10, 10, 4), (3, 1, 1))


def figures() -> Iterator[Figure]:
    """Yield the times from the forge's answer to a commit until it is delivered."""
    sys.path.append(str(ROOT / "tests" / "support"))
    sys.path.append(str(ROOT))
    with tempfile.TemporaryDirectory() as place, _delivering(Path(place)) as delivery:
        number = iter(range(2, 1000))
        ours = [_taken_s(delivery, next(number), delivery.refresh) for _ in range(REFRESHED)]
        theirs = [_taken_s(delivery, next(number), lambda: None) for _ in range(POLLED)]
    ours_s, theirs_s = statistics.median(ours), statistics.median(theirs)
    yield Figure(
        "commit to delivered on a real Argo CD, refreshed",
        ours_s,
        "s",
        f"its polling, set to {POLLING_S} s",
        theirs_s,
        ours_s / theirs_s,
    )
    yield Figure("… the slowest", max(ours), "s", "its polling", max(theirs))


@contextlib.contextmanager
def _delivering(folder: Path) -> Iterator[Delivery]:
    """Start the lab and deliver a ConfigMap of a repository."""
    from deliveries import Delivery
    from lab import realargocd, realgitea, realkube
    from lab.realargocd import Wishes

    with contextlib.ExitStack() as undo:
        gitea = undo.enter_context(realgitea.serving(folder / "gitea"))
        kube = undo.enter_context(realkube.serving(folder / "kube"))
        wishes = Wishes(resync_s=POLLING_S)
        argocd = undo.enter_context(realargocd.serving(folder / "argocd", kube, wishes))
        argocd.lend(gitea.url, (gitea.user, gitea.token))
        forge = undo.enter_context(GiteaForge(gitea.url, token=gitea.token, allow_http=True))
        cluster = undo.enter_context(KubeCluster.from_kubeconfig(kube.kubeconfig))
        delivery = Delivery(forge, cluster, organisation="bench")
        delivery.push({"a.yaml": _text(1)})
        delivery.deliver("default")
        delivery.await_application(lambda found: obstacle_of(found) is None)
        yield delivery


def _taken_s(delivery: Delivery, number: int, told: Callable[[], object]) -> float:
    commit = delivery.push({"a.yaml": _text(number)})

    def wait() -> None:
        told()
        delivery.await_application(lambda found: obstacle_of(found, commit) is None)

    return timed_s(wait)


def _text(number: int) -> str:
    return (
        f'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bench\ndata:\n  number: "{number}"\n'
    )
