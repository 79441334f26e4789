"""Which deliveries of GitLab are believed: signed as Standard Webhooks say, or with the token."""

from __future__ import annotations

import pytest

from orderkit.core.platform.webhook_key import (
    GITLAB_HEADER,
    LATE_S,
    MESSAGE_ID,
    SIGNATURE,
    TIMESTAMP,
    hook_key,
    is_from_gitlab,
    signing_token,
    standard_signature,
)

KEY, BODY, NOW = hook_key("secret"), b'{"object_kind": "push"}', 1_764_300_000
SIGNED = {
    MESSAGE_ID: "m1",
    TIMESTAMP: str(NOW),
    SIGNATURE: standard_signature(KEY, "m1", str(NOW), BODY),
}


def test_the_vector_of_standard_webhooks_holds() -> None:
    """Signed as the specification says: base64 of HMAC-SHA256 with the decoded key."""
    import base64
    import hashlib
    import hmac

    secret = base64.b64decode(signing_token(KEY).removeprefix("whsec_"))
    digest = hmac.new(secret, b"m1.%d." % NOW + BODY, hashlib.sha256).digest()

    assert len(secret) == 32
    assert SIGNED[SIGNATURE] == f"v1,{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (SIGNED, "it is signed"),
        ({**SIGNED, SIGNATURE: f"v1,AAAA {SIGNED[SIGNATURE]}"}, "one of its signatures is ours"),
        ({GITLAB_HEADER.lower(): KEY}, "a GitLab that cannot sign sends the token"),
    ],
)
def test_a_delivery_of_ours_is_believed(headers: dict[str, str], reason: str) -> None:
    assert is_from_gitlab(KEY, BODY, headers, NOW), reason


@pytest.mark.parametrize(
    ("headers", "body", "now", "reason"),
    [
        ({}, BODY, NOW, "nothing proves it"),
        ({GITLAB_HEADER.lower(): "other"}, BODY, NOW, "another token"),
        (SIGNED, BODY + b" ", NOW, "another body"),
        ({**SIGNED, MESSAGE_ID: "m2"}, BODY, NOW, "another delivery's signature"),
        ({**SIGNED, TIMESTAMP: str(NOW + 1)}, BODY, NOW, "another time"),
        (SIGNED, BODY, NOW + LATE_S + 1, "it is replayed late"),
        ({**SIGNED, TIMESTAMP: "x"}, BODY, NOW, "its time is no number"),
        ({**SIGNED, SIGNATURE: "v1,x", GITLAB_HEADER.lower(): KEY}, BODY, NOW, "a bad signature"),
    ],
)
def test_another_delivery_is_not(
    headers: dict[str, str], body: bytes, now: int, reason: str
) -> None:
    assert not is_from_gitlab(KEY, body, headers, now), reason
