"""
Register webhooks that report pull requests to the service, per team or per repository.

Called by ``orderkit platform webhook``.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderkit.core.names import RepoId
from orderkit.core.order import ledger
from orderkit.core.platform.webhook_key import PATH
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import Webhook

EVENTS = ("pull_request_only", "pull_request_sync", "pull_request_review", "push")
"""Opened, edited, closed, reopened; pushed to; reviewed; main moved on. Not labels and comments."""


def ensure_webhooks(
    platform: Platform, targets: Sequence[str | RepoId], *, service_url: str, key: str
) -> tuple[str | RepoId, ...]:
    """
    Make sure that the webhooks exist. Idempotent.

    Args:
        targets: Organisations or repositories; none: every team of the ledger.

    Returns:
        The targets.

    Raises:
        NotFoundError: No such organisation or repository. RemoteError: the forge.
    """
    hooked = tuple(targets) or tuple(ledger.teams(ledger_snapshot(platform).blobs))
    webhook = Webhook(f"{service_url}{PATH}", EVENTS, key)
    for target in hooked:
        platform.forge.ensure_webhook(target, webhook)
    return hooked
