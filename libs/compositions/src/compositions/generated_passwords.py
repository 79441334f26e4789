"""
Derive passwords that stay the same, without a random value in a station.

docs/adr/0026 has the reasons. Stations import `generated_password` from ``orderkit.stations``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import string

from compositions.resource_builders import secret
from compositions.station import Selector, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest, dig, metadata

__all__ = [
    "SEED_KEY",
    "SEED_MIN_BYTES",
    "SEED_NAME",
    "SEED_NAMESPACE",
    "SEED_SELECTOR",
    "STAND_IN_SEED",
    "generated_password",
    "is_seed",
    "seed_secret",
]

SEED_NAMESPACE, SEED_NAME, SEED_KEY = "crossplane-system", "orderkit-password-seed", "seed"
SEED_SELECTOR = Selector("v1", "Secret", SEED_NAME, {}, SEED_NAMESPACE)
SEED_MIN_BYTES = 32
_REQUIREMENT = "orderkit-password-seed"
_ALPHABET = string.ascii_letters + string.digits
_LENGTH = 32
_EVERY_CLASS = "aA1"
"""What rules for passwords ask for; the derived characters might lack a class."""


def seed_secret(seed: str) -> Manifest:
    """Return the Secret that keeps a platform's seed."""
    return {
        **secret({SEED_KEY: seed}),
        "metadata": {"name": SEED_NAME, "namespace": SEED_NAMESPACE},
    }


def is_seed(manifest: Manifest) -> bool:
    """Say whether a Secret has a seed that is long enough."""
    return len(_decoded(manifest, SEED_KEY)) >= SEED_MIN_BYTES


STAND_IN_SEED = seed_secret("only for trials, no platform uses it")
"""What ``kit check``, ``kit test`` and plans use."""


def generated_password(
    request: StationRequest, response: StationResponse, part: str, key: str = "password"
) -> str | None:
    """
    Return the password that the Secret `part` keeps under `key`, or None: then wait with it.

    The observed Secret decides. Before there is one, the password is an HMAC of the order's uid,
    part and key with the platform's seed (Secret ``crossplane-system/orderkit-password-seed``, key
    ``seed``, at least 32 bytes), so every round gives the same until the Secret is observed, and
    also after somebody deleted it. 32 letters and digits, with at least one of each class.

    None is returned while the seed was not looked up, and with a fatal result if it is needed and
    missing: nothing that exists changes.
    """
    response.require(_REQUIREMENT, "v1", "Secret", match_name=SEED_NAME, namespace=SEED_NAMESPACE)
    kept = _decoded(request.observed_resource(part), key)
    if kept:
        return kept.decode(errors="replace")
    if not request.is_answered(_REQUIREMENT):
        return None
    seed = _decoded(request.required_resource(_REQUIREMENT), SEED_KEY)
    if len(seed) < SEED_MIN_BYTES:
        if dig(request.observed_resource(part), "data", key) == "":
            return ""  # emptied by somebody, or by a snapshot: stays as it is
        response.fatal(
            f"Secret {SEED_NAMESPACE}/{SEED_NAME} has no {SEED_KEY} of at least {SEED_MIN_BYTES} "
            f"bytes, and Secret {part} has no {key} yet: ask the platform team",
            reason="NoPasswordSeed",
        )
        return None
    meta = metadata(request.xr)
    subject = [str(meta.get(name) or "") for name in ("uid", "namespace", "name")]
    return _derived(seed, "\0".join((*subject, part, key)))


def _decoded(secret: Manifest | None, key: str) -> bytes:
    text = dig(secret, "data", key)
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def _derived(seed: bytes, subject: str) -> str:
    number = int.from_bytes(hmac.digest(seed, subject.encode(), hashlib.sha512))
    characters: list[str] = []
    while len(characters) < _LENGTH - len(_EVERY_CLASS):
        number, index = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[index])
    return "".join(characters) + _EVERY_CLASS
