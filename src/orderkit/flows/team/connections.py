"""
What connects a team's repositories: Argo CD's credential, and webhooks to the service.

With `ensure_read_credential` Argo CD reads one team's organisation and nothing else. Where
repositories are private, each team has a Secret of type ``repo-creds`` for its organisation's
address. Argo CD takes the Secret with the longest matching address, so no other one is used for the
team's Applications, and their AppProject allows no other address. (Argo CD ignores ``project`` in
Secrets of this type, read from its source, 3.2 and 3.6; Secrets that know it hold for a single
repository.) The token is of an account that may read this organisation only, which Orderkit makes
on the forge, or comes from a folder that platform.yaml names. It is kept in the cluster alone.

`ensure_webhooks` registers webhooks that report pull requests and pushes to the service, per team
or per repository.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ground.errors import NotFoundError
from ground.names import RepoId, TeamName
from ground.objects.kube_objects import ARGOCD_NAMESPACE, Kind, Manifest, ObjectKey, dig
from orderkit.core.order import ledger
from orderkit.core.platform.webhook_key import PATH
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, snapshot
from orderkit.ports.forge import Forge, Webhook

SECRET = Kind("", "v1", "Secret")
REPOSITORY_CREDENTIALS = {"argocd.argoproj.io/secret-type": "repo-creds"}


def organisation_url(forge: Forge, organisation: str) -> str:
    """Return the address below which an organisation's repositories are, with a final slash."""
    return f"{forge.base_url}/{organisation}/"


def secret_key(team: TeamName) -> ObjectKey:
    """Return where a team's credential is."""
    return ObjectKey(SECRET, f"orderkit-read-{team}", ARGOCD_NAMESPACE)


def credential_secret(
    key: ObjectKey, data: Mapping[str, str], labels: Mapping[str, str] = {}
) -> Manifest:
    """Return the Secret with which Argo CD reads repositories below ``data["url"]``."""
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {**labels, **REPOSITORY_CREDENTIALS},
        },
        "type": "Opaque",
        "data": encoded,
    }


def decoded(secret: Manifest, entry: str) -> str:
    """Return an entry of a Secret; empty if it has none."""
    return base64.b64decode(dig(secret, "data", entry, default="")).decode()


def lacking(platform: Platform, teams: Sequence[TeamName]) -> Sequence[TeamName]:
    """Return those of the teams whose credential is missing or of another address or token."""
    return [team for team in teams if platform.private and not _is_so(platform, team)]


def ensure_read_credential(platform: Platform, team: TeamName) -> bool:
    """
    Make sure that Argo CD can read a team's private repositories. Idempotent.

    A credential that is there is kept; delete the Secret to get another one. Returns whether one
    was written.

    Raises:
        AccessError: There is no token for the team, and ours may not make an account on the forge.
    """
    if not lacking(platform, [team]):
        return False
    token = platform.team_token(team)
    entries: Mapping[str, str] = {"username": "orderkit", "password": token}
    if not token:
        remove_read_account(platform, team)
        reader = platform.forge.add_reader(team)
        entries = reader.secret or {"username": reader.name, "password": reader.token}
    # no project: Argo CD ignores it in Secrets of this type (read from its source, 3.2 and 3.6)
    data = {"type": "git", "url": organisation_url(platform.forge, team), **entries}
    secret = credential_secret(secret_key(team), data, {ledger.TEAM_LABEL: team})
    platform.cluster.apply(secret, owner=OWNER)
    return True


def remove_read_credential(platform: Platform, team: TeamName) -> None:
    """Remove a team's credential, and the account that was made for it. Idempotent."""
    remove_read_account(platform, team)
    platform.cluster.delete(secret_key(team))


def remove_read_account(platform: Platform, team: TeamName) -> None:
    """Remove the account that Orderkit made for the credential that is there, if it is one."""
    secret = get_object(platform.cluster, secret_key(team))
    account = decoded(secret, "username") if secret else ""
    if account.startswith("argocd-"):
        platform.forge.remove_reader(team, account)


def _is_so(platform: Platform, team: TeamName) -> bool:
    secret = get_object(platform.cluster, secret_key(team))
    if secret is None or decoded(secret, "url") != organisation_url(platform.forge, team):
        return False
    token = platform.team_token(team)
    return not token or decoded(secret, "password") == token


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
    files = snapshot(platform.forge, platform.ledger)
    teams = {*platform.teams, *(ledger.teams(files.blobs) if files else ())}
    return [team for team in sorted(teams) if not _is_hooked(platform, team)]


def _is_hooked(platform: Platform, team: str) -> bool:
    with suppress(NotFoundError):
        return platform.webhook is None or platform.forge.has_webhook(team, platform.webhook)
    return False
