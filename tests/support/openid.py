"""
An OpenID provider's published half: discovery, keys, and the tokens it hands out.

Everything can be made wrong on purpose.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.loopback_certificate import Certificate

AUDIENCE = "orderkit"
CLIENT_SECRET = "provider-secret"
HOUR_S = 3600


class Provider:
    """Publishes an RSA and an elliptic key; `issuer` is what its documents and tokens say."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.elliptic = ec.generate_private_key(ec.SECP256R1())
        self.fetched = 0
        self.answers = threading.Event()
        """Cleared: requests for the keys wait until it is set."""
        self.answers.set()
        self.sign_ins: dict[str, dict[str, str]] = {}
        """What the authorization endpoint was asked, by the code that it gave for it."""
        self.groups: tuple[str, ...] = ()
        self.claims: dict[str, Any] = {}
        """Of the next ID tokens: what is wrong with them."""
        routes = [
            Route("/.well-known/openid-configuration", self._discovery),
            Route("/keys", self._keys),
            Route("/authorize", self._authorize),
            Route("/token", self._redeem, methods=["POST"]),
        ]
        self._server = HttpServer(Starlette(routes=routes), bind("openid", 0), certificate)
        self._server.start()
        self.issuer, self.stop = self._server.url, self._server.stop

    async def _discovery(self, _request: Request) -> Response:
        url = self._server.url
        return JSONResponse(
            {
                "issuer": self.issuer,
                "jwks_uri": f"{url}/keys",
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
            }
        )

    async def _authorize(self, request: Request) -> Response:
        """Let eve sign in, who says yes to everything."""
        asked = dict(request.query_params)
        code = f"code-{len(self.sign_ins)}"
        self.sign_ins[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 303)

    async def _redeem(self, request: Request) -> Response:
        sent = dict(parse_qsl((await request.body()).decode()))
        asked = self.sign_ins.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != sent.get("redirect_uri")
            or sent.get("client_secret") != CLIENT_SECRET
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        claims = {"nonce": asked["nonce"], "aud": asked["client_id"], **self.claims}
        return JSONResponse({"id_token": self.token(*self.groups, **claims), "access_token": "all"})

    async def _keys(self, _request: Request) -> Response:
        self.fetched += 1
        await anyio.to_thread.run_sync(self.answers.wait)
        one = jwt.algorithms.RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True)
        other = jwt.algorithms.ECAlgorithm.to_jwk(self.elliptic.public_key(), as_dict=True)
        keys = [{**one, "kid": "rsa", "use": "sig"}, {**other, "kid": "ec", "use": "sig"}]
        shared = {"kty": "oct", "kid": "shared", "k": "c2hhcmVk", "alg": "HS256"}
        return JSONResponse({"keys": [*keys, shared]})

    def token(
        self,
        *groups: str,
        key: Any = None,
        algorithm: str = "RS256",
        head: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Make a token of eve; a claim that is None is left out."""
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "4711",
            "iat": now,
            "exp": now + HOUR_S,
            "preferred_username": "eve",
            "groups": [*groups],
        }
        found = {k: v for k, v in {**usual, **claims}.items() if v is not None}
        headers = {"kid": "rsa", **(head or {})}
        return jwt.encode(found, key or self.rsa, algorithm=algorithm, headers=headers)


@contextlib.contextmanager
def providing(certificate: Certificate | None = None) -> Iterator[Provider]:
    """Serve one provider, with TLS if there is a certificate."""
    provider = Provider(certificate)
    try:
        yield provider
    finally:
        provider.answers.set()
        provider.stop()
