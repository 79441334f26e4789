"""
Verify that a webhook comes from the forge: a key, and a signature made with it.

The key is derived from the service's own secret, so that whoever has that needs no second one to
register a webhook, and whoever sees a webhook's settings on the forge learns nothing of the
service's secret. Pure; called by the service and by the flow that registers webhooks.
"""

from __future__ import annotations

import hashlib
import hmac

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
    return hmac.compare_digest(signature(key, data).encode(), claimed.encode(errors="replace"))


TIME_HEADER, STAMPED_HEADER = "X-Orderkit-Timestamp", "X-Orderkit-Signature"
"""Of the webhooks that we send: seconds since 1970, and ``sha256=`` with a signature of both."""


def channel_key(secret: str, channel: str) -> str:
    """Return the key of a channel's webhooks; `secret` is the service's own."""
    purpose = b"orderkit/notifications/v1/" + channel.encode()
    return hmac.new(secret.encode(), purpose, hashlib.sha256).hexdigest()


def stamped_signature(key: str, stamp: str, data: bytes) -> str:
    """Return what `STAMPED_HEADER` has for a body that was signed at `stamp`."""
    return f"sha256={signature(key, stamp.encode() + b'.' + data)}"
