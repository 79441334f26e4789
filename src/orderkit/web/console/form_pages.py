"""
Order a kit or change an order: the form, with the plan of what it would do and cost beside it.

Kits are shown as cards. A change that conflicts changes nothing. It is shown with both ways out:
the form again, on what is in Git now, with one's own values or with the others'. A change is taken
back here, too. ``console`` lists the pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import NotFoundError, OrderkitError, RefusedError
from ground.names import CommitSha
from orderkit.core.kit.change_forms import (
    BASE,
    ORDER,
    REASON,
    change_named,
    changes_of,
    form_data,
    title_of,
)
from orderkit.core.kit.kit_file import KitChange
from orderkit.core.order.change import FieldConflictError
from orderkit.core.order.change.change_page import filled_in
from orderkit.core.plan.plan_json import plan_answer
from orderkit.flows.approval.deciding import subject_of
from orderkit.flows.change.plan_requests import plan_between
from orderkit.flows.change.reviewing import judge_review
from orderkit.flows.order.approvals import may_need_approval
from orderkit.flows.order.live_order import (
    LiveOrder,
    find_commit,
    find_living,
    main_head,
    read_xr,
)
from orderkit.flows.order.order_history import entry_of
from orderkit.flows.plan.pull_requests import plan_pull
from orderkit.flows.platform import Platform, published_pack
from orderkit.flows.team.teams import list_teams
from orderkit.flows.template.published_templates import TemplateSource, kit_template
from orderkit.ports.pulls import PullRequest
from orderkit.web.callers import Caller
from orderkit.web.console.html_form import FormPage, Values, with_problems
from orderkit.web.console.order_pages import OrderPages
from orderkit.web.console.page_exchange import ApiCalls, last, page, redirect, sentence
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, living_for


class KitPages:
    """The kits of one platform."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def kits(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show what can be ordered."""
        kits = [
            {"name": kit.name, "title": kit.title, "description": kit.description, "tags": kit.tags}
            for kit in published_pack(service.platform).kits()
        ]
        return page(call, "kits.html", "New order", kits=kits)

    def form(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show a kit's form."""
        return self._shown(service, call, kit_template(service.platform, call.path["kit"]), {})

    def submit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show what an order would compose and cost, or place it."""
        source = kit_template(service.platform, call.path["kit"])
        try:
            values = _values(source, call.body)
        except OrderkitError as error:
            return self._shown(service, call, source, {}, error=error)
        try:
            if last(call.body, "do") != "order":
                answer = self._api.ask(service, call, "planOrder", body={"values": values})
                return self._shown(service, call, source, values, planned=answer)
            body = {"template": call.path["kit"], "values": values, "id": call.key}
            task = self._api.ask(service, call, "runTask", body=body)
        except OrderkitError as error:
            return self._shown(service, call, source, values, error=error)
        return redirect(f"/orders/{task['order']}?done=ordered")

    def _shown(
        self,
        service: Service,
        call: ServiceRequest,
        source: TemplateSource,
        values: Values,
        *,
        planned: Mapping[str, Any] | None = None,
        error: OrderkitError | None = None,
    ) -> ServiceResponse:
        template, kit, teams = source.template, source.kit, call.who.teams("order")
        if teams is None:
            teams = frozenset(list_teams(service.platform))
        team_field = f"v.{kit.team_parameter}" if kit else ""
        problem = sentence(error) if error else None
        pages = [
            {
                "title": schema.get("title") or "",
                "description": schema.get("description") or "",
                "fields": with_problems(
                    _with_teams(FormPage(schema, {}).fields(values), team_field), problem
                ),
            }
            for schema in template.shown_pages(values)
        ]
        return page(
            call,
            "kit.html",
            f"Order {kit.title if kit else template.title}",
            status=error.http_status if error else 200,
            kit={
                "name": call.path["kit"],
                "title": kit.title if kit else template.title,
                "description": kit.description if kit else "",
            },
            pages=[shown for shown in pages if shown["fields"]],
            teams=sorted(teams),
            plan=planned["plan"] if planned else None,
            order=planned["order"] if planned else "",
            error=problem,
        )


def _values(source: TemplateSource, form: Mapping[str, Any]) -> Values:
    values: Values = {}
    for schema in source.template.pages:
        values |= FormPage(schema, {}).read(form)
    return values


def _with_teams(fields: list[Values], team_field: str) -> list[Values]:
    return [{**field, "team": field["team"] or field["name"] == team_field} for field in fields]


_HIDDEN = {ORDER, BASE, REASON}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The form of one change, on one commit, with what somebody entered."""

    live: LiveOrder
    change: KitChange
    form: FormPage
    base: CommitSha
    current: Values
    """The form's values at `base`."""
    entered: Values
    reason: str = ""

    def body(self, **more: Any) -> dict[str, Any]:
        """Return what the API is asked."""
        change = {"change": self.change.name} if self.live.kit.changes else {}
        return {**change, "values": self.entered, "base": self.base, "whole": True, **more}


def _offered(
    platform: Platform, live: LiveOrder, pull: PullRequest, who: Caller
) -> Mapping[str, Any]:
    """Return what a pull request lacks, and what its reader may do with it."""
    offered: dict[str, Any] = {"lacks": "", "may_approve": False, "may_withdraw": False}
    offered["may_merge"] = False
    try:
        teams = who.teams("change")
        offered["may_merge"] = teams is None or live.entry.team in teams
        offered["lacks"] = judge_review(platform, live, pull).refusal
        if not may_need_approval(live) or who.proof is None:
            return offered
        subject = subject_of(platform, live.entry.order, pull.number)
        offered["may_withdraw"] = who.proof.ref == subject.requester
        user = subject.asked_person(who.proof)
        offered["may_approve"] = user.id not in subject.behind
    except RefusedError:
        return offered  # the reader is not asked
    except OrderkitError as error:
        return {**offered, "lacks": str(error)}
    return offered


class ChangePages:
    """The pages of one console that change orders."""

    def __init__(self, api: ApiCalls, orders: OrderPages) -> None:
        self._api, self._orders = api, orders

    def form(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the form of a change, filled in from Git."""
        order = self._orders.view(service, call)
        live = living_for(service, call, "read")
        changes = changes_of(live.kit)
        if not changes:
            title = f"Change {live.entry.order}"
            return page(call, "change_none.html", title, order=order, tab="change")
        chosen = call.query.get("change") or changes[0].name
        asked = self._opened(service, live, chosen)
        return self._shown(service, call, asked, order=order)

    def submit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the plan of what was entered, carry it out, or resolve a conflict."""
        live, form, do = living_for(service, call, "read"), call.body, last(call.body, "do")
        opened = self._opened(service, live, last(form, "change"), last(form, "base"))
        try:
            entered = opened.form.read(form)
        except OrderkitError as error:
            return self._shown(service, call, opened, error=error)
        asked = _with(opened, entered, last(form, "reason"))
        if do in ("mine", "theirs"):
            conflicts = frozenset(form.get("conflict", ())) if do == "theirs" else frozenset()
            asked = self._rebased(service, asked, conflicts)
        if do != "change":
            return self._planned(service, call, asked)
        try:
            options: dict[str, Any] = {"reason": asked.reason} if asked.reason else {}
            if how := last(form, "how"):
                options["how"] = how
            if last(form, "acceptLoss"):
                options["acceptLoss"] = True
            answer = self._api.ask(service, call, "changeOrder", body=asked.body(**options))
        except OrderkitError as error:
            return self._shown(service, call, asked, error=error)
        return _led_on(call, answer)

    def pull(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show a pull request of an order, what merging it would do, and the button."""
        entry = entry_for(service, call, "read")
        order = self._orders.view(service, call)
        number = call.path["number"]
        if not (number.isdecimal() and len(number) < 10):  # noqa: PLR2004 - no forge counts so far
            raise NotFoundError(f"{entry.order} has no pull request {number}")
        pull_plan = plan_pull(service.platform, entry.repository, int(number))
        judged, pull = pull_plan.judged, pull_plan.pull
        live = find_living(service.platform, entry.order)
        offered = _offered(service.platform, live, pull, call.who)
        return page(
            call,
            "pull.html",
            f"#{number} of {entry.order}",
            order=order,
            tab="",
            pull={
                "number": pull.number,
                "title": pull.title,
                "url": pull.web_url,
                "requester": pull.requester,
                "head": pull.head_commit,
                **offered,
                "state": judged.state,
                "summary": judged.summary,
                "refused": list(judged.refused),
                "notes": list(pull_plan.notes),
            },
            plan=plan_answer(judged.plan).to_json() if judged.plan else None,
        )

    def merge(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Merge a pull request."""
        self._api.ask(service, call, "mergePull")
        return redirect(f"/orders/{call.path['order']}?done=merged")

    def commit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show what one commit of an order did, its plan, and how to take it back."""
        return self._commit(service, call)

    def revert(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show what taking a commit back would do, or do it."""
        form = call.body
        body: dict[str, Any] = {"commit": call.path["commit"]}
        if reason := last(form, "reason"):
            body["reason"] = reason
        if last(form, "acceptLoss"):
            body["acceptLoss"] = True
        is_plan = last(form, "do") != "revert"
        try:
            done = self._api.ask(
                service,
                call,
                "revertCommit",
                body={**body, "dryRun": True} if is_plan else body,
            )
        except OrderkitError as error:
            return self._commit(service, call, error=error)
        return self._commit(service, call, taken_back=done) if is_plan else _led_on(call, done)

    def _commit(
        self,
        service: Service,
        call: ServiceRequest,
        *,
        error: OrderkitError | None = None,
        taken_back: Mapping[str, Any] | None = None,
    ) -> ServiceResponse:
        order, live = self._orders.view(service, call), living_for(service, call, "read")
        commit = find_commit(service.platform.forge, live, call.path["commit"], field="commit")
        entry = entry_of(service.platform, live, commit)
        plan, why_not = None, "it placed the order" if entry.first else ""
        if commit.parents and not entry.first:
            try:
                between = plan_between(
                    service.platform, live.entry.order, commit.parents[0], commit.id
                )
                plan = plan_answer(between).to_json()
            except OrderkitError as plan_error:
                why_not = str(plan_error)
        return page(
            call,
            "commit.html",
            f"{commit.id[:8]} of {live.entry.order}",
            status=error.http_status if error else 200,
            order=order,
            tab="history",
            entry=entry.answer.to_json(),
            plan=plan,
            plan_why_not=why_not,
            taken_back=taken_back,
            reason=last(call.body, "reason"),
            **_problem(error),
        )

    def _planned(self, service: Service, call: ServiceRequest, asked: _Asked) -> ServiceResponse:
        try:
            body = asked.body()
            answer = self._api.ask(service, call, "planChange", body=body)
        except OrderkitError as error:
            return self._shown(service, call, asked, error=error)
        return self._shown(service, call, asked, plan=answer["plan"])

    def _shown(
        self,
        service: Service,
        call: ServiceRequest,
        asked: _Asked,
        *,
        order: Mapping[str, Any] | None = None,
        plan: Mapping[str, Any] | None = None,
        error: OrderkitError | None = None,
    ) -> ServiceResponse:
        kit = asked.live.kit
        if order is None:
            order = self._orders.view(service, call)
        offered = {change["name"]: change for change in order["changes"]}
        return page(
            call,
            "change.html",
            f"Change {asked.live.entry.order}",
            status=error.http_status if error else 200,
            order=order,
            tab="change",
            changes=[
                {
                    "name": change.name,
                    "title": title_of(change),
                    "allowed": offered.get(change.name, {}).get("allowed", True),
                    "whyNot": offered.get(change.name, {}).get("whyNot") or "",
                }
                for change in changes_of(kit)
            ],
            change={
                "name": asked.change.name,
                "title": title_of(asked.change),
                "warning": asked.change.warning,
                "how": asked.change.how.value,
            },
            fields=with_problems(
                asked.form.fields(asked.entered, asked.current), sentence(error) if error else None
            ),
            base=asked.base,
            reason=asked.reason,
            plan=plan,
            **_problem(error),
        )

    def _opened(
        self, service: Service, live: LiveOrder, name: str, base: str | None = None
    ) -> _Asked:
        """Return a change's form as it is at a commit, untouched."""
        platform, change = service.platform, change_named(live.kit, name)
        if base:
            commit = find_commit(platform.forge, live, base, field="base").id
        else:
            commit = main_head(platform, live.repository)
        spec = read_xr(platform, live, commit).spec
        data = form_data(live.kit, change, order=live.entry.order, base=commit, spec=spec)
        asks = filled_in(live.kit, change)
        known = {key: data.get(key, "") for key in (*_HIDDEN, *_current(data))}
        current = {key: value for key, value in data.items() if key not in known}
        return _Asked(live, change, FormPage(asks, known), commit, current, current)

    def _rebased(self, service: Service, asked: _Asked, dropped: frozenset[str]) -> _Asked:
        """Return the entries on what is in Git now; of the `dropped` fields, what is there."""
        now = self._opened(service, asked.live, asked.change.name)
        kit = asked.live.kit
        theirs = {kit.parameter(path.removeprefix("spec.")) for path in dropped}
        entered = _carried_over(asked.current, asked.entered, now.current, theirs)
        return _with(now, entered, asked.reason)


def _current(data: Mapping[str, Any]) -> list[str]:
    return [key for key in data if key.startswith("current_")]


def _carried_over(
    old: Values, entered: Values, now: Values, dropped: set[str], at: str = ""
) -> Values:
    """Return what is there now, with what somebody entered instead of the old values."""
    merged = dict(now)
    for name in {*old, *entered}:
        path = f"{at}{name}"
        before, mine, there = old.get(name), entered.get(name), now.get(name)
        if mine == before or path in dropped:
            continue
        if isinstance(mine, dict) and isinstance(there, dict):
            known = before if isinstance(before, dict) else {}
            merged[name] = _carried_over(known, mine, there, dropped, f"{path}.")
        elif mine is None:
            merged.pop(name, None)
        else:
            merged[name] = mine
    return merged


def _with(asked: _Asked, entered: Values, reason: str) -> _Asked:
    return _Asked(asked.live, asked.change, asked.form, asked.base, asked.current, entered, reason)


def _problem(error: OrderkitError | None) -> dict[str, Any]:
    """Return what a page shows of an error: a conflict as what it is, others as a sentence."""
    conflicts: Sequence[Any] = ()
    if isinstance(error, FieldConflictError):
        conflicts = [conflict.answer.to_json() for conflict in error.conflicts]
    return {"error": sentence(error) if error else None, "conflicts": conflicts}


def _led_on(call: ServiceRequest, done: Mapping[str, Any]) -> ServiceResponse:
    """Lead to where one sees what became of a change."""
    order = call.path["order"]
    if done["state"] == "proposed" and done["pull"]:
        return redirect(f"/orders/{order}/pulls/{done['pull']['number']}?done=proposed")
    return redirect(f"/orders/{order}?done={done['state']}")
