"""
What a Job controller and a kubelet do with one Job, for tests: our lab has neither.

Reads the Job from an API server (embedded or real), makes its volumes, runs its container
(`container`), tries again as backoffLimit and podFailurePolicy say, writes the status, and
removes the Job when its time is over. One container a Pod; no image is pulled: whatever the Job
names, the command is this checkout's. Retries follow at once, not with a growing delay.
"""

from __future__ import annotations

import base64
import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import container

from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey, dig
from orderkit.ports.cluster import Cluster

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
JOB, SECRET = Kind("batch", "v1", "Job"), Kind("", "v1", "Secret")
_OWNER = "job-runner"
_KILLED = 137


@dataclass(frozen=True)
class Attempt:
    """One Pod: how it ended and what it printed."""

    code: int
    output: str


@dataclass(frozen=True)
class JobRunner:
    """Runs Jobs of one cluster."""

    cluster: Cluster
    folder: Path
    issue_token: Callable[[str, str], str]
    """Namespace and ServiceAccount to a token."""
    on_start: Callable[[int, subprocess.Popen[bytes]], None] = field(default=lambda *_: None)
    """Called with the number of the attempt, from 1, once its container has started."""

    def run(self, namespace: str, name: str) -> list[Attempt]:
        """Run a Job to its end and return its Pods' ends, in order."""
        key = ObjectKey(JOB, name, namespace)
        job = self.cluster.get(key)
        assert job is not None, f"no {key}"
        attempts: list[Attempt] = []
        while True:
            attempts.append(self._attempt(job, len(attempts) + 1))
            condition = _verdict(job, attempts)
            self._note(key, attempts, condition)
            if condition is not None:
                return attempts

    def run_indexes(self, namespace: str, name: str) -> dict[int, list[Attempt]]:
        """Run an Indexed Job to its end, all indexes at once; return each one's Pods' ends."""
        key = ObjectKey(JOB, name, namespace)
        job = self.cluster.get(key)
        assert job is not None, f"no {key}"
        count = range(job["spec"]["completions"])
        with ThreadPoolExecutor(len(count)) as threads:
            ends = dict(zip(count, threads.map(lambda n: self._index(job, n), count), strict=True))
        failed = [index for index, attempts in ends.items() if attempts[-1].code != 0]
        reason = ("Failed", "FailedIndexes") if failed else ("Complete", "CompletionsReached")
        if self.cluster.get(key) is not None:
            self._note(key, [each for attempts in ends.values() for each in attempts], reason)
        return ends

    def _index(self, job: Manifest, index: int) -> list[Attempt]:
        attempts: list[Attempt] = []
        final = {
            code
            for rule in job["spec"]["podFailurePolicy"]["rules"]
            if rule["action"] != "Ignore"
            for code in rule["onExitCodes"]["values"]
        }
        key = ObjectKey.of(job)
        while len(attempts) <= job["spec"]["backoffLimitPerIndex"]:
            attempts.append(self._attempt(job, len(attempts) + 1, index))
            if attempts[-1].code in {0, *final} or self.cluster.get(key) is None:
                break
        return attempts

    def sweep(self, namespace: str, name: str, *, after_s: int) -> bool:
        """Remove an ended Job if `after_s` seconds after its end are enough; say if it went."""
        key = ObjectKey(JOB, name, namespace)
        job = self.cluster.get(key) or {}
        ended = dig(job, "status", "conditions", default=())
        if not ended or after_s < dig(job, "spec", "ttlSecondsAfterFinished", default=after_s + 1):
            return False
        return self.cluster.delete(key)

    def _attempt(self, job: Manifest, number: int, index: int | None = None) -> Attempt:
        place = self.folder / job["metadata"]["name"] / f"{index or 0}" / str(number)
        with contextlib.ExitStack() as undo:
            run = self.prepared(job, place, {} if index is None else {INDEX_VARIABLE: str(index)})
            process = container.start(run, place / "root", place / "log")
            undo.callback(container.kill, process)
            self.on_start(number, process)
            if index is not None:
                self._kill_when_deleted(ObjectKey.of(job), process)
            code = process.wait(dig(job, "spec", "activeDeadlineSeconds"))
        text = (place / "log").read_text(errors="replace")
        return Attempt(code if code >= 0 else _KILLED, text)

    def _kill_when_deleted(self, key: ObjectKey, process: subprocess.Popen[bytes]) -> None:
        """Wait for the process, as long as its Job is there; kill it then."""
        while process.poll() is None:
            if self.cluster.get(key) is None:
                container.kill(process)
                return
            time.sleep(0.1)

    def prepared(
        self, workload: Manifest, place: Path, more: Mapping[str, str] | None = None
    ) -> container.Run:
        """
        Make the volumes of a Pod of a Job or a Deployment; return what its container runs.

        Args:
            more: Variables besides those of the Pod that have values there.
        """
        pod = workload["spec"]["template"]["spec"]
        (spec,) = pod["containers"]
        volumes = {each["name"]: each for each in pod["volumes"]}
        mounts = [
            container.Mount(
                self._volume(volumes[each["name"]], workload, place),
                each["mountPath"],
                writable=not each.get("readOnly", False),
            )
            for each in spec["volumeMounts"]
        ]
        entry, image = container.our_image()
        environment = {each["name"]: each["value"] for each in spec["env"] if "value" in each}
        environment |= more or {}
        return container.Run(
            command=[entry, *(_expanded(text, environment) for text in spec["args"])],
            environment=environment,
            user=_user(pod, spec),
            mounts=[*mounts, *image],  # in this order: a checkout may lie below a volume
        )

    def _volume(self, volume: Mapping[str, Any], job: Manifest, place: Path) -> Path:
        folder: Path = place / "volumes" / volume["name"]
        folder.mkdir(parents=True)
        if "emptyDir" in volume:
            folder.chmod(0o777)
            return folder
        mode = volume["projected"].get("defaultMode", 0o644)
        for name, data in self._projected(volume["projected"]["sources"], job):
            file = folder / name
            file.write_bytes(data)
            file.chmod(mode | 0o004)  # the kubelet gives the files to fsGroup; here others read
        return folder

    def _projected(
        self, sources: list[dict[str, Any]], job: Manifest
    ) -> Iterator[tuple[str, bytes]]:
        namespace = job["metadata"]["namespace"]
        for source in sources:
            ((kind, said),) = source.items()
            if kind == "serviceAccountToken":
                account = job["spec"]["template"]["spec"]["serviceAccountName"]
                yield said["path"], self.issue_token(namespace, account).encode()
                continue
            wanted = CONFIG_MAP if kind == "configMap" else SECRET
            found = self.cluster.get(ObjectKey(wanted, said["name"], namespace))
            assert found is not None, f"{kind} {said['name']} is missing: the Pod would wait"
            paths = {each["key"]: each["path"] for each in said.get("items", ())}
            for name, text in found["data"].items():
                data = text.encode() if kind == "configMap" else base64.b64decode(text)
                if not paths or name in paths:
                    yield paths.get(name, name), data

    def _note(
        self, key: ObjectKey, attempts: list[Attempt], condition: tuple[str, str] | None
    ) -> None:
        failed = sum(each.code != 0 for each in attempts)
        status: dict[str, Any] = {"failed": failed, "succeeded": len(attempts) - failed}
        if condition:
            kind, reason = condition
            status["conditions"] = [{"type": kind, "status": "True", "reason": reason}]
        self.cluster.patch(key, {"status": status}, owner=_OWNER, status=True)


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Replace variables in an argument as the kubelet does; ``$$`` is a dollar."""

    def instead(found: re.Match[str]) -> str:
        return "$" if found["two"] else environment.get(found["name"], found[0])

    return re.sub(r"(?P<two>\$\$)|\$\((?P<name>[^)]*)\)", instead, text)


def _user(pod: Mapping[str, Any], spec: Mapping[str, Any]) -> int:
    said = {**pod["securityContext"], **spec["securityContext"]}
    user: int = said["runAsUser"]
    assert said["runAsNonRoot"], "the kubelet would have to look into the image"
    assert user != 0, "the kubelet refuses root"
    assert said["readOnlyRootFilesystem"], "this runner knows no other"
    return user


def _verdict(job: Manifest, attempts: list[Attempt]) -> tuple[str, str] | None:
    """Return the Job's final condition and its reason, or None to try again."""
    code = attempts[-1].code
    if code == 0:
        return "Complete", "CompletionsReached"
    for rule in dig(job, "spec", "podFailurePolicy", "rules", default=()):
        if rule["action"] == "FailJob" and code in rule["onExitCodes"]["values"]:
            return "Failed", "PodFailurePolicy"
    if len(attempts) > job["spec"]["backoffLimit"]:
        return "Failed", "BackoffLimitExceeded"
    return None
