"""
The console of one service: its table of pages, beside the API's table of operations.

Made by ``service``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orderkit.core.platform.service_access import Right
from orderkit.web.console.api_calls import ApiCalls
from orderkit.web.console.order_pages import FILTERS, OrderPages
from orderkit.web.console.page_exchange import SIGN_IN, PageExchange
from orderkit.web.console.sessions import Sessions
from orderkit.web.console.sign_in_pages import CALLBACK, SignInPages
from orderkit.web.operations import (
    ConsoleOptions,
    Handler,
    Schema,
    ServiceOperation,
    ServiceOptions,
)

_WORDS: Schema = {"type": "string", "maxLength": 400}
_TOKEN: Schema = {"type": "string", "maxLength": 8000}
_ORDER = "/orders/{order}"


class Console:
    """How browsers are recognised, and the pages that they can ask for."""

    def __init__(
        self,
        service_options: ServiceOptions,
        options: ConsoleOptions,
        operations: Iterable[ServiceOperation],
    ) -> None:
        """Prepare; `operations` are the API's."""
        access = service_options.access
        sessions = Sessions(access.secret, session_s=options.session_s)
        self.exchange = PageExchange(access, options, sessions)
        self._ways_in = SignInPages(options, sessions)
        self._api = ApiCalls(operations)

    def pages(self) -> tuple[ServiceOperation, ...]:
        """Return every page, as an operation of the service."""
        return (*self._signing_in(), *self._looking())

    def _signing_in(self) -> tuple[ServiceOperation, ...]:
        ways_in = self._ways_in
        return (
            _page("signInPage", SIGN_IN, ways_in.show, None, "onward"),
            _page("signInBegin", f"{SIGN_IN}/begin", ways_in.begin, None, "onward"),
            _page(
                "signInFinish", CALLBACK, ways_in.finish, None,
                "state", "code", "error", "error_description", "error_uri", "iss", "session_state",
            ),
            _page("signInLink", f"{SIGN_IN}/link", ways_in.follow_link, None, "token", "onward"),
            _form("signOut", "/sign-out", ways_in.leave, None),
        )  # fmt: skip

    def _looking(self) -> tuple[ServiceOperation, ...]:
        looks = OrderPages(self._api)
        return (
            _page("ordersPage", "/", looks.orders, "read", *FILTERS, "done"),
            _page("orderPage", _ORDER, looks.order, "read", "done"),
            _page("partsPage", f"{_ORDER}/parts", looks.parts, "read"),
            _page("historyPage", f"{_ORDER}/history", looks.history, "read"),
        )


def _page(
    id_: str, path: str, handler: Handler, right: Right | None, *query: str
) -> ServiceOperation:
    schemas = {name: _TOKEN if name in ("token", "code", "state") else _WORDS for name in query}
    return ServiceOperation(
        id_, "GET", path, "", handler, {}, right, query=schemas, slow=True, page=True
    )


def _form(id_: str, path: str, handler: Handler, right: Right | None) -> ServiceOperation:
    body: Mapping[str, Any] = {}
    return ServiceOperation(
        id_, "POST", path, "", handler, {}, right, body=body, slow=True, page=True,
        optional=right is None,
    )  # fmt: skip
