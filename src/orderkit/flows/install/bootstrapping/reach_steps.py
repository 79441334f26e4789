"""
The first steps: forge, cluster and Argo CD are there, let us do our work, and are known to us.

Nothing is written. A server older than the oldest supported release is refused; known holes of a
supported one are named. Where a server does not tell its release, the step says so and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ground.errors import AccessError, OrderkitError, RefusedError
from ground.objects.kube_objects import (
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
from orderkit.core.platform.installation import Installation
from orderkit.core.platform.neighbours import ARGO_CD, ReleaseVerdict
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.install.findings import (
    argocd_release,
    crossplane_release,
    kubernetes_release,
    refuse_too_old,
)
from orderkit.ports.cluster import Cluster, NoSuchKindError

_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
_SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount")
_CONTROLLER = "-application-controller"
_CROSSPLANE = (XRD, COMPOSITION, FUNCTION)
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
        look = judged(forge.judge_release())
        who = f"{forge.base_url}, version {version}, as {user} ({forge.credentials_source})"
        return replace(look, detail=f"{who}; {look.detail}")

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
            if not may(self.site.platform.cluster, kind, resource, verb)
        ]
        if forbidden:
            raise AccessError(
                f"we may not {', '.join(forbidden)} in namespace {ARGOCD_NAMESPACE}",
                hint="use a kubeconfig with these rights, or grant them by a Role",
            )
        look = judged(kubernetes_release(self.site.platform.cluster))
        return replace(look, detail=f"answers, and we may write what Argo CD reads; {look.detail}")

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
                hint=f"{ARGO_CD.advice} into namespace argocd, then repeat",
            )
        return judged(argocd_release(platform.cluster, request.installation))

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
            return judged(
                crossplane_release(self.site.platform.cluster, self.site.wanted.installation)
            )
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
        ("spec.argocd.account", installation.argocd.account),
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


def judged(verdict: ReleaseVerdict) -> Look:
    """
    Return what is known of a server's release; its hint only if the release has known holes.

    Raises:
        RefusedError: It is older than the oldest supported release.
    """
    refuse_too_old(verdict)
    return Look(StepVerdict.DONE, verdict.report, verdict.hint if verdict.holes else "")


def may(cluster: Cluster, kind: Kind, resource: str, verb: str) -> bool:
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
        answer = cluster.create(review, owner="orderkit")
    except AccessError:
        raise
    except OrderkitError:
        return True  # the embedded cluster has no such kind: whoever gets in may do everything
    return bool(dig(answer, "status", "allowed", default=True))
