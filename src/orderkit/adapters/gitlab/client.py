"""The GitLab client: one class behind `ports.forge.Forge`, composed of this package's parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ground.errors import InvalidInputError
from orderkit.adapters.forges.client import ForgeClient
from orderkit.adapters.forges.transport import Credentials
from orderkit.adapters.gitlab.hooks import GitLabHooks
from orderkit.adapters.gitlab.pacing import GitLabPacer
from orderkit.adapters.gitlab.transport import GitLabToken, GitLabTransport
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.core.platform.forge_kinds import GITLAB, ForgeCapabilities
from orderkit.ports.signatures import Signatures


class GitLabForge(GitLabHooks, ForgeClient):
    """One group of a GitLab behind the `Forge` port. Safe to use from threads."""

    _http: GitLabTransport  # pyrefly: ignore[bad-override-mutable-attribute]  set once, when made

    def __init__(
        self,
        base_url: str,
        *,
        token: str,
        group: str = "",
        api_url: str = "",
        ca_bundle: Path | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        source: str = "given by the caller",
        renew: Callable[[], Credentials] | None = None,
        signatures: Signatures | None = None,
        pacer: GitLabPacer | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: Where GitLab is, without ``/api/v4`` and without the group.
            token: Of a group, a project, a user, or of OAuth, with the scope ``api``.
            group: The full path of the group that holds all that Orderkit knows; empty: all of it.
            api_url: Where its API is; empty: below `base_url`.
            ca_bundle: Certificates to trust instead of the usual ones.
            allow_http: Send credentials over plain HTTP to other machines too (a lab).
            read_timeout_s: How long an answer may pause.
            source: Where the credentials came from, for people.
            renew: Asked for credentials again when the forge no longer knows ours.
            signatures: Signs commits; None: they are not signed.
            pacer: Keeps within the limits; None: that of the credential in this process.

        Raises:
            InvalidInputError: A bad address or CA bundle, or no token.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        if not token:
            raise InvalidInputError("credentials", "", "need a token: GitLab takes no password")
        self._group = group
        http = GitLabTransport(
            base_url,
            GitLabToken(token),
            api_url=api_url or "/api/v4",
            group=group,
            ca_bundle=str(ca_bundle) if ca_bundle else None,
            allow_http=allow_http,
            read_timeout_s=read_timeout_s,
            renew=(lambda: _token(renew())) if renew else None,
            pacer=pacer,
        )
        self._set_up(http, source, signatures)

    @property
    def capabilities(self) -> ForgeCapabilities:
        """What GitLab can do in every tier; see the port."""
        return GITLAB


def _token(credentials: Credentials) -> GitLabToken:
    """Return a token, which git's credential helper has as a password."""
    return GitLabToken(credentials.token or credentials.password)
