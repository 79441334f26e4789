"""
Answer links of an order's page: programs get JSON, people get a page.

People come from the portal, without a token; a session of the console, if they have one, says who
they are. What is refused becomes a page that says what happened to the order and where to go. The
page needs no console.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from orderkit.ports.requesters import UnprovedError
from orderkit.web.auditing import AUDIT_KEY
from orderkit.web.callers import Caller
from orderkit.web.console.page_exchange import SIGN_IN, PageExchange
from orderkit.web.console.rendering import HEADERS, html
from orderkit.web.exchange import JsonExchange, Refusal
from orderkit.web.operations import ServiceOptions


def asks_for_page(request: Request) -> bool:
    """Say whether a browser asks for something to look at."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and "application/json" not in accepted


class LinkExchange(JsonExchange):
    """Whoever follows a link."""

    def __init__(self, options: ServiceOptions, pages: PageExchange | None) -> None:
        super().__init__(options.access)
        self._portal_url, self._pages = options.portal_url, pages

    def shows_proof(self, request: Request) -> bool:
        return super().shows_proof(request) or self._signed_in(request) is not None

    def identify(self, request: Request) -> Caller:
        if super().shows_proof(request):
            return super().identify(request)
        caller = self._signed_in(request)
        if caller is None:
            raise UnprovedError("you are not signed in", hint="sign in")
        return caller

    def _signed_in(self, request: Request) -> Caller | None:
        """Return the person of a session; None without one, and if it has expired."""
        if self._pages is None or not self._pages.shows_proof(request):
            return None
        try:
            return self._pages.identify(request)
        except UnprovedError:
            return None

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        if not asks_for_page(request):
            answer = super().refuse(request, refusal)
            answer.headers["Vary"] = "Accept"
            return answer
        order = str(request.path_params.get("order", ""))
        page = html(
            "link.html",
            refusal={
                "status": refusal.status,
                "message": refusal.message,
                "hint": refusal.hint,
            },
            order=order,
            portal=self._portal_url,
            console=self._pages is not None,
            signed_in=self._signed_in(request) is not None,
            sign_in=f"{SIGN_IN}?onward={quote(request.url.path, safe='')}",
            request_id=request.scope[AUDIT_KEY]["request"],
        )
        headers = {**HEADERS, **refusal.headers, "Vary": "Accept"}
        headers.pop("WWW-Authenticate", None)  # a browser would ask for a password
        return Response(page, refusal.status, headers, "text/html; charset=utf-8")
