"""What GitLab sends to a webhook, from what the forge sends to one of Gitea's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid
from typing import Any

from orderkit_standins.forge import git_read
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.webhooks import Webhook

Json = dict[str, Any]

MARK = "gitlab:"
"""How the content type of such a webhook begins; the rest is the path of the group."""
_ACTIONS = {
    "opened": "open",
    "closed": "close",
    "reopened": "reopen",
    "edited": "update",
    "synchronized": "update",
}
_VERDICTS = {
    "pull_request_review_approved": "approved",
    "pull_request_review_rejected": "unapproved",
}


def headers_and_body(
    hook: Webhook, repo: Repository, event_type: str, payload: Json
) -> tuple[dict[str, str], bytes] | None:
    """Return the headers and the body of a delivery, signed if the webhook has a token."""
    if event_type in ("pull_request_comment", "issue_comment"):
        return None  # notes have an event of their own, which nobody asks for
    group, secret = hook.settings.content_type.removeprefix(MARK), hook.settings.secret
    event = "Push Hook" if event_type == "push" else "Merge Request Hook"
    shape = _push(payload) if event_type == "push" else _merge_request(repo, event_type, payload)
    found, full = payload["repository"], payload["repository"]["full_name"]
    project = {
        "id": found["id"],
        "name": found["name"],
        "description": found["description"],
        "web_url": found["html_url"],
        "namespace": found["owner"]["login"],
        "path_with_namespace": f"{group}/{full}" if group else full,
        "default_branch": found["default_branch"],
    }
    body = json.dumps({**shape, "project": project}, ensure_ascii=False).encode()
    message, stamp = str(uuid.uuid4()), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitLab/19.5.0",
        "X-Gitlab-Event": event,
        "X-Gitlab-Event-UUID": str(uuid.uuid4()),
        "Idempotency-Key": message,
    }
    if secret.startswith("whsec_"):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = f"{message}.{stamp}.".encode() + body
        digest = hmac.new(key, content, hashlib.sha256).digest()
        headers |= {"webhook-id": message, "webhook-timestamp": stamp}
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers, body


def _push(payload: Json) -> Json:
    sender = payload["sender"]
    return {
        "object_kind": "push",
        "event_name": "push",
        "before": payload["before"],
        "after": payload["after"],
        "ref": payload["ref"],
        "checkout_sha": payload["after"],
        "user_id": sender["id"],
        "user_name": sender["login"],
        "user_username": sender["login"],
        "project_id": payload["repository"]["id"],
        "commits": [{"id": c["id"], "message": c["message"]} for c in payload["commits"]],
        "total_commits_count": payload["total_commits"],
    }


def _merge_request(repo: Repository, event_type: str, payload: Json) -> Json:
    pull, sender = payload["pull_request"], payload["sender"]
    action = _VERDICTS.get(event_type) or _ACTIONS.get(payload["action"], "update")
    state = "merged" if pull["merged"] else {"open": "opened"}.get(pull["state"], "closed")
    head, project = pull["head"]["sha"], payload["repository"]["id"]
    commit = git_read.commit_by_id(git_read.open_repository(repo.path), head)
    attributes = {
        "id": pull["id"],
        "iid": pull["number"],
        "source_project_id": project,
        "target_project_id": project,
        "url": pull["html_url"],
        "title": pull["title"],
        "description": pull["body"],
        "draft": pull["draft"],
        "state": state,
        "action": "merge" if pull["merged"] else action,
        "source_branch": pull["head"]["label"],
        "target_branch": pull["base"]["ref"],
        "last_commit": {"id": head, "message": git_read.message(commit) if commit else ""},
    }
    user = {"id": sender["id"], "username": sender["login"]}
    user["name"] = sender["login"]
    kind = {"object_kind": "merge_request", "event_type": "merge_request"}
    return {**kind, "user": user, "object_attributes": attributes, "changes": {}}
