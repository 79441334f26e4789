"""
Tell webhooks what happened: each function here is called after a change was made.

They return at once and raise nothing: a payload is built only if an active webhook wants the
event, and sent by ``deliveries``. An exception in here is logged, never the writer's problem.

Called by the endpoints that change something.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pygit2

from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.payloads import (
    NOTHING,
    Move,
    commit_payload,
    push_payload,
)
from orderkit.adapters.embedded.forge.api.shapes import Json, account_shape, repo_shape
from orderkit.adapters.embedded.forge.deliveries import prepared
from orderkit.adapters.embedded.forge.hooks import Hook, lets_through
from orderkit.adapters.embedded.forge.registry import RepoRow

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

log = logging.getLogger(__name__)


def reference_moved(forge: EmbeddedForge, move: Move, *, by: Account) -> None:
    """A branch or tag appeared (``create``, ``push``), moved (``push``) or went (``delete``)."""
    if move.before == NOTHING and move.kind == "branch":
        _created(forge, move, by)
    if move.after != NOTHING or move.kind == "tag":
        _tell(
            forge,
            move.repo,
            "push",
            lambda: {
                **push_payload(move, forge.base_url, forge.accounts.name_by_email),
                "repository": _repository(forge, move.repo),
                "pusher": account_shape(by, forge.base_url),
                "sender": account_shape(by, forge.base_url),
            },
            ref=move.ref,
        )
    if move.before == NOTHING and move.kind == "tag":
        _created(forge, move, by)
    if move.after == NOTHING:
        _tell(
            forge,
            move.repo,
            "delete",
            lambda: {
                "ref": move.name,
                "ref_type": move.kind,
                "pusher_type": "user",
                "repository": _repository(forge, move.repo),
                "sender": account_shape(by, forge.base_url),
            },
            ref=move.ref,
        )


def _created(forge: EmbeddedForge, move: Move, by: Account) -> None:
    _tell(
        forge,
        move.repo,
        "create",
        lambda: {
            "sha": move.after,
            "ref": move.name,
            "ref_type": move.kind,
            "repository": _repository(forge, move.repo, Right.NONE),
            "sender": account_shape(by, forge.base_url),
        },
        ref=move.ref,
    )


def repository_changed(forge: EmbeddedForge, repo: RepoRow, action: str, *, by: Account) -> None:
    """A repository was ``created`` or is about to be ``deleted``: its row must still be there."""
    _tell(
        forge,
        repo,
        "repository",
        lambda: {
            "action": action,
            "repository": _repository(forge, repo),
            "organization": account_shape(forge.accounts.by_id(repo.owner_id), forge.base_url),
            "sender": account_shape(by, forge.base_url),
        },
    )


def status_set(
    forge: EmbeddedForge, repo: RepoRow, commit: pygit2.Commit, status: Json, *, by: Account
) -> None:
    """A commit got a status; `status` is its shape as the API answered it."""
    _tell(
        forge,
        repo,
        "status",
        lambda: {
            "commit": commit_payload(repo, commit, forge.base_url, forge.accounts.name_by_email),
            "context": status["context"],
            "created_at": status["created_at"],
            "description": status["description"],
            "id": status["id"],
            "repository": _repository(forge, repo),
            "sender": account_shape(by, forge.base_url),
            "sha": str(commit.id),
            "state": status["status"],
            "target_url": status["target_url"],
            "updated_at": status["updated_at"],
        },
    )


def pull_changed(
    forge: EmbeddedForge,
    repo: RepoRow,
    pull: Callable[[], Json],
    action: str,
    *,
    by: Account,
    event_type: str = "pull_request",
    changes: Json | None = None,
) -> None:
    """
    A pull request was opened, edited, closed, ….

    Args:
        pull: Makes its shape as the API shows it, if somebody wants to know.
        action: ``opened``, ``edited``, ``closed``, ``reopened``, ``synchronized``,
            ``label_updated``.
        event_type: Which switch of a webhook decides: ``pull_request``, ``pull_request_sync``,
            ``pull_request_label``.
        changes: What an edit replaced.
    """

    def payload() -> Json:
        shape = pull()
        return {
            "action": action,
            "number": shape["number"],
            **({"changes": changes} if changes is not None else {}),
            "pull_request": shape,
            "requested_reviewer": None,
            "repository": _repository(forge, repo),
            "sender": account_shape(by, forge.base_url),
            "commit_id": "",
            "review": None,
        }

    _tell(forge, repo, event_type, payload)


def issue_changed(
    forge: EmbeddedForge,
    repo: RepoRow,
    issue: Callable[[], Json],
    action: str,
    *,
    by: Account,
    event_type: str = "issues",
) -> None:
    """An issue was opened, edited, closed, reopened or labelled; `issue` makes its shape."""

    def payload() -> Json:
        shape = issue()
        return {
            "action": action,
            "number": shape["number"],
            "issue": shape,
            "repository": _repository(forge, repo),
            "sender": account_shape(by, forge.base_url),
            "commit_id": "",
        }

    _tell(forge, repo, event_type, payload)


def commented(
    forge: EmbeddedForge,
    repo: RepoRow,
    said: Callable[[], Json],
    action: str,
    *,
    by: Account,
    is_pull: bool,
) -> None:
    """
    A comment was ``created``, ``edited`` or ``deleted``.

    Args:
        said: Makes the shapes of comment and issue, and of the pull request if it is on one.
    """
    _tell(
        forge,
        repo,
        "pull_request_comment" if is_pull else "issue_comment",
        lambda: {
            "action": action,
            **said(),
            "repository": _repository(forge, repo),
            "sender": account_shape(by, forge.base_url),
            "is_pull": is_pull,
        },
    )


def push_again(
    forge: EmbeddedForge,
    hook: Hook,
    repo: RepoRow,
    ref: str,
    commit: pygit2.Commit,
    *,
    by: Account,
) -> None:
    """Send one webhook a push of a commit that is there, to try it; inactive ones stay silent."""
    shape = commit_payload(repo, commit, forge.base_url, forge.accounts.name_by_email)
    payload = {
        "ref": ref,
        "before": str(commit.id),
        "after": str(commit.id),
        "compare_url": f"{forge.base_url}/{repo.full_name}/compare/{commit.id}...{commit.id}",
        "commits": [shape],
        "total_commits": 1,
        "head_commit": shape,
        "repository": _repository(forge, repo, Right.NONE),
        "pusher": account_shape(by, forge.base_url),
        "sender": account_shape(by, forge.base_url),
    }
    settings = hook.settings
    if settings.active and "push" in settings.events and lets_through(settings, ref):
        forge.deliveries.add(prepared(hook, "push", json.dumps(payload, indent=2)))


def _tell(
    forge: EmbeddedForge,
    repo: RepoRow,
    event_type: str,
    payload: Callable[[], Json],
    *,
    ref: str = "",
) -> None:
    try:
        hooks = forge.hooks.wanting(repo, event_type, ref)
        if hooks:
            text = json.dumps(payload(), indent=2, ensure_ascii=False)
            for hook in hooks:
                forge.deliveries.add(prepared(hook, event_type, text))
    except Exception:
        log.exception("webhooks of %s were not told of %s", repo.full_name, event_type)


def _repository(forge: EmbeddedForge, repo: RepoRow, right: Right = Right.ADMIN) -> Json:
    return repo_shape(repo, forge.accounts.by_id(repo.owner_id), right, forge.base_url)
