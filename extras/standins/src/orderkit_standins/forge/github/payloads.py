"""What GitHub sends to a webhook, from what the forge sends to one of Gitea's."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from typing import Any

from orderkit_standins.forge import git_read
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.webhook_events import NO_COMMIT
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.pull_requests import Pull
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import Reviews
from orderkit_standins.forge.webhooks import Webhook

Json = dict[str, Any]

CONTENT_TYPE = "github:json"
"""The content type by which such a webhook is kept."""
_ACTIONS = {"synchronized": "synchronize", "reviewed": "submitted"}
_UNHEARD = ("pull_request_comment", "issue_comment")
"""Comments have an event of their own, which nobody asks for."""


@dataclass(frozen=True, slots=True)
class GitHubPayloads:
    """Makes the deliveries of one forge."""

    shapes: GitHubShapes
    reviews: Reviews

    def headers_and_body(
        self, hook: Webhook, repo: Repository, event_type: str, payload: Json
    ) -> tuple[dict[str, str], bytes] | None:
        """Return the headers and the body of a delivery; None: GitHub makes none."""
        if event_type in _UNHEARD:
            return None
        common = {
            "repository": self.shapes.repository(repo, Right.ADMIN),
            "sender": self.shapes.user_by_id(payload["sender"]["id"]),
        }
        if event_type == "push":
            event, shape = "push", self._push(repo, payload)
        else:
            is_review = event_type.startswith("pull_request_review")
            event = "pull_request_review" if is_review else "pull_request"
            shape = self._pull(repo, payload, is_review=is_review)
        body = json.dumps({**common, **shape}, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0000000",
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-GitHub-Event": event,
            "X-GitHub-Hook-ID": str(hook.id),
            "X-GitHub-Hook-Installation-Target-ID": str(hook.repo_id or hook.owner_id),
            "X-GitHub-Hook-Installation-Target-Type": (
                "repository" if hook.repo_id else "organization"
            ),
        }
        if hook.settings.secret:
            headers["X-Hub-Signature-256"] = signature(hook.settings.secret, body)
        return headers, body

    def _push(self, repo: Repository, payload: Json) -> Json:
        git, pusher = git_read.open_repository(repo.path), payload["pusher"]

        def commit(shape: Json) -> Json:
            found = git_read.commit_by_id(git, shape["id"])
            return {
                **shape,
                "tree_id": str(found.tree_id) if found else NO_COMMIT,
                "distinct": True,
            }

        before, after = payload["before"], payload["after"]
        return {
            **{key: payload[key] for key in ("ref", "before", "after")},
            "created": before == NO_COMMIT,
            "deleted": after == NO_COMMIT,
            "forced": False,
            "base_ref": None,
            "compare": f"{self.shapes.page(repo)}/compare/{before[:12]}...{after[:12]}",
            "commits": [commit(each) for each in payload["commits"]],
            "head_commit": commit(payload["head_commit"]),
            "pusher": {"name": pusher["login"], "email": pusher["email"]},
        }

    def _pull(self, repo: Repository, payload: Json, *, is_review: bool) -> Json:
        number, action = payload["pull_request"]["number"], payload["action"]
        pull = self.shapes.pulls.find(repo.id, number)
        if pull is None:
            raise LookupError(f"{repo.full_name} has no pull request {number}")
        shape: Json = {
            "action": _ACTIONS.get(action, action),
            "pull_request": self.shapes.pull(repo, pull, Right.ADMIN, whole=not is_review),
        }
        if is_review:
            review = self.shapes.review(repo, pull, self.reviews.of_pull(pull.id)[-1])
            return {**shape, "review": {**review, "state": str(review["state"]).lower()}}
        shape["number"] = number
        if action == "edited":
            shape["changes"] = _changes(payload["changes"])
        if action == "synchronized":
            after = shape["pull_request"]["head"]["sha"]
            shape |= {"before": self._head_before(repo, pull), "after": after}
        return shape

    def _head_before(self, repo: Repository, pull: Pull) -> str:
        """Return the head before the last push."""
        pushes = [e for e in self.reviews.events(pull.id) if e.kind == "pull_push"]
        commits = json.loads(pushes[-1].body).get("commit_ids") if pushes else None
        git = git_read.open_repository(repo.path)
        oldest = git_read.commit_by_id(git, str(commits[-1])) if commits else None
        return str(oldest.parent_ids[0]) if oldest and oldest.parent_ids else NO_COMMIT


def signature(secret: str, body: bytes) -> str:
    """Return how GitHub signs a delivery."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def _changes(changes: Json) -> Json:
    """Return what an edit replaced; of another base GitHub tells the commit too."""
    if "ref" in changes:
        return {"base": {"ref": changes["ref"], "sha": {"from": NO_COMMIT}}}
    return changes
