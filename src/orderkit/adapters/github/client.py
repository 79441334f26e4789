"""
The GitHub client: one class behind `ports.forge.Forge`, made of the parts beside it.

`GitHubHooks` keeps webhooks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from ground.errors import InvalidInputError
from orderkit.adapters.forges.access import ForgeHooks
from orderkit.adapters.forges.transport import Credentials
from orderkit.adapters.github.pulls import Merging
from orderkit.adapters.github.reading import GitHubReaders
from orderkit.adapters.github.reviews import GitHubReviews, Workflows
from orderkit.adapters.github.teams import GitHubAccess, Grants
from orderkit.adapters.github.transport import AppTokens, GitHubCalls, GitHubTransport, Pacer
from orderkit.adapters.github.writing import Writing
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.core.platform.forge_kinds import GITHUB, ForgeCapabilities
from orderkit.core.platform.settings import ForgeApp
from orderkit.ports.forge import Webhook
from orderkit.ports.signatures import Signatures

_NAMES = {"pull_request_only": "pull_request", "pull_request_sync": "pull_request"}
"""GitHub's event for each event that the port knows by another name."""


class GitHubHooks(GitHubCalls, ForgeHooks):
    """The part of the port about webhooks."""

    def _events(self, webhook: Webhook) -> Collection[str]:
        return {_NAMES.get(event, event) for event in webhook.events}

    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:
        events = {"events": sorted(self._events(webhook))}
        return {**events, "name": "web"} if is_new else events


class GitHubForge(
    Writing,
    Merging,
    GitHubReviews,
    Grants,
    GitHubAccess,
    GitHubReaders,
    GitHubHooks,
    Workflows,
):
    """A GitHub (or the embedded forge's face) behind the `Forge` port. Safe to use from threads."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str = "",
        app: ForgeApp | None = None,
        argocd_app: ForgeApp | None = None,
        api_url: str = "",
        ca_bundle: Path | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        source: str = "given by the caller",
        renew: Callable[[], Credentials] | None = None,
        signatures: Signatures | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: Where people find GitHub, such as ``https://github.com``.
            token: A fine-grained or classic token; else `app` is who acts.
            app: The GitHub App as which we act.
            argocd_app: The GitHub App as which Argo CD reads.
            api_url: Where the API is; empty: it follows from `base_url`.
            ca_bundle: Certificates to trust instead of the usual ones.
            allow_http: Send credentials over plain HTTP to other machines too (a lab).
            read_timeout_s: How long an answer may pause.
            source: Where the credentials came from, for people.
            renew: Asked for a token again when the forge no longer knows ours.
            signatures: Signs commits with our own key; None: they are not signed.
            pacer: Keeps within the limits; None: that of the credential in this process.

        Raises:
            InvalidInputError: A bad address or CA bundle, or no credentials.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        if not token and app is None:
            raise InvalidInputError(
                "credentials", "", "need a token, or a GitHub App (forge.app in platform.yaml)"
            )
        tokens = None
        if app is not None and not token:
            tokens = AppTokens(app.id, Path(app.private_key_file), app.installation)
        http = GitHubTransport(
            base_url,
            Credentials(token),
            app=tokens,
            api_url=api_url,
            pacer=pacer,
            ca_bundle=str(ca_bundle) if ca_bundle else None,
            allow_http=allow_http,
            read_timeout_s=read_timeout_s,
            renew=renew,
        )
        self._set_up(http, source, signatures)
        self._http = http
        self._replaced = {}
        self._argocd_app = argocd_app

    @property
    def capabilities(self) -> ForgeCapabilities:
        """What GitHub can do with our credentials; see the port."""
        is_server = not self._http.is_cloud and self._http.app is None
        return replace(
            GITHUB,
            can_make_organisations=is_server,
            makes_readers=self._argocd_app is not None,
        )
