"""
Sign a person in: with an OpenID Connect provider, or with GitHub.

Both use the authorization code with PKCE (RFC 7636, S256), and both are thread-safe.

`OpenIdSignIn` uses only the ID token. The access token is discarded at once.

`GitHubSignIn` uses GitHub's web application flow. GitHub is no OpenID provider for people: there is
no ID token. The access token that a code brings reads two things, who the person is and in which
organisations they are active, and is revoked at once. A group is an organisation. Anybody may have
an account of GitHub.com, under a name that somebody else has elsewhere; so only members of an
organisation that platform.yaml names sign in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

from ground.errors import OrderkitError, RemoteError, UnreachableError
from orderkit.adapters.backstage.backstage_client import BackstageResponse, send
from orderkit.adapters.github.transport import API_VERSION, api_urls
from orderkit.adapters.http import check_url
from orderkit.adapters.tokens.bearers import (
    BelievedGroups,
    OidcRequesters,
    groups_named,
    person_named,
)
from orderkit.adapters.tokens.published_keys import TIMEOUT_S
from orderkit.core.platform.service_access import SignInSettings
from orderkit.ports.requesters import Requester, SignInAttempt, UnprovedError

_OK = 200
_REFUSED = (400, 401, 403)


class OpenIdSignIn:
    """One provider."""

    def __init__(
        self,
        settings: SignInSettings,
        *,
        client_secret: str = "",
        believed: BelievedGroups = frozenset,
    ) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: The issuer is not an address.
            RefusedError: Plain HTTP to another machine.
        """
        self._settings, self._client_secret = settings, client_secret
        self._oidc = OidcRequesters(settings.provider, believed)

    @property
    def name(self) -> str:
        return urlsplit(self._settings.provider.issuer).hostname or ""

    def begin(self, redirect_uri: str) -> tuple[str, SignInAttempt]:
        verifier = secrets.token_urlsafe(48)
        attempt = SignInAttempt(secrets.token_urlsafe(24), secrets.token_urlsafe(24), verifier)
        query = {
            "response_type": "code",
            "client_id": self._settings.provider.audience,
            "redirect_uri": redirect_uri,
            # asked for none of its API, Gitea gives a token all scopes (observed on 1.26)
            "scope": " ".join(self._settings.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge(verifier),
            "code_challenge_method": "S256",
        }
        return f"{self._oidc.endpoint('authorization_endpoint')}?{urlencode(query)}", attempt

    def finish(self, code: str, attempt: SignInAttempt, redirect_uri: str) -> Requester:
        claims = self._oidc.claims(self._redeem(code, attempt, redirect_uri))
        nonce = str(claims.get("nonce", ""))
        # else a token of another sign-in would do
        if not secrets.compare_digest(nonce.encode(), attempt.nonce.encode()):
            raise sign_in_error("the provider's token is not for this sign-in")
        # only here: in a token that another client sends to the service, azp names that client
        _check_authorized_party(claims, self._settings.provider.audience)
        requester = self._oidc.person(claims)
        check_member(requester, self._settings.members_of)
        return requester

    def _redeem(self, code: str, attempt: SignInAttempt, redirect_uri: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._settings.provider.audience,
            "code_verifier": attempt.verifier,
            **({"client_secret": self._client_secret} if self._client_secret else {}),
        }
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        address = self._oidc.endpoint("token_endpoint")
        body = urlencode(form).encode()
        answer = send(
            "POST",
            address,
            headers=headers,
            body=body,
            timeout_s=TIMEOUT_S,
            ca_file=self._settings.provider.ca_file,
        )
        if answer.status in _REFUSED:
            raise sign_in_error("the provider does not redeem its code")
        if answer.status != _OK:
            raise UnreachableError(f"{self.name} answered {answer.status} to a sign-in")
        try:
            tokens = answer.json()
        except RemoteError as error:
            raise UnreachableError(f"{self.name} answered a sign-in without JSON") from error
        token = tokens.get("id_token") if isinstance(tokens, dict) else None
        if not isinstance(token, str):
            raise sign_in_error("the provider sent no ID token: is 'openid' among the scopes?")
        return token


def _check_authorized_party(claims: Mapping[str, Any], client_id: str) -> None:
    """
    Check for which client an ID token was issued (OpenID Connect Core 3.1.3.7, 4 and 5).

    Raises:
        UnprovedError: For another one, or for several audiences without naming the client.
    """
    audience, party = claims.get("aud"), claims.get("azp")
    is_shared = isinstance(audience, list) and len(audience) > 1
    if party != client_id and (is_shared or "azp" in claims):
        raise sign_in_error("the provider issued its token for another client ('azp')")


def challenge(verifier: str) -> str:
    """Return the digest of a verifier, as PKCE sends it first."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def check_member(requester: Requester, members_of: Collection[str]) -> None:
    """
    Let in only members of the groups that platform.yaml names; all, if it names none.

    Raises:
        UnprovedError: The person is in none of them.
    """
    if members_of and requester.groups.isdisjoint(members_of):
        raise UnprovedError(
            f"you are not signed in: {requester.ref} is in none of the groups that may sign in",
            hint="ask an owner of your team's organisation to let you in, then sign in again",
        )


def sign_in_error(why: str) -> UnprovedError:
    """Return the error of a sign-in that proves nobody."""
    return UnprovedError(f"you are not signed in: {why}", hint="sign in again")


_PAGE, _PAGES_MAX = 100, 20
_SCOPE = "read:org"


class GitHubSignIn:
    """One GitHub."""

    def __init__(
        self,
        settings: SignInSettings,
        *,
        client_secret: str,
        believed: BelievedGroups = frozenset,
    ) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: The issuer is not an address.
            RefusedError: Plain HTTP to another machine.
        """
        self._settings, self._client_secret, self._believed = settings, client_secret, believed
        self._url = check_url("issuer", settings.issuer)
        api = api_urls(self._url)[0]
        self._api = self._url + api if api.startswith("/") else api

    @property
    def name(self) -> str:
        return urlsplit(self._settings.issuer).hostname or ""

    def begin(self, redirect_uri: str) -> tuple[str, SignInAttempt]:
        verifier = secrets.token_urlsafe(48)
        attempt = SignInAttempt(secrets.token_urlsafe(24), "", verifier)
        query = {
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": _SCOPE,
            "state": attempt.state,
            "code_challenge": challenge(verifier),
            "code_challenge_method": "S256",
            "allow_signup": "false",
        }
        return f"{self._url}/login/oauth/authorize?{urlencode(query)}", attempt

    def finish(self, code: str, attempt: SignInAttempt, redirect_uri: str) -> Requester:
        access_token = self._redeem(code, attempt, redirect_uri)
        try:
            requester = self._person(access_token)
        finally:
            self._revoke(access_token)
        check_member(requester, self._settings.members_of)
        return requester

    def _redeem(self, code: str, attempt: SignInAttempt, redirect_uri: str) -> str:
        form = {
            "client_id": self._settings.client_id,
            "client_secret": self._client_secret,
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        address = f"{self._url}/login/oauth/access_token"
        answer = self._ask("POST", address, headers, urlencode(form).encode())
        # GitHub refuses with 200 and an error in the body.
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise sign_in_error("the provider does not redeem its code")
        return token

    def _person(self, access_token: str) -> Requester:
        headers = {"Authorization": f"Bearer {access_token}"}
        user = self._ask("GET", f"{self._api}/user", headers)
        login = user.get("login") if isinstance(user, dict) else None
        organisations = [name for name in self._organisations(headers) if name]
        groups = groups_named(organisations, self._settings.group_prefix)
        return Requester(
            person_named(login, "login"),
            f"signed in at {self._settings.issuer}",
            self._believed(groups),
            expires_s=time.time() + self._settings.session_minutes * 60,
        )

    def _organisations(self, headers: dict[str, str]) -> Iterator[str]:
        """Yield the organisations of which the person is an active member, in lower case."""
        for page in range(1, _PAGES_MAX + 1):
            query = urlencode({"state": "active", "per_page": _PAGE, "page": page})
            found = self._ask("GET", f"{self._api}/user/memberships/orgs?{query}", headers)
            entries = [item for item in found if isinstance(item, dict)] if found else []
            for item in entries:
                if item.get("state") == "active":
                    yield str((item.get("organization") or {}).get("login") or "").lower()
            if len(entries) < _PAGE:
                return

    def _revoke(self, access_token: str) -> None:
        """Take the token back; if that fails, nobody keeps it all the same."""
        pair = f"{self._settings.client_id}:{self._client_secret}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        body = json.dumps({"access_token": access_token}).encode()
        address = f"{self._api}/applications/{self._settings.client_id}/token"
        with suppress(OrderkitError):
            self._send("DELETE", address, headers, body)

    def _ask(self, method: str, address: str, headers: dict[str, str], body: bytes = b"") -> Any:
        """
        Return an answer's document.

        Raises:
            UnprovedError: GitHub refuses. UnreachableError: it cannot answer now.
        """
        answer = self._send(method, address, headers, body)
        if answer.status in (400, 401, 403, 404):
            raise sign_in_error(f"GitHub answers {answer.status}: {answer.text}")
        if answer.status != _OK:
            raise UnreachableError(f"{self.name} answered {answer.status} to a sign-in")
        try:
            return answer.json()
        except RemoteError as error:
            raise UnreachableError(f"{self.name} answered a sign-in without JSON") from error

    def _send(
        self, method: str, address: str, headers: dict[str, str], body: bytes
    ) -> BackstageResponse:
        usual = {"Accept": "application/json", "User-Agent": "orderkit"}
        if address.startswith(f"{self._api}/"):
            usual |= {
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": API_VERSION,
            }
        return send(
            method,
            address,
            headers=usual | headers,
            body=body or None,
            timeout_s=TIMEOUT_S,
            ca_file=self._settings.ca_file,
        )
