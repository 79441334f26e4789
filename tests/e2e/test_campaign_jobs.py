"""
Campaigns in a real cluster: the real Job controller makes the Pods, and Pods are killed.

Real Gitea, real API server, real Argo CD; our assembler stands for Crossplane, and our own runner
of Pods for the kubelet (``podrunner``).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import container
import labplatform
import pytest
from bays import EVE
from changingpack import changing_pack
from commands import Command, as_process
from jobcampaigns import JobCampaigns, place_orders
from jobroom import furnish_cluster
from jobrunner import JOB, JobRunner
from lab import accounts
from lab.realkube import AGGREGATION, JOBS
from labplatform import bootstrapped
from podrunner import PodRunner

from ground.objects.kube_objects import Manifest, dig
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.portal.runner_job import NAMESPACE
from orderkit.flows.campaign import starting
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until

_WHY = container.reason_not_possible()
pytestmark = [
    pytest.mark.timeout(900),  # the lab comes up within the first test's time
    pytest.mark.skipif(bool(_WHY), reason=f"no containers here: {_WHY}"),
    # CPython 3.11's SSLSocket is not closed if the server resets it between connect and handshake
    # (`_create`: getpeername says ENOTCONN, recv ECONNRESET), as a killed API server does.
    pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning"),
]
CONTROLLERS = (JOBS, AGGREGATION)
TEAMS = ("ae86", "fd3s", "rx7", "skyline", "supra")
WAIT_S = 240.0


@dataclass(frozen=True)
class Site:
    """The lab, furnished for Jobs, with orders."""

    platform: Platform
    orderkit: Command
    pods: PodRunner
    restart: Callable[[], None]
    """Of the API server."""
    folder: Path
    entries: tuple[OrderEntry, ...]

    @property
    def campaigns(self) -> JobCampaigns:
        return JobCampaigns(
            self.platform, self.orderkit, self.folder, self.entries, WAIT_S, self.logs
        )

    def logs(self) -> str:
        return "\n".join(f"{pod}: {log.read_text()[-800:]}" for pod, log in self.pods.logs.items())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("campaign-jobs")
    (folder / "lab").mkdir()
    pack = changing_pack(folder / "pack")
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(
            labplatform.serving(
                folder / "lab", teams=TEAMS, pack=pack, more_controllers=CONTROLLERS
            )
        )
        platform = undo.enter_context(bootstrapped(lab, pack))
        furnish_cluster(lab.settings, lab.cluster)
        issue = functools.partial(accounts.issue_token, Path(lab.settings.cluster.kubeconfig))
        runner = JobRunner(lab.cluster, folder, issue)
        pods = undo.enter_context(PodRunner(runner, folder / "pods").running())
        entries = place_orders(platform, TEAMS, wait_s=WAIT_S)
        assert lab.kube.restart is not None
        yield Site(platform, as_process(lab.file), pods, lab.kube.restart, folder, entries)


def _job(site: Site, prefix: str) -> Manifest:
    (job,) = [
        each
        for each in site.platform.cluster.list(JOB, namespace=NAMESPACE).items
        if each["metadata"]["name"].startswith(prefix)
    ]
    return job


def _conditions(job: Manifest) -> set[str]:
    return {each["type"] for each in dig(job, "status", "conditions", default=())}


def test_a_campaign_ends_though_its_pods_are_killed(site: Site) -> None:
    clock = site.platform.clock
    waves = f"campaign-killed-{site.campaigns.start('killed', 'stage2').id[-8:]}-w"
    (canary,) = until(
        clock, lambda: site.pods.names(f"{waves}1"), bool, timeout_s=60, goal="the canary's Pod"
    )
    site.pods.kill(canary)
    several = until(
        clock, lambda: site.pods.names(f"{waves}2"), lambda found: len(found) == 2,
        timeout_s=WAIT_S, goal="two Pods of the second wave", why_not=lambda _: site.logs(),
    )  # fmt: skip
    for name in several:
        site.pods.kill(name, disrupted=True)
    for name in site.pods.names(waves.removesuffix("w") + "c"):
        site.pods.kill(name)

    site.campaigns.wait_done("killed")
    job = until(  # the campaign is read from Git: its last Pod may still be about to end
        clock, lambda: _job(site, f"{waves}2"), lambda job: "Complete" in _conditions(job),
        timeout_s=WAIT_S, goal="the Job of the second wave", why_not=lambda job: str(job["status"]),
    )  # fmt: skip
    assert dig(job, "status", "failed", default=0) == 0, "what is evicted does not count"


def test_a_campaign_ends_though_the_api_server_is_restarted(site: Site) -> None:
    """Killed while the Pods of a wave and the coordinator work; its etcd stays."""
    waves = f"campaign-severed-{site.campaigns.start('severed', 'stage3').id[-8:]}-w"
    until(
        site.platform.clock, lambda: site.pods.names(f"{waves}2"), bool,
        timeout_s=WAIT_S, goal="a Pod of the second wave", why_not=lambda _: site.logs(),
    )  # fmt: skip

    site.restart()

    site.campaigns.wait_done("severed")


def test_a_paused_campaign_lets_its_pods_end_and_goes_on(site: Site) -> None:
    site.campaigns.start("paused", "stage2")
    starting.pause(site.platform, "paused", EVE, "the demo is at noon")
    until(
        site.platform.clock, lambda: site.pods.names("campaign-paused"), lambda found: not found,
        timeout_s=WAIT_S, goal="its Pods end", why_not=lambda _: site.logs(),
    )  # fmt: skip
    assert site.campaigns.record("paused").state == "paused"

    resumed = site.orderkit("campaign", "resume", "paused", "--in-cluster", "--shards=2")

    assert resumed.code == 0, resumed.err
    site.campaigns.wait_done("paused")
