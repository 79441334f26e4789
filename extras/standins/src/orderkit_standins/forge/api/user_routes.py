"""
Endpoints of the forge itself, of users, and of their access tokens.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from ground.errors import ConflictError, InvalidInputError
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import VERSION, ApiError, Call, empty_answer, json_answer
from orderkit_standins.forge.api.routes import API, route
from orderkit_standins.forge.api.shapes import Shapes

_TOKENS = f"{API}/users/{{name}}/tokens"


@dataclass(frozen=True, slots=True)
class UserRoutes:
    """Endpoints of users and tokens."""

    access: Access
    accounts: Accounts
    shapes: Shapes

    @route("GET", f"{API}/version")
    def version(self, _call: Call) -> Response:
        return json_answer({"version": VERSION})

    @route("GET", f"{API}/user", "user")
    def current(self, call: Call) -> Response:
        return json_answer(self.shapes.account(call.user))

    @route("POST", f"{API}/admin/users", "admin")
    def create_user(self, call: Call) -> Response:
        """Create a user, for site admins."""
        _require_admin(call)
        body = call.fields()
        name, password = body.required("username"), body.required("password")
        try:
            user = self.accounts.create_user(name, password)
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return json_answer(self.shapes.account(user), 201)

    @route("DELETE", f"{API}/admin/users/{{name}}", "admin")
    def delete_user(self, call: Call) -> Response:
        """Remove a user who owns nothing and is in no organisation, for site admins."""
        _require_admin(call)
        try:
            self.accounts.delete_user(self.access.user(call))
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return empty_answer()

    @route("POST", _TOKENS)
    def create_token(self, call: Call) -> Response:
        """Create a token; its secret is shown once."""
        user, body = self._token_owner(call), call.fields()
        name, scopes = body.required("name"), body.texts("scopes")
        try:
            token, secret = self.accounts.create_token(user, name, scopes)
        except (InvalidInputError, ConflictError) as error:
            raise ApiError(400, str(error)) from error
        shape = {
            "id": token.id,
            "name": token.name,
            "sha1": secret,
            "token_last_eight": token.last_eight,
            "scopes": list(token.scopes),
        }
        return json_answer(shape, 201)

    def _token_owner(self, call: Call) -> Account:
        """Return the user of the path for that user or a site admin, with a password only."""
        user, account = self.access.account(call), call.actor.account
        if account is None or (user.id != account.id and not account.admin):
            raise ApiError(403, "doer should be the site admin or be same as the contextUser")
        if call.actor.by_token:
            raise ApiError(401, "auth required")
        return user


def _require_admin(call: Call) -> None:
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
