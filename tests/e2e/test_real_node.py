"""
The service on a real node: Argo CD delivers it, kubelet, containerd and runc run its Pods.

The image is that of ``scripts/image.sh``, which ``make cluster`` builds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import labplatform
import pytest
import requests
from commands import as_process
from lab import realnode
from lab.daemons import Daemon
from labplatform import LabPlatform

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, condition, dig, metadata
from ground.shapes import changed
from orderkit.cli.connecting import SECRET_HEADER
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute
from orderkit.core.platform.service_objects import NAME, NAMESPACE
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock

POD = Kind("", "v1", "Pod")
SERVICE = ObjectKey(Kind("", "v1", "Service"), NAME, NAMESPACE)
IMAGES = ("orderkit.local/orderkit:v1", "orderkit.local/orderkit:v2")
"""One image under two names: to Kubernetes, two releases."""
WITHIN_S = 120.0

pytestmark = pytest.mark.skipif(
    bool(realnode.reason_not_possible()), reason=realnode.reason_not_possible()
)


@dataclass(frozen=True)
class Installed:
    """The lab after a bootstrap with ``service.install``."""

    lab: LabPlatform
    node: Daemon
    files: Sequence[Path]
    """platform.yaml with each of `IMAGES`."""

    def ready_pods(self) -> dict[str, Manifest]:
        """Return the service's Pods that are ready and not ending, by uid."""
        return {
            uid: pod
            for uid, pod in self.pods().items()
            if (condition(pod, "Ready") or {}).get("status") == "True"
            and "deletionTimestamp" not in pod["metadata"]
        }

    def pods(self) -> dict[str, Manifest]:
        found = self.lab.cluster.list(POD, namespace=NAMESPACE).items
        return {
            metadata(pod)["uid"]: pod
            for pod in found
            if dig(pod, "metadata", "labels", "app.kubernetes.io/name") == NAME
        }

    def ask(self, path: str) -> requests.Response:
        """Send a request to the Service over a new connection, as the portal."""
        address = dig(self.lab.cluster.get(SERVICE) or {}, "spec", "clusterIP")
        secret = Path(str(self.lab.settings.service.token_file)).read_text()
        with requests.Session() as session:
            session.trust_env = False
            headers = {SECRET_HEADER: secret}
            return session.get(f"http://{address}{path}", headers=headers, timeout=30)

    def awaited(self, done: Callable[[dict[str, Manifest]], bool], goal: str) -> Sequence[Manifest]:
        """Wait until the Pods that are ready are as wanted; return them."""
        clock = SystemClock()
        pods = until(clock, self.ready_pods, done, timeout_s=WITHIN_S, goal=goal)
        return list(pods.values())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("node")
    with labplatform.serving(folder, more_controllers=realnode.CONTROLLERS) as lab:
        port = urlsplit(lab.gitea.url).port
        assert port is not None
        with realnode.serving(folder / "n", lab.kube, names=IMAGES, ports=[port]) as node:
            forge = changed(
                lab.settings.forge, url=f"http://{realnode.HOST}:{port}", allow_http=True
            )
            files = []
            for number, image in enumerate(IMAGES):
                install = ServiceInstall(("backstage",), image, route=ServiceRoute("none"))
                service = changed(lab.settings.service, install=install)
                files.append(lab.written(f"v{number}", forge=forge, service=service))
            done = as_process(files[0])("bootstrap", "--no-probe", "--json")
            assert done.code == 0, done.out + done.err
            yield Installed(lab, node, files)


@contextlib.contextmanager
def reading(installed: Installed, readers: int) -> Iterator[list[int | str]]:
    """Ask again and again until the block ends; yield what each request came to."""
    answers: list[int | str] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.05):
            try:
                answers.append(installed.ask("/v1/orders").status_code)
            except requests.RequestException as error:
                answers.append(str(error))

    with ThreadPoolExecutor(readers) as pool:
        started = [pool.submit(read) for _ in range(readers)]
        try:
            yield answers
        finally:
            ended.set()
        for each in started:
            each.result()


def test_two_pods_run_and_answer_with_the_rights_of_their_account(installed: Installed) -> None:
    pods = installed.awaited(lambda found: len(found) == 2, "two Pods are ready")

    assert {dig(pod, "status", "phase") for pod in pods} == {"Running"}
    answer = installed.ask("/v1/orders")
    assert (answer.status_code, answer.json()["orders"]) == (200, [])
    metrics = installed.ask("/metrics").text
    assert "orderkit_model_complete 1" in metrics
    assert "orderkit_model_kinds_left_out 0" in metrics


def test_a_rolling_upgrade_fails_no_request(installed: Installed) -> None:
    old = installed.ready_pods().keys()
    upgrade = as_process(installed.files[1])

    with reading(installed, readers=2) as answers:
        done = upgrade("platform", "upgrade", "--json")
        pods = installed.awaited(
            lambda found: len(found) == 2 and old.isdisjoint(found), "two new Pods are ready"
        )
        until(
            SystemClock(),
            installed.pods,
            old.isdisjoint,
            timeout_s=WITHIN_S,
            goal="the old Pods are gone",
        )

    assert done.code == 0, done.out + done.err
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {IMAGES[1]}
    assert len(answers) > 100
    assert set(answers) == {200}


def test_a_killed_process_is_started_again_and_its_pod_serves(installed: Installed) -> None:
    uid = min(installed.ready_pods())

    for process in realnode.processes(uid):
        os.kill(process, signal.SIGKILL)

    def is_back(found: dict[str, Manifest]) -> bool:
        status = dig(found.get(uid), "status") or {"containerStatuses": [{}]}
        return bool(status["containerStatuses"][0].get("restartCount"))

    installed.awaited(is_back, "the killed Pod is ready again")
    assert installed.ask("/v1/orders").status_code == 200


def test_a_killed_node_leaves_nothing_running(installed: Installed) -> None:
    uid = min(installed.ready_pods())
    served = realnode.processes(uid)
    assert served
    assert realnode.INTERFACE.exists()

    installed.node.kill()

    until(
        SystemClock(),
        lambda: [each for each in served if Path(f"/proc/{each}").exists()],
        lambda left: not left and not realnode.INTERFACE.exists(),
        timeout_s=WITHIN_S,
        goal="its processes and its network are gone",
    )
