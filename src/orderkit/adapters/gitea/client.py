"""
The Gitea client: one class behind `ports.forge.Forge`, composed of the parts of this package.

`GiteaHooks` keeps webhooks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, ClassVar

from ground.errors import InvalidInputError
from orderkit.adapters.forges.access import ForgeHooks
from orderkit.adapters.forges.transport import Credentials, ForgeTransport
from orderkit.adapters.gitea.calls import Calls
from orderkit.adapters.gitea.pulls import Merging
from orderkit.adapters.gitea.reviews import GiteaReviews
from orderkit.adapters.gitea.teams import GiteaReaders, Grants
from orderkit.adapters.gitea.writing import Writing
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.core.platform.forge_kinds import GITEA, ForgeCapabilities
from orderkit.ports.forge import Webhook
from orderkit.ports.signatures import Signatures


class GiteaHooks(Calls, ForgeHooks):
    """The part of the port about webhooks."""

    # observed on 1.26.0: an update with a new secret is accepted, and the old one stays; so a
    # webhook with a secret is created anew
    keeps_old_secret: ClassVar[bool] = True

    def _events(self, webhook: Webhook) -> Collection[str]:
        return {event.removesuffix("_only") for event in webhook.events}

    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:  # noqa: ARG002  alike
        return {"type": "gitea", "events": list(webhook.events), "branch_filter": "*"}


class GiteaForge(Writing, Merging, GiteaReviews, Grants, GiteaReaders, GiteaHooks):
    """A Gitea (or the embedded forge) behind the `Forge` port. Safe to use from threads."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str = "",
        user: str = "",
        password: str = "",
        ca_bundle: Path | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        source: str = "given by the caller",
        renew: Callable[[], Credentials] | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: Where Gitea is, without ``/api/v1``.
            token: An access token; else `user` and `password` are used.
            user: Login name for basic authentication.
            password: Its password.
            ca_bundle: Certificates to trust instead of the usual ones.
            allow_http: Send credentials over plain HTTP to other machines too (a lab).
            read_timeout_s: How long an answer may pause.
            source: Where the credentials came from, for people.
            renew: Asked for credentials again when the forge no longer knows ours.
            signatures: Signs commits; None: they are not signed.

        Raises:
            InvalidInputError: A bad address or CA bundle, or no credentials.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        if not token and not (user and password):
            raise InvalidInputError("credentials", "", "need a token, or a user and password")
        http = ForgeTransport(
            base_url,
            Credentials(token, user, password),
            api_url="/api/v1",
            ca_bundle=str(ca_bundle) if ca_bundle else None,
            allow_http=allow_http,
            read_timeout_s=read_timeout_s,
            renew=renew,
        )
        self._set_up(http, source, signatures)

    @property
    def capabilities(self) -> ForgeCapabilities:
        """What Gitea can do; see the port."""
        return GITEA
