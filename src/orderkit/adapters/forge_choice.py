"""Make the client of the forge that platform.yaml names: the only module that knows them all."""

from __future__ import annotations

from pathlib import Path

from ground.errors import InvalidInputError
from orderkit.adapters.forges.credentials import CredentialSources
from orderkit.adapters.gitea import GiteaForge
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
        InvalidInputError: A bad address, CA file or source of credentials, or a kind of forge that
            does not work yet.
        RefusedError: Plain HTTP to another machine.
    """
    if forge.kind == "github":
        raise InvalidInputError("forge.kind", forge.kind, "does not work yet")
    file = Path(forge.token_file) if forge.token_file else None
    sources = CredentialSources(forge.url, file, cluster)
    located = sources.find(forge.credentials)
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
