"""
Fit the form and the result of an order's template to a portal with Orderkit's plugin.

The team is asked for with the field ``OrderkitTeam``, which offers only teams that may order the
kit. A last page shows plan, price and approval with the field ``OrderkitPlan``. Without the plugin,
Backstage shows the first as a text and the second not at all. The result says how the order is.

Pure; called by ``core.portal.service_copy``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orderkit.core.portal.job_copy import NEXT_TITLE

PLAN = "orderkit_plan"
"""The parameter of the page with the plan; it has no value, and nothing sends it."""


def plugin_form(
    parameters: Any, output: Any, *, kit: str, team: str, sent: Sequence[str]
) -> dict[str, Any]:
    """
    Return what to replace in a template's ``spec``: ``parameters`` and ``output``.

    Args:
        parameters: As the template has them. What is no list of plain pages stays as it is.
        team: The parameter that names the team.
        sent: The parameters that the order is made of.
    """
    replacement: dict[str, Any] = {}
    if isinstance(parameters, list) and all(isinstance(page, dict) for page in parameters):
        pages = [_with_team(page, kit, team) for page in parameters]
        replacement["parameters"] = [*pages, _plan_page(kit, sent)]
    if isinstance(output, dict) and isinstance(output.get("text"), list):
        replacement["output"] = {**output, "text": [_text(text) for text in output["text"]]}
    return replacement


def _with_team(page: Mapping[str, Any], kit: str, team: str) -> Mapping[str, Any]:
    properties = page.get("properties")
    if not isinstance(properties, dict):
        return page
    field = properties.get(team)
    if not isinstance(field, dict) or field.get("ui:field") != "OwnerPicker":
        return page
    asked = {**field, "ui:field": "OrderkitTeam", "ui:options": {"kit": kit}}
    return {**page, "properties": {**properties, team: asked}}


def _plan_page(kit: str, sent: Sequence[str]) -> dict[str, Any]:
    field = {
        "type": "null",
        "ui:field": "OrderkitPlan",
        "ui:options": {"kit": kit, "parameters": [*sent]},
        "ui:backstage": {"review": {"show": False}},
    }
    return {"title": "Plan and price", "properties": {PLAN: field}}


def _text(text: Any) -> Any:
    if not isinstance(text, dict) or text.get("title") != NEXT_TITLE:
        return text
    return {"title": "How it is", "content": "${{ steps.service.output.message }}"}
