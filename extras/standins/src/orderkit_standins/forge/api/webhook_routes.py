"""
Endpoints of webhooks: of repositories, for their admins, and of organisations, for owners.

Observed on Gitea 1.26.0: `active` is false unless asked for; a change without a list of events
falls back to ``push``; two webhooks may have
one address. Only JSON of type ``gitea`` is sent; names,
authorization headers and branch filters are refused as unsupported.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import (
    ApiError,
    Call,
    Fields,
    empty_answer,
    json_answer,
    paged,
)
from orderkit_standins.forge.api.routes import API, REPO, route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.webhooks import (
    Webhook,
    WebhookOwner,
    Webhooks,
    WebhookSettings,
    events_named,
)

_OF_REPO, _OF_ORG = f"{REPO}/hooks", f"{API}/orgs/{{org}}/hooks"


@dataclass(frozen=True, slots=True)
class WebhookRoutes:
    """Endpoints of webhooks."""

    access: Access
    webhooks: Webhooks

    @route("GET", _OF_REPO, "repository")
    @route("GET", _OF_ORG, "organization")
    def list_webhooks(self, call: Call) -> Response:
        return paged(call, self.webhooks.of_owner(self._owner(call)), webhook_shape)

    @route("POST", _OF_REPO, "repository")
    @route("POST", _OF_ORG, "organization")
    def create(self, call: Call) -> Response:
        owner, body = self._owner(call), call.fields()
        kind = body.required("type")
        if body.get("config") is None:
            raise ApiError(422, "[Config]: Required")
        if kind != "gitea":
            raise ApiError(422, f"Invalid hook type: {kind}")
        config = body.text_mapping("config")
        for key in ("url", "content_type"):
            if key not in config:
                raise ApiError(422, f"Missing config option: {key}")
        settings = WebhookSettings(
            url=config["url"],
            content_type=config["content_type"],
            secret=config.get("secret", ""),
            active=body.flag("active"),
            **_common(body),
        )
        return json_answer(webhook_shape(self.webhooks.create(owner, _checked(settings))), 201)

    @route("PATCH", f"{_OF_REPO}/{{id}}", "repository")
    @route("PATCH", f"{_OF_ORG}/{{id}}", "organization")
    def edit(self, call: Call) -> Response:
        """Change a webhook; what Gitea does not keep when it is left out falls back."""
        owner, body = self._owner(call), call.fields()
        webhook = self._webhook(call, owner)
        config, common = body.text_mapping("config"), _common(body)
        active = body.optional("active", bool)
        common |= {key: config[key] for key in ("url", "content_type") if key in config}
        common |= {"active": active} if active is not None else {}
        settings = replace(webhook.settings, **common)
        self.webhooks.change(webhook, _checked(settings))
        return json_answer(webhook_shape(self._webhook(call, owner)))

    @route("DELETE", f"{_OF_REPO}/{{id}}", "repository")
    @route("DELETE", f"{_OF_ORG}/{{id}}", "organization")
    def delete(self, call: Call) -> Response:
        self.webhooks.delete(self._webhook(call, self._owner(call)))
        return empty_answer()

    def _owner(self, call: Call) -> WebhookOwner:
        if "repo" in call.request.path_params:
            return WebhookOwner(repo_id=self.access.administered(call).id)
        return WebhookOwner(owner_id=self.access.own_organisation(call, role="owner").id)

    def _webhook(self, call: Call, owner: WebhookOwner) -> Webhook:
        webhook = self.webhooks.find(owner, call.path_number("id"))
        if webhook is None:
            raise ApiError(404)
        return webhook


def webhook_shape(webhook: Webhook) -> Json:
    """Return a webhook; its secret is never shown."""
    settings = webhook.settings
    return {
        "id": webhook.id,
        "type": "gitea",
        "branch_filter": "",
        "config": {"content_type": settings.content_type, "url": settings.url},
        "events": sorted(settings.events),
        "active": settings.active,
    }


def _common(body: Fields) -> dict[str, Any]:
    body.refuse_unsupported("name", "authorization_header")
    if body.text("branch_filter") not in ("", "*"):
        body.refuse_unsupported("branch_filter")
    return {"events": events_named(body.texts("events"))}


def _checked(settings: WebhookSettings) -> WebhookSettings:
    if settings.content_type != "json":
        raise ApiError(422, "Invalid content type")
    if not _is_url(settings.url):
        raise ApiError(422, "Invalid url")
    return settings


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:
        return False
