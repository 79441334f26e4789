"""
An OpenID provider's published half: discovery, keys, and the tokens it hands out.

Everything can be made wrong on purpose.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio.to_thread
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orderkit.adapters.embedded.serving import HttpServer, bind

AUDIENCE = "orderkit"
HOUR_S = 3600


class Provider:
    """Publishes an RSA and an elliptic key; `issuer` is what its documents and tokens say."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.elliptic = ec.generate_private_key(ec.SECP256R1())
        self.fetched = 0
        self.answers = threading.Event()
        """Cleared: requests for the keys wait until it is set."""
        self.answers.set()
        routes = [
            Route("/.well-known/openid-configuration", self._discovery),
            Route("/keys", self._keys),
        ]
        self._server = HttpServer(Starlette(routes=routes), bind("openid", 0))
        self._server.start()
        self.issuer, self.stop = self._server.url, self._server.stop

    async def _discovery(self, _request: Request) -> Response:
        return JSONResponse({"issuer": self.issuer, "jwks_uri": f"{self._server.url}/keys"})

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
def providing() -> Iterator[Provider]:
    """Serve one provider."""
    provider = Provider()
    try:
        yield provider
    finally:
        provider.answers.set()
        provider.stop()
