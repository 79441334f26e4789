"""
Endpoints of users, tokens and organisations.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from starlette.responses import Response

from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import fields, moved
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.shapes import account_shape, token_shape
from orderkit.core.errors import ConflictError, InvalidInputError


def version(call: Call) -> Response:
    """GET /version."""
    return json_answer({"version": call.forge.version})


def settings(_call: Call) -> Response:
    """GET /settings/api."""
    return json_answer(
        {
            "max_response_items": 50,
            "default_paging_num": 30,
            "default_git_trees_per_page": 1000,
            "default_max_blob_size": 10485760,
            "default_max_response_size": 104857600,
        }
    )


def current(call: Call) -> Response:
    """GET /user."""
    return json_answer(account_shape(call.user, call.forge.base_url))


def show(call: Call) -> Response:
    """GET /users/{name}."""
    return json_answer(account_shape(named(call), call.forge.base_url))


def named(call: Call) -> Account:
    """
    Return the user or organisation that the path names.

    Raises:
        ApiError: 404, there is none; 307, it has another name now.
    """
    name = call.param("name")
    found = call.forge.accounts.find(name)
    if found is None:
        moved.refuse_old_account(call, name)
        raise ApiError(404, f"user redirect does not exist [name: {name}]")
    return found


def create_user(call: Call) -> Response:
    """POST /admin/users, for site admins."""
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
    body = call.json()
    name, password = fields.text(body, "username"), fields.text(body, "password")
    if not name or not password:
        raise ApiError(422, "[Username]: Required" if not name else "[Password]: Required")
    try:
        user = call.forge.accounts.create_user(name, password)
    except ConflictError as error:
        raise ApiError(422, str(error)) from error
    return json_answer(account_shape(user, call.forge.base_url), 201)


def tokens(call: Call) -> Response:
    """GET /users/{name}/tokens, with a password only."""
    user = _token_owner(call)
    return paged(call, call.forge.accounts.tokens(user), token_shape)


def create_token(call: Call) -> Response:
    """POST /users/{name}/tokens, with a password only; the secret is shown once."""
    user, body = _token_owner(call), call.json()
    name, scopes = fields.text(body, "name"), body.get("scopes") or []
    if not name:
        raise ApiError(422, "[Name]: Required")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise ApiError(422, "[Scopes]: no list of texts")
    try:
        token, secret = call.forge.accounts.create_token(user, name, tuple(scopes))
    except (InvalidInputError, ConflictError) as error:
        raise ApiError(400, str(error)) from error
    return json_answer(token_shape(token, secret), 201)


def delete_token(call: Call) -> Response:
    """DELETE /users/{name}/tokens/{id or name}, with a password only; a number is an id."""
    user, wanted = _token_owner(call), call.param("token")
    is_number = wanted.isascii() and wanted.isdigit()
    for token in call.forge.accounts.tokens(user):
        if wanted == (str(token.id) if is_number else token.name):
            call.forge.accounts.delete_token(user, token.id)
            return empty_answer()
    raise ApiError(404)


def _token_owner(call: Call) -> Account:
    user, account = named(call), call.actor.account
    if account is None or (user.id != account.id and not account.admin):
        raise ApiError(403, "doer should be the site admin or be same as the contextUser")
    if call.actor.by_token:
        raise ApiError(401, "auth required")
    return user
