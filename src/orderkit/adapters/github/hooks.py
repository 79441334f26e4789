"""Webhooks on GitHub."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from orderkit.adapters.forges.hooks import ForgeHooks
from orderkit.adapters.github.calls import GitHubCalls
from orderkit.ports.forge import Webhook

_NAMES = {"pull_request_only": "pull_request", "pull_request_sync": "pull_request"}
"""GitHub's event for each event that the port knows by another name."""


class GitHubHooks(GitHubCalls, ForgeHooks):
    """The part of the port about webhooks."""

    def _events(self, webhook: Webhook) -> Collection[str]:
        return {_NAMES.get(event, event) for event in webhook.events}

    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:
        events = {"events": sorted(self._events(webhook))}
        return {**events, "name": "web"} if is_new else events
