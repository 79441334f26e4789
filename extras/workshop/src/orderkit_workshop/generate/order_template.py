"""
The kit's Template for Backstage's scaffolder: its form, and the steps that run on submit.

The steps are the natural ones. The portal's profile decides what a portal gets of them when the
pack is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.kit.form_shapes import Link
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.literals import FORGE_HOST, PACK_COMMIT, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField, KitFields, fields_of
from orderkit.core.kit.yaml_settings import yaml_roots
from orderkit_workshop.generate.form_pages import pages
from orderkit_workshop.generate.order_skeleton import manifest_path, member
from softwaretemplates.template import API_VERSION
from yamlfiles import yaml11

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
