"""
Order a kit: cards, and the kit's form with the plan of what it would compose and cost.

``console`` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.errors import OrderkitError
from orderkit.flows.platform import published_pack
from orderkit.flows.team.teams import list_teams
from orderkit.flows.template.published_templates import TemplateSource, kit_template
from orderkit.web.console.api_calls import ApiCalls, page, redirect, sentence
from orderkit.web.console.html_form import FormPage, Values, with_problems
from orderkit.web.console.page_exchange import last
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


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
