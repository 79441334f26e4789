"""
GitHub's half of its web application flow, as its documentation has it, for one person.

Source: docs.github.com, "Authorizing OAuth apps" (PKCE, 200 with an error for a bad code), REST
operations "List organization memberships for the authenticated user" and "Delete an app token".
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

from openid import AUDIENCE, CLIENT_SECRET
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from orderkit.web.serving import HttpServer, bind

_API = "/api/v3"
_BAD_CODE = {"error": "bad_verification_code", "error_description": "The code is incorrect."}


class GitHubOAuth:
    """Signs one person in, who says yes to everything."""

    def __init__(self) -> None:
        self.login = "eve"
        self.organisations: dict[str, str] = {}
        """The state of each membership by the organisation's login."""
        self.asked: dict[str, dict[str, str]] = {}
        """What the authorization page was asked, by the code that it gave for it."""
        self.tokens: set[str] = set()
        """Access tokens that are in force."""
        self.agents: set[str] = set()
        self.is_failing = False
        routes = [
            Route("/login/oauth/authorize", self._authorize),
            Route("/login/oauth/access_token", self._redeem, methods=["POST"]),
            Route(f"{_API}/user", self._user),
            Route(f"{_API}/user/memberships/orgs", self._memberships),
            Route(f"{_API}/applications/{AUDIENCE}/token", self._revoke, methods=["DELETE"]),
        ]
        self._server = HttpServer(Starlette(routes=routes), bind("github", 0))
        self._server.start()
        self.issuer, self.stop = self._server.url, self._server.stop

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        code = secrets.token_hex(10)
        self.asked[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 302)

    async def _redeem(self, request: Request) -> Response:
        sent = dict(parse_qsl((await request.body()).decode()))
        asked = self.asked.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or (sent.get("client_id"), sent.get("client_secret")) != (AUDIENCE, CLIENT_SECRET)
            or sent.get("redirect_uri") != asked["redirect_uri"]
        ):
            return JSONResponse(_BAD_CODE)
        token = f"gho_{secrets.token_hex(18)}"
        self.tokens.add(token)
        return JSONResponse({"access_token": token, "scope": "read:org", "token_type": "bearer"})

    def _refusal(self, request: Request) -> Response | None:
        self.agents.add(request.headers.get("user-agent", ""))
        if self.is_failing:
            return JSONResponse({"message": "Server Error"}, 502)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return None if token in self.tokens else JSONResponse({"message": "Bad credentials"}, 401)

    async def _user(self, request: Request) -> Response:
        return self._refusal(request) or JSONResponse({"login": self.login, "id": 4711})

    async def _memberships(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        wanted = request.query_params.get("state")
        size, page = (int(request.query_params[key]) for key in ("per_page", "page"))
        found = [
            {"state": state, "role": "member", "organization": {"login": login, "id": number}}
            for number, (login, state) in enumerate(self.organisations.items())
            if wanted in (None, state)
        ]
        return JSONResponse(found[(page - 1) * size : page * size])

    async def _revoke(self, request: Request) -> Response:
        pair = base64.b64encode(f"{AUDIENCE}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {pair}":
            return JSONResponse({"message": "Not Found"}, 404)
        self.tokens.discard(json.loads(await request.body())["access_token"])
        return Response(status_code=204)


@contextlib.contextmanager
def github_oauth() -> Iterator[GitHubOAuth]:
    """Serve it."""
    github = GitHubOAuth()
    try:
        yield github
    finally:
        github.stop()
