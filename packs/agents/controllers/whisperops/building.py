"""
Build a controller from its options.

Called by ``commands`` and by the demo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orderkit.controllers import (
    LEASE,
    Candidate,
    Cluster,
    InvalidInputError,
    LeaderElection,
    Loop,
    ObjectKey,
    RepoId,
    SystemClock,
    check_label,
    connect,
)
from whisperops.buckets import FsspecBucket
from whisperops.catalogrepo import CatalogFolder, CatalogRepo
from whisperops.comparing import LossRule
from whisperops.confirming import Confirmation
from whisperops.entities import ROOT_FILE
from whisperops.metering import Meter
from whisperops.prometheus import Access, Prometheus
from whisperops.records import Origin
from whisperops.registry import Registry
from whisperops.watching import Watcher

Options = Mapping[str, Any]


def build_watcher(options: Options, source: str, repo: RepoId) -> tuple[Watcher, Cluster]:
    """
    Return a watcher and its cluster. Nothing is sent yet.

    Raises:
        OrderkitError: An option, or a file that platform.yaml names, cannot be used.
    """
    platform, clock = connect(options["platform"]), SystemClock()
    forge = platform.forge()
    bucket = FsspecBucket(options["bucket"], timeout_s=options["timeout_s"])
    origin = Origin(bucket.root, source, options["largest_bytes"])
    watcher = Watcher(
        bucket,
        Registry(platform.cluster, origin, clock),
        CatalogRepo(forge, CatalogFolder(repo, source, options["owner"])),
        Confirmation(platform.cluster, clock, namespace=options["namespace"], source=source),
        origin,
        LossRule(options["passes"], options["most"], options["percent"]),
    )
    if options["registers"]:
        target = f"{forge.base_url}/{repo}/src/branch/main/{source}/{ROOT_FILE}"
        catalog = platform.catalog()
        watcher.register = lambda: catalog.register(target)
    return watcher, platform.cluster


def build_meter(options: Options, token: str) -> tuple[Meter, Cluster]:
    """
    Return a meter and its cluster. Nothing is sent yet.

    Raises:
        OrderkitError: An option, or a file that platform.yaml names, cannot be used.
    """
    platform = connect(options["platform"])
    namespace, slash, name = options["prices"].partition("/")
    if not slash:
        raise InvalidInputError("prices", options["prices"], "is not NAMESPACE/CONFIGMAP")
    prometheus = Prometheus(
        options["prometheus"],
        Access(token, options["tenant"]),
        allow_http=options["allow_http"],
    )
    prices = (check_label("prices", namespace), check_label("prices", name))
    return Meter(platform.cluster, prometheus, SystemClock(), prices), platform.cluster


def build_loop(
    work: Callable[[Callable[[], bool]], object],
    cluster: Cluster,
    lease: str,
    identity: str,
    options: Options,
) -> Loop:
    """Return the loop that runs `work`, with leader election unless the options disable it."""
    clock, election = SystemClock(), None
    if not options["no_election"]:
        key = ObjectKey(LEASE, lease, options["namespace"])
        election = LeaderElection(cluster, clock, Candidate(key, identity))
    return Loop(work, clock, options["interval_s"], election)
