"""
The console of one service: its table of pages, beside the API's table of operations.

The page of what waits for the approval of whoever is signed in, and their decision.

The pages of campaigns, read-only: a campaign acts for whoever runs the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ground.errors import NotFoundError
from ground.suggestions import did_you_mean
from orderkit.core.platform.service_access import Right
from orderkit.web.console.api_calls import ApiCalls, page, redirect
from orderkit.web.console.change_pages import ChangePages
from orderkit.web.console.kit_pages import KitPages
from orderkit.web.console.order_pages import (
    ACTIVITY_FILTERS,
    FILTERS,
    EndPages,
    LeasePages,
    OrderPages,
)
from orderkit.web.console.page_exchange import SIGN_IN, PageExchange, SessionExchange, last
from orderkit.web.console.selected_pages import SelectedPages
from orderkit.web.console.sessions import Sessions
from orderkit.web.console.sign_in_pages import CALLBACK, SignInPages
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
        self,
        service_options: ServiceOptions,
        options: ConsoleOptions,
        operations: Iterable[ServiceOperation],
    ) -> None:
        """Prepare; `operations` are the API's."""
        access = service_options.access
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
