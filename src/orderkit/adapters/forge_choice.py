"""Make the client of the forge that platform.yaml names: the only module that knows them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orderkit.adapters.forges.credentials import CredentialSources
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.core.platform.settings import ForgeSettings
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge
from orderkit.ports.signatures import Signatures


def connect_forge(
    forge: ForgeSettings, cluster: Cluster | None, signatures: Signatures | None = None
) -> Forge:
    """
    Make the forge's port with the credentials that platform.yaml means.

    Only if neither environment nor file has any, the cluster and git are asked for them.

    Raises:
        NotFoundError: No credentials.
        InvalidInputError: A bad address, CA file or source of credentials.
        RefusedError: Plain HTTP to another machine.
    """
    file = Path(forge.token_file) if forge.token_file else None
    sources = CredentialSources(forge.url, file, cluster)
    how: dict[str, Any] = {
        "ca_bundle": Path(forge.ca_file) if forge.ca_file else None,
        "allow_http": forge.allow_http,
        "signatures": signatures,
    }
    if forge.kind == "github":
        how |= {"app": forge.app, "argocd_app": forge.argocd_app, "api_url": forge.api_url}
    if forge.kind == "github" and forge.app is not None:
        return GitHubForge(forge.url, source="the GitHub App of platform.yaml", **how)
    located = sources.find(forge.credentials)
    found = located.credentials
    how |= {
        "source": located.source,
        "renew": lambda: sources.find(forge.credentials).credentials,
    }
    if forge.kind == "gitea":
        how |= {"user": found.user, "password": found.password}
        return GiteaForge(forge.url, token=found.token, **how)
    token = found.token or found.password
    if forge.kind == "github":
        return GitHubForge(forge.url, token=token, **how)
    return GitLabForge(forge.url, token=token, group=forge.group, api_url=forge.api_url, **how)
