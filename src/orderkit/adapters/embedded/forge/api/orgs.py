"""
Endpoints of organisations: create, show, change, delete, list, and who is a member.

Membership is never public here: somebody from outside is shown no members.

Called through the route table in ``api.app``; other endpoints ask here for the organisation
of their path.
"""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import access, fields, moved
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.shapes import account_shape, org_shape
from orderkit.core.errors import ConflictError, RefusedError

VISIBILITIES = ("public", "limited", "private")


def create(call: Call) -> Response:
    """POST /orgs; the caller becomes an owner. 422 if the name is taken."""
    body = call.json()
    name = fields.required_text(body, "username", "UserName")
    visibility = _visibility(fields.text(body, "visibility")) or "public"
    try:
        org = call.forge.accounts.create_org(
            name, call.user, description=fields.text(body, "description"), visibility=visibility
        )
    except ConflictError as error:
        raise ApiError(422, str(error)) from error
    return json_answer(org_shape(org), 201)


def listed(call: Call) -> Response:
    """GET /orgs."""
    accounts, account = call.forge.accounts, call.actor.account
    seen = [org for org in accounts.orgs() if access.sees(accounts, account, org)]
    if call.actor.public_only:
        seen = [org for org in seen if org.visibility == "public"]
    return paged(call, seen, org_shape)


def of_current(call: Call) -> Response:
    """GET /user/orgs."""
    return _joined_by(call, call.user)


def of_user(call: Call) -> Response:
    """GET /users/{name}/orgs: all for the user and site admins, nothing for others."""
    user, found = call.user, person(call)
    if user.id != found.id and not user.admin:
        return paged(call, [], org_shape)
    return _joined_by(call, found)


def _joined_by(call: Call, account: Account) -> Response:
    accounts = call.forge.accounts
    ids = {team.org_id for team in accounts.teams.of_user(account.id)}
    return paged(call, [accounts.by_id(each) for each in sorted(ids)], org_shape)


def show(call: Call) -> Response:
    """GET /orgs/{org}."""
    return json_answer(org_shape(organisation(call)))


def edit(call: Call) -> Response:
    """PATCH /orgs/{org}, for owners: description, visibility."""
    org, body = owned(call), call.json()
    changed = call.forge.accounts.change_org(
        org,
        description=fields.optional_text(body, "description"),
        visibility=_visibility(fields.text(body, "visibility")) or None,
    )
    return json_answer(org_shape(changed))


def rename(call: Call) -> Response:
    """POST /orgs/{org}/rename, for owners."""
    org = owned(call)
    name = fields.required_text(call.json(), "new_name", "NewName")
    try:
        call.forge.renames.account(org, name)
    except ConflictError as error:
        raise ApiError(422, str(error)) from error
    return empty_answer()


def delete(call: Call) -> Response:
    """DELETE /orgs/{org}, for owners; 500 while it has repositories, as in Gitea."""
    org = owned(call)
    try:
        call.forge.accounts.delete_org(org)
    except RefusedError as error:
        raise ApiError(500, str(error)) from error
    return empty_answer()


def members(call: Call) -> Response:
    """GET /orgs/{org}/members: none for who is no member."""
    org, user = organisation(call), call.user
    accounts = call.forge.accounts
    inside = user.admin or accounts.is_member(org.id, user.id)
    found = [accounts.by_id(each) for each in accounts.teams.org_members(org.id) if inside]
    return paged(call, found, lambda account: account_shape(account, call.forge.base_url))


def member(call: Call) -> Response:
    """GET /orgs/{org}/members/{name}: 204 or 404; 303 to the public ones for others."""
    org, user, account = organisation(call), call.user, person(call)
    accounts = call.forge.accounts
    if user.admin or user.id == account.id or accounts.is_member(org.id, user.id):
        if not accounts.is_member(org.id, account.id):
            raise ApiError(404)
        return empty_answer()
    public = f"/api/v1/orgs/{org.name}/public_members/{account.name}"
    return RedirectResponse(public, 303)


def public_members(call: Call) -> Response:
    """GET /orgs/{org}/public_members: nobody."""
    organisation(call)
    return paged(call, [], org_shape)


def public_member(call: Call) -> Response:
    """GET /orgs/{org}/public_members/{name}: never."""
    organisation(call)
    raise ApiError(404)


def remove_member(call: Call) -> Response:
    """DELETE /orgs/{org}/members/{name}, for owners; the last owner stays (500)."""
    org, account = owned(call), person(call)
    try:
        call.forge.accounts.teams.leave(org.id, account.id)
    except RefusedError as error:
        raise ApiError(500, str(error)) from error
    return empty_answer()


def organisation(call: Call) -> Account:
    """
    Return the organisation of the path if the caller may see it.

    Raises:
        ApiError: 404, missing or hidden; 403, a public-only token on one that is not public.
    """
    accounts = call.forge.accounts
    org = accounts.find(call.param("org"))
    if org is None:
        moved.refuse_old_account(call, call.param("org"))
    if org is None or not org.is_org or not access.sees(accounts, call.actor.account, org):
        raise ApiError(404)
    if call.actor.public_only and org.visibility != "public":
        raise ApiError(403, "token scope is limited to public orgs")
    return org


def joined(call: Call) -> Account:
    """
    Return the organisation of the path if the caller is a member of it or a site admin.

    Raises:
        ApiError: 401, 404 as for reading; 403, somebody else.
    """
    org, user = organisation(call), call.user
    if not user.admin and not call.forge.accounts.is_member(org.id, user.id):
        raise ApiError(403, "Must be an organization member")
    return org


def owned(call: Call) -> Account:
    """
    Return the organisation of the path if the caller is one of its owners or a site admin.

    Raises:
        ApiError: 401, 404 as for reading; 403, somebody else.
    """
    org, user = organisation(call), call.user
    if not user.admin and not call.forge.accounts.is_owner(org.id, user.id):
        raise ApiError(403, "Must be an organization owner")
    return org


def person(call: Call) -> Account:
    """
    Return the user that the path names.

    Raises:
        ApiError: 404, there is none.
    """
    name = call.param("name")
    found = call.forge.accounts.find(name)
    if found is None or found.is_org:
        raise ApiError(404, errors=[f"user does not exist [uid: 0, name: {name}]"])
    return found


def _visibility(text: str) -> str:
    if text and text not in VISIBILITIES:
        raise ApiError(422, "[Visibility]: In")
    return text
