"""
Webhooks on Gitea.

Gitea allows duplicates, and it ignores a new secret in an update (observed on 1.26.0: the update
is accepted and the old secret stays). So a webhook with a secret is created anew.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from orderkit.adapters.forges.hooks import ForgeHooks
from orderkit.adapters.gitea.calls import Calls
from orderkit.ports.forge import Webhook


class GiteaHooks(Calls, ForgeHooks):
    """The part of the port about webhooks."""

    keeps_old_secret: ClassVar[bool] = True

    def _events(self, webhook: Webhook) -> Collection[str]:
        return {event.removesuffix("_only") for event in webhook.events}

    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:  # noqa: ARG002  alike
        return {"type": "gitea", "events": list(webhook.events), "branch_filter": "*"}
