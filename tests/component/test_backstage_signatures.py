"""Who stands behind a request through Backstage: only what its published keys have signed."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from signer import EVE, Key, Signer, signing

from ground.errors import UnreachableError
from orderkit.adapters.tokens import published_keys
from orderkit.adapters.tokens.bearers import BackstageRequesters
from orderkit.ports.requesters import UnprovedError


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    with signing() as found:
        yield found


def proved(signer: Signer, token: str) -> str:
    found = BackstageRequesters(signer.url).proved(f"Bearer {token}")
    assert found.proof == f"signed by {signer.url}"
    return found.ref


def test_the_scaffolders_token_proves_the_person_behind_the_task(signer: Signer) -> None:
    assert proved(signer, signer.plugin()) == EVE


def test_a_persons_own_token_proves_them(signer: Signer) -> None:
    assert proved(signer, signer.user()) == EVE


def test_a_little_difference_between_clocks_is_forgiven(signer: Signer) -> None:
    now = int(time.time())

    assert proved(signer, signer.plugin(iat=now + 10, exp=now - 10)) == EVE


@dataclass(frozen=True)
class Bad:
    reason: str
    make: Callable[[Signer], str]
    says: str = "not proved"


STRANGER = Key("scaffolder-1")


def _unsigned(signer: Signer) -> str:
    claims = jwt.decode(signer.plugin(), options={"verify_signature": False})
    headers = {"typ": "vnd.backstage.plugin", "kid": "scaffolder-1"}
    return jwt.encode(claims, "", algorithm="none", headers=headers)


def _hmac_with_the_public_key(signer: Signer) -> str:
    """Sign with what everybody can read, hoping that the algorithm is taken from the token."""
    public = signer.scaffolder.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = {"alg": "HS256", "typ": "vnd.backstage.plugin", "kid": "scaffolder-1"}
    begin = jwt.utils.base64url_encode(json.dumps(head).encode())
    text = begin + b"." + signer.plugin().split(".")[1].encode()
    signature = hmac.digest(public, text, "sha256")
    return (text + b"." + jwt.utils.base64url_encode(signature)).decode()


def _changed(signer: Signer) -> str:
    head, claims, signature = signer.plugin().split(".")
    return ".".join((head, claims[:-2] + ("AA" if claims[-2:] != "AA" else "BB"), signature))


LONG_AGO: dict[str, Any] = {"iat": 1_500_000_000, "exp": 1_500_003_600}
BAD = [
    Bad("expired", lambda s: s.plugin(**LONG_AGO), "expired"),
    Bad("the person's token in it expired", lambda s: s.plugin(obo=s.limited(**LONG_AGO))),
    Bad("made in the future", lambda s: s.plugin(iat=int(time.time()) + 600)),
    Bad("never expires", lambda s: s.plugin(exp=None), "exp"),
    Bad("for another plugin", lambda s: s.plugin(aud="catalog")),
    Bad("for nobody", lambda s: s.plugin(aud=None)),
    Bad("of another plugin", lambda s: s.plugin(sub="catalog"), "plugin 'catalog'"),
    Bad("signed by a stranger who uses a known id", lambda s: s.plugin(STRANGER)),
    Bad("signed with an unknown key", lambda s: s.plugin(Key("other")), "does not publish"),
    Bad("signed with the key for persons", lambda s: s.plugin(s.users)),
    Bad("unsigned", _unsigned),
    Bad("signed by hash with the public key", _hmac_with_the_public_key),
    Bad("changed after signing", _changed),
    Bad("of a service account", lambda s: s.plugin(obo=None), "names no person"),
    Bad("a person as plain text", lambda s: s.plugin(obo=EVE)),
    Bad(
        "a person signed with the scaffolder's key", lambda s: s.plugin(obo=s.limited(s.scaffolder))
    ),
    Bad("a person signed by a stranger", lambda s: s.plugin(obo=s.limited(Key("users-1")))),
    Bad("a full token where a limited one belongs", lambda s: s.plugin(obo=s.user()), "no person"),
    Bad("a plugin's token in its own", lambda s: s.plugin(obo=s.plugin()), "no person"),
    Bad("a limited token by itself", lambda s: s.limited(), "signed in"),
    Bad("a person's token for another system", lambda s: s.user(aud="argocd")),
    Bad("a name that is not a reference", lambda s: s.plugin(obo=s.limited(sub="eve\n\nX: y"))),
    Bad("of a type nobody knows", lambda s: s.users.sign("jwt", {"sub": EVE}), "signed in"),
    Bad("no token at all", lambda _: "0123456789abcdef", "not a signed token"),
    Bad("three dots", lambda _: "a.b.c"),
    Bad("nothing", lambda _: "", "no token"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_a_token_that_proves_nobody_is_refused(case: Bad, signer: Signer) -> None:
    requesters = BackstageRequesters(signer.url)

    with pytest.raises(UnprovedError, match=case.says):
        requesters.proved(f"Bearer {case.make(signer)}")


@pytest.mark.parametrize("header", ["", "Basic ZXZlOmV2ZQ==", "Bearer", "bearer "])
def test_other_headers_prove_nobody(header: str, signer: Signer) -> None:
    with pytest.raises(UnprovedError):
        BackstageRequesters(signer.url).proved(header)


def test_keys_are_fetched_once_and_again_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_keys, "REFETCH_S", 0.0)
    with signing() as signer:
        requesters = BackstageRequesters(signer.url)
        for _ in range(5):
            requesters.proved(f"Bearer {signer.plugin()}")
        assert len(signer.requests) == 2

        signer.scaffolder = Key("scaffolder-2")

        assert requesters.proved(f"Bearer {signer.plugin()}").ref == EVE
        assert len(signer.requests) == 3


def test_unknown_keys_do_not_make_us_ask_without_end() -> None:
    with signing() as signer:
        requesters = BackstageRequesters(signer.url)
        for _ in range(20):
            with pytest.raises(UnprovedError):
                requesters.proved(f"Bearer {signer.plugin(Key('other'))}")

        assert len(signer.requests) == 1


def test_a_portal_without_keys_is_unreachable_and_nobody_is_believed() -> None:
    with signing() as signer:
        signer.status = 404
        with pytest.raises(UnreachableError, match="404"):
            BackstageRequesters(signer.url).proved(f"Bearer {signer.plugin()}")
        token = signer.plugin()
        gone = signer.url
    with pytest.raises(UnreachableError):
        BackstageRequesters(gone).proved(f"Bearer {token}")
