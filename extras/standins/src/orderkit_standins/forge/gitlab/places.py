"""Which project or group an address names, and their shapes; projects that wait for deletion."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Account, Accounts, Actor
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.gitlab.face import Ask, GitLabError, Json
from orderkit_standins.forge.protections import Protections, RuleSettings
from orderkit_standins.forge.repositories import Repositories, Repository
from orderkit_standins.forge.store import Store
from orderkit_standins.forge.teams import Teams

OWNER = 50
"""GitLab's number of this access level."""
READERS = "gitlab-deploy-tokens"
"""The team of the accounts that stand for deploy tokens, which are no members on GitLab."""
_LEVELS = {Right.NONE: 0, Right.READ: 20, Right.WRITE: 30, Right.ADMIN: 40}
_MARKED = re.compile(r"(.+)-deletion_scheduled-\d+\Z")
"""GitLab 18 gives a project that waits for its deletion such a path."""
_PARENTS = 1_000_000
"""The numbers of the groups above the organisations, which the forge itself does not know."""


@dataclass(frozen=True, slots=True)
class Places:
    """Finds projects and groups for a caller."""

    access: Access
    accounts: Accounts
    teams: Teams
    repositories: Repositories
    store: Store
    protections: Protections
    group: str
    """The full path of the group that all organisations are in; empty: they are at the top."""

    # Groups

    def full(self, org: str) -> str:
        """Return the full path of an organisation's group."""
        return f"{self.group}/{org}" if self.group else org

    def parent_of(self, number: object) -> str | None:
        """Return the path of a group above the organisations by its number."""
        parents = self._parents()
        index = int(str(number)) - _PARENTS if str(number).isdigit() else -1
        return parents[index] if 0 <= index < len(parents) else None

    def parent_shape(self, path: str) -> Json | None:
        """Return a group above the organisations."""
        parents = self._parents()
        if path not in parents:
            return None
        return {"id": _PARENTS + parents.index(path), "full_path": path, "visibility": "public"}

    def _parents(self) -> list[str]:
        parts = self.group.split("/") if self.group else []
        return ["/".join(parts[: count + 1]) for count in range(len(parts))]

    def org(self, ask: Ask) -> Account:
        """
        Return the organisation that ``:id`` names, if the caller may see it.

        Raises:
            GitLabError: 404.
        """
        name = ask.params["id"]
        prefix = f"{self.group}/" if self.group else ""
        org = self.accounts.find(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if name.isdigit():
            org = self._account(int(name))
        if org is None or not org.is_org or not self.access.sees(ask.actor.account, org):
            raise GitLabError(404, "404 Group Not Found")
        return org

    def owned_org(self, ask: Ask, level: int = OWNER) -> Account:
        """
        Return the organisation if the caller has a level in it.

        Raises:
            GitLabError: 401, 403 or 404.
        """
        org, user = self.org(ask), ask.user
        if not user.admin and self.group_level(org, user) < level:
            raise GitLabError(403, "403 Forbidden")
        return org

    def _account(self, number: int) -> Account | None:
        row = self.store.row("SELECT name FROM accounts WHERE id = ?", number)
        return self.accounts.find(str(row["name"])) if row else None

    def group_shape(self, org: Account) -> Json:
        """Return a group."""
        visibility = {"limited": "internal"}.get(org.visibility, org.visibility)
        return {
            "id": org.id,
            "name": org.name,
            "path": org.name,
            "full_path": self.full(org.name),
            "visibility": visibility or "public",
            "shared_with_groups": [],
        }

    def group_level(self, org: Account, user: Account) -> int:
        """Return somebody's access level in an organisation."""
        return self.group_members(org).get(user.id, 0)

    def group_members(self, org: Account) -> dict[int, int]:
        """Return the access level of each member of an organisation, by account."""
        levels: dict[int, int] = {}
        for team in self.teams.of_org(org.id):
            level = {"owner": OWNER, "admin": 40, "write": 30, "read": 20, "none": 10}[
                team.settings.level("repo.code")
            ]
            for account in self.teams.members(team) if team.settings.name != READERS else ():
                levels[account] = max(level, levels.get(account, 0))
        return levels

    # Projects

    def project(self, ask: Ask, minimum: Right = Right.READ) -> Repository:
        """
        Return the project that ``:id`` names, if the caller has a right on it.

        Raises:
            GitLabError: 404 hidden or missing, 403; 302 or 405 for a former path.
        """
        name = ask.params["id"]
        repo = self._by_number(name) if name.isdigit() else self._by_path(ask, name)
        right = self.access.right_on(ask.actor, repo) if repo else Right.NONE
        if repo is None or right < Right.READ:
            raise GitLabError(404, "404 Project Not Found")
        if right < minimum:
            raise GitLabError(401 if ask.actor.account is None else 403, "403 Forbidden")
        return repo

    def _by_number(self, number: str) -> Repository | None:
        return next((r for r in self.repositories.all() if r.id == int(number)), None)

    def _by_path(self, ask: Ask, path: str) -> Repository | None:
        prefix = f"{self.group}/" if self.group else ""
        owner, _, name = path.removeprefix(prefix).rpartition("/")
        if not path.startswith(prefix):
            return None
        repo = self.repositories.find(owner, name)
        account = self.accounts.find(owner)
        if repo is not None or account is None:
            return repo
        moved = self.repositories.renamed(account.id, name)
        if moved is None or self.access.right_on(ask.actor, moved) < Right.READ:
            return None
        if ask.request.method != "GET":
            raise GitLabError(405, "Non GET methods are not allowed for moved projects")
        rest = ask.request.scope["raw_path"].decode().split("/projects/", 1)[1].partition("/")[2]
        query = f"?{ask.request.url.query}" if ask.request.url.query else ""
        place = f"/api/v4/projects/{moved.id}{f'/{rest}' if rest else ''}{query}"
        raise GitLabError(302, headers={"Location": place})

    def project_shape(self, repo: Repository, actor: Actor) -> Json:
        """Return a project as somebody sees it."""
        full, level = f"{self.full(repo.repo.owner)}/{repo.repo.name}", self.level(repo, actor)
        owner = self.accounts.by_id(repo.owner_id)
        settings = self.settings(repo)
        git = git_read.open_repository(repo.path)
        marked = _MARKED.match(repo.repo.name)
        row = self.store.row("SELECT updated FROM repositories WHERE id = ?", repo.id)
        return {
            "id": repo.id,
            "name": repo.repo.name,
            "path": repo.repo.name,
            "path_with_namespace": full,
            "description": repo.description,
            "default_branch": repo.default_branch,
            "visibility": "private" if repo.private else "public",
            "archived": repo.archived,
            "empty_repo": not git_read.branch_names(git),
            "squash_option": "default_off" if repo.allow_squash_merge else "never",
            "merge_method": "merge",
            "namespace": {
                "id": owner.id,
                "kind": "group" if owner.is_org else "user",
                "path": owner.name,
                "full_path": self.full(owner.name),
            },
            "permissions": {
                "project_access": None,
                "group_access": {"access_level": level} if level else None,
            },
            "shared_with_groups": [],
            "marked_for_deletion_on": str(row["updated"])[:10] if marked and row else None,
            **settings,
        }

    def level(self, repo: Repository, actor: Actor) -> int:
        """Return a caller's access level on a project; reading what is public is none."""
        if actor.account is None:
            return 0
        return self.member_level(repo, actor.account)

    def member_level(self, repo: Repository, account: Account) -> int:
        """Return an account's access level on a project, from its group too."""
        if account.id == repo.owner_id or self.teams.is_owner(repo.owner_id, account.id):
            return OWNER
        is_member = bool(self.teams.of_user_on(account.id, repo.owner_id, repo.id))
        collaborates = self.teams.collaboration(repo.id, account.id) != "none"
        if not (is_member or collaborates or account.admin):
            return 0
        return _LEVELS[self.access.right_on(Actor(account), repo)]

    def settings(self, repo: Repository) -> Json:
        """Return what a project says about merging besides squashing."""
        row = self.store.row("SELECT settings FROM merge_settings WHERE repo_id = ?", repo.id)
        defaults: Json = {
            "only_allow_merge_if_pipeline_succeeds": False,
            "allow_merge_on_skipped_pipeline": False,
            "merge_trains_enabled": False,
        }
        return defaults | (json.loads(row["settings"]) if row else {})

    def keep_settings(self, repo: Repository, changes: Json) -> None:
        """Change those that are named; rules of branches say the same, for pages and git."""
        text = json.dumps(self.settings(repo) | changes)
        self.store.change("INSERT OR REPLACE INTO merge_settings VALUES (?, ?)", repo.id, text)
        for rule in self.protections.of_repository(repo.id):
            self.protections.change(rule, self.waiting(repo, rule.settings))

    def waiting(self, repo: Repository, settings: RuleSettings) -> RuleSettings:
        """Return a rule's settings that let a merge wait for all statuses if the project does."""
        waits = bool(self.settings(repo)["only_allow_merge_if_pipeline_succeeds"])
        return replace(settings, enable_status_check=waits, status_check_contexts=())

    def is_marked(self, repo: Repository) -> bool:
        """Say whether a project waits for its deletion."""
        return bool(_MARKED.match(repo.repo.name))

    def user_shape(self, account: Account) -> Json:
        """Return a user."""
        shape = {"id": account.id, "username": account.name, "name": account.name}
        return {**shape, "state": "active"}
