"""
Verify that a webhook comes from the forge: a key, and a signature made with it.

The key is derived from the service's own secret, so that whoever has that needs no second one to
register a webhook, and whoever sees a webhook's settings on the forge learns nothing of the
service's secret. Pure; called by the service and by the flow that registers webhooks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

PATH = "/v1/webhooks/gitea"
"""The service's path for webhooks."""
HEADER = "X-Gitea-Signature"
_PURPOSE = b"orderkit/webhooks/gitea/v1"


def hook_key(secret: str) -> str:
    """Return the webhooks' key of a service; `secret` is the service's own."""
    return hmac.new(secret.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def signature(key: str, data: bytes) -> str:
    """Return the signature that the forge sends for a body."""
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest()


def is_signed(key: str, data: bytes, claimed: str) -> bool:
    """Say whether a signature matches the body, in constant time."""
    # as bytes: compare_digest takes no text beyond ASCII
    return hmac.compare_digest(signature(key, data).encode(), claimed.encode(errors="replace"))


GITHUB_HEADER, GITHUB_PREFIX = "X-Hub-Signature-256", "sha256="
"""GitHub's header for the same signature, and how its value begins."""
GITLAB_HEADER = "X-Gitlab-Token"
"""The header of a GitLab that cannot sign: the token itself."""
SIGNATURE, MESSAGE_ID, TIMESTAMP = "webhook-signature", "webhook-id", "webhook-timestamp"
"""The headers of Standard Webhooks, with which GitLab signs (its merge request 230944)."""
LATE_S = 300
"""How old a signed delivery may be, and how far the clocks may differ."""
_VERSION, _PREFIX = "v1,", "whsec_"


def signing_token(key: str) -> str:
    """Return a webhook's key as GitLab takes it: 32 bytes in base64."""
    return _PREFIX + base64.b64encode(_bytes(key)).decode()


def _bytes(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def standard_signature(key: str, message: str, stamp: str, data: bytes) -> str:
    """Return a signature as Standard Webhooks make it; `message` is the delivery's id."""
    content = f"{message}.{stamp}.".encode() + data
    digest = hmac.new(_bytes(key), content, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest).decode()


def is_from_gitlab(key: str, data: bytes, headers: Mapping[str, str], now_s: float) -> bool:
    """
    Say whether a delivery has a valid and recent signature, or without one the token.

    A wrong signature is not made good by a token. Headers are in lower case.
    """
    claimed = headers.get(SIGNATURE)
    if claimed is None:
        token = headers.get(GITLAB_HEADER.lower(), "")
        return hmac.compare_digest(key.encode(), token.encode(errors="replace"))
    stamp = headers.get(TIMESTAMP, "")
    # isdigit takes a superscript, too, and int does not
    if not (stamp.isascii() and stamp.isdigit()) or abs(now_s - int(stamp)) > LATE_S:
        return False
    valid = standard_signature(key, headers.get(MESSAGE_ID, ""), stamp, data).encode()
    # Standard Webhooks allow several, so that keys can be rotated
    return any(hmac.compare_digest(valid, s.encode(errors="replace")) for s in claimed.split(" "))


TIME_HEADER, STAMPED_HEADER = "X-Orderkit-Timestamp", "X-Orderkit-Signature"
"""Of the webhooks that we send: seconds since 1970, and ``sha256=`` with a signature of both."""


def channel_key(secret: str, channel: str) -> str:
    """Return the key of a channel's webhooks; `secret` is the service's own."""
    purpose = b"orderkit/notifications/v1/" + channel.encode()
    return hmac.new(secret.encode(), purpose, hashlib.sha256).hexdigest()


def stamped_signature(key: str, stamp: str, data: bytes) -> str:
    """Return what `STAMPED_HEADER` has for a body that was signed at `stamp`."""
    return f"sha256={signature(key, stamp.encode() + b'.' + data)}"
