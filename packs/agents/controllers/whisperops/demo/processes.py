"""
The pack's Deployments as processes of this machine, for a cluster that runs no containers.

The container's arguments, and the variables it takes from ConfigMaps, are read from the cluster.
Only the path of platform.yaml and the address of the probes are replaced. Each Deployment becomes
one process, whatever its replicas. There are no images, limits, probes or restarts: a process that
ends is an error.

Called by ``playing``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orderkit.controllers import (
    CONFIG_MAP,
    Cluster,
    IncompleteError,
    Manifest,
    NotFoundError,
    ObjectKey,
    dig,
)
from whisperops.demo.kagent import DEPLOYMENT

NAMESPACE = "whisperops"
WATCHER, METER = "dataset-watcher", "spend-meter"
DEPLOYMENTS = (WATCHER, METER)
_VARIABLE = re.compile(r"\$\(([A-Z_]+)\)")
_STOP_TIMEOUT_S = 20.0


def arguments(cluster: Cluster, name: str, *, platform_file: Path) -> list[str]:
    """
    Return the arguments of ``python -m whisperops`` in a Deployment of the pack.

    Raises:
        NotFoundError: There is no such Deployment, or a ConfigMap that it reads lacks a key.
    """
    deployment = cluster.get(ObjectKey(DEPLOYMENT, name, NAMESPACE))
    if deployment is None:
        raise NotFoundError(
            f"no Deployment {NAMESPACE}/{name}", hint="is this a platform of the agents' pack?"
        )
    container = dig(deployment, "spec", "template", "spec", "containers")[0]
    variables = _environment(cluster, container)
    command, *options = (
        _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)
        for text in container["args"]
    )
    replaced = ("--platform=", "--listen=")
    kept = [option for option in options if not option.startswith(replaced)]
    return [command, f"--platform={platform_file}", "--listen=127.0.0.1:0", *kept]


def _environment(cluster: Cluster, container: Manifest) -> Mapping[str, str]:
    """Return the container's variables, as a kubelet would set them."""
    variables = {}
    for entry in container.get("env", ()):
        ref = dig(entry, "valueFrom", "configMapKeyRef")
        if ref is None:
            variables[entry["name"]] = entry.get("value", "")
            continue
        key = ObjectKey(CONFIG_MAP, ref["name"], NAMESPACE)
        value = dig(cluster.get(key) or {}, "data", ref["key"])
        if value is None:
            raise NotFoundError(f"ConfigMap {NAMESPACE}/{key.name} has no key {ref['key']}")
        variables[entry["name"]] = value
    return variables


class Processes:
    """Call `start` once for each Deployment, `check` now and then, `stop` at the end."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """Start a process; its log goes to our standard error."""
        command = [sys.executable, "-m", "whisperops", "--verbose", *arguments]
        self._processes[name] = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.DEVNULL
        )

    def check(self) -> None:
        """
        Return if all processes still run.

        Raises:
            IncompleteError: One of them ended.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise IncompleteError(
                    f"{name} ended with exit code {process.returncode}", hint="its log says why"
                )

    def stop(self) -> None:
        """Terminate all processes; kill those that do not end in time."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
