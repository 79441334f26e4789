"""
Find Applications that earlier releases wrote less safely: their tools, and what they delete.

Without ``source.directory.include`` Argo CD looks at the files: a Chart.yaml, a kustomization.yaml
or a plugin's discovery decides, and the tool runs with the credential of the repository. What
Orderkit writes is pinned (`core.order.ledger_applications.MANIFESTS_ONLY`); what an earlier release
wrote is not. It also pruned, and took an order's XR along when it was deleted. Called by
``doctor``, by bootstrap and by upgrades. Only reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ground.argocd.health_lua import LAYER_LABEL
from ground.errors import RefusedError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order import ledger, ledger_applications
from orderkit.flows.platform import Platform

_OURS = (ledger.ORDER_LABEL, ledger.TEAM_LABEL, LAYER_LABEL)


def unpinned_applications(platform: Platform, teams: Collection[str] = ()) -> list[Manifest]:
    """
    Return the Applications whose tool a file in Git may choose, by name.

    Looked at are Orderkit's own and all that deliver a repository of one of these teams.
    """
    folders = tuple(f"{platform.forge.base_url}/{team}/" for team in teams)
    return [
        application
        for application in _applications(platform)
        if not ledger_applications.is_pinned(application)
        and (_is_ours(application) or _repository(application).startswith(folders))
    ]


def unsafe_applications(platform: Platform) -> list[Manifest]:
    """Return Orderkit's own Applications that a push or a lost file makes delete an order."""
    return [
        application
        for application in _applications(platform)
        if _is_ours(application) and not ledger_applications.is_safe(application)
    ]


def refuse_lost_tools(
    platform: Platform, settings: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """
    Refuse settings that switch off a tool which renders somebody else's Application now.

    Argo CD would read its folder as plain manifests from then on, and prune what is not there.

    Args:
        settings: The entries of ``argocd-cm`` as they will be.
        before: As they are.

    Raises:
        RefusedError: Names the first such Application and the way out.
    """
    lost = [
        tool
        for tool in ("helm", "jsonnet", "kustomize")
        if settings.get(f"{tool}.enable") == "false" != before.get(f"{tool}.enable")
    ]
    for application in _applications(platform) if lost else ():
        tool = _tool(application)
        if tool in lost and not _is_ours(application):
            raise RefusedError(
                f"Application '{metadata(application)['name']}' is rendered by {tool}, which the "
                "pack's settings of Argo CD switch off: its objects could be pruned",
                hint=f"keep it with spec.argocd.tools: [{tool}] in platform.yaml; orders are "
                "pinned to plain manifests in any case",
            )


def _applications(platform: Platform) -> list[Manifest]:
    items = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    return sorted(items, key=lambda application: str(metadata(application)["name"]))


def _is_ours(application: Manifest) -> bool:
    return not labels_of(application).keys().isdisjoint(_OURS)


def _repository(application: Manifest) -> str:
    return str(dig(application, "spec", "source", "repoURL", default=""))


def _tool(application: Manifest) -> str:
    """Return the tool that renders an Application now, in lower case."""
    if dig(application, "spec", "source", "directory", "jsonnet"):
        return "jsonnet"
    return str(dig(application, "status", "sourceType", default="")).lower()
