"""
What a kubelet does with the Pods that a Job controller makes, for tests: it runs their containers.

Looks at one namespace a few times a second: starts what is new (as ``jobrunner`` starts a Job's
container), writes phase and exit code, kills what was deleted. There is no scheduler, so a deleted
Pod is gone at once, as one that no node has. One container a Pod.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import container
from jobrunner import INDEX_VARIABLE, JobRunner

from ground.errors import NotFoundError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.core.portal.runner_job import NAMESPACE

POD = Kind("", "v1", "Pod")
_OWNER = "kubelet"
_LOOK_EVERY_S = 0.2
_KILLED = 137
_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass
class PodRunner:
    """Runs the Pods of one namespace. Use `running`."""

    runner: JobRunner
    folder: Path
    logs: dict[str, Path] = field(default_factory=dict)
    """By Pod, all that were ever run."""
    _running: dict[str, tuple[ObjectKey, subprocess.Popen[bytes]]] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def running(self) -> Iterator[PodRunner]:
        """Look after Pods within the block; kill what still runs at its end."""
        thread = threading.Thread(target=self._keep_looking, name="kubelet")
        thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            thread.join()
            for _, process in self._running.values():
                container.kill(process)

    def names(self, prefix: str = "") -> list[str]:
        """Return the Pods whose containers run now."""
        with self._lock:
            names = [key.name for key, _ in self._running.values()]
        return sorted(name for name in names if name.startswith(prefix))

    def kill(self, name: str, *, disrupted: bool = False) -> None:
        """Kill a Pod's container, as memory that is used up does, or as a node that is drained."""
        with self._lock:
            found = [(k, p) for k, p in self._running.values() if k.name == name]
        for key, process in found:
            if disrupted:
                condition = {"type": "DisruptionTarget", "status": "True", "reason": "Evicted"}
                self._patch(key, {"conditions": [condition]})
            container.kill(process)

    def _keep_looking(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY_S):
            with contextlib.suppress(OSError, OrderkitError):  # the API server restarts
                self._look()

    def _look(self) -> None:
        pods = self.runner.cluster.list(POD, namespace=NAMESPACE).items
        there = {each["metadata"]["uid"] for each in pods}
        for uid, (key, process) in list(self._running.items()):
            if uid not in there:
                container.kill(process)
            if (code := process.poll()) is not None:
                if uid in there:
                    self._patch(key, _ended(code if code >= 0 else _KILLED))
                with self._lock:
                    del self._running[uid]
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid in self._running or dig(pod, "status", "phase") != "Pending":
                continue
            self._start(pod)

    def _start(self, pod: Manifest) -> None:
        meta = pod["metadata"]
        index = dig(meta, "annotations", _INDEX)
        more = {} if index is None else {INDEX_VARIABLE: index}
        place = self.folder / meta["name"]
        workload = {"metadata": meta, "spec": {"template": {"spec": pod["spec"]}}}
        run = self.runner.prepared(workload, place, more)
        process = container.start(run, place / "root", place / "log")
        with self._lock:
            self._running[meta["uid"]] = (ObjectKey.of(pod), process)
        self.logs[meta["name"]] = place / "log"
        self._patch(ObjectKey.of(pod), {"phase": "Running", "startTime": _now()})

    def _patch(self, key: ObjectKey, status: dict[str, Any]) -> None:
        with contextlib.suppress(NotFoundError):  # it was deleted meanwhile
            self.runner.cluster.patch(key, {"status": status}, owner=_OWNER, status=True)


def _ended(code: int) -> dict[str, Any]:
    reason = "Completed" if code == 0 else "Error"
    ended = {"exitCode": code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}
    state = {
        "name": "orderkit",
        "state": {"terminated": ended},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }
    phase = "Succeeded" if code == 0 else "Failed"
    return {"phase": phase, "containerStatuses": [state]}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
