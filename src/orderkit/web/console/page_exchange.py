"""
Read requests of browsers, call the API's operations for them, and answer with pages.

A session's cookie proves the caller. A form is believed if it has the session's token and the
browser says that it came from a page of ours; without a session, no form is read. Errors are pages
with the sentence and the way out; who is not signed in is led to the sign-in and back.

Pages call operations in this process: same rights, same checks, same handlers. An operation's
caller is the page's, so what the API refuses somebody, the console refuses them in the same words.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ground.errors import InvalidInputError, OrderkitError, RefusedError, SeveralProblemsError
from orderkit.ports.requesters import UnprovedError
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.console.rendering import HEADERS, html
from orderkit.web.console.sessions import Session, SessionCaller, Sessions
from orderkit.web.exchange import JsonExchange, Refusal, check, parse_query, read_path
from orderkit.web.openapi_schemas import KEY, LABEL
from orderkit.web.operations import (
    ConsoleOptions,
    Service,
    ServiceOperation,
    ServiceRequest,
    ServiceResponse,
)

CSRF, KEY_FIELD = "csrf", "key"
"""Hidden inputs of every form: the session's token, and the request's Idempotency-Key."""
SIGN_IN = "/sign-in"
_FIELDS_MAX = 3000
_UNAUTHENTICATED = 401


class PageExchange:
    """The browsers of one console."""

    def __init__(self, access: CallerAccess, options: ConsoleOptions, sessions: Sessions) -> None:
        self._access, self._options, self._sessions = access, options, sessions

    def shows_proof(self, request: Request) -> bool:
        return self.cookie_name(request, "session") in request.cookies

    def identify(self, request: Request) -> Caller:
        session = self._session(request)
        return SessionCaller(self._access, portal=False, proof=session.requester, session=session)

    def _session(self, request: Request) -> Session:
        cookie = request.cookies.get(self.cookie_name(request, "session"))
        if cookie is None:
            raise UnprovedError("you are not signed in", hint="sign in")
        return self._sessions.session(cookie)

    def read(
        self, operation: ServiceOperation, request: Request, data: bytes, caller: Caller | None
    ) -> ServiceRequest:
        path = read_path(request)
        query = parse_query(request, operation.query)
        headers = {"cookie": "", **{name: str(v) for name, v in self._browser(request).items()}}
        if operation.body is None:
            return ServiceRequest(caller, {}, path, query, headers=headers)
        form = read_form(data)
        self._check_origin(request)
        if not isinstance(caller, SessionCaller) or not _is_same(
            last(form, CSRF), caller.session.csrf
        ):
            raise RefusedError(
                "this form is not of your session",
                hint="open the page again, and send the form from there",
            )
        return ServiceRequest(caller, form, path, query, key=last(form, KEY_FIELD), headers=headers)

    def _browser(self, request: Request) -> Mapping[str, str]:
        """Return what pages need to know of the browser: where it is, and its cookies' names."""
        return {
            "at": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            "address": request.client.host if request.client else "",
            "session": request.cookies.get(self.cookie_name(request, "session"), ""),
            "attempt": request.cookies.get(self.cookie_name(request, "attempt"), ""),
            "favourites": request.cookies.get(self.cookie_name(request, "favourites"), ""),
            "favourites-name": self.cookie_name(request, "favourites"),
            "docs": self._options.docs,
            "session-name": self.cookie_name(request, "session"),
            "attempt-name": self.cookie_name(request, "attempt"),
            "secure": "yes" if self._is_secure(request) else "",
        }

    def _check_origin(self, request: Request) -> None:
        """
        Check that a page of ours sent this form.

        Raises:
            RefusedError: Another site's page did, or the browser does not say.
        """
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        own_hosts = {request.headers.get("host", "").lower()}
        own_hosts.add(urlsplit(self._options.address).netloc.lower())
        is_own = origin is not None and urlsplit(origin).netloc.lower() in own_hosts - {""}
        if not is_own or site not in (None, "same-origin"):
            raise RefusedError(
                "a page of another site may not send this form",
                hint="open the console, and send the form from there",
            )

    def write(self, operation: ServiceOperation, answer: ServiceResponse) -> Response:
        del operation
        headers = {**HEADERS, **answer.headers}
        cookies = headers.pop("Set-Cookie", "")
        response = Response(answer.body or b"", answer.status, headers, "text/html; charset=utf-8")
        for line in cookies.splitlines():
            response.headers.append("Set-Cookie", line)
        return response

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        is_elsewhere = request.method in ("GET", "HEAD") and not request.url.path.startswith(
            SIGN_IN
        )
        if refusal.status == _UNAUTHENTICATED and is_elsewhere:
            at = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            onward = f"?onward={quote(at, safe='')}" if at != "/" else ""
            return RedirectResponse(f"{SIGN_IN}{onward}", 303, HEADERS)
        try:
            session: Session | None = self._session(request)
        except UnprovedError:
            session = None
        page = html(
            "refusal.html",
            title="That did not work",
            session=session,
            is_platform=False,
            done="",
            key="",
            here="",
            docs=self._options.docs,
            refusal=refusal,
            request_id=request.scope["orderkit.audit"]["request"],
            back=_own_path(request.headers.get("referer", ""), request),
        )
        headers = {**HEADERS, **refusal.headers}
        headers.pop("WWW-Authenticate", None)  # a browser would ask for a password
        return Response(page, refusal.status, headers, "text/html; charset=utf-8")

    def cookie_name(self, request: Request, kind: str) -> str:
        """Return the name of a cookie of ours."""
        # with this prefix no other host can set it; without TLS, a host's ports share its cookies
        if self._is_secure(request):
            return f"__Host-orderkit-{kind}"
        return f"orderkit-{kind}-{request.url.port or 80}"

    def _is_secure(self, request: Request) -> bool:
        return self._options.secure or request.url.scheme == "https"


class SessionExchange(JsonExchange):
    """What pages' own scripts ask for: a session proves the caller where no token is shown."""

    def __init__(self, access: CallerAccess, pages: PageExchange) -> None:
        super().__init__(access)
        self._page_callers = pages

    def shows_proof(self, request: Request) -> bool:
        return super().shows_proof(request) or self._page_callers.shows_proof(request)

    def identify(self, request: Request) -> Caller:
        if super().shows_proof(request) or not self._page_callers.shows_proof(request):
            return super().identify(request)
        return self._page_callers.identify(request)


def cookie(name: str, value: str, *, secure: bool, max_age_s: int) -> str:
    """Return a ``Set-Cookie``; of an empty value: one that removes the cookie."""
    age = max_age_s if value else 0
    flags = "; Secure" if secure else ""
    return f"{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{flags}"


def read_form(data: bytes) -> dict[str, list[str]]:
    """
    Read a form's fields; each may stand there several times.

    Raises:
        InvalidInputError: It is not one, or has too many fields.
    """
    try:
        pairs = parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_FIELDS_MAX,
            errors="strict",
        )
    except ValueError as error:
        raise InvalidInputError("form", data[:80], f"cannot be read: {error}") from error
    form: dict[str, list[str]] = {}
    for name, value in pairs:
        # browsers send the line ends of a text so
        form.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return form


def last(form: Mapping[str, Any], name: str) -> str:
    """Return a field's last value; empty if the form has none."""
    values = form.get(name) or [""]
    return str(values[-1])


def _is_same(text: str, other: str) -> bool:
    return secrets.compare_digest(text.encode(), other.encode())


def own_path(text: str) -> str:
    """Return a path of this host; ``/`` for anything else."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\"))
    # browsers read a backslash as /
    is_plain = text.isprintable() and text.isascii() and "\\" not in text
    return text if is_path and is_plain else "/"


def _own_path(referer: str, request: Request) -> str:
    parts = urlsplit(referer)
    if parts.netloc.lower() != request.headers.get("host", "").lower():
        return "/"
    return own_path(parts.path + (f"?{parts.query}" if parts.query else ""))


T = TypeVar("T")
_PAGE, _DIGITS = 50, 7
_NAMED = re.compile(r"\{(\w+)\}")


class ApiCalls:
    """The operations of one service."""

    def __init__(self, operations: Iterable[ServiceOperation]) -> None:
        self._operations = {operation.id: operation for operation in operations}

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._operations

    def ask(
        self,
        service: Service,
        call: ServiceRequest,
        operation_id: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """
        Return an operation's answer for the page's caller, about what the page's address names.

        Raises:
            OrderkitError: What the operation raises.
        """
        operation = self._operations[operation_id]
        if operation.method != "GET":
            call.audit_fields["does"] = operation.id
        if operation.person:
            call.who.check_person()
        if operation.right is not None:
            call.who.teams(operation.right)
        path_values = {name: call.path[name] for name in _NAMED.findall(operation.path)}
        for name, value in path_values.items():
            check(value, LABEL, f"path.{name}")
        for name, value in (query or {}).items():
            check(value, operation.query[name], f"query.{name}")
        if operation.body is not None:
            check(body or {}, operation.body, "body")
        key = call.key if operation.keyed else ""
        if key:
            check(key, KEY, "key")
        request = ServiceRequest(
            call.who,
            body or {},
            path_values,
            query or {},
            key=key,
            audit_fields=call.audit_fields,
        )
        answer = operation.handler(service, request).body
        return json.loads(answer) if isinstance(answer, bytes) else answer


DONE = {
    "ordered": "It is ordered. This page follows it until it is Ready.",
    "committed": "It is committed. This page follows it until it is delivered and Ready.",
    "unchanged": "It has these values already: nothing was written.",
    "proposed": "It is proposed: merging it delivers it.",
    "merged": "It is merged. This page follows it until it is delivered and Ready.",
    "ended": "It has ended.",
    "approved": "Your approval is recorded; another approver still has to approve.",
    "delivered": "You approved it, and it is being delivered.",
    "declined": "It is withdrawn, and nothing of it was delivered.",
    "extended": "It is extended. The page shows it once it is delivered.",
}
"""What a page says after an action, by the word in its address: nobody else can put words there."""


def page(
    call: ServiceRequest, template: str, title: str, *, status: int = 200, **values: Any
) -> ServiceResponse:
    """Return a page of whoever is signed in."""
    caller = call.caller
    return ServiceResponse(
        status,
        html(
            template,
            title=title,
            session=caller.session if isinstance(caller, SessionCaller) else None,
            is_platform=caller is not None and caller.teams("read") is None,
            here=call.headers.get("at", ""),
            docs=call.headers.get("docs", ""),
            done=DONE.get(call.query.get("done", ""), ""),
            key=secrets.token_urlsafe(12),
            **values,
        ),
    )


def paged(call: ServiceRequest, items: Sequence[T]) -> tuple[Sequence[T], int, int]:
    """Return the items of the page that the address names, its number, and how many there are."""
    number = call.query.get("page", "")
    at = max(1, int(number)) if number.isdecimal() and len(number) < _DIGITS else 1
    return items[_PAGE * (at - 1) : _PAGE * at], at, -(-len(items) // _PAGE)


def redirect(address: str, **headers: str) -> ServiceResponse:
    """Lead a browser to another page, which it asks for with GET."""
    return ServiceResponse(303, None, {"Location": address, **headers})


def sentence(error: OrderkitError) -> dict[str, Any]:
    """Return an error for a page that shows it beside what it is about."""
    field = error.field if isinstance(error, InvalidInputError) else ""
    problems = error.problems if isinstance(error, SeveralProblemsError) else (error,)
    return {
        "problems": [
            {
                "field": problem.field,
                "value": problem.value,
                "rule": problem.rule,
                "hint": problem.form_hint or problem.hint,
            }
            for problem in problems
            if isinstance(problem, InvalidInputError)
        ],
        "message": str(error),
        "hint": error.form_hint or error.hint,
        "field": field,
        "status": error.http_status,
    }
