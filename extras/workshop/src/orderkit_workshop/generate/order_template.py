"""
The kit's Template for Backstage's scaffolder: its form, and the steps that run on submit.

The steps are the natural ones. The portal's profile decides what a portal gets of them when the
pack is published.

The form is parameter pages for Backstage's scaffolder (`pages`). Every field becomes the property
that shows it best and refuses what the XRD refuses. Rules that a form cannot check are in the help
text. Fields keep their names and their nesting (``aliases`` rename top-level ones), so that an XR
can be read back into the form unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.names import LABEL_MAX
from orderkit.core.kit import form_rules
from orderkit.core.kit.approval_rules import foretold
from orderkit.core.kit.form_fields import (
    LABEL_PATTERN,
    baked_parameter,
    hidden_schema,
    properties_of,
)
from orderkit.core.kit.form_layout import form_layout
from orderkit.core.kit.form_values import yaml_property, yaml_roots
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.kit_file_parts import Hidden, Link, Page
from orderkit.core.kit.literals import FORGE_HOST, PACK_COMMIT, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField, KitFields, fields_of
from orderkit_workshop.generate.order_skeleton import manifest_path, member
from softwaretemplates.template import API_VERSION
from yamlfiles import yaml11

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
                "errorMessage": {"pattern": form_rules.described(LABEL_PATTERN)},
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
        """Put the platform's values last."""
        hidden = {
            self.kit.parameter(field.path): hidden_schema(field, field.hidden)
            for field in self.fields.form
            if field.hidden
        }
        # the patterns refuse a placeholder that was not filled in
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


_LINE_MAX, _FOLD_AT = 120, 112
_REQUESTER = "${{ user.ref or 'user:default/unknown' }}"
_DESCRIPTION_MAX = 300
_SETTINGS = "settings"


def template(kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return template.yaml of a kit.

    Raises:
        FormError: A field's pattern cannot be expressed in JavaScript.
    """
    fields = fields_of(kit)
    entity: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Template",
        "metadata": {
            "name": kit.name,
            "title": kit.title,
            **({"description": _described(kit)} if kit.description else {}),
            "tags": list(dict.fromkeys(("orderkit", kit.name, *kit.tags))),
        },
        "spec": {
            "owner": kit.owner,
            "type": kit.type,
            "presentation": button_labels("Order"),
            "parameters": pages(kit, fields),
            "steps": _steps(kit, fields),
            "output": _output(kit),
        },
    }
    path = PurePosixPath("templates", kit.name, "template.yaml")
    return {path: template_text(entity, kit).encode()}


def template_text(entity: dict[str, Any], kit: Kit) -> str:
    """Return a Template as YAML with the marker of generated files; it passes yamllint."""
    body = yaml11.dump_block(entity, width=_FOLD_AT)
    wide = any(len(line) > _LINE_MAX for line in body.splitlines())
    excuse = "# yamllint disable rule:line-length\n" if wide else ""
    return f"---\n{comment(kit.name)}{excuse}{body}"


def button_labels(create: str) -> dict[str, Any]:
    """Return a Template's ``presentation``: the words on the buttons of its form."""
    return {"buttonLabels": {"reviewButtonText": "Review", "createButtonText": create}}


def order_expression(kit: Kit) -> str:
    """Return the text that a step renders to the order's id."""
    names = (_without(_parameter(n), kit.name_prefix(n)) for n in kit.name_parameters)
    return "-".join((kit.name, *(f"${{{{ {name} }}}}" for name in names)))


def _without(value: str, prefix: str) -> str:
    return f'{value} | replace("{prefix}", "")' if prefix else value


def team_expression(kit: Kit) -> str:
    """Return the text that a step renders to the team's name."""
    value = _parameter(kit.team_parameter)
    hints = kit.fields.get(kit.team_from)
    if not kit.team_from or (hints and hints.picker):
        value = _without(value, "group:default/")
    return f"${{{{ {value} }}}}"


def _parameter(dotted: str) -> str:
    value = "parameters"
    for name in dotted.split("."):
        value = member(value, name)
    return value


def _described(kit: Kit) -> str:
    flat = " ".join(kit.description.split())
    return flat if len(flat) <= _DESCRIPTION_MAX else flat[: _DESCRIPTION_MAX - 1] + "…"


def _steps(kit: Kit, fields: KitFields) -> list[dict[str, Any]]:
    order, team = order_expression(kit), team_expression(kit)
    spec, roots = _spec(kit, fields.top), yaml_roots(kit)
    fetch = {
        "order": order,
        "team": team,
        "requester": _REQUESTER,
        "pack_commit": f"${{{{ parameters.{PACK_COMMIT} }}}}",
        **({"spec": spec} if spec else {}),
        **({"yaml": f"${{{{ steps.{_SETTINGS}.output.body.spec }}}}"} if roots else {}),
    }
    return [
        *([_settings_step(kit)] if roots else []),
        {
            "id": "fetch",
            "name": "Write the order",
            "action": "fetch:template",
            "input": {"url": "./skeleton", "values": fetch},
        },
        {
            "id": "publish",
            "name": "Publish the repository",
            "action": "publish:gitea",
            "input": {
                "repoUrl": f"${{{{ parameters.{FORGE_HOST} }}}}?owner={team}&repo={order}",
                "description": f"{kit.title} of team {team}, ordered with Orderkit",
                "defaultBranch": "main",
                "repoVisibility": "public",
                "gitCommitMessage": f"Order {order}",
            },
        },
        _registration(kit, order, team),
        {
            "id": "register",
            "name": "Register in the catalog",
            "action": "catalog:register",
            "input": {
                "repoContentsUrl": "${{ steps.publish.output.repoContentsUrl }}",
                # without a leading slash: with one, the branch is lost on Gitea
                "catalogInfoPath": "catalog-info.yaml",
            },
        },
    ]


def _settings_step(kit: Kit) -> dict[str, Any]:
    """Return the step that has the service read the YAML: templates cannot parse."""
    entered = f"parameters.{YAML_PARAMETER}"
    return {
        "id": _SETTINGS,
        "name": "Read the further settings",
        "if": f"${{{{ {entered} }}}}",
        "action": "http:backstage:request",
        "input": {
            "method": "POST",
            "path": f"/proxy/orderkit/v1/kits/{kit.name}/settings",
            "headers": {"content-type": "application/json"},
            "body": {"text": f"${{{{ {entered} }}}}"},
        },
    }


def _spec(kit: Kit, fields: Sequence[KitField]) -> dict[str, Any]:
    """Return the expressions for the values of fields, by the XRD's names."""
    spec: dict[str, Any] = {}
    for field in fields:
        if field.path == kit.unfold:
            spec[field.name] = _spec(kit, field.fields)
        elif field.asked or field.hidden:
            spec[field.name] = f"${{{{ {member('parameters', kit.parameter(field.path))} }}}}"
    return spec


def _registration(kit: Kit, order: str, team: str) -> dict[str, Any]:
    return {
        "id": "order",
        "name": "Register the order for delivery",
        "action": "http:backstage:request",
        "input": {
            "method": "POST",
            "path": "/proxy/orderkit/v1/orders",
            "headers": {
                "content-type": "application/json",
                "Idempotency-Key": "${{ context.task.id }}",
            },
            "body": {
                "order": order,
                "kit": kit.name,
                "team": team,
                "repository": f"{team}/{order}",
                "requester": _REQUESTER,
            },
        },
    }


def _output(kit: Kit) -> dict[str, Any]:
    order = order_expression(kit)
    content = (
        f"`{order}` is ordered. It is delivered and assembled within\n"
        f"a minute or so; `orderkit status {order}` shows how far it is.\n"
        "Its page in the catalog leads to the forms that change and end it;\n"
        f"or edit `{manifest_path(kit)}` in its repository.\n"
    )
    return {
        "links": [
            {"title": "Repository", "url": "${{ steps.publish.output.remoteUrl }}"},
            {
                "title": "Open in the catalog",
                "icon": "catalog",
                "entityRef": "${{ steps.register.output.entityRef }}",
            },
            *map(_link, kit.links),
        ],
        "text": [{"title": "What happens now", "content": content}],
    }


def _link(link: Link) -> dict[str, str]:
    link_entry = {
        "title": link.title,
        "url": link.url,
        "entityRef": link.entity_ref,
        "icon": link.icon,
    }
    return {key: value for key, value in link_entry.items() if value}
