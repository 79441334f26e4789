"""
Put a controller together from its options: the one place that knows which adapter is behind which.

Called by ``commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orderkit.adapters.backstage import BackstageCatalog
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.cli import connecting
from orderkit.core.errors import InvalidInputError
from orderkit.core.names import RepoId, check_label
from orderkit.core.objects.kube_objects import ObjectKey
from orderkit.core.platform.settings import PlatformSettings
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from whisperops.buckets import FsspecBucket
from whisperops.catalogrepo import CatalogRepo, Place
from whisperops.confirming import Confirmation
from whisperops.entities import ROOT_FILE
from whisperops.leading import LEASE, Candidate, Leadership
from whisperops.metering import Meter
from whisperops.planning import LossRule
from whisperops.prometheus import Access, Prometheus
from whisperops.records import Origin
from whisperops.registry import Registry
from whisperops.running import Loop
from whisperops.watching import Watcher

Options = Mapping[str, Any]


def build_watcher(options: Options, source: str, repo: RepoId) -> tuple[Watcher, Cluster]:
    """
    Return a watcher and its cluster; nothing is contacted yet.

    Raises:
        OrderkitError: An option, or a file that platform.yaml names, cannot be used.
    """
    settings = connecting.load_settings(options["platform"])
    cluster, clock = _cluster(settings), SystemClock()
    forge = connecting.connect_forge(settings.forge, cluster)
    bucket = FsspecBucket(options["bucket"], timeout_s=options["timeout_s"])
    origin = Origin(bucket.root, source, options["largest_bytes"])
    watcher = Watcher(
        bucket,
        Registry(cluster, origin, clock),
        CatalogRepo(forge, Place(repo, source, options["owner"])),
        Confirmation(cluster, clock, namespace=options["namespace"], source=source),
        origin,
        LossRule(options["passes"], options["most"], options["percent"]),
    )
    if options["registers"]:
        target = f"{forge.base_url}/{repo}/src/branch/main/{source}/{ROOT_FILE}"
        portal = BackstageCatalog(settings.portal.url, token=connecting.token(settings.portal))
        watcher.register = lambda: portal.register(target)
    return watcher, cluster


def build_meter(options: Options, token: str) -> tuple[Meter, Cluster]:
    """
    Return a meter and its cluster; nothing is contacted yet.

    Raises:
        OrderkitError: An option, or a file that platform.yaml names, cannot be used.
    """
    settings = connecting.load_settings(options["platform"])
    namespace, slash, name = options["prices"].partition("/")
    if not slash:
        raise InvalidInputError("prices", options["prices"], "is no NAMESPACE/CONFIGMAP")
    prometheus = Prometheus(
        options["prometheus"],
        Access(token, options["tenant"]),
        allow_http=options["allow_http"],
    )
    cluster = _cluster(settings)
    prices = (check_label("prices", namespace), check_label("prices", name))
    return Meter(cluster, prometheus, SystemClock(), prices), cluster


def build_loop(
    work: Callable[[Callable[[], bool]], object],
    cluster: Cluster,
    lease: str,
    identity: str,
    options: Options,
) -> Loop:
    """Return the loop that runs `work`, with an election unless the options say otherwise."""
    clock, leadership = SystemClock(), None
    if not options["no_election"]:
        key = ObjectKey(LEASE, lease, options["namespace"])
        leadership = Leadership(cluster, clock, Candidate(key, identity))
    return Loop(work, clock, options["interval_s"], leadership)


def _cluster(settings: PlatformSettings) -> Cluster:
    return KubeCluster.from_kubeconfig(Path(settings.kubeconfig), context=settings.context)
