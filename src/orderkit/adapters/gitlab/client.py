"""
The GitLab client: one class behind `ports.forge.Forge`, composed of this package's parts.

`GitLabHooks` keeps exactly one webhook per URL, with the given secret. A group's webhook is a
feature of GitLab Premium; without it, each project of the group gets one, and a project that is
made later gets its own when its order is registered. Deliveries are signed where GitLab can
(``signing_token``, the Standard Webhooks headers); where it ignores that, the token goes with each
delivery as ``X-Gitlab-Token``.

Source: doc/api/project_webhooks.md, group_webhooks.md; merge requests 230944 and 231325 of GitLab.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ground.errors import AccessError, InvalidInputError, NotFoundError
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import ForgeResponse, settle
from orderkit.adapters.forges.calls import (
    BAD,
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    number_in,
    object_in,
)
from orderkit.adapters.forges.transport import Credentials
from orderkit.adapters.gitlab.access import GitLabAccess
from orderkit.adapters.gitlab.transport import GitLabPacer, GitLabToken, GitLabTransport
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.core.platform.forge_kinds import GITLAB, ForgeCapabilities
from orderkit.core.platform.webhook_key import signing_token
from orderkit.ports.forge import Webhook
from orderkit.ports.signatures import Signatures

_DISABLED = "disabled"
"""What GitLab says of a webhook that failed too often, until its next test."""


class GitLabHooks(GitLabAccess):
    """The part of the port about webhooks."""

    def ensure_webhook(self, target: str | RepoId, webhook: Webhook) -> None:
        """
        Make sure there is exactly one webhook for that URL. Idempotent. See the port.

        Raises:
            NotFoundError: No such organisation or repository.
            InvalidInputError: The forge refuses the URL.
        """
        register(webhook.secret)
        doing = f"set up a webhook of {target}"
        for path in self._hook_paths(target):
            settle(lambda _: None, partial(self._one, path, webhook, doing), doing)

    def has_webhook(self, target: str | RepoId, webhook: Webhook) -> bool:
        """
        Say whether there is a webhook for that URL and those events. See the port.

        That of its group counts for a repository.

        Raises:
            NotFoundError: No such organisation or repository.
            AccessError: Our account does not own it.
        """
        doing = f"list the webhooks of {target}"
        if all(self._hears(path, webhook, doing) for path in self._hook_paths(target)):
            return True
        if isinstance(target, str):
            return False
        with suppress(NotFoundError, AccessError):  # GitLab Free has none for groups
            return self._hears(f"{self._org(target.owner)}/hooks", webhook, doing)
        return False

    def _hears(self, path: str, webhook: Webhook, doing: str) -> bool:
        wanted = [key for key, is_on in _events(webhook).items() if is_on]
        return any(
            hook.get("alert_status") != _DISABLED and all(bool(hook.get(key)) for key in wanted)
            for hook in self._hooks(path, webhook, doing)
        )

    def _hook_paths(self, target: str | RepoId) -> list[str]:
        """Return the lists of webhooks of a target: the group's, or of each of its projects."""
        if isinstance(target, RepoId):
            return [f"{self._path(target)}/hooks"]
        path, doing = f"{self._org(target)}/hooks", f"list the webhooks of {target}"
        if not self.has_org(target):
            raise NotFoundError(f"there is no organisation {target}")
        try:
            list(self._pages(path, {}, doing))
        except (NotFoundError, AccessError):  # GitLab Free has none
            names = self._names(target).values()
            return [f"{self._path(RepoId(target, name))}/hooks" for name in names]
        return [path]

    def _one(self, path: str, webhook: Webhook, doing: str) -> bool:
        """Update the oldest webhook of the URL or make one, and remove the others."""
        hooks = self._hooks(path, webhook, doing)
        method, place = ("PUT", f"{path}/{hooks[0]['id']}") if hooks else ("POST", path)
        answer = self._send_hook(method, place, webhook, doing)
        made = object_in(checked(answer, doing), doing)
        # a GitLab that cannot sign ignores that: the secret then goes with each delivery
        if webhook.secret and not made.get("signing_token_present"):
            body = {"token": webhook.secret, "url": webhook.url}
            done(self._http.send("PUT", f"{path}/{number_in(made, 'id')}", body=body), doing)
        for double in self._hooks(path, webhook, doing):
            if double.get("id") != made.get("id"):
                gone = self._http.send("DELETE", f"{path}/{number_in(double, 'id')}")
                if gone.status != MISSING:
                    done(gone, doing)
        return True

    def _hooks(self, path: str, webhook: Webhook, doing: str) -> list[Found]:
        """Return the webhooks for the URL, oldest first."""
        hooks = [hook for hook in self._pages(path, {}, doing) if hook.get("url") == webhook.url]
        return sorted(hooks, key=lambda hook: number_in(hook, "id"))

    def _send_hook(self, method: str, path: str, webhook: Webhook, doing: str) -> ForgeResponse:
        body: dict[str, Any] = {
            "url": webhook.url,
            **_events(webhook),
            "enable_ssl_verification": True,
        }
        if webhook.secret:
            body["signing_token"] = signing_token(webhook.secret)
        answer = self._http.send(method, path, body=body)
        if answer.status in (INVALID, BAD):
            raise InvalidInputError("webhook", webhook.url, f"is refused: {answer.text}")
        return checked(answer, doing)


def _events(webhook: Webhook) -> dict[str, bool]:
    """Return GitLab's switches for the events: pushes, and merge requests with their approvals."""
    return {
        "push_events": "push" in webhook.events,
        "issues_events": "issues" in webhook.events,
        "merge_requests_events": any(e.startswith("pull_request") for e in webhook.events),
    }


class GitLabForge(GitLabHooks):
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
