"""
What one check of a platform found, and what the releases of its servers are.

`check_releases` goes by what the servers tell themselves, and by what is known of their releases. A
release that no server tells is said to be unknown; nothing is derived from what a server can do. Of
several images of one server the oldest counts, because an upgrade may be under way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ground.errors import AccessError, OrderkitError, RefusedError
from ground.objects.kube_objects import ARGOCD_NAMESPACE, Kind, Manifest, dig, labels_of
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.core.platform.neighbours import (
    ARGO_CD,
    BACKSTAGE,
    CROSSPLANE,
    KUBERNETES,
    Neighbour,
    ReleaseVerdict,
    judge_release,
    read_release,
    supported,
)
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import Cluster, NoSuchKindError

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check; `advice` is empty if all is well."""

    check: str
    verdict: Verdict
    detail: str
    advice: str = ""
    source: str = ""
    """Where on this machine our credentials are: for its terminal, never for a page."""

    @property
    def full_detail(self) -> str:
        """The detail with its source, for a person on this machine."""
        return f"{self.detail} ({self.source})" if self.source else self.detail


_WORKLOADS = (Kind("apps", "v1", "StatefulSet"), Kind("apps", "v1", "Deployment"))
_VERSION_LABEL = "app.kubernetes.io/version"
_BAD: Mapping[str, Verdict] = {"too old": "fail", "unknown": "warn"}


def check_releases(
    platform: Platform,
    installation: Installation | None = None,
    *,
    without: Collection[str] = (),
) -> Iterator[DoctorFinding]:
    """
    Yield a finding for each server: its release, whether it is supported, and its known holes.

    Args:
        installation: Of platform.yaml; None: only what the servers tell.
        without: ``forge`` or ``cluster``: it cannot be asked.
    """
    wanted = installation or Installation()
    of_forge = f"{platform.forge.capabilities.kind}-release"
    judges: dict[str, Callable[[], ReleaseVerdict]] = {
        of_forge: platform.forge.judge_release,
        "kubernetes-release": lambda: kubernetes_release(platform.cluster),
        "argocd-release": lambda: argocd_release(platform.cluster, wanted),
        "crossplane-release": lambda: crossplane_release(platform.cluster, wanted),
    }
    for name, judge in judges.items():
        if ("forge" if name == of_forge else "cluster") in without:
            continue
        try:
            verdict = judge()
        except OrderkitError as error:
            yield DoctorFinding(name, "warn", f"the version is not known: {error}", error.hint)
            continue
        is_bad = _BAD.get(verdict.basis, "warn" if verdict.holes else "ok")
        yield DoctorFinding(name, is_bad, verdict.report, verdict.hint)
    yield DoctorFinding("backstage-release", "ok", f"{BACKSTAGE.learned}; {supported(BACKSTAGE)}")


def kubernetes_release(cluster: Cluster) -> ReleaseVerdict:
    """
    Return the release of the API server; unknown if we may not ask.

    Raises:
        UnreachableError, RemoteError: It does not answer.
    """
    try:
        return judge_release(KUBERNETES, cluster.version())
    except AccessError:
        return judge_release(KUBERNETES, "")


def argocd_release(cluster: Cluster, installation: Installation) -> ReleaseVerdict:
    """Return the release of Argo CD; if its workloads do not tell, as platform.yaml says."""
    workloads = list(_workloads(cluster, ARGOCD_NAMESPACE))
    # an image may be pinned by its digest as well: argocd:v3.2.1@sha256:...
    version = _oldest(workloads, re.compile(r"\bargocd:(v?\d[^@]*)"), "argocd")
    is_ours = installation.target is PlatformTarget.EMBEDDED  # its platform.yaml names what we play
    stated = "" if is_ours else installation.argocd.version or ""
    return _judge_told(cluster, ARGO_CD, version or stated)


def crossplane_release(cluster: Cluster, installation: Installation) -> ReleaseVerdict:
    """Return the release of Crossplane's core, from the namespace of its account."""
    namespace = installation.crossplane.account.split(":")[2]
    workloads = list(_workloads(cluster, namespace))
    version = _oldest(workloads, re.compile(r"\bcrossplane:(v?\d[^@]*)"), "crossplane")
    return _judge_told(cluster, CROSSPLANE, version)


def refuse_too_old(verdict: ReleaseVerdict) -> None:
    """
    Refuse a server that is not supported any more.

    Raises:
        RefusedError: The release is older than the oldest supported one.
    """
    if verdict.basis == "too old":
        raise RefusedError(verdict.report, hint=verdict.hint)


def _judge_told(cluster: Cluster, neighbour: Neighbour, version: str) -> ReleaseVerdict:
    """Judge what workloads tell; the embedded cluster has none, because we replace them."""
    if not version and kubernetes_release(cluster).basis == "embedded":
        return ReleaseVerdict("", "embedded", f"embedded: Orderkit replaces {neighbour.name}")
    return judge_release(neighbour, version)


def _workloads(cluster: Cluster, namespace: str) -> Iterator[Manifest]:
    for kind in _WORKLOADS:
        try:
            yield from cluster.list(kind, namespace=namespace).items
        except (NoSuchKindError, AccessError):
            continue


def _oldest(workloads: list[Manifest], image: re.Pattern[str], part_of: str) -> str:
    """Return the oldest release in the images; without one, in the labels; "" if none tells."""
    images = [
        found[1]
        for workload in workloads
        for container in dig(workload, "spec", "template", "spec", "containers", default=()) or ()
        if (found := image.search(str(container.get("image", ""))))
    ]
    labels = [
        str(labels[_VERSION_LABEL])
        for labels in map(labels_of, workloads)
        if _VERSION_LABEL in labels
        and part_of in {labels.get("app.kubernetes.io/part-of"), labels.get("app")}
    ]
    for texts in (images, labels):
        told = [(number, text) for text in texts if (number := read_release(text))]
        if told:
            return min(told)[1]
    return ""
