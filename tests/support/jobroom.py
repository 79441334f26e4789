"""
The room in which Jobs run on an embedded platform: account, rights, settings, credentials, forms.

Furnishes the cluster as a platform's people do (docs/job.md), writes the portal's copy of a form
(profile ``job``), and runs the Job that sending it started (``jobrunner``). Called by the tests of
Jobs.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from commands import Command
from jobrunner import JOB, Attempt, JobRunner

from ground.objects.kube_objects import Manifest, dig
from orderkit.core.platform.baking import SENTINEL
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.portal.job_copy import job_copy
from orderkit.core.portal.runner_job import CREDENTIALS, NAMESPACE
from orderkit.ports.cluster import Cluster
from orderkit_standins.serve_platform import Running

_MANIFESTS = Path(__file__).parents[2] / "day2" / "job"


def furnish(platform: Running) -> None:
    """Put what Jobs need into the cluster of an embedded platform."""
    furnish_cluster(platform.settings, platform.platform.cluster)


def furnish_cluster(
    settings: PlatformSettings, cluster: Cluster, *, has_node: bool = False
) -> None:
    """
    Put what Jobs need into a cluster.

    Args:
        has_node: Pods reach the API server by its name, and its authority is published to them.
    """
    kubeconfig = yaml.safe_load(Path(settings.cluster.kubeconfig).read_text())
    server = kubeconfig["clusters"][0]["cluster"]
    values = {
        b"FORGE_URL": settings.forge.url,
        b"PORTAL_URL": settings.portal.url,
        b"SERVICE_URL": settings.service.url,
        b"REGISTRY": "registry.local",
    }
    for file in (*sorted(_MANIFESTS.glob("*.yaml")), _MANIFESTS / "campaigns" / "rights.yaml"):
        text = SENTINEL.sub(lambda found: values[found[1]].encode(), file.read_bytes()).decode()
        if not has_node:
            text = text.replace("https://kubernetes.default.svc", server["server"])
        if settings.forge.allow_http:
            text = text.replace(
                "tokenFile: forge-token\n", "tokenFile: forge-token\n        allowHttp: true\n"
            )
        for each in yaml.safe_load_all(text):
            cluster.apply(each, owner="platform")
    if not has_node:
        _publish_authority(
            cluster,
            Path(settings.cluster.kubeconfig).parent / server["certificate-authority"],
        )
    files = {
        "forge-token": settings.forge.token_file,
        "portal-token": settings.portal.token_file,
        "service-secret": settings.service.token_file,
    }
    data = {
        name: base64.b64encode(Path(file).read_bytes()).decode()
        for name, file in files.items()
        if file
    }
    meta = {"name": CREDENTIALS, "namespace": NAMESPACE}
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    cluster.apply(secret, owner="platform")


def _publish_authority(cluster: Cluster, file: Path) -> None:
    """Do what the controller manager does in each namespace."""
    meta = {"name": "kube-root-ca.crt", "namespace": NAMESPACE}
    made: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    cluster.apply({**made, "data": {"ca.crt": file.read_text()}}, owner="platform")


def runner_of(
    platform: Running,
    folder: Path,
    on_start: Callable[[int, subprocess.Popen[bytes]], None] | None = None,
) -> JobRunner:
    """Return what runs Jobs of this platform, with its administrator's token."""
    kubeconfig = yaml.safe_load(Path(platform.settings.cluster.kubeconfig).read_text())
    token = kubeconfig["users"][0]["user"]["token"]
    found = JobRunner(platform.platform.cluster, folder, lambda *_: token)
    return JobRunner(found.cluster, found.folder, found.issue_token, on_start or found.on_start)


def only(runner: JobRunner, job: str) -> Attempt:
    """Run a Job that needs one attempt."""
    attempts = runner.run(NAMESPACE, job)
    assert len(attempts) == 1, attempts[0].output
    return attempts[0]


@dataclass
class Portal:
    """Sends forms as a portal of profile ``job`` does, and runs the Jobs that they start."""

    platform: Running
    orderkit: Command
    runner: JobRunner
    folder: Path
    values: Mapping[str, str] = field(default_factory=dict)
    """Of ``spec.values``: what kits bake into hidden fields."""
    done: list[str] = field(default_factory=list)

    def send(self, form: Path, *values: str) -> Attempt:
        """Send a form, run its Job, and return how that ended."""
        number = len(self.done)
        copy = self._copied(form, self.folder / f"{form.stem}-{number}")
        told = (part for value in values for part in ("-p", value))
        ran = self.orderkit("run", str(copy), *told)
        assert ran.code == 0, ran.err
        (job,) = self._jobs() - {*self.done}
        self.done.append(job)
        return only(self.runner, job)

    def ignore_others(self) -> None:
        """Leave alone what others have started until now."""
        self.done.extend(self._jobs() - {*self.done})

    def _jobs(self) -> set[str]:
        found = self.platform.platform.cluster.list(JOB, namespace=NAMESPACE).items
        return {str(dig(each, "metadata", "name")) for each in found}

    def _copied(self, form: Path, folder: Path) -> Path:
        """Write the portal's copy of a form, baked, with what lies beside it."""
        settings = self.platform.settings
        values = {
            "FORGE_HOST": settings.forge.url.partition("://")[2],
            "SERVICE_URL": settings.service.url,
            "PACK_COMMIT": "1" * 40,
            "REGISTRY": "registry.local",
            "CLUSTER_NAME": "local",
            **self.values,
        }
        folder.mkdir(parents=True)
        data = job_copy(form.read_bytes(), name=form.name)
        copy = folder / form.name
        copy.write_bytes(SENTINEL.sub(lambda found: values[found[1].decode()].encode(), data))
        skeleton = form.parent / "skeleton"
        if skeleton.is_dir():
            shutil.copytree(skeleton, folder / "skeleton")
        return copy
