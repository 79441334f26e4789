"""
The signing half of a Backstage: two keys, their addresses, and the tokens it hands out.

Written after what Backstage 1.55 sends: a plugin token of the scaffolder with a limited user
token inside, and the full token of a person. Everything can be made wrong on purpose.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orderkit.web.serving import HttpServer, bind

HOUR_S = 3600
EVE = "user:default/eve"


class Key:
    """A private key and the id it is published by."""

    def __init__(self, key_id: str) -> None:
        self.id, self.private = key_id, ec.generate_private_key(ec.SECP256R1())

    def public(self) -> dict[str, Any]:
        found = jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**found, "kid": self.id, "alg": "ES256", "use": "sig"}

    def sign(self, type_: str, claims: dict[str, Any]) -> str:
        """Sign claims; ``iat`` and ``exp`` are now and in an hour unless given, None: without."""
        now = int(time.time())
        full = {"iat": now, "exp": now + HOUR_S, **claims}
        full = {name: value for name, value in full.items() if value is not None}
        headers = {"typ": type_, "kid": self.id}
        return jwt.encode(full, self.private, algorithm="ES256", headers=headers)


class Signer:
    """Serves the keys and makes tokens; `requests` are the paths that were asked for."""

    def __init__(self) -> None:
        self.scaffolder, self.users = Key("scaffolder-1"), Key("users-1")
        self.requests: list[str] = []
        self.status = 200
        self.groups = ["group:default/platform"]
        """What Backstage says a person is in, besides themselves."""
        app = Starlette(
            routes=[
                Route("/api/auth/.well-known/jwks.json", self._users),
                Route("/api/scaffolder/.backstage/auth/v1/jwks.json", self._scaffolder),
                Route("/api/auth/v1/userinfo", self._userinfo),
            ]
        )
        self._server = HttpServer(app, bind("signer", 0))
        self._server.start()
        self.url, self.stop = self._server.url, self._server.stop

    async def _users(self, request: Request) -> Response:
        return self._keys(request, self.users)

    async def _scaffolder(self, request: Request) -> Response:
        return self._keys(request, self.scaffolder)

    async def _userinfo(self, request: Request) -> Response:
        """Say what a person is in; Backstage asks for a token of that very person."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            claims = jwt.decode(
                token,
                self.users.private.public_key(),
                algorithms=["ES256"],
                options={"verify_aud": False},
            )
        except jwt.PyJWTError:
            return JSONResponse({"error": {"message": "Illegal token"}}, 401)
        return JSONResponse({"claims": {"sub": claims["sub"], "ent": [EVE, *self.groups]}})

    def _keys(self, request: Request, key: Key) -> Response:
        self.requests.append(request.url.path)
        return JSONResponse({"keys": [key.public()]}, self.status)

    def limited(self, key: Key | None = None, **claims: Any) -> str:
        """Make the token that stands for a person inside another one."""
        return (key or self.users).sign("vnd.backstage.limited-user", {"sub": EVE, **claims})

    def plugin(self, key: Key | None = None, **claims: Any) -> str:
        """Make the token that the scaffolder sends through the proxy."""
        full = {"sub": "scaffolder", "aud": "proxy", "obo": self.limited(), **claims}
        return (key or self.scaffolder).sign("vnd.backstage.plugin", full)

    def user(self, **claims: Any) -> str:
        """Make the token of a person's own call."""
        full = {"sub": EVE, "aud": "backstage", "iss": self.url, **claims}
        return self.users.sign("vnd.backstage.user", full)


@contextlib.contextmanager
def signing() -> Iterator[Signer]:
    """Serve one signer."""
    signer = Signer()
    try:
        yield signer
    finally:
        signer.stop()
