"""
The service, installed by a bootstrap of the lab: real Gitea, real API server, real Argo CD.

Argo CD applies the layer. The lab has no kubelet: the runner of the project starts the Pods of the
Deployment, with their volumes, their user, and the real rights of their account.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import container
import labplatform
import pytest
import yaml
from commands import as_process
from jobrunner import JobRunner
from lab import accounts
from lab.binaries import built
from labplatform import LabPlatform
from servedprocess import ServedProcess

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from ground.shapes import changed
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute
from orderkit.core.platform.service_objects import NAME, NAMESPACE
from orderkit.flows.argocd.refreshing import application_key

DEPLOYMENT = ObjectKey(Kind("apps", "v1", "Deployment"), NAME, NAMESPACE)
POD = Kind("", "v1", "Pod")
WITHIN_S = 180.0
RULES = Kind("monitoring.coreos.com", "v1", "PrometheusRule")

pytestmark = pytest.mark.skipif(
    bool(container.reason_not_possible()), reason=container.reason_not_possible()
)


@dataclass(frozen=True)
class Installed:
    """The lab after a bootstrap with ``service.install``."""

    lab: LabPlatform
    file: Path
    folder: Path

    @property
    def deployment(self) -> Manifest:
        found = self.lab.cluster.get(DEPLOYMENT)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    with labplatform.serving(folder, twins=True) as lab:
        for crd in built("neighbourcrds").glob("*.yaml"):
            lab.cluster.apply(yaml.load(crd.read_bytes(), yaml.CSafeLoader), owner="lab")
        clients = lab.folder / "clients.yaml"
        access = changed(lab.settings.service.access, tokens_file=clients)
        install = ServiceInstall(("ingress-nginx",), route=ServiceRoute("none"), monitoring=True)
        service = changed(lab.settings.service, access=access, install=install)
        file = lab.written("installing", service=service)
        added = as_process(file)(
            "access", "add", "prometheus", "--everywhere", "--right", "observe"
        )
        assert added.code == 0, added.err
        done = as_process(file)("bootstrap", "--no-probe", "--json")
        assert done.code == 0, done.out + done.err
        yield Installed(lab, file, folder)


@contextlib.contextmanager
def replica(installed: Installed, name: str) -> Iterator[ServedProcess]:
    """Start a Pod of the Deployment; yield it when it is ready."""
    lab, place = installed.lab, installed.folder / name
    kubeconfig = lab.argocd.kube.kubeconfig
    server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    lab.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kube-root-ca.crt", "namespace": NAMESPACE},
            "data": {"ca.crt": Path(server["certificate-authority"]).read_text()},
        },
        owner="kubelet",
    )
    runner = JobRunner(
        lab.cluster, place, lambda space, who: accounts.issue_token(kubeconfig, space, who)
    )
    run = runner.prepared(installed.deployment, place)
    own = place / "volumes" / "settings" / "kubeconfig"
    own.chmod(0o644)
    own.write_text(own.read_text().replace("https://kubernetes.default.svc", server["server"]))
    # Pods have an address of their own; here all share the loopback
    others = [each for each in run.command if not re.match("--(host|port|behind-tls)", each)]
    process = container.start(
        replace(run, command=[*others, "--port=0"]), place / "root", place / "log"
    )
    try:
        service = ServedProcess(_address(process.poll, place / "log"), process, place / "log")
        service.wait_until_ready()
        yield service
    finally:
        container.kill(process)


def _address(poll: object, log: Path) -> str:
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        if found := re.search(r"runs: (\S+)", log.read_text()):
            return found[1]
        assert callable(poll)
        assert poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_argo_cd_delivers_every_object_of_the_layer(installed: Installed) -> None:
    application = installed.lab.cluster.get(application_key("service")) or {}

    assert dig(application, "status", "sync", "status") == "Synced"
    kinds = {each["kind"] for each in dig(application, "status", "resources")}
    assert {"Deployment", "PodDisruptionBudget", "NetworkPolicy", "CronJob", "ClusterRole"} <= kinds
    assert installed.lab.cluster.get(ObjectKey(RULES, NAME, NAMESPACE)) is not None


def test_a_pod_of_it_satisfies_the_restricted_standard(installed: Installed) -> None:
    template = installed.deployment["spec"]["template"]
    meta = {**template["metadata"], "name": "tried", "namespace": NAMESPACE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}

    installed.lab.cluster.create(pod, owner="test")

    assert installed.lab.cluster.delete(ObjectKey(POD, "tried", NAMESPACE))


def test_two_replicas_serve_with_their_own_rights_and_one_may_be_killed(
    installed: Installed,
) -> None:
    secret = Path(str(installed.lab.settings.service.token_file)).read_text()
    with replica(installed, "first") as first, replica(installed, "second") as second:
        for service in (first, second):
            answer = service.ask("GET", "/v1/orders", secret)
            assert (answer.status_code, answer.json()["orders"]) == (200, [])
            metrics = service.ask("GET", "/metrics", secret).text
            assert "orderkit_model_complete 1" in metrics
            assert "orderkit_model_kinds_left_out 0" in metrics
            assert "may not" not in service.log.read_text()
        container.kill(first.process)

        assert second.ask("GET", "/readyz").status_code == 200
        assert second.ask("GET", "/v1/kits", secret).status_code == 200
        token = (installed.folder / "second/volumes/settings/forge.tokenFile").read_text()
        assert token.strip() not in second.log.read_text()
