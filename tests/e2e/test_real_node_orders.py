"""
Orders and a real node: Jobs of campaigns and of one change, and the service as Helm installs it.

kubelet, containerd and runc run the image of ``scripts/image.sh``. Real Gitea, API server, Job
controller, Argo CD and Helm; our assembler stands for Crossplane.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import labplatform
import pytest
import requests
import yaml
from bays import EVE
from changingpack import changing_pack
from commands import as_process
from jobcampaigns import JobCampaigns, place_orders
from jobroom import furnish_cluster
from jobrunner import JOB
from lab import realnode
from lab.binaries import built
from lab.realkube import AGGREGATION
from labplatform import LabPlatform, bootstrapped

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from ground.shapes import changed, plain
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.cli.connecting import SECRET_HEADER
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.order_kinds import service_rules
from orderkit.core.kit.pack import read_pack
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.mounted_settings import mounted_settings
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute
from orderkit.core.platform.service_objects import NAME, service_parts
from orderkit.core.platform.service_objects import NAMESPACE as SERVICE_NAMESPACE
from orderkit.core.portal.runner_job import NAMESPACE, RunnerJob, image_of, manifest
from orderkit.flows.install.service_secret import ensure_service_secret
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.forge import REQUESTER_TRAILER

pytestmark = [
    pytest.mark.timeout(900),  # the lab and the node come up within the first test's time
    pytest.mark.skipif(bool(realnode.reason_not_possible()), reason=realnode.reason_not_possible()),
]
POD = Kind("", "v1", "Pod")
SERVICE = ObjectKey(Kind("", "v1", "Service"), NAME, SERVICE_NAMESPACE)
TEAMS = ("ae86", "fd3s", "rx7")
WAIT_S = 300.0
KILLED = 137


@dataclass(frozen=True)
class Site:
    """The lab with a node, furnished for Jobs, with orders."""

    lab: LabPlatform
    pack: Path
    platform: Platform
    folder: Path
    entries: tuple[OrderEntry, ...]

    @property
    def campaigns(self) -> JobCampaigns:
        command = as_process(self.lab.file)
        return JobCampaigns(self.platform, command, self.folder, self.entries, WAIT_S, self.states)

    def jobs(self) -> list[Manifest]:
        return list(self.platform.cluster.list(JOB, namespace=NAMESPACE).items)

    def pods(self) -> list[Manifest]:
        return list(self.platform.cluster.list(POD, namespace=NAMESPACE).items)

    def states(self) -> str:
        """Return how the Pods are, for who waits."""
        return str([(pod["metadata"]["name"], dig(pod, "status")) for pod in self.pods()])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("node-campaign")
    (folder / "lab").mkdir()
    pack = changing_pack(folder / "pack")
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(
            labplatform.serving(
                folder / "lab",
                teams=TEAMS,
                pack=pack,
                more_controllers=(*realnode.CONTROLLERS, AGGREGATION),
            )
        )
        port = urlsplit(lab.gitea.url).port
        assert port is not None
        images = [image_of("registry.local")]
        undo.enter_context(realnode.serving(folder / "n", lab.kube, names=images, ports=[port]))
        forge = changed(lab.settings.forge, url=f"http://{realnode.HOST}:{port}", allow_http=True)
        lab = replace(lab, settings=changed(lab.settings, forge=forge))
        lab.file.write_text(lab.settings.to_yaml())
        platform = undo.enter_context(bootstrapped(lab, pack))
        furnish_cluster(lab.settings, lab.cluster, has_node=True)
        entries = place_orders(platform, TEAMS, wait_s=WAIT_S)
        yield Site(lab, pack, platform, folder, entries)


def test_a_campaign_is_carried_out_by_pods_of_the_node(site: Site) -> None:
    site.campaigns.start("node", "stage2")

    site.campaigns.wait_done("node")

    pods = site.pods()
    images = {dig(pod, "spec", "containers")[0]["image"] for pod in pods}
    assert images == {image_of("registry.local")}
    assert {dig(pod, "spec", "nodeName") for pod in pods} == {"node"}
    assert len(site.jobs()) == 3, "the coordinator's, and one of each wave"


def test_it_ends_though_processes_of_its_pods_are_killed(site: Site) -> None:
    id_ = site.campaigns.start("killed", "stage3").id

    def working(step: str) -> list[int]:
        """Return the processes of a step's Pods that have begun."""
        name = f"campaign-killed-{id_[-8:]}-{step}"
        pods = [pod for pod in site.pods() if pod["metadata"]["name"].startswith(name)]
        return [each for pod in pods for each in realnode.processes(pod["metadata"]["uid"])]

    for step in ("w1", "c"):
        found = until(
            site.platform.clock, functools.partial(working, step), bool,
            timeout_s=WAIT_S, goal=f"Pods of {step}", why_not=lambda _: site.states(),
        )  # fmt: skip
        for process in found:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(process, signal.SIGKILL)

    site.campaigns.wait_done("killed")
    codes = [
        dig(status, "state", "terminated", "exitCode")
        for pod in site.pods()
        for status in dig(pod, "status", "containerStatuses", default=())
    ]
    assert KILLED in codes


def test_a_change_from_a_portal_runs_as_a_job(site: Site) -> None:
    order = site.entries[-1]
    asked = (f"--requester={EVE.ref}", "--operation=from-a-form", "--json", "--")
    job = RunnerJob(
        "change-one", image_of("registry.local"), ("change", *asked, order.order, "stage=stage2")
    )

    site.platform.cluster.apply(manifest(job), owner="portal")

    key = ObjectKey(JOB, job.name, NAMESPACE)
    conditions = until(
        site.platform.clock,
        lambda: dig(site.platform.cluster.get(key) or {}, "status", "conditions", default=()),
        lambda found: any(each["type"] in {"Complete", "Failed"} for each in found),
        timeout_s=WAIT_S, goal="the Job ends", why_not=lambda _: site.states(),
    )  # fmt: skip
    assert "Complete" in {each["type"] for each in conditions}
    (newest, *_) = site.platform.forge.commits(order.repository, limit=1)
    assert newest.trailers[REQUESTER_TRAILER] == EVE.ref


def test_the_chart_installs_a_service_that_answers(site: Site) -> None:
    """The namespace and the Secret are the administrator's, as docs/cluster.md says."""
    install = ServiceInstall(("backstage",), image_of("registry.local"), route=ServiceRoute("none"))
    service = changed(site.lab.settings.service, install=install)
    settings = changed(site.lab.settings, service=service)
    parts = service_parts(settings, service_rules(checked_kits(read_pack(read_folder(site.pack)))))
    assert parts is not None
    files = mounted_settings(settings)[1]
    contents = {name: Path(path).read_bytes() for name, path in files.items()}
    ensure_service_secret(site.platform.cluster, contents)
    values = site.folder / "values.yaml"
    values.write_text(
        yaml.safe_dump(
            {
                **plain(install),
                "platformYaml": parts.platform_yaml,
                "rules": list(parts.rules),
            }
        )
    )
    program, chart = built("helm") / "helm", Path(__file__).parents[2] / "charts" / NAME
    command = [program, "install", NAME, chart, "--namespace", SERVICE_NAMESPACE]
    environment = {"KUBECONFIG": str(site.lab.kube.kubeconfig), "HOME": str(site.folder)}

    done = subprocess.run(
        [*map(str, command), "--values", str(values), "--wait", "--timeout", "3m"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    address = dig(site.platform.cluster.get(SERVICE) or {}, "spec", "clusterIP")
    with requests.Session() as session:
        session.trust_env = False
        headers = {SECRET_HEADER: Path(str(service.token_file)).read_text()}
        answer = session.get(f"http://{address}/v1/orders", headers=headers, timeout=60)
    assert {each["order"] for each in answer.json()["orders"]} == {
        entry.order for entry in site.entries
    }
