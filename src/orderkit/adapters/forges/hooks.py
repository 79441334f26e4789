"""Webhooks as Gitea and GitHub have them: exactly one per URL, active, with the given secret."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

from ground.errors import InvalidInputError, OrderkitError
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import UNCLEAR, GarbledError, settle
from orderkit.adapters.forges.calls import (
    INVALID,
    MISSING,
    ForgeCalls,
    Found,
    checked,
    done,
    number_in,
    object_in,
)
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.ports.forge import Webhook


class ForgeHooks(ForgeCalls):
    """The part of the port about webhooks."""

    keeps_old_secret: ClassVar[bool] = False
    """An update leaves the secret as it was, so that a webhook with one is made anew."""

    def _path(self, repo: RepoId, *segments: str) -> str:
        raise NotImplementedError

    def _pages(self, path: str, query: Query, doing: str) -> Iterator[Found]:
        raise NotImplementedError

    def _events(self, webhook: Webhook) -> Collection[str]:
        """Return the forge's names of the events that have to be delivered."""
        raise NotImplementedError

    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:
        """Return what the forge wants besides the address and the secret."""
        raise NotImplementedError

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
            # Gitea allows duplicates: a request whose answer was lost may have made one, too
            for hook in self._hooks(path, webhook, doing):
                if number_in(hook, "id") != kept:
                    answer = self._http.send("DELETE", f"{path}/{number_in(hook, 'id')}")
                    if answer.status != MISSING:
                        done(answer, doing)
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
        events = {*self._events(webhook)}
        return any(hook.get("active") and events <= {*hook.get("events", ())} for hook in hooks)

    def _hooks_path(self, target: str | RepoId) -> str:
        owner = path_of("orgs", target) if isinstance(target, str) else self._path(target)
        return f"{owner}/hooks"

    def _ensure_one(self, path: str, webhook: Webhook, doing: str) -> int:
        """Return the id of the webhook to keep: the oldest one after an update, or a new one."""
        hooks = self._hooks(path, webhook, doing)
        if hooks and not (webhook.secret and self.keeps_old_secret):
            return self._send("PATCH", f"{path}/{number_in(hooks[0], 'id')}", webhook, doing)
        try:
            return self._send("POST", path, webhook, doing)
        except UNCLEAR:
            raise
        except OrderkitError as error:
            if len(self._hooks(path, webhook, doing)) <= len(hooks):
                raise
            raise GarbledError(f"{doing}: refused and made") from error  # a proxy refused it

    def _hooks(self, path: str, webhook: Webhook, doing: str) -> list[Found]:
        """Return the webhooks for the URL, oldest first."""
        hooks = [
            hook
            for hook in self._pages(path, {}, doing)
            if (hook.get("config") or {}).get("url") == webhook.url
        ]
        return sorted(hooks, key=lambda hook: number_in(hook, "id"))

    def _send(self, method: str, path: str, webhook: Webhook, doing: str) -> int:
        config = {"url": webhook.url, "content_type": "json"}
        if webhook.secret:
            config["secret"] = webhook.secret
        body = {**self._body(webhook, is_new=method == "POST"), "config": config, "active": True}
        answer = self._http.send(method, path, body=body)
        if answer.status == INVALID:
            raise InvalidInputError("webhook", webhook.url, f"is refused: {answer.text}")
        return number_in(object_in(checked(answer, doing), doing), "id")
