"""
A real Kubernetes node: kubelet, scheduler and kube-proxy on Debian's containerd and runc.

All of it is one process tree in namespaces of its own (``node/start.sh``), so its mounts, network
and rules end with it, even if it is killed. Pods reach what listens on the loopback here by
``HOST`` and the same port; programs here reach Pods and Services by their addresses. DNS knows the
API server alone, and network policies are not held. One node at a time on one machine.

Used by ``tests/e2e/test_real_node.py`` and ``make cluster``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from lab.binaries import HERE, NotBuiltError, built, keep_log
from lab.daemons import Daemon
from lab.realkube import Kube

from ground.objects.kube_objects import Kind, ObjectKey, dig
from orderkit.adapters.kube.cluster import KubeCluster

HOST = "10.213.0.1"
"""This machine, as Pods and programs here reach it."""
INTERFACE = Path("/sys/class/net/orderkit0")
"""There while a node runs."""
CONTROLLERS = (
    "node-lifecycle-controller",
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
)
"""What ``realkube.serving`` has to run besides its own."""
IMAGE = HERE.parent / ".cache" / "image" / "orderkit.oci.tar"
"""Where ``make cluster`` puts what ``scripts/image.sh`` builds."""
_NEEDED = ("containerd", "ctr", "runc", "nft", "dnsmasq", "socat", "busybox", "unshare", "nsenter")
_PLUGINS = Path("/usr/lib/cni")
_NODE = "10.213.0.2"
_CGROUPS, _CGROUP = Path("/sys/fs/cgroup"), "orderkit-node"
_READY_S = 240.0
_LOGS = ("containerd.log", "kubelet.log", "proxy.log", "scheduler.log")


def reason_not_possible() -> str:
    """Return why no node can run on this machine; empty: one can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "a node needs root"
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing or not (_PLUGINS / "bridge").exists():
        return f"a node needs {', '.join(missing) or 'CNI plugins'}: make cluster"
    try:
        built("node")
    except NotBuiltError:
        return "a node needs its kubelet: make cluster"
    if not IMAGE.exists():
        return "a node needs the image: make cluster"
    return ""


@contextlib.contextmanager
def serving(
    folder: Path, kube: Kube, *, names: Sequence[str], ports: Sequence[int]
) -> Iterator[Daemon]:
    """
    Start a node of `kube` with its state in `folder`; yield its first process. End all of it.

    Args:
        names: How Pods name the image of Orderkit, the only one; nothing is pulled. A Pod that
            comes before the image is unpacked waits for it.
        ports: Of the loopback here, which Pods may connect to, besides the API server's.

    Raises:
        NotBuiltError: ``make cluster`` was not run.
        DaemonError: It does not start, for example since another node runs here.
    """
    programs = built("node")
    port = _write_settings(folder, kube)
    (folder / "image.tar").symlink_to(IMAGE)
    (folder / "image.names").write_text("".join(f"{name}\n" for name in names))
    command = [HERE / "node" / "start.sh", folder, programs, port, *ports]
    with contextlib.ExitStack() as undo:
        cluster = undo.enter_context(KubeCluster.from_kubeconfig(kube.kubeconfig))
        cluster.apply(_way_to_server(port), owner="lab")
        undo.callback(_remove_cgroups)
        for each in (path for path in _CGROUPS.iterdir() if path.is_dir()):
            (each / _CGROUP).mkdir(exist_ok=True)
        for log in _LOGS:
            undo.callback(keep_log, folder / log, as_name=f"node-{log}")
        daemon = Daemon("node", [str(each) for each in command], log=folder / "node.log")
        undo.callback(daemon.kill)  # it is process 1 of its namespaces: all others end with it
        daemon.wait_until(lambda: _is_ready(cluster), timeout_s=_READY_S)
        yield daemon


def processes(uid: str) -> list[int]:
    """Return the processes of a Pod's containers."""
    lists = _CGROUPS.glob(f"pids/{_CGROUP}/**/pod{uid}/*/cgroup.procs")
    found = [int(line) for each in lists for line in each.read_text().split()]
    return [each for each in found if "busybox" not in Path(f"/proc/{each}/comm").read_text()]


def _is_ready(cluster: KubeCluster) -> bool:
    node = cluster.get(ObjectKey(Kind("", "v1", "Node"), "node"))
    conditions = dig(node or {}, "status", "conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _way_to_server(port: int) -> dict[str, Any]:
    """Return where the Service ``kubernetes`` leads: the server itself has no address to give."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _write_settings(folder: Path, kube: Kube) -> int:
    """Write what ``start.sh`` reads; return the API server's port."""
    config = yaml.safe_load(kube.kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]
    port = urlsplit(server["server"]).port or 443
    server |= {"server": f"https://{HOST}:{port}", "tls-server-name": "localhost"}
    files = {
        "kubeconfig": config,
        "kubelet.yaml": _kubelet(),
        "proxy.yaml": _proxy(),
        "cni/node.conflist": _network(),
    }
    (folder / "cni").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "kubeconfig").chmod(0o600)
    (folder / "containerd.toml").write_text(_containerd(folder))
    return port


def _kubelet() -> dict[str, Any]:
    few = dict.fromkeys(("nodefs.available", "nodefs.inodesFree", "imagefs.available"), "1%")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": _NODE,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{_CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": ["none"],
        "featureGates": {
            "KubeletInUserNamespace": True
        },  # start.sh denies it the kernel's settings
        "oomScoreAdj": 0,  # a lower one needs CAP_SYS_RESOURCE
        "evictionHard": {"memory.available": "100Mi", **few},
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [_NODE],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "volumePluginDir": "/run/kubelet/plugins",
    }


def _proxy() -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": "kubeconfig"},
        "clusterCIDR": "10.213.1.0/24",
        "hostnameOverride": "node",
        "metricsBindAddress": "127.0.0.1:10249",
        "healthzBindAddress": "127.0.0.1:10256",
        "conntrack": {  # settings of the whole machine
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _network() -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.213.1.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "/run/cni",
        },
    }
    return {"cniVersion": "0.4.0", "name": "node", "plugins": [bridge]}


def _containerd(folder: Path) -> str:
    """Return containerd's settings; scores below its own would need CAP_SYS_RESOURCE."""
    return f"""\
version = 2
root = "/run/images"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.internal.v1.opt"]
path = "/run/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "orderkit.local/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_PLUGINS}"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def _remove_cgroups() -> None:
    """Remove the node's groups, from the leaves; the kernel empties them within moments."""
    deadline = time.monotonic() + 10
    for root in _CGROUPS.glob(f"*/{_CGROUP}"):
        while root.exists() and time.monotonic() < deadline:
            for group, _, _ in os.walk(root, topdown=False):
                with contextlib.suppress(OSError):
                    Path(group).rmdir()
