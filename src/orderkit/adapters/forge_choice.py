"""Make the client of the forge that platform.yaml names: the only module that knows them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orderkit.adapters.forges.credentials import CredentialSources, LocatedCredentials
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
    if forge.kind == "github" and forge.app is not None:
        return _github(forge, None, signatures)
    located = sources.find(forge.credentials)
    if forge.kind == "github":
        return _github(forge, located, signatures, lambda: sources.find(forge.credentials))
    if forge.kind == "gitlab":
        return GitLabForge(
            forge.url,
            token=located.credentials.token or located.credentials.password,
            group=forge.group,
            api_url=forge.api_url,
            ca_bundle=Path(forge.ca_file) if forge.ca_file else None,
            allow_http=forge.allow_http,
            source=located.source,
            renew=lambda: sources.find(forge.credentials).credentials,
            signatures=signatures,
        )
    return GiteaForge(
        forge.url,
        token=located.credentials.token,
        user=located.credentials.user,
        password=located.credentials.password,
        ca_bundle=Path(forge.ca_file) if forge.ca_file else None,
        allow_http=forge.allow_http,
        source=located.source,
        renew=lambda: sources.find(forge.credentials).credentials,
        signatures=signatures,
    )


def _github(
    forge: ForgeSettings,
    located: LocatedCredentials | None,
    signatures: Signatures | None,
    renew: Callable[[], LocatedCredentials] | None = None,
) -> Forge:
    """Make a client of GitHub: as an App, or with the token that was found."""
    credentials = located.credentials if located else None
    return GitHubForge(
        forge.url,
        token=credentials.token or credentials.password if credentials else "",
        app=forge.app,
        argocd_app=forge.argocd_app,
        api_url=forge.api_url,
        ca_bundle=Path(forge.ca_file) if forge.ca_file else None,
        allow_http=forge.allow_http,
        source=located.source if located else "the GitHub App of platform.yaml",
        renew=(lambda: renew().credentials) if renew else None,
        signatures=signatures,
    )
