"""What GitHub sends to a webhook, from what the forge sends to one of Gitea's."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from typing import Any

Json = dict[str, Any]

CONTENT_TYPE = "github:json"
"""The content type by which such a webhook is kept."""
_ACTIONS = {"synchronized": "synchronize", "reviewed": "submitted"}
_VERDICTS = {
    "pull_request_review_approved": "approved",
    "pull_request_review_rejected": "changes_requested",
}


def headers_and_body(event_type: str, payload: Json, secret: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a delivery, signed if the webhook has a secret."""
    event, shape = event_type, dict(payload)
    if event_type.startswith("pull_request"):
        verdict = _VERDICTS.get(event_type)
        event = "pull_request_review" if verdict else "pull_request"
        shape["action"] = _ACTIONS.get(str(payload.get("action")), payload.get("action"))
        if verdict:
            shape["review"] = {"state": verdict}
            shape.pop("number", None)
    body = json.dumps(shape, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/0000000",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-GitHub-Event": event,
    }
    if secret:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers["X-Hub-Signature-256"] = f"sha256={digest}"
    return headers, body
