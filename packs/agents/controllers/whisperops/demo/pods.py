"""
The pack's Deployments as processes of this machine, for a cluster in which nothing runs.

What a Pod of ``gitops/controllers`` would run is read from the cluster: the container's arguments,
with the variables that it takes from ConfigMaps. Changed are only the place of platform.yaml and
the address of the probes. One process for each Deployment, whatever its replicas; no image, no
limits, no probes, no restart: a process that ends is an error.

Called by ``playing``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orderkit.core.errors import IncompleteError, NotFoundError
from orderkit.core.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey, dig
from orderkit.ports.cluster import Cluster
from whisperops.demo.kagent import DEPLOYMENT

NAMESPACE = "whisperops"
NAMES = ("dataset-watcher", "spend-meter")
_VARIABLE = re.compile(r"\$\(([A-Z_]+)\)")
_STOP_S = 20.0


def arguments(cluster: Cluster, name: str, *, settings_file: Path) -> list[str]:
    """
    Return what follows ``python -m whisperops`` in a Deployment of the pack.

    Raises:
        NotFoundError: No such Deployment, or a ConfigMap that it reads has no such key.
    """
    found = cluster.get(ObjectKey(DEPLOYMENT, name, NAMESPACE))
    if found is None:
        raise NotFoundError(
            f"no Deployment {NAMESPACE}/{name}", hint="is this a platform of the agents' pack?"
        )
    container = dig(found, "spec", "template", "spec", "containers")[0]
    values = _environment(cluster, container)
    command, *options = (
        _VARIABLE.sub(lambda each: values.get(each[1], each[0]), text) for text in container["args"]
    )
    own = ("--platform=", "--listen=")
    kept = [option for option in options if not option.startswith(own)]
    return [command, f"--platform={settings_file}", "--listen=127.0.0.1:0", *kept]


def _environment(cluster: Cluster, container: Manifest) -> Mapping[str, str]:
    """Return the container's variables, as a kubelet would make them."""
    found = {}
    for entry in container.get("env", ()):
        ref = dig(entry, "valueFrom", "configMapKeyRef")
        if ref is None:
            found[entry["name"]] = entry.get("value", "")
            continue
        key = ObjectKey(CONFIG_MAP, ref["name"], NAMESPACE)
        value = dig(cluster.get(key) or {}, "data", ref["key"])
        if value is None:
            raise NotFoundError(f"ConfigMap {NAMESPACE}/{key.name} has no key {ref['key']}")
        found[entry["name"]] = value
    return found


class Pods:
    """The processes. Use `start` once for each Deployment, `check` meanwhile, `stop` at the end."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """Start one; its log goes to our standard error."""
        command = [sys.executable, "-m", "whisperops", "--verbose", *arguments]
        self._processes[name] = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.DEVNULL
        )

    def check(self) -> None:
        """
        Return if all still run.

        Raises:
            IncompleteError: One ended.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise IncompleteError(
                    f"{name} ended with {process.returncode}", hint="its log says why"
                )

    def stop(self) -> None:
        """End them: politely, then by force."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
