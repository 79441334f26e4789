"""
The console of one service: its table of pages, beside the API's table of operations.

Here are the small pages: sign in, with a provider or a one-time link, and sign out; what waits for
the approval of whoever is signed in, and their decision; campaigns, read-only, because a campaign
acts for whoever runs the command.

A provider's answer is believed only in the browser that began: its cookie holds state, nonce and
the verifier of PKCE.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from ground.errors import NotFoundError, RefusedError
from ground.suggestions import did_you_mean
from orderkit.core.platform.service_access import Right
from orderkit.ports.requesters import Requester, SignIn, UnprovedError
from orderkit.web.console.form_pages import ChangePages, KitPages
from orderkit.web.console.order_pages import (
    ACTIVITY_FILTERS,
    FILTERS,
    EndPages,
    LeasePages,
    OrderPages,
)
from orderkit.web.console.page_exchange import (
    SIGN_IN,
    ApiCalls,
    PageExchange,
    SessionExchange,
    cookie,
    last,
    own_path,
    page,
    redirect,
)
from orderkit.web.console.selected_pages import SelectedPages
from orderkit.web.console.sessions import ATTEMPT_S, SessionCaller, Sessions
from orderkit.web.console.team_pages import TeamPages
from orderkit.web.operations import (
    ConsoleOptions,
    Handler,
    Schema,
    Service,
    ServiceOperation,
    ServiceOptions,
    ServiceRequest,
    ServiceResponse,
)

CALLBACK = f"{SIGN_IN}/callback"


class SignInPages:
    """The ways into one console."""

    def __init__(self, options: ConsoleOptions, sessions: Sessions) -> None:
        self._options, self._sessions = options, sessions

    def show(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show how to sign in."""
        del service
        provider = self._options.sign_in
        return page(
            call,
            "sign_in.html",
            "Sign in",
            provider=provider.name if provider else "",
            links=self._options.links,
            onward=own_path(call.query.get("onward", "/")),
            is_over=bool(call.headers["session"]),
        )

    def begin(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Lead to the provider."""
        del service
        url, attempt = self._provider().begin(self._callback)
        onward = own_path(call.query.get("onward", "/"))
        kept = self._cookie(call, "attempt", self._sessions.attempt_cookie(attempt, onward))
        return redirect(url, **kept)

    def finish(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Redeem the provider's code and begin a session."""
        del service
        if "error" in call.query:
            raise UnprovedError(
                f"the provider did not sign you in: {call.query['error'][:100]}",
                hint=f"try again: {SIGN_IN}",
            )
        state, code = call.query.get("state", ""), call.query.get("code", "")
        attempt, onward = self._sessions.attempt(call.headers["attempt"], state)
        person = self._provider().finish(code, attempt, self._callback)
        return self._begin_session(call, person, onward)

    def follow_link(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Begin a session with a one-time link, in a browser on this machine."""
        del service
        if not self._options.links or not _is_loopback(call.headers["address"]):
            raise RefusedError(
                "one-time links sign in on the machine of an embedded platform only",
                hint=f"sign in: {SIGN_IN}",
            )
        person = self._sessions.redeem(call.query.get("token", ""))
        return self._begin_session(call, person, own_path(call.query.get("onward", "/")))

    def leave(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """End the session."""
        del service
        if isinstance(call.caller, SessionCaller):
            self._sessions.end(call.caller.session)
        return redirect(SIGN_IN, **self._cookie(call, "session", ""))

    def _begin_session(
        self, call: ServiceRequest, person: Requester, onward: str
    ) -> ServiceResponse:
        call.audit_fields.update(caller=person.ref, via=person.proof)
        kept = self._cookie(call, "session", self._sessions.cookie(person))["Set-Cookie"]
        over = self._cookie(call, "attempt", "")["Set-Cookie"]
        return redirect(onward, **{"Set-Cookie": f"{kept}\n{over}"})

    def _cookie(self, call: ServiceRequest, kind: str, value: str) -> dict[str, str]:
        max_age_s = ATTEMPT_S if kind == "attempt" else self._options.session_s
        name, secure = call.headers[f"{kind}-name"], bool(call.headers["secure"])
        return {"Set-Cookie": cookie(name, value, secure=secure, max_age_s=max_age_s)}

    def _provider(self) -> SignIn:
        if self._options.sign_in is None:
            raise RefusedError(
                "this platform has no provider for signing in",
                hint="service.access.signIn in platform.yaml names one (docs/console.md)",
            )
        return self._options.sign_in

    @property
    def _callback(self) -> str:
        return f"{self._options.address}{CALLBACK}"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


_DONE = {"waiting": "approved", "delivered": "delivered", "withdrawn": "declined"}


class ApprovalPages:
    """What waits for whom."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def approvals(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the orders that wait for the caller."""
        answer = self._api.ask(service, call, "listApprovals")
        return page(call, "approvals.html", "Approvals", approvals=answer["approvals"])

    def decide(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Agree to an order or a change, or decline it."""
        form = call.body
        body: dict[str, Any] = {"decision": last(form, "decision")}
        for name in ("head", "reason"):
            if text := last(form, name).strip():
                body[name] = text
        if number := last(form, "number"):
            body["number"] = int(number) if number.isascii() and number.isdigit() else 0
        decided = self._api.ask(service, call, "decideApproval", body=body)
        return redirect(f"/approvals?done={_DONE.get(decided['state'], 'approved')}")


class CampaignPages:
    """What the ledger's records say, as the API answers it to the caller."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def campaigns(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show all campaigns."""
        found = self._api.ask(service, call, "listCampaigns")["campaigns"]
        return page(call, "campaigns.html", "Campaigns", campaigns=found)

    def campaign(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show one campaign: its waves, and why orders failed or were left."""
        found = self._api.ask(service, call, "listCampaigns")["campaigns"]
        by_name = {campaign["name"]: campaign for campaign in found}
        name = call.path["campaign"]
        if name not in by_name:
            hint = did_you_mean(name, by_name, "/campaigns lists them")
            raise NotFoundError(f"there is no campaign '{name}'", hint=hint)
        return page(call, "campaign.html", name, campaign=by_name[name])


_WORDS: Schema = {"type": "string", "maxLength": 400}
_TOKEN: Schema = {"type": "string", "maxLength": 8000}
_ORDER = "/orders/{order}"


class Console:
    """How browsers are recognised, and the pages that they can ask for."""

    def __init__(
        self, service_options: ServiceOptions, operations: Iterable[ServiceOperation]
    ) -> None:
        """Prepare; `operations` are the API's."""
        access, options = service_options.access, service_options.console
        sessions = Sessions(access.secret, session_s=options.session_s)
        self.exchange = PageExchange(access, options, sessions)
        self.watching = SessionExchange(access, self.exchange)
        self._ways_in = SignInPages(options, sessions)
        self._api = ApiCalls(operations)

    def pages(self) -> tuple[ServiceOperation, ...]:
        """Return every page, as an operation of the service."""
        looks = OrderPages(self._api)
        return (
            *self._signing_in(),
            *_looking(looks),
            _form("selectedSubmit", "/selected", SelectedPages(self._api).submit, "read"),
            *_changing(ChangePages(self._api, looks)),
            *_leasing(LeasePages(self._api, looks)),
            *_ending(EndPages(self._api, looks)),
            *_ordering(KitPages(self._api)),
            *_leading(TeamPages()),
            *_deciding(ApprovalPages(self._api)),
            *_campaigning(CampaignPages(self._api)),
        )

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


def _looking(looks: OrderPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("ordersPage", "/", looks.orders, "read", *FILTERS, "sort", "page", "done"),
        _form("favouriteSubmit", "/favourites", looks.favourite, "read"),
        _page("activityPage", "/activity", looks.activity, "read", *ACTIVITY_FILTERS, "cursor"),
        _page("orderPage", _ORDER, looks.order, "read", "done"),
        _page("partsPage", f"{_ORDER}/parts", looks.parts, "read"),
        _page("partPage", f"{_ORDER}/part", looks.part, "read", "at"),
        _form("outputReveal", f"{_ORDER}/output", looks.reveal, "change"),
        _page("historyPage", f"{_ORDER}/history", looks.history, "read"),
    )


def _changing(changes: ChangePages) -> tuple[ServiceOperation, ...]:
    commit, pull = f"{_ORDER}/history/{{commit}}", f"{_ORDER}/pulls/{{number}}"
    return (
        _page("changePage", f"{_ORDER}/change", changes.form, "read", "change"),
        _form("changeSubmit", f"{_ORDER}/change", changes.submit, "read"),
        _page("pullPage", pull, changes.pull, "read", "done"),
        _form("pullMerge", f"{pull}/merge", changes.merge, "change"),
        _page("commitPage", commit, changes.commit, "read"),
        _form("commitRevert", f"{commit}/revert", changes.revert, "change"),
    )


def _leasing(leases: LeasePages) -> tuple[ServiceOperation, ...]:
    return (
        _page("leasePage", f"{_ORDER}/lease", leases.show, "read"),
        _form("leaseExtend", f"{_ORDER}/lease", leases.submit, "change"),
    )


def _ending(ends: EndPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("endPage", f"{_ORDER}/end", ends.show, "read"),
        _form("endSubmit", f"{_ORDER}/end", ends.submit, "end"),
    )


def _ordering(kits: KitPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("kitsPage", "/kits", kits.kits, "read"),
        _page("kitPage", "/kits/{kit}", kits.form, "order"),
        _form("kitSubmit", "/kits/{kit}", kits.submit, "order"),
    )


def _leading(teams: TeamPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("teamsPage", "/teams", teams.teams, "read", "text", "page"),
        _page("teamPage", "/teams/{team}", teams.team, "read"),
        _page("platformPage", "/platform", teams.platform, "read"),
    )


def _campaigning(campaigns: CampaignPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("campaignsPage", "/campaigns", campaigns.campaigns, "read"),
        _page("campaignPage", "/campaigns/{campaign}", campaigns.campaign, "read"),
    )


def _deciding(approvals: ApprovalPages) -> tuple[ServiceOperation, ...]:
    return (
        _page("approvalsPage", "/approvals", approvals.approvals, "read", "done"),
        _form("approvalDecide", f"{_ORDER}/approval", approvals.decide, "approve"),
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
