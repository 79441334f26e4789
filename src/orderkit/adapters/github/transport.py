"""
HTTP to one GitHub: pacing, tokens of an App, paths, lists by their links, GraphQL.

`GitHubTransport` asks for what was read before only if it changed (ETag): such an answer counts for
no limit. `GitHubCalls` is shared by all parts of the GitHub client.

`AppTokens` acts as a GitHub App: it signs the App's own token, and has one for each organisation
(installation), renewed in time, because it ends after an hour. The App's own token (RS256, ten
minutes at most) is only used to ask for those. Read from GitHub's page "Authenticating as a GitHub
App installation".

`Pacer` keeps within GitHub's limits of speed. Source: its pages "Rate limits for the REST API" and
"… GraphQL API". GitHub.com takes 80 requests a minute and 500 an hour that create content, and of
each minute 900 points of the API (a read is 1, a write 5) and 2,000 of GraphQL; an Enterprise
Server has no limits unless its admin sets some.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from ground.errors import (
    AccessError,
    InvalidInputError,
    MovedError,
    NotFoundError,
    OrderkitError,
    RemoteError,
)
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import ForgeResponse, moved, refusal
from orderkit.adapters.forges.calls import ForgeCalls, Found, checked, list_in, object_in
from orderkit.adapters.forges.pacing import TOO_MANY, ForgePacer, pacer_of
from orderkit.adapters.forges.pushing import StaleHeadError
from orderkit.adapters.forges.transport import GIT, Credentials, ForgeTransport, Query, path_of

_EARLY_S, _LIFE_S, _SKEW_S = 300.0, 540, 60
"""How long before its end a token is renewed; how long ours lives; how wrong clocks may be."""
Ask = Callable[[str, str], Any]
"""Sends a request as the App itself, by method and path; returns the JSON of a success, or None."""


@dataclass(slots=True)
class AppTokens:
    """The tokens of one App. Safe to use from threads."""

    app_id: int
    key_file: Path
    installation: int | None = None
    """The only one; None: that of each organisation."""
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def app_token(self) -> str:
        """
        Return a token of the App itself.

        Raises:
            NotFoundError: The key cannot be read, or PyJWT is not installed.
            InvalidInputError: It is no private key.
        """
        try:
            import jwt
        except ImportError as error:
            raise NotFoundError(
                "a GitHub App needs PyJWT", hint="pip install 'orderkit[service]'"
            ) from error
        try:
            key = self.key_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(
                f"the key of GitHub App {self.app_id} cannot be read from {self.key_file}",
                hint="check forge.app.privateKeyFile in platform.yaml",
            ) from error
        now = int(time.time())
        claims = {"iat": now - _SKEW_S, "exp": now + _LIFE_S, "iss": str(self.app_id)}
        try:
            token = jwt.encode(claims, key, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise InvalidInputError(
                "forge.app.privateKeyFile", str(self.key_file), "holds no RSA private key"
            ) from error
        register(token)
        return str(token)

    def token(self, owner: str, ask: Ask) -> str:
        """
        Return a token for an organisation; "" means any.

        Raises:
            AccessError: The App is not installed there.
            OrderkitError: The App's own token cannot be made, or `ask` fails.
        """
        name = owner.lower()
        with self._lock:
            found = self._tokens.get(name)
            if found is None or found[1] - _EARLY_S < time.time():
                found = self._tokens[name] = self._new(name, ask)
            return found[0]

    def forget(self) -> None:
        """Ask anew for every token: the forge no longer knows one."""
        with self._lock:
            self._tokens.clear()

    def _new(self, owner: str, ask: Ask) -> tuple[str, float]:
        installation = self.installation or self._installation(owner, ask)
        made = ask("POST", f"/app/installations/{installation}/access_tokens") or {}
        token, ends = str(made.get("token") or ""), str(made.get("expires_at") or "")
        if not token:
            raise AccessError(f"GitHub App {self.app_id}: no token for '{owner}'")
        register(token)
        # GitHub ends it after an hour
        return token, datetime.fromisoformat(ends).timestamp() if ends else time.time() + 3600

    def _installation(self, owner: str, ask: Ask) -> int:
        if owner:
            found = ask("GET", f"/orgs/{owner}/installation")
        else:
            found = next(iter(ask("GET", "/app/installations") or ()), None)
        if not found:
            raise AccessError(
                f"GitHub App {self.app_id} is not installed in {owner or 'any organisation'}",
                hint="have an owner of the organisation install it, for all repositories",
            )
        return int(found["id"])


PER_MINUTE, PER_HOUR = 80, 500
"""GitHub's secondary limit of requests that make content."""
POINTS = {"core": 900, "graphql": 2_000}
"""Of a minute, by resource."""
_OK, _FORBIDDEN = 200, 403


class Pacer(ForgePacer):
    """The limits of one credential of GitHub."""

    title: ClassVar[str] = "GitHub"
    prefix: ClassVar[str] = "x-ratelimit-"
    unnamed_s: ClassVar[float] = 60.0

    def _is_refused(self, answer: ForgeResponse) -> bool:
        is_used_up = self._number(answer, "remaining") == 0
        if answer.status == _OK:  # GraphQL's way to say it
            return is_used_up and b'"RATE_LIMITED"' in answer.body
        if answer.status != _FORBIDDEN:
            return answer.status == TOO_MANY
        # a 403 is one with no requests left, with retry-after, or with a link to GitHub's page
        return is_used_up or "retry-after" in answer.headers or _names_limits(answer)


def of_cloud() -> Pacer:
    """Return a pacer that keeps within the numbers of GitHub.com."""
    return Pacer(per_minute=PER_MINUTE, per_hour=PER_HOUR, points=POINTS)


def _names_limits(answer: ForgeResponse) -> bool:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return False
    return isinstance(document, dict) and "rate-limits" in str(document.get("documentation_url"))


API_VERSION = "2022-11-28"
GRAPHQL = "graphql:"
"""The beginning of paths that lead to GraphQL, of an owner: ``graphql:OWNER``."""
_UNCHANGED, _MISSING = 304, 404
_OWNER = re.compile(r"/(?:repos|orgs)/([^/?]+)|graphql:(.+)|git:/([^/]+)/")
_CACHED, _CACHED_BYTES = 500, 1024 * 1024
_FULL_NAME_QUERY = (
    "query($owner:String!,$name:String!){repository(owner:$owner,name:$name){nameWithOwner}}"
)


def api_urls(url: str, api_url: str = "") -> tuple[str, str]:
    """Return the addresses of the API and of GraphQL; one below `url` begins with a slash."""
    host = urlsplit(url).netloc.lower()
    if api_url:
        stem = api_url.rstrip("/")
        return stem, stem.removesuffix("/v3") + "/graphql"
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}", f"https://api.{host}/graphql"
    return "/api/v3", "/api/graphql"


class GitHubTransport(ForgeTransport):
    """Sends requests to one GitHub. Safe to use from threads."""

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        app: AppTokens | None = None,
        api_url: str = "",
        pacer: Pacer | None = None,
        **how: Any,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            app: As which we act, instead of the credentials' token.
            api_url: Where the API is; empty: it follows from `base_url`.
            pacer: None: that of the credential in this process.
            how: As `ForgeTransport` takes it.

        Raises:
            InvalidInputError, RefusedError: As `ForgeTransport` says.
        """
        api, graphql = api_urls(base_url, api_url)
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": "orderkit",
        }
        super().__init__(base_url, credentials, api_url=api, headers=headers, **how)
        self.app = app
        self.graphql_url = self.base_url + graphql if graphql.startswith("/") else graphql
        self.is_cloud = not api.startswith("/") and not api_url
        secret = credentials.token or f"app:{app.app_id if app else ''}"
        key = (self.api_url, hashlib.sha256(secret.encode()).hexdigest())
        self.pacer = pacer or pacer_of(key, of_cloud if self.is_cloud else Pacer)
        self._tags: OrderedDict[object, tuple[str, ForgeResponse]] = OrderedDict()
        self._tags_lock = threading.Lock()

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        as_: Credentials | None = None,
    ) -> ForgeResponse:
        """
        Send one request, when GitHub's limits allow it.

        Raises:
            TooFastError: They do not for long; nothing was carried out.
            OrderkitError: As `ForgeTransport.send` says.
        """
        resource = "graphql" if path.startswith(GRAPHQL) else "core"
        resource = "git" if path.startswith(GIT) else resource
        # a query of GraphQL is a POST, too; no limit of content counts a push
        creates = method != "GET" and resource != "git" and not _is_query(path, body)
        once = partial(super().send, method, path, body=body, query=query, as_=as_)
        return self.pacer.send(resource, once, creates=creates)

    def as_app(self, method: str, path: str) -> Any:
        """
        Ask as the App itself; return the JSON, or None for a 404.

        Raises:
            OrderkitError: No answer, or a refusal.
        """
        if self.app is None:
            return None
        token = Credentials(token=self.app.app_token())
        answer = super().send(method, path, body={} if method == "POST" else None, as_=token)
        if answer.status == _MISSING:
            return None
        if not answer.ok:
            raise refusal(answer, f"{method} {path} as GitHub App {self.app.app_id}")
        return answer.json()

    def _authorization(self, credentials: Credentials, path: str) -> str:
        token = credentials.token
        if self.app is not None and not token:
            # an App has another token for each organisation
            match = _OWNER.match(path)
            owner = next(filter(None, match.groups()), "") if match else ""
            token = self.app.token(owner, self.as_app)
        return self._basic("x-access-token", token) if path.startswith(GIT) else f"Bearer {token}"

    def _renewed(self, rejected: Credentials) -> bool:
        if self.app is None:
            return super()._renewed(rejected)
        self.app.forget()
        return True

    def _url(self, path: str) -> str:
        if path.startswith(GRAPHQL):
            return self.graphql_url
        return super()._url(path)

    def _headers_for(self, method: str, path: str, query: Query | None) -> Mapping[str, str]:
        if method != "GET":
            return super()._headers_for(method, path, query)
        with self._tags_lock:
            known = self._tags.get((path, *(query or {}).items()))
        # a 304 counts for no limit
        return {"If-None-Match": known[0]} if known else {}

    def _exchange(
        self, authorization: str, method: str, path: str, body: object, query: Query | None
    ) -> ForgeResponse:
        answer = super()._exchange(authorization, method, path, body, query)
        if method != "GET":
            return answer
        key = (path, *(query or {}).items())
        with self._tags_lock:
            if answer.status == _UNCHANGED and key in self._tags:
                return self._tags[key][1]
            tag = answer.headers.get("etag", "")
            if tag and answer.ok and len(answer.body) <= _CACHED_BYTES:
                self._tags[key] = (tag, answer)
                self._tags.move_to_end(key)
                if len(self._tags) > _CACHED:
                    self._tags.popitem(last=False)
        return answer

    def _moved(self, path: str, answer: ForgeResponse) -> MovedError:
        """Return the error for a renamed repository."""
        # GitHub's redirect names only its number
        parts = path.split("/")
        if len(parts) > 3 and parts[1] == "repos":  # noqa: PLR2004  /repos/OWNER/NAME
            variables = {"owner": parts[2], "name": parts[3]}
            body = {"query": _FULL_NAME_QUERY, "variables": variables}
            try:
                document = self.send("POST", f"{GRAPHQL}{parts[2]}", body=body).json()
                name = str(document["data"]["repository"]["nameWithOwner"])
            except (OrderkitError, LookupError, TypeError):
                return moved(path, answer)
            place = {"location": f"/repos/{name}"}
            return moved(path, ForgeResponse(answer.status, place, b""))
        return moved(path, answer)


def _is_query(path: str, body: object) -> bool:
    """Say whether a request asks GraphQL and changes nothing."""
    if not path.startswith(GRAPHQL) or not isinstance(body, dict):
        return False
    return not str(body.get("query", "")).lstrip().startswith("mutation")


NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}\Z")
"""Names that GitHub keeps as they are; it changes others instead of refusing them."""
_NEXT = re.compile(r'[?&]page=(\d+)[^>]*>; rel="next"')

_AFTER = re.compile(r'[?&]after=([^&>]+)[^>]*>; rel="next"')


class GitHubCalls(ForgeCalls):
    """The shared part: paths and lists of GitHub's API."""

    _http: GitHubTransport  # pyrefly: ignore[bad-override-mutable-attribute]  set once, when made

    def git_address(self, repo: RepoId) -> str:
        """Return the path of a repository for git."""
        return f"{GIT}/{repo.owner}/{repo.name}.git"

    def _path(self, repo: RepoId, *segments: str) -> str:
        """Return the path of something below a repository."""
        return path_of("repos", repo.owner, repo.name, *segments)

    def _page_after(self, answer: ForgeResponse, _page: int, _missing: int, /) -> int:
        match = _NEXT.search(answer.headers.get("link", ""))
        return int(match[1]) if match else 0

    def _cursor_pages(self, path: str, query: Query, doing: str) -> Iterator[Found]:
        """Yield every item of a list whose pages follow each other by a mark."""
        after = ""
        while True:
            sent = {**query, self.page_size_key: self._page_size} | (
                {"after": after} if after else {}
            )
            answer = checked(self._http.get(path, sent), doing)
            yield from list_in(answer.json())
            match = _AFTER.search(answer.headers.get("link", ""))
            if match is None:
                return
            after = unquote(match[1])

    def graphql(
        self, owner: str, document: str, variables: Mapping[str, object], doing: str
    ) -> Found:
        """
        Return the data of a GraphQL answer.

        Raises:
            StaleHeadError: ``STALE_DATA``.
            NotFoundError, AccessError, RemoteError: As the type of the first error says.
        """
        body = {"query": document, "variables": variables}
        answer = checked(self._http.send("POST", f"{GRAPHQL}{owner}", body=body), doing)
        found = object_in(answer, doing)
        errors = list_in(found.get("errors") or [])
        if errors:
            raise _graphql_error(errors[0], f"{doing}: {answer_text(errors)}")
        data = found.get("data")
        return data if isinstance(data, dict) else {}


def answer_text(errors: list[Found]) -> str:
    """Return the messages of GraphQL errors, for people."""
    return "; ".join(str(error.get("message")) for error in errors)[:300]


def _graphql_error(error: Found, message: str) -> Exception:
    kind = error.get("type")
    if kind == "STALE_DATA":
        return StaleHeadError(message, hint="repeat the command")
    if kind == "NOT_FOUND":
        return NotFoundError(message)
    if kind in ("FORBIDDEN", "INSUFFICIENT_SCOPES"):
        return AccessError(
            f"no right: {message}", hint="ask an owner of the organisation for write access"
        )
    return RemoteError(message)
