"""
Webhooks of the forge: what tells them of changes, and the endpoints that keep them.

The methods of `WebhookEvents` are called after a change was made. They return at once and raise
nothing: a payload is built only if an active webhook receives the event, and sent by
``forge.webhooks``. An exception in here is logged, never the writer's problem.

`WebhookRoutes` has the endpoints of webhooks: of repositories, for their admins, and of
organisations, for owners. Observed on Gitea 1.26.0: `active` is false unless asked for; a change
without a list of events falls back to ``push``; two webhooks may have one address. Only JSON of
type ``gitea`` is sent; names, authorization headers and branch filters are refused as unsupported.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import DeltaStatus, SortMode
from starlette.responses import Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import (
    ApiError,
    Call,
    Fields,
    empty_answer,
    json_answer,
    paged,
)
from orderkit_standins.forge.api.routes import API, REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.issues import Comment
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.webhooks import (
    Deliveries,
    Maker,
    Webhook,
    WebhookOwner,
    Webhooks,
    WebhookSettings,
    events_named,
    prepared,
)

log = logging.getLogger(__name__)

COMMITS_SHOWN = 5
"""A push names its newest commits; ``total_commits`` counts them all."""
NEW_BRANCH_MAX = 10
"""A new branch counts at most these, of those that no other branch has."""
NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class BranchMove:
    """One branch that moved; `before` or `after` is `NO_COMMIT` where there is nothing."""

    repo: Repository
    branch: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class WebhookEvents:
    """Builds payloads and hands them to the deliveries."""

    webhooks: Webhooks
    deliveries: Deliveries
    shapes: Shapes
    makers: Mapping[str, Maker]
    """Who makes the deliveries of other dialects, by the beginning of a webhook's content type."""

    def pushed(self, move: BranchMove, *, by: Account) -> None:
        """Tell that a branch was created or moved."""
        self._tell(
            move.repo,
            "push",
            lambda: {**self._push(move), "pusher": self.shapes.account(by)},
            by,
        )

    def pull_changed(
        self,
        repo: Repository,
        pull_id: int,
        action: str,
        *,
        by: Account,
        event_type: str = "pull_request",
        changes: Json | None = None,
    ) -> None:
        """
        A pull request was opened, edited, closed, ….

        Args:
            repo: Its repository.
            pull_id: The id of its issue.
            action: ``opened``, ``edited``, ``closed``, ``reopened``, ``synchronized``.
            by: Who did it.
            event_type: Which switch of a webhook decides: ``pull_request``, ``pull_request_sync``.
            changes: What an edit replaced.
        """

        def payload() -> Json:
            shape = self.shapes.pull(repo, pull_id, Right.ADMIN)
            replaced = {} if changes is None else {"changes": changes}
            return {
                "action": action,
                "number": shape["number"],
                **replaced,
                "pull_request": shape,
            }

        self._tell(repo, event_type, payload, by)

    def commented(self, repo: Repository, comment: Comment, action: str, *, by: Account) -> None:
        """A comment was ``created``, ``edited`` or ``deleted``."""
        issue = self.shapes.issues.by_id(comment.issue_id)

        def payload() -> Json:
            shape = {
                "action": action,
                "issue": self.shapes.issue(repo, issue),
                "comment": self.shapes.comment(repo, comment),
                "is_pull": issue.is_pull,
            }
            if issue.is_pull:
                shape["pull_request"] = self.shapes.pull(repo, issue.id, Right.ADMIN)
            return shape

        self._tell(repo, "pull_request_comment" if issue.is_pull else "issue_comment", payload, by)

    def _tell(
        self,
        repo: Repository,
        event_type: str,
        payload: Callable[[], Json],
        by: Account,
    ) -> None:
        try:
            receivers = self.webhooks.receivers(repo, event_type)
            if receivers:
                repository = self.shapes.repository(repo, Right.ADMIN)
                common = {"repository": repository, "sender": self.shapes.account(by)}
                text = json.dumps(common | payload(), indent=2, ensure_ascii=False)
                text = text.encode(errors="replace").decode()
                for webhook in receivers:
                    delivery = prepared(webhook, repo, event_type, text, self.makers)
                    if delivery is not None:
                        self.deliveries.add(delivery)
        except Exception:
            log.exception("webhooks of %s were not told of %s", repo.full_name, event_type)

    def _commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        return {**self.shapes.pushed_commit(repo, commit), **_changed_files(commit)}

    def _push(self, move: BranchMove) -> Json:
        git = git_read.open_repository(move.repo.path)
        head = git[move.after].peel(pygit2.Commit)
        commits = _new_commits(git, move, head)
        return {
            "ref": git_read.HEADS + move.branch,
            "before": move.before,
            "after": move.after,
            "commits": [self._commit(move.repo, commit) for commit in commits[:COMMITS_SHOWN]],
            "total_commits": len(commits),
            "head_commit": self._commit(move.repo, head),
        }


def _changed_files(commit: pygit2.Commit) -> dict[str, list[str]]:
    changed: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    if len(commit.parents) <= 1:
        for delta in git_read.changes(commit).deltas:
            key = {DeltaStatus.ADDED: "added", DeltaStatus.DELETED: "removed"}.get(delta.status)
            changed[key or "modified"].append(delta.new_file.path)
    return changed


def new_commits(repo: Repository, move: BranchMove) -> list[str]:
    """Return the ids of a push's commits, newest first."""
    git = git_read.open_repository(repo.path)
    head = git[move.after].peel(pygit2.Commit)
    return [str(commit.id) for commit in _new_commits(git, move, head)]


def _new_commits(
    git: pygit2.Repository, move: BranchMove, head: pygit2.Commit
) -> list[pygit2.Commit]:
    """Return the commits of a push, newest first."""
    walker = git.walk(head.id, SortMode.TOPOLOGICAL)
    if move.before != NO_COMMIT:
        walker.hide(pygit2.Oid(hex=move.before))
        return list(walker)
    for name in git_read.branch_names(git):
        tip = git_read.branch_commit(git, name)
        if name != move.branch and tip is not None:
            walker.hide(tip.id)
    return list(islice(walker, NEW_BRANCH_MAX))


_OF_REPO, _OF_ORG = f"{REPO}/hooks", f"{API}/orgs/{{org}}/hooks"


@dataclass(frozen=True, slots=True)
class WebhookRoutes:
    """Endpoints of webhooks."""

    access: Access
    webhooks: Webhooks

    @route("GET", _OF_REPO, "repository")
    @route("GET", _OF_ORG, "organization")
    def list_webhooks(self, call: Call) -> Response:
        return paged(call, self.webhooks.of_owner(self._owner(call)), webhook_shape)

    @route("POST", _OF_REPO, "repository")
    @route("POST", _OF_ORG, "organization")
    def create(self, call: Call) -> Response:
        owner, body = self._owner(call), call.fields()
        kind = body.required("type")
        if body.get("config") is None:
            raise ApiError(422, "[Config]: Required")
        if kind != "gitea":
            raise ApiError(422, f"Invalid hook type: {kind}")
        config = body.text_mapping("config")
        for key in ("url", "content_type"):
            if key not in config:
                raise ApiError(422, f"Missing config option: {key}")
        settings = WebhookSettings(
            url=config["url"],
            content_type=config["content_type"],
            secret=config.get("secret", ""),
            active=body.flag("active"),
            **_common(body),
        )
        return json_answer(webhook_shape(self.webhooks.create(owner, _checked(settings))), 201)

    @route("PATCH", f"{_OF_REPO}/{{id}}", "repository")
    @route("PATCH", f"{_OF_ORG}/{{id}}", "organization")
    def edit(self, call: Call) -> Response:
        """Change a webhook; what Gitea does not keep when it is left out falls back."""
        owner, body = self._owner(call), call.fields()
        webhook = self._webhook(call, owner)
        config, common = body.text_mapping("config"), _common(body)
        active = body.optional("active", bool)
        common |= {key: config[key] for key in ("url", "content_type") if key in config}
        common |= {"active": active} if active is not None else {}
        settings = replace(webhook.settings, **common)
        self.webhooks.change(webhook, _checked(settings))
        return json_answer(webhook_shape(self._webhook(call, owner)))

    @route("DELETE", f"{_OF_REPO}/{{id}}", "repository")
    @route("DELETE", f"{_OF_ORG}/{{id}}", "organization")
    def delete(self, call: Call) -> Response:
        self.webhooks.delete(self._webhook(call, self._owner(call)))
        return empty_answer()

    def _owner(self, call: Call) -> WebhookOwner:
        if "repo" in call.request.path_params:
            return WebhookOwner(repo_id=self.access.administered(call).id)
        return WebhookOwner(owner_id=self.access.own_organisation(call, role="owner").id)

    def _webhook(self, call: Call, owner: WebhookOwner) -> Webhook:
        webhook = self.webhooks.find(owner, call.path_number("id"))
        if webhook is None:
            raise ApiError(404)
        return webhook


def webhook_shape(webhook: Webhook) -> Json:
    """Return a webhook; its secret is never shown."""
    settings = webhook.settings
    return {
        "id": webhook.id,
        "type": "gitea",
        "branch_filter": "",
        "config": {"content_type": settings.content_type, "url": settings.url},
        "events": sorted(settings.events),
        "active": settings.active,
    }


def _common(body: Fields) -> dict[str, Any]:
    body.refuse_unsupported("name", "authorization_header")
    if body.text("branch_filter") not in ("", "*"):
        body.refuse_unsupported("branch_filter")
    return {"events": events_named(body.texts("events"))}


def _checked(settings: WebhookSettings) -> WebhookSettings:
    if settings.content_type != "json":
        raise ApiError(422, "Invalid content type")
    if not _is_url(settings.url):
        raise ApiError(422, "Invalid url")
    return settings


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:
        return False
