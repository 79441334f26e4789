"""
The first steps: forge, cluster and Argo CD are there, let us do our work, and are known to us.

Nothing is written. Versions of Argo CD are read from the images of its workloads, else from
platform.yaml; where neither tells, the step says so and goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orderkit.core.errors import AccessError, OrderkitError, RefusedError
from orderkit.core.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    ARGOCD_NAMESPACE,
    COMPOSITION,
    CONFIG_MAP,
    FUNCTION,
    XRD,
    Kind,
    Manifest,
    dig,
    metadata,
)
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import Cluster, NoSuchKindError

OLDEST, NEWEST = (3, 0), (3, 2)
"""Argo CD's releases whose behaviour was observed or read."""
_WORKLOADS = (Kind("apps", "v1", "StatefulSet"), Kind("apps", "v1", "Deployment"))
_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
_SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount")
_CONTROLLER = "-application-controller"
_CROSSPLANE = (XRD, COMPOSITION, FUNCTION)
_IMAGE = re.compile(r"argocd:v?(\d+\.\d+\.\d+\S*?)(@|\Z)")
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_RIGHTS = (
    (APPLICATION, "applications"),
    (APP_PROJECT, "appprojects"),
    (CONFIG_MAP, "configmaps"),
)
"""What we write into Argo CD's namespace."""


@dataclass(frozen=True, slots=True)
class ForgeStep:
    """The forge answers, knows us, and lets us write."""

    site: BootstrapContext
    name: str = "forge"

    def look(self) -> Look:
        platform, forge = self.site.platform, self.site.platform.forge
        try:
            version, user = forge.version(), forge.user()
        except AccessError as error:
            error.args = (f"{error} (credentials from {forge.credentials_source})",)
            raise
        for repo in (platform.pack_repo, platform.ledger):
            missing = forge.missing_rights(repo) if forge.repo(repo) else ()
            if missing:
                raise AccessError(
                    f"missing: {', '.join(missing)} (credentials from {forge.credentials_source})",
                    hint="create a token with these scopes for a user who may write there",
                )
        detail = f"{forge.base_url}, version {version}, as {user} ({forge.credentials_source})"
        return Look(StepVerdict.DONE, detail)

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        return self.look()


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """The cluster answers, knows us, and lets us write what Argo CD reads."""

    site: BootstrapContext
    name: str = "cluster"

    def look(self) -> Look:
        cluster = self.site.platform.cluster
        cluster.serves(APPLICATION)  # the first question: an address or a right may be missing
        forbidden = [
            f"{verb} {resource}"
            for kind, resource in _RIGHTS
            for verb in ("get", "create", "patch")
            if not may(self.site.platform, kind, resource, verb)
        ]
        if forbidden:
            raise AccessError(
                f"we may not {', '.join(forbidden)} in namespace {ARGOCD_NAMESPACE}",
                hint="use a kubeconfig with these rights, or grant them by a Role",
            )
        return Look(StepVerdict.DONE, "answers, and we may write what Argo CD reads")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        return self.look()


@dataclass(frozen=True, slots=True)
class ArgoCdStep:
    """Argo CD is installed, in a release that we know."""

    site: BootstrapContext
    name: str = "argocd"

    def look(self) -> Look:
        platform, request = self.site.platform, self.site.wanted
        missing = [k for k in (APPLICATION, APP_PROJECT) if not platform.cluster.serves(k)]
        if missing:
            raise RefusedError(
                f"Argo CD is missing: the cluster serves no {', '.join(map(str, missing))}",
                hint="install Argo CD 3.0 to 3.2 into namespace argocd, then repeat",
            )
        if request.installation.target is PlatformTarget.EMBEDDED:
            return Look(StepVerdict.DONE, "the embedded platform includes a stand-in")
        version = argocd_version(platform) or (request.installation.argocd_version or "")
        problem, certain = judge_version(version)
        if problem and certain:
            raise RefusedError(problem, hint="install Argo CD 3.0 to 3.2")
        return Look(StepVerdict.DONE, problem or f"Argo CD {version}")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        return self.look()


@dataclass(frozen=True, slots=True)
class CrossplaneStep:
    """Crossplane serves its kinds, or a layer brings it."""

    site: BootstrapContext
    name: str = "crossplane"

    def look(self) -> Look:
        missing = [k for k in _CROSSPLANE if not self.site.platform.cluster.serves(k)]
        if not missing:
            check_accounts(self.site.platform.cluster, self.site.wanted.installation)
            return Look(StepVerdict.DONE, "serves its kinds")
        if self.site.wanted.installation.crossplane.install == "chart":
            return Look(StepVerdict.WAIT, "its chart is delivered by the layer 'crossplane'")
        raise RefusedError(
            f"Crossplane is missing: the cluster serves no {', '.join(map(str, missing))}",
            hint="install Crossplane 2, or let spec.crossplane.install of platform.yaml be 'chart'",
        )

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        return self.look()


def check_accounts(cluster: Cluster, installation: Installation) -> None:
    """
    Check that Argo CD and Crossplane run as the accounts that admission policies know.

    Raises:
        RefusedError: One runs as another account: the policies would refuse what Crossplane
            writes, or not hold Argo CD to what orders may deliver.
    """
    _check_account(
        cluster,
        ("spec.crossplane.account", installation.crossplane.account),
        (":crossplane", "would refuse what Crossplane writes"),
    )
    _check_account(
        cluster,
        ("spec.argocd.account", installation.argocd_account),
        (_CONTROLLER, "would not hold Argo CD to what orders may deliver"),
    )


def _check_account(cluster: Cluster, setting: tuple[str, str], usual: tuple[str, str]) -> None:
    (key, account), (ending, consequence) = setting, usual
    try:
        service_accounts = cluster.list(_SERVICE_ACCOUNT).items
    except (NoSuchKindError, AccessError):
        return
    names = {
        f"system:serviceaccount:{fields['namespace']}:{fields['name']}"
        for fields in map(metadata, service_accounts)
    }
    others = sorted(name for name in names if name.endswith(ending))
    if account not in names and others:
        raise RefusedError(
            f"{key}: there is no {account}, so admission policies {consequence}",
            hint=f"set it to the account that is used: {', '.join(others)}",
        )


def judge_version(version: str) -> tuple[str, bool]:
    """Return what is wrong with a version of Argo CD (empty: nothing), and if that is certain."""
    match = _VERSION.match(version)
    if match is None:
        return "Argo CD is installed; its version is unknown (set spec.argocd.version)", False
    release = int(match[1]), int(match[2])
    if release < OLDEST:
        return (
            f"Argo CD {version} is older than 3.0, which tracks by labels and compares differently",
            True,
        )
    if release > NEWEST:
        return f"Argo CD {version} is newer than the tested versions (3.0 to 3.2)", False
    return "", True


def argocd_version(platform: Platform) -> str:
    """Return the version in the images of Argo CD's workloads; "" where none can be seen."""
    for kind in _WORKLOADS:
        try:
            workloads = platform.cluster.list(kind, namespace=ARGOCD_NAMESPACE).items
        except (NoSuchKindError, AccessError):
            continue
        for workload in workloads:
            for container in dig(workload, "spec", "template", "spec", "containers", default=()):
                image = _IMAGE.search(str(container.get("image", "")))
                if image:
                    return image[1]
    return ""


def may(platform: Platform, kind: Kind, resource: str, verb: str) -> bool:
    """Ask the API server whether we may; yes where it cannot be asked."""
    attributes = {
        "group": kind.group,
        "resource": resource,
        "verb": verb,
        "namespace": ARGOCD_NAMESPACE,
    }
    review: Manifest = {
        "apiVersion": _REVIEW.api_version,
        "kind": _REVIEW.kind,
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = platform.cluster.create(review, owner="orderkit")
    except AccessError:
        raise
    except OrderkitError:
        return True  # the embedded cluster has no such kind: whoever gets in may do everything
    return bool(dig(answer, "status", "allowed", default=True))
