"""
Webhooks on Gitea: exactly one per URL, active, with the given secret.

Gitea allows duplicates, and it ignores a new secret in an update (observed on 1.26.0: the update
is accepted and the old secret stays). So a webhook with a secret is created anew.

Called through ``client.GiteaForge``; ``ports.access.ForgeAccess`` documents the contract.
"""

from __future__ import annotations

from typing import Any

from ground.errors import InvalidInputError, OrderkitError
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import ForgeResponse, GarbledError
from orderkit.adapters.forges.calls import (
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    number_in,
    object_in,
)
from orderkit.adapters.forges.retries import UNCLEAR, settle
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.calls import Calls
from orderkit.ports.forge import Webhook


class GiteaHooks(Calls):
    """The part of the port about webhooks."""

    def ensure_webhook(self, target: str | RepoId, webhook: Webhook) -> None:
        """
        Make sure there is exactly one active webhook for that URL. Idempotent. See the port.

        Raises:
            NotFoundError: No such organisation or repository.
            InvalidInputError: The forge refuses the URL.
        """
        register(webhook.secret)
        path, doing = self._hooks_path(target), f"set up a webhook of {target}"

        def act() -> bool:
            kept = self._ensure_one(path, webhook, doing)
            for hook in self._hooks(path, webhook, doing):
                if number_in(hook, "id") != kept:
                    self._remove(path, hook, doing)
            return True

        settle(lambda _: None, act, doing)

    def has_webhook(self, target: str | RepoId, webhook: Webhook) -> bool:
        """
        Say whether there is an active webhook for that URL and those events. See the port.

        Raises:
            NotFoundError: No such organisation or repository.
            AccessError: Our account does not own it.
        """
        hooks = self._hooks(self._hooks_path(target), webhook, f"list the webhooks of {target}")
        events = {event.removesuffix("_only") for event in webhook.events}
        return any(hook.get("active") and events <= {*hook.get("events", ())} for hook in hooks)

    def _hooks_path(self, target: str | RepoId) -> str:
        owner = path_of("orgs", target) if isinstance(target, str) else self._path(target)
        return f"{owner}/hooks"

    def _ensure_one(self, path: str, webhook: Webhook, doing: str) -> int:
        """Return the id of the webhook to keep: the oldest one after an update, or a new one."""
        hooks = self._hooks(path, webhook, doing)
        if hooks and not webhook.secret:
            kept = number_in(hooks[0], "id")
            self._call("PATCH", f"{path}/{kept}", webhook, doing)
            return kept
        try:
            answer = self._call("POST", path, webhook, doing)
        except UNCLEAR:
            raise
        except OrderkitError as error:
            if len(self._hooks(path, webhook, doing)) <= len(hooks):
                raise
            raise GarbledError(
                f"{doing}: refused and made"
            ) from error  # created anyway: a proxy made the refusal
        return number_in(object_in(answer, doing), "id")

    def _hooks(self, path: str, webhook: Webhook, doing: str) -> list[Found]:
        """Return the webhooks for the URL, oldest first."""
        hooks = [
            hook
            for hook in self._pages(path, {}, doing)
            if (hook.get("config") or {}).get("url") == webhook.url
        ]
        return sorted(hooks, key=lambda hook: number_in(hook, "id"))

    def _call(self, method: str, path: str, webhook: Webhook, doing: str) -> ForgeResponse:
        config = {"url": webhook.url, "content_type": "json"}
        if webhook.secret:
            config["secret"] = webhook.secret
        body: dict[str, Any] = {
            "type": "gitea",
            "config": config,
            "events": list(webhook.events),
            "branch_filter": "*",
            "active": True,
        }
        answer = self._http.send(method, path, body=body)
        if answer.status == INVALID:
            raise InvalidInputError("webhook", webhook.url, f"is refused: {answer.text}")
        return checked(answer, doing)

    def _remove(self, path: str, hook: Found, doing: str) -> None:
        answer = self._http.send("DELETE", f"{path}/{number_in(hook, 'id')}")
        if answer.status != MISSING:
            done(answer, doing)
