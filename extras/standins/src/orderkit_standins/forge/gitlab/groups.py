"""Endpoints of users, groups, members, deploy tokens and projects themselves."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response

from ground.errors import ConflictError, InvalidInputError, RefusedError
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.deploy_keys import DeployKey
from orderkit_standins.forge.gitlab.face import Ask, GitLabError, Json, answer, at, paged, refused
from orderkit_standins.forge.gitlab.places import OWNER, READERS, Places
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.teams import TeamSettings

VERSION = "19.5.0+orderkit"
_BOT = re.compile(r"(group|project)_\d+_bot|service_account_")
_RIGHTS = {10: "none", 20: "read", 30: "write", 40: "admin"}


@dataclass(frozen=True, slots=True)
class GroupEndpoints:
    """Endpoints of who there is, and of the lives of groups and projects."""

    places: Places
    removes_at_once: bool
    kept_deploy_keys: Mapping[str, Sequence[DeployKey]]

    @at("GET", "version")
    def version(self, ask: Ask) -> Response:
        ask.require_user()
        return answer({"version": VERSION, "revision": "0" * 11})

    @at("GET", "user")
    def me(self, ask: Ask) -> Response:
        return answer(self.places.user_shape(ask.user) | {"is_admin": ask.user.admin})

    @at("GET", "personal_access_tokens/self")
    def token(self, ask: Ask) -> Response:
        """Return our token's scopes: those of a Gitea token that may write are ``api``."""
        ask.require_user()
        scopes = ask.actor.scopes
        needed = {"write:repository", "write:issue", "write:organization"}
        is_whole = scopes is None or "all" in scopes or needed <= scopes
        return answer({"scopes": ["api"] if is_whole else ["read_api"], "active": True})

    @at("GET", "users")
    def users(self, ask: Ask) -> Response:
        user = self.places.accounts.find_user(ask.query("username"))
        return paged(ask, [self.places.user_shape(user)] if user else [])

    @at("GET", "users/:user")
    def user(self, ask: Ask) -> Response:
        """Return a user; those of tokens and service accounts are bots."""
        ask.require_user()
        user = self._user(ask)
        return answer(self.places.user_shape(user) | {"bot": _BOT.match(user.name) is not None})

    # Groups

    @at("POST", "groups")
    def create_group(self, ask: Ask) -> Response:
        places, path = self.places, str(ask.field("path") or "")
        parent = places.parent_of(ask.field("parent_id"))
        if (parent or "") != places.group:
            raise GitLabError(403, "403 Forbidden")
        made = ask.gitea("POST", "/orgs", {"username": path})
        if made.status == 422:  # noqa: PLR2004
            raise GitLabError(400, f"Failed to save group {{:path=>[{made.text!r}]}}")
        if not made.ok:
            raise refused(made)
        org = places.accounts.find(path)
        return answer(places.group_shape(org) if org else {}, 201)

    @at("GET", "groups/:id")
    def group(self, ask: Ask) -> Response:
        parent = self.places.parent_shape(ask.params["id"])
        return answer(parent or self.places.group_shape(self.places.org(ask)))

    @at("GET", "groups/:id/projects")
    def group_projects(self, ask: Ask) -> Response:
        places, org = self.places, self.places.org(ask)
        repos = places.repositories.all(owner_id=org.id)
        seen = [r for r in repos if places.access.right_on(ask.actor, r) >= Right.READ]
        return paged(ask, [places.project_shape(r, ask.actor) for r in seen])

    @at("GET", "groups/:id/members")
    @at("GET", "groups/:id/members/all")
    def group_members(self, ask: Ask) -> Response:
        org = self.places.org(ask)
        if not ask.user.admin and self.places.group_level(org, ask.user) == 0:
            raise GitLabError(403, "403 Forbidden")
        members = self.places.group_members(org).items()
        return paged(ask, [self._member(account, level) for account, level in sorted(members)])

    def _member(self, account: int, level: int) -> Json:
        user = self.places.accounts.by_id(account)
        return self.places.user_shape(user) | {"access_level": level}

    @at("POST", "groups/:id/members")
    def add_member(self, ask: Ask) -> Response:
        org, user = self.places.owned_org(ask), self._user(ask)
        if user.id in self.places.group_members(org):
            raise GitLabError(409, "Member already exists")
        return self._set_group_level(org, user, int(ask.field("access_level")), 201)

    @at("PUT", "groups/:id/members/:user")
    def change_member(self, ask: Ask) -> Response:
        org, user = self.places.owned_org(ask), self._user(ask)
        return self._set_group_level(org, user, int(ask.field("access_level")), 200)

    @at("DELETE", "groups/:id/members/:user")
    def remove_member(self, ask: Ask) -> Response:
        org, user = self.places.owned_org(ask), self._user(ask)
        if user.id not in self.places.group_members(org):
            raise GitLabError(404, "404 Not found")
        self._leave(org, user)
        return Response(status_code=204)

    def _user(self, ask: Ask) -> Account:
        number = ask.params.get("user") or ask.field("user_id")
        row = self.places.store.row("SELECT name FROM accounts WHERE id = ?", int(number or 0))
        user = self.places.accounts.find_user(str(row["name"])) if row else None
        if user is None:
            raise GitLabError(404, "404 User Not Found")
        return user

    def _set_group_level(self, org: Account, user: Account, level: int, status: int) -> Response:
        if level not in _RIGHTS:
            raise GitLabError(400, "access_level does not have a valid value")
        teams, name, right = self.places.teams, f"gitlab-{level}", _RIGHTS[level]
        team = teams.named(org.id, name)
        if team is None:
            units = {} if right == "admin" else dict.fromkeys(("repo.code", "repo.pulls"), right)
            units |= {} if right == "admin" else {"repo.issues": right}
            permission = "admin" if right == "admin" else "none"
            settings = TeamSettings(name, permission=permission, units=units, all_repositories=True)
            team = teams.create(org.id, settings)
        self._leave(org, user)
        teams.add_member(team, user.id)
        return answer(self._member(user.id, level), status)

    def _leave(self, org: Account, user: Account) -> None:
        for team in self.places.teams.of_user(user.id, org.id):
            with suppress(RefusedError):
                if not team.owns:
                    self.places.teams.remove_member(team, user.id)

    # Deploy tokens of a group: accounts of the forge that may read it

    @at("GET", "groups/:id/deploy_tokens")
    def deploy_tokens(self, ask: Ask) -> Response:
        return paged(ask, self._tokens(self.places.owned_org(ask, 40)))

    def _tokens(self, org: Account) -> list[Json]:
        team = self.places.teams.named(org.id, READERS)
        ids = self.places.teams.members(team) if team else []
        users = [self.places.accounts.by_id(number) for number in ids]
        return [
            {"id": u.id, "name": u.name, "username": u.name, "scopes": ["read_repository"]}
            for u in users
        ]

    @at("POST", "groups/:id/deploy_tokens")
    def add_deploy_token(self, ask: Ask) -> Response:
        org, name, teams = self.places.owned_org(ask), str(ask.field("username")), self.places.teams
        secret = f"gldt-{secrets.token_urlsafe(15)}"
        self.places.accounts.ensure_user(name, secret, admin=False, read_only=True)
        user = self.places.accounts.find_user(name)
        if user is None:
            raise GitLabError(400, "username is invalid")
        units = {"repo.code": "read"}
        team = teams.named(org.id, READERS) or teams.create(
            org.id, TeamSettings(READERS, units=units, all_repositories=True)
        )
        teams.add_member(team, user.id)
        shape = {"id": user.id, "name": name, "username": name, "scopes": ["read_repository"]}
        return answer(shape | {"token": secret}, 201)

    @at("DELETE", "groups/:id/deploy_tokens/:user")
    def remove_deploy_token(self, ask: Ask) -> Response:
        org, user = self.places.owned_org(ask), self._user(ask)
        if user.id not in [token["id"] for token in self._tokens(org)]:
            raise GitLabError(404, "404 Deploy Token Not Found")
        self._leave(org, user)
        self.places.accounts.delete_user(user)
        return Response(status_code=204)

    # Projects

    @at("POST", "projects")
    def create_project(self, ask: Ask) -> Response:
        places, name = self.places, str(ask.field("path") or "")
        row = places.store.row(
            "SELECT name FROM accounts WHERE id = ?", int(ask.field("namespace_id") or 0)
        )
        owner = str(row["name"]) if row else ""
        made = ask.gitea(
            "POST",
            f"/orgs/{owner}/repos",
            {
                "name": name,
                "description": str(ask.field("description") or ""),
                "private": ask.field("visibility") != "public",
                "default_branch": str(ask.field("default_branch") or "main"),
            },
        )
        if made.status in (409, 422, 500):
            raise GitLabError(400, {"path": [made.text or "is invalid"]})
        if not made.ok:
            raise refused(made)
        repo = places.repositories.find(owner, name)
        return answer(places.project_shape(repo, ask.actor) if repo else {}, 201)

    @at("GET", "projects/:id")
    def project(self, ask: Ask) -> Response:
        return answer(self.places.project_shape(self.places.project(ask), ask.actor))

    @at("PUT", "projects/:id")
    def change_project(self, ask: Ask) -> Response:
        """Change path, default branch, squashing and what a merge waits for."""
        repo, body = self.places.project(ask, Right.ADMIN), dict(ask.body)
        waits = (
            *("only_allow_merge_if_pipeline_succeeds", "allow_merge_on_skipped_pipeline"),
            "merge_trains_enabled",
        )
        if kept := {key: bool(body.pop(key)) for key in waits if key in body}:
            self.places.keep_settings(repo, kept)
        changes: Json = {}
        if "squash_option" in body:
            changes["allow_squash_merge"] = body.pop("squash_option") != "never"
        if "path" in body:
            changes["name"] = body.pop("path")
        if "default_branch" in body:
            changes["default_branch"] = body.pop("default_branch")
        if changes:
            return self._change(ask, repo, changes)
        return self.project(ask)

    def _change(self, ask: Ask, repo: Repository, changes: Json, status: int = 200) -> Response:
        done = ask.gitea("PATCH", f"/repos/{repo.full_name}", changes)
        if done.status in (409, 422):
            raise GitLabError(400, {"path": [done.text]})
        if not done.ok:
            raise refused(done)
        now = next(r for r in self.places.repositories.all() if r.id == repo.id)
        return answer(self.places.project_shape(now, ask.actor), status)

    @at("POST", "projects/:id/archive")
    def archive(self, ask: Ask) -> Response:
        return self._change(ask, self.places.project(ask, Right.ADMIN), {"archived": True}, 201)

    @at("POST", "projects/:id/unarchive")
    def unarchive(self, ask: Ask) -> Response:
        return self._change(ask, self.places.project(ask, Right.ADMIN), {"archived": False}, 201)

    @at("DELETE", "projects/:id")
    def delete(self, ask: Ask) -> Response:
        """Mark a project for deletion, or remove one that is marked."""
        places, repo = self.places, self.places.project(ask, Right.ADMIN)
        if not places.is_marked(repo):
            if ask.field("permanently_remove"):
                raise GitLabError(400, "Project must be marked for deletion first.")
            name = f"{repo.repo.name}-deletion_scheduled-{repo.id}"
            try:
                moved = places.repositories.rename(repo, name)
            except (ConflictError, InvalidInputError) as error:
                raise GitLabError(400, str(error)) from error
            places.repositories.update(moved, archived=True)
            return answer({"message": "202 Accepted"}, 202)
        shape = places.project_shape(repo, ask.actor)
        if not ask.field("permanently_remove"):
            raise GitLabError(400, "Project has already been marked for deletion")
        if ask.field("full_path") != shape["path_with_namespace"]:
            raise GitLabError(400, "`full_path` is incorrect. You must enter the complete path")
        if not self.removes_at_once:
            raise GitLabError(403, "403 Forbidden")
        places.repositories.delete(repo)
        return answer({"message": "202 Accepted"}, 202)

    @at("GET", "projects/:id/members")
    def project_members(self, ask: Ask) -> Response:
        repo = self.places.project(ask)
        levels = {"read": 20, "write": 30, "admin": 40}
        teams = self.places.teams
        found = ((a, levels[teams.collaboration(repo.id, a)]) for a in teams.collaborators(repo.id))
        return paged(ask, [self._member(account, level) for account, level in found])

    @at("GET", "projects/:id/members/all")
    def all_project_members(self, ask: Ask) -> Response:
        repo, places = self.places.project(ask), self.places
        owner = places.accounts.by_id(repo.owner_id)
        ids = {*places.group_members(owner), *places.teams.collaborators(repo.id)}
        levels = ((i, places.member_level(repo, places.accounts.by_id(i))) for i in sorted(ids))
        return paged(ask, [self._member(number, level) for number, level in levels if level])

    @at("GET", "projects/:id/members/all/:user")
    def project_member(self, ask: Ask) -> Response:
        repo, user = self.places.project(ask), self._user(ask)
        level = self.places.member_level(repo, user)
        if user.admin and level < OWNER and self.places.teams.is_owner(repo.owner_id, user.id):
            level = OWNER
        if not level:
            raise GitLabError(404, "404 Not found")
        return answer(self._member(user.id, level))

    @at("POST", "projects/:id/members")
    @at("PUT", "projects/:id/members/:user")
    def set_project_member(self, ask: Ask) -> Response:
        repo, user = self.places.project(ask, Right.ADMIN), self._user(ask)
        level = int(ask.field("access_level"))
        self.places.teams.set_collaborator(repo.id, user.id, _RIGHTS.get(level, "read"))
        status = 201 if ask.request.method == "POST" else 200
        return answer(self._member(user.id, level), status)

    @at("DELETE", "projects/:id/members/:user")
    def remove_project_member(self, ask: Ask) -> Response:
        repo, user = self.places.project(ask, Right.ADMIN), self._user(ask)
        self.places.teams.remove_collaborator(repo.id, user.id)
        return Response(status_code=204)

    @at("GET", "projects/:id/deploy_keys")
    def deploy_keys(self, ask: Ask) -> Response:
        repo = self.places.project(ask, Right.ADMIN)
        keys = self.kept_deploy_keys.get(repo.full_name, ())
        return paged(ask, [key.on_gitlab() for key in keys])

    @at("GET", "groups/:id/runners")
    @at("GET", "projects/:id/runners")
    @at("GET", "projects/:id/remote_mirrors")
    def none(self, ask: Ask) -> Response:
        """Return nothing: the forge has no runners and mirrors."""
        ask.require_user()
        return paged(ask, [])
