"""
Endpoints that give users and organisations another name, and answers at the old addresses.

As in Gitea a renamed repository answers 301 at its old address, everything of a renamed user
or organisation 307; both keep path and query. Git is led on from a repository's old name, not
from an owner's.

Called through the route table in ``api.app``, and by ``api.access`` for addresses of nothing.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from orderkit.adapters.embedded.forge.api import fields
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call, empty_answer
from orderkit.core.errors import ConflictError

_REPOS = "/api/v1/repos"


def rename_user(call: Call) -> Response:
    """POST /admin/users/{name}/rename, for site admins."""
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
    name = call.param("name")
    user = call.forge.accounts.find(name)
    if user is None:
        refuse_old_account(call, name)
        raise ApiError(404, errors=[f"user does not exist [uid: 0, name: {name}]"])
    if user.is_org:
        raise ApiError(422, f"{user.name} is an organization not a user")
    new = fields.required_text(call.json(), "new_username", "NewName")
    try:
        call.forge.renames.account(user, new)
    except ConflictError as error:
        raise ApiError(422, str(error)) from error
    return empty_answer()


def refuse_old_account(call: Call, name: str) -> None:
    """
    Lead on from the former name of a user or organisation.

    Raises:
        ApiError: 307, there was one of that name.
    """
    found = call.forge.renames.account_now(name)
    if found is not None:
        raise led_on(call.request, 307, name, found.name)


def led_on(request: Request, status: int, old: str, new: str) -> ApiError:
    """
    Return the refusal that leads to the same address with another name in it.

    Args:
        old: ``owner`` or ``owner/repository`` as the address has it.
        new: What stands there now.
    """
    path = request.url.path
    base = _REPOS if path.startswith(f"{_REPOS}/") else ""
    rest = path[len(base) :].replace(f"/{old}", f"/{new}", 1)
    query = f"?{request.url.query}" if request.url.query else ""
    return ApiError(status, headers={"Location": quote(f"{base}{rest}") + query})
