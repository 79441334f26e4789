"""
Register webhooks that report pull requests and pushes to the service, per team or per repository.

Called when a team is added, by bootstrap, and by ``orderkit platform webhook``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit.core.order import ledger
from orderkit.core.platform.webhook_key import PATH
from orderkit.flows.platform import Platform, ledger_snapshot, snapshot
from orderkit.ports.forge import Webhook

EVENTS = ("pull_request_only", "pull_request_sync", "pull_request_review", "push")
"""Opened, edited, closed, reopened; pushed to; reviewed; main moved on. Not labels and comments."""


def service_webhook(service_url: str, key: str) -> Webhook:
    """Return the webhook of a service; `key` signs what it is sent."""
    return Webhook(f"{service_url.rstrip('/')}{PATH}", EVENTS, key)


def ensure_webhooks(
    platform: Platform, targets: Sequence[str | RepoId], webhook: Webhook
) -> tuple[str | RepoId, ...]:
    """
    Make sure that the webhooks exist, with this key. Idempotent.

    Args:
        targets: Organisations or repositories; none: every team of the ledger.

    Returns:
        The targets.

    Raises:
        NotFoundError: No such organisation or repository. RemoteError: the forge.
    """
    hooked = tuple(targets) or tuple(ledger.teams(ledger_snapshot(platform).blobs))
    for target in hooked:
        platform.forge.ensure_webhook(target, webhook)
    return hooked


def ensure_team_webhook(platform: Platform, team: str) -> bool:
    """
    Register the platform's webhook of a team unless there is one; say whether there was none.

    Raises:
        AccessError: Our account does not own the organisation.
    """
    webhook = platform.webhook
    if webhook is None or platform.forge.has_webhook(team, webhook):
        return False
    platform.forge.ensure_webhook(team, webhook)
    return True


def unhooked_teams(platform: Platform) -> list[str]:
    """
    Return the teams, also those to come, whose pull requests the service does not hear of.

    Raises:
        AccessError: Our account does not own an organisation.
    """
    files = snapshot(platform, platform.ledger)
    teams = {*platform.teams, *(ledger.teams(files.blobs) if files else ())}
    return [team for team in sorted(teams) if not _is_hooked(platform, team)]


def _is_hooked(platform: Platform, team: str) -> bool:
    with suppress(NotFoundError):
        return platform.webhook is None or platform.forge.has_webhook(team, platform.webhook)
    return False
