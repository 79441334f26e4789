"""
The order form of a kit: parameter pages for Backstage's scaffolder.

Every field becomes the property that shows it best and refuses what the XRD refuses. Rules that a
form cannot check are in the help text. Fields keep their names and their nesting (``aliases``
rename top-level ones), so that an XR can be read back into the form unchanged. Called by
``generate.order_template``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ground.names import LABEL_MAX
from orderkit.core.kit import js_patterns
from orderkit.core.kit.approval_rules import foretold
from orderkit.core.kit.form_fields import LABEL_PATTERN, properties_of
from orderkit.core.kit.form_layout import form_layout
from orderkit.core.kit.form_shapes import Hidden, Page
from orderkit.core.kit.hidden_fields import baked_parameter, hidden_schema
from orderkit.core.kit.literals import FORGE_HOST, PACK_COMMIT, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField, KitFields
from orderkit.core.kit.yaml_settings import yaml_property, yaml_roots

Schema = dict[str, Any]

_FORGE_HOST_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[A-Za-z0-9._/-]+)?$"
_COMMIT_PATTERN = "^[0-9a-f]{40}$"
_TEAM_PATTERN = "^(group:default/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def pages(kit: Kit, fields: KitFields) -> list[Schema]:
    """
    Return the pages of a kit's form.

    Raises:
        FormError: A pattern cannot be expressed in JavaScript; the message begins with the field.
    """
    placed_fields = form_layout(kit, fields)
    form = _Form(kit, fields)
    form_pages = [form.page(page, page_fields) for page, page_fields in placed_fields]
    form.add_own(form_pages[0])
    form.add_hidden(form_pages[0])
    roots = yaml_roots(kit)
    if roots:
        form_pages[-1]["properties"][YAML_PARAMETER] = yaml_property(kit, roots)
    if approval := foretold(kit):
        last = form_pages[-1]
        last["description"] = " ".join(filter(None, (last.get("description"), approval)))
    form.tell_rules(form_pages, [page_fields for _, page_fields in placed_fields])
    return [_ordered(page) for page in form_pages]


@dataclass(frozen=True, slots=True)
class _Form:
    """Assembles one kit's form."""

    kit: Kit
    fields: KitFields

    def page(self, page: Page, fields: Sequence[KitField]) -> Schema:
        schema: Schema = {"title": page.title, **properties_of(self.kit, fields)}
        descriptions = [page.description]
        if len(fields) == 1:
            descriptions += _without_heading(page.title, *schema["properties"].values())
        schema["description"] = " ".join(filter(None, descriptions))
        return schema

    def add_own(self, page: Schema) -> None:
        """Put the form's own parameters first: the order's name, the team."""
        own_properties: Schema = {}
        kit = self.kit
        if not kit.name_from:
            own_properties[kit.name_parameters[0]] = {
                "title": "Name",
                "description": f"The order is called {kit.name}-<name>.",
                "type": "string",
                "pattern": LABEL_PATTERN,
                "maxLength": LABEL_MAX - len(kit.name) - 1,
                "errorMessage": {"pattern": js_patterns.described(LABEL_PATTERN)},
            }
        if not kit.team_from:
            own_properties[kit.team_parameter] = {
                "title": "Team",
                "description": "Who orders, and owns what is ordered.",
                "type": "string",
                "pattern": _TEAM_PATTERN,
                "errorMessage": {"pattern": "must be a team, for example group:default/ae86"},
                "ui:field": "OwnerPicker",
                "ui:options": {"catalogFilter": [{"kind": "Group"}]},
            }
        page["properties"] = {**own_properties, **page["properties"]}
        page["required"] = [*own_properties, *page.get("required", ())]
        if "ui:order" in page:
            page["ui:order"] = [*own_properties, *page["ui:order"]]

    def add_hidden(self, page: Schema) -> None:
        """
        Put the platform's values last.

        Each has a pattern that refuses an unbaked placeholder.
        """
        hidden = {
            self.kit.parameter(field.path): hidden_schema(field, field.hidden)
            for field in self.fields.form
            if field.hidden
        }
        hidden[FORGE_HOST] = baked_parameter("Forge", Hidden("FORGE_HOST"), _FORGE_HOST_PATTERN)
        hidden[PACK_COMMIT] = baked_parameter(
            "Commit of the pack", Hidden("PACK_COMMIT"), _COMMIT_PATTERN
        )
        page["properties"] = {**page["properties"], **hidden}
        page["required"] = [*page["required"], *hidden]

    def tell_rules(self, form_pages: list[Schema], placed_fields: list[list[KitField]]) -> None:
        """Describe a rule about several fields on the last page that has one of them."""
        for names, sentence in self.fields.rules:
            at = max(
                (
                    n
                    for n, page_fields in enumerate(placed_fields)
                    if any(f.name in names for f in page_fields)
                ),
                default=0,
            )
            page = form_pages[at]
            description = page.get("description", "")
            page["description"] = f"{description} {sentence}".strip()


def _without_heading(title: str, group: Schema) -> list[str]:
    """Remove a group's heading if the page's title says the same; return the group's help."""
    if group.get("type") != "object" or group.get("title") != title:
        return []
    group["ui:options"] = {"label": False}
    return [group.pop("description", "")]


def _ordered(page: Schema) -> Schema:
    """Return a page with its keys in reading order."""
    keys = ("title", "description", "required", "properties", "dependencies", "ui:order")
    return {key: page[key] for key in keys if page.get(key)}
