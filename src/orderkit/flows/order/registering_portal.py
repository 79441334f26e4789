"""
A portal that registers orders in this process, and passes every other request on.

The template's steps ``http:backstage:request`` ask the portal's proxy for Orderkit's service: a
POST to ``/proxy/orderkit/v1/orders``, and one that reads the YAML of the form if there is any. The
steps run as they are written; this portal only answers these two requests itself, with the status
and the body that the service would send, so that a step's outputs and errors are the same on both
ways. Where the forge does not let these credentials
write the ledger, the request goes on to the service, which may have the right.

Read the YAML of an order form for the templates that write the order, which cannot parse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ground.errors import AccessError, InvalidInputError, OrderkitError
from ground.names import OrderId, TeamName, check_label
from orderkit.core.kit.yaml_settings import read_settings, yaml_roots
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform, published_kit
from orderkit.ports.portal import PortalResponse
from orderkit.ports.requesters import Requester


def answered_settings(platform: Platform, kit_name: str, text: object) -> dict[str, Any]:
    """
    Return the answer to ``POST /v1/kits/{kit}/settings``: the part of ``spec`` that a text sets.

    Raises:
        NotFoundError: The published pack has no such kit.
        InvalidInputError: The kit takes no YAML, or the text sets what it may not set.
    """
    kit = published_kit(platform, kit_name)
    roots = yaml_roots(kit)
    if not roots:
        raise InvalidInputError(
            "kit",
            kit_name,
            "has no yamlFields: its form takes no YAML",
            hint="write yamlFields into kit.yaml, then: orderkit kit generate",
        )
    return {"spec": read_settings(kit, text, roots)}


REGISTER_PATH = "/proxy/orderkit/v1/orders"
_SETTINGS_PATH = re.compile(r"/proxy/orderkit/v1/kits/(?P<kit>[a-z0-9-]{1,63})/settings")
_PROXY = "proxy/"
_FIELDS = ("order", "kit", "team")


@dataclass(frozen=True, slots=True)
class RegisteringPortal:
    """
    The platform's portal as the steps of one order see it.

    `authorization` goes along with requests to the portal's proxy that set none. `permit` raises
    unless the requester may order for the team. A `requester` without proof is a claim.
    """

    platform: Platform
    requester: Requester
    authorization: str = field(default="", repr=False)
    permit: Callable[[TeamName | None], None] = field(default=lambda _: None, repr=False)

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float = 60.0,
    ) -> PortalResponse:
        """
        Register the order or read its YAML, or send any other request on.

        Raises:
            InvalidInputError: The YAML is refused.
        """
        settings = _SETTINGS_PATH.fullmatch(path) if method == "POST" else None
        if settings is not None:
            return self._read_settings(settings["kit"], body)
        registration = (
            self._registration(body) if (method, path) == ("POST", REGISTER_PATH) else None
        )
        if registration is not None:
            try:
                return self._registered(registration)
            except AccessError:
                if registration.agent:  # the service would take it for the person's own
                    raise
                # the ledger can be written by the service only: ask it
        names = {name.lower() for name in headers}
        proxied = path.lstrip("/").startswith(_PROXY)
        if self.authorization and proxied and "authorization" not in names:
            headers = {**headers, "Authorization": self.authorization}
        return self.platform.portal.request(
            method, path, headers=headers, body=body, timeout_s=timeout_s
        )

    def _registration(self, body: bytes | None) -> Registration | None:
        """Read what is asked for; None if it is anything but an order: the service says why."""
        try:
            fields = json.loads(body or b"")
        except ValueError:
            return None
        if not isinstance(fields, dict) or not all(isinstance(fields.get(n), str) for n in _FIELDS):
            return None
        by = self.requester
        requester = by.ref if by.proof else str(fields.get("requester") or by.ref)
        team, order = TeamName(fields["team"]), OrderId(fields["order"])
        return Registration(order, fields["kit"], team, requester, by.proof, agent=by.agent)

    def _read_settings(self, kit: str, body: bytes | None) -> PortalResponse:
        try:
            fields = json.loads(body or b"{}")
        except ValueError:
            fields = None
        text = fields.get("text") if isinstance(fields, dict) else None
        return _answer(200, answered_settings(self.platform, kit, text))

    def _registered(self, registration: Registration) -> PortalResponse:
        try:
            for name in _FIELDS:  # as the service checks the body
                check_label(name, getattr(registration, name))
            self.permit(registration.team)
            registered = register(self.platform, registration)
        except AccessError:
            raise
        except OrderkitError as error:
            return _answer(
                error.http_status, {"error": {"message": str(error), "hint": error.hint}}
            )
        return _answer(201 if registered.changed else 200, registered.to_json())


def _answer(status: int, body: Mapping[str, Any]) -> PortalResponse:
    return PortalResponse(status, {"content-type": "application/json"}, json.dumps(body).encode())
