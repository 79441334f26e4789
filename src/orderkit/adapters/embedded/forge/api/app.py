"""
The route table of the embedded forge: which address is answered by which function.

What is not listed here answers 404.

Called by ``EmbeddedForge``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from orderkit.adapters.embedded.forge.api import (
    branches,
    collaborators,
    contents,
    gitdata,
    hooks,
    issues,
    labels,
    merges,
    moved,
    orgs,
    protections,
    pulldata,
    pulls,
    repos,
    statuses,
    teams,
    topics,
    users,
)
from orderkit.adapters.embedded.forge.api.calls import DIGITS_MAX, ApiError, Endpoint, error_answer
from orderkit.adapters.embedded.forge.api.dispatch import api_routes
from orderkit.adapters.embedded.forge.api.smart import GitHttp
from orderkit.adapters.embedded.forge.pages.refusals import refuse
from orderkit.adapters.embedded.forge.pages.routes import PAGE_ROUTES

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

_V1 = "/api/v1"
_REPO = f"{_V1}/repos/{{owner}}/{{repo}}"

ACCOUNT_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", f"{_V1}/version", "", users.version),
    ("GET", f"{_V1}/settings/api", "", users.settings),
    ("GET", f"{_V1}/user", "user", users.current),
    ("GET", f"{_V1}/user/repos", "user repository", repos.of_current),
    ("POST", f"{_V1}/user/repos", "user repository", repos.create_for_user),
    ("POST", f"{_V1}/admin/users", "admin", users.create_user),
    ("POST", f"{_V1}/admin/users/{{name}}/repos", "admin", repos.create_for_other),
    ("GET", f"{_V1}/users/{{name}}", "user", users.show),
    ("GET", f"{_V1}/users/{{name}}/repos", "user repository", repos.of_user),
    ("GET", f"{_V1}/users/{{name}}/tokens", "", users.tokens),
    ("POST", f"{_V1}/users/{{name}}/tokens", "", users.create_token),
    ("DELETE", f"{_V1}/users/{{name}}/tokens/{{token}}", "", users.delete_token),
    ("GET", f"{_V1}/orgs", "organization", orgs.listed),
    ("POST", f"{_V1}/orgs", "organization", orgs.create),
    ("GET", f"{_V1}/orgs/{{org}}", "organization", orgs.show),
    ("PATCH", f"{_V1}/orgs/{{org}}", "organization", orgs.edit),
    ("DELETE", f"{_V1}/orgs/{{org}}", "organization", orgs.delete),
    ("GET", f"{_V1}/user/orgs", "user organization", orgs.of_current),
    ("GET", f"{_V1}/users/{{name}}/orgs", "user organization", orgs.of_user),
    ("GET", f"{_V1}/orgs/{{org}}/repos", "organization", repos.of_org),
    ("POST", f"{_V1}/orgs/{{org}}/repos", "organization", repos.create_for_org),
]

REPO_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", f"{_V1}/repos/search", "repository", topics.search),
    ("GET", _REPO, "repository", repos.show),
    ("PATCH", _REPO, "repository", repos.change),
    ("DELETE", _REPO, "repository", repos.delete),
    ("GET", f"{_REPO}/topics", "repository", topics.listed),
    ("PUT", f"{_REPO}/topics", "repository", topics.replace),
    ("PUT", f"{_REPO}/topics/{{topic}}", "repository", topics.add),
    ("DELETE", f"{_REPO}/topics/{{topic}}", "repository", topics.remove),
    ("GET", f"{_REPO}/contents", "repository", contents.read),
    ("POST", f"{_REPO}/contents", "repository", contents.change_many),
    ("GET", f"{_REPO}/contents/{{path:path}}", "repository", contents.read),
    ("POST", f"{_REPO}/contents/{{path:path}}", "repository", contents.create),
    ("PUT", f"{_REPO}/contents/{{path:path}}", "repository", contents.update),
    ("DELETE", f"{_REPO}/contents/{{path:path}}", "repository", contents.delete),
    ("GET", f"{_REPO}/raw/{{path:path}}", "repository", contents.raw),
    ("GET", f"{_REPO}/git/trees/{{sha:path}}", "repository", gitdata.tree),
    ("GET", f"{_REPO}/git/blobs/{{sha}}", "repository", gitdata.blob),
    ("GET", f"{_REPO}/git/commits/{{sha:path}}", "repository", gitdata.commit),
    ("GET", f"{_REPO}/git/refs", "repository", gitdata.references),
    ("GET", f"{_REPO}/git/refs/{{ref:path}}", "repository", gitdata.references),
    ("GET", f"{_REPO}/commits", "repository", gitdata.commits),
    ("GET", f"{_REPO}/branches", "repository", branches.index),
    ("POST", f"{_REPO}/branches", "repository", branches.create),
    ("GET", f"{_REPO}/branches/{{branch:path}}", "repository", branches.show),
    ("PUT", f"{_REPO}/branches/{{branch:path}}", "repository", branches.update),
    ("PATCH", f"{_REPO}/branches/{{branch:path}}", "repository", branches.rename),
    ("DELETE", f"{_REPO}/branches/{{branch:path}}", "repository", branches.delete),
    ("GET", f"{_REPO}/compare/{{spec:path}}", "repository", branches.compare),
    ("GET", f"{_REPO}/archive/{{name:path}}", "repository", gitdata.archive),
]

_ORG = f"{_V1}/orgs/{{org}}"
_TEAM = f"{_V1}/teams/{{team}}"
TEAM_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", f"{_V1}/user/teams", "user", teams.of_current),
    ("GET", f"{_ORG}/teams", "organization", teams.listed),
    ("POST", f"{_ORG}/rename", "organization", orgs.rename),
    ("POST", f"{_V1}/admin/users/{{name}}/rename", "admin", moved.rename_user),
    ("POST", f"{_ORG}/teams", "organization", teams.create),
    ("GET", f"{_ORG}/teams/search", "organization", teams.search),
    ("GET", f"{_ORG}/members", "organization", orgs.members),
    ("GET", f"{_ORG}/members/{{name}}", "organization", orgs.member),
    ("DELETE", f"{_ORG}/members/{{name}}", "organization", orgs.remove_member),
    ("GET", f"{_ORG}/public_members", "organization", orgs.public_members),
    ("GET", f"{_ORG}/public_members/{{name}}", "organization", orgs.public_member),
    ("GET", _TEAM, "organization", teams.show),
    ("PATCH", _TEAM, "organization", teams.edit),
    ("DELETE", _TEAM, "organization", teams.delete),
    ("GET", f"{_TEAM}/members", "organization", teams.members),
    ("GET", f"{_TEAM}/members/{{name}}", "organization", teams.member),
    ("PUT", f"{_TEAM}/members/{{name}}", "organization", teams.add_member),
    ("DELETE", f"{_TEAM}/members/{{name}}", "organization", teams.remove_member),
    ("GET", f"{_TEAM}/repos", "organization", teams.repositories),
    ("GET", f"{_TEAM}/repos/{{owner}}/{{repo}}", "organization", teams.repository),
    ("PUT", f"{_TEAM}/repos/{{owner}}/{{repo}}", "organization", teams.add_repository),
    ("DELETE", f"{_TEAM}/repos/{{owner}}/{{repo}}", "organization", teams.remove_repository),
    ("GET", f"{_REPO}/teams", "repository", teams.of_repository),
    ("GET", f"{_REPO}/teams/{{team}}", "repository", teams.on_repository),
    ("PUT", f"{_REPO}/teams/{{team}}", "repository", teams.give_repository),
    ("DELETE", f"{_REPO}/teams/{{team}}", "repository", teams.take_repository),
    ("GET", f"{_REPO}/collaborators", "repository", collaborators.listed),
    ("GET", f"{_REPO}/collaborators/{{name}}", "repository", collaborators.show),
    ("PUT", f"{_REPO}/collaborators/{{name}}", "repository", collaborators.put),
    ("DELETE", f"{_REPO}/collaborators/{{name}}", "repository", collaborators.delete),
    ("GET", f"{_REPO}/collaborators/{{name}}/permission", "repository", collaborators.permission),
]

HOOK_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    *(
        (method, f"{base}/hooks{suffix}", resource, endpoint)
        for base, resource in ((_REPO, "repository"), (f"{_V1}/orgs/{{org}}", "organization"))
        for method, suffix, endpoint in (
            ("GET", "", hooks.listed),
            ("POST", "", hooks.create),
            ("GET", "/{id}", hooks.show),
            ("PATCH", "/{id}", hooks.edit),
            ("DELETE", "/{id}", hooks.delete),
        )
    ),
    ("POST", f"{_REPO}/hooks/{{id}}/tests", "repository", hooks.try_out),
]

ISSUE_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", f"{_REPO}/labels", "issue", labels.listed),
    ("POST", f"{_REPO}/labels", "issue", labels.create),
    ("GET", f"{_REPO}/labels/{{id}}", "issue", labels.show),
    ("PATCH", f"{_REPO}/labels/{{id}}", "issue", labels.edit),
    ("DELETE", f"{_REPO}/labels/{{id}}", "issue", labels.delete),
    ("GET", f"{_REPO}/issues", "issue", issues.listed),
    ("POST", f"{_REPO}/issues", "issue", issues.create),
    ("GET", f"{_REPO}/issues/comments", "issue", issues.all_comments),
    ("GET", f"{_REPO}/issues/comments/{{id}}", "issue", issues.comment),
    ("PATCH", f"{_REPO}/issues/comments/{{id}}", "issue", issues.edit_comment),
    ("DELETE", f"{_REPO}/issues/comments/{{id}}", "issue", issues.delete_comment),
    ("GET", f"{_REPO}/issues/{{index}}", "issue", issues.show),
    ("PATCH", f"{_REPO}/issues/{{index}}", "issue", issues.edit),
    ("GET", f"{_REPO}/issues/{{index}}/comments", "issue", issues.comments),
    ("POST", f"{_REPO}/issues/{{index}}/comments", "issue", issues.create_comment),
    ("GET", f"{_REPO}/issues/{{index}}/labels", "issue", labels.on_issue),
    ("POST", f"{_REPO}/issues/{{index}}/labels", "issue", labels.add),
    ("PUT", f"{_REPO}/issues/{{index}}/labels", "issue", labels.replace),
    ("DELETE", f"{_REPO}/issues/{{index}}/labels", "issue", labels.clear),
    ("DELETE", f"{_REPO}/issues/{{index}}/labels/{{id}}", "issue", labels.remove),
]


class _Number(Convertor[int]):
    """A number in an address; with more digits than SQLite knows it is another address."""

    regex = f"[0-9]{{1,{DIGITS_MAX}}}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())
_PULL = f"{_REPO}/pulls/{{number:number}}"
PULL_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", f"{_REPO}/pulls", "repository", pulls.index),
    ("POST", f"{_REPO}/pulls", "repository", pulls.create),
    ("GET", f"{_PULL}.diff", "repository", pulldata.diff),
    ("GET", f"{_PULL}.patch", "repository", pulldata.patch),
    ("GET", f"{_PULL}/files", "repository", pulldata.files),
    ("GET", f"{_PULL}/commits", "repository", pulldata.commits),
    ("GET", f"{_PULL}/merge", "repository", merges.is_merged),
    ("POST", f"{_PULL}/merge", "repository", merges.merge),
    ("DELETE", f"{_PULL}/merge", "repository", merges.cancel),
    ("POST", f"{_PULL}/update", "repository", merges.update),
    ("GET", _PULL, "repository", pulls.show),
    ("PATCH", _PULL, "repository", pulls.change),
    ("GET", f"{_REPO}/pulls/{{base}}/{{head:path}}", "repository", pulls.by_branches),
    ("GET", f"{_REPO}/branch_protections", "repository", protections.index),
    ("POST", f"{_REPO}/branch_protections", "repository", protections.create),
    ("GET", f"{_REPO}/branch_protections/{{name:path}}", "repository", protections.show),
    ("PATCH", f"{_REPO}/branch_protections/{{name:path}}", "repository", protections.change),
    ("DELETE", f"{_REPO}/branch_protections/{{name:path}}", "repository", protections.delete),
    ("GET", f"{_REPO}/statuses/{{sha:path}}", "repository", statuses.index),
    ("POST", f"{_REPO}/statuses/{{sha:path}}", "repository", statuses.create),
    ("GET", f"{_REPO}/commits/{{ref:path}}/status", "repository", statuses.combine),
    ("GET", f"{_REPO}/commits/{{ref:path}}/statuses", "repository", statuses.of_ref),
]


def forge_app(forge: EmbeddedForge) -> Starlette:
    """Return the ASGI app of a forge."""
    git = GitHttp(forge)
    smart = [
        Route("/{owner}/{repo}/info/refs", git.advertise, methods=["GET"]),
        Route("/{owner}/{repo}/git-upload-pack", git.upload_pack, methods=["POST"]),
        Route("/{owner}/{repo}/git-receive-pack", git.receive_pack, methods=["POST"]),
    ]

    async def unknown(_request: Request) -> Response:
        return error_answer(forge, ApiError(404))

    routes: list[BaseRoute] = [
        *api_routes(forge, ACCOUNT_ROUTES),
        *api_routes(forge, REPO_ROUTES),
        *api_routes(forge, ISSUE_ROUTES),
        *api_routes(forge, HOOK_ROUTES),
        *api_routes(forge, PULL_ROUTES),
        *api_routes(forge, TEAM_ROUTES),
        Route("/api/{rest:path}", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        *smart,
        *api_routes(forge, PAGE_ROUTES, refuse),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app
