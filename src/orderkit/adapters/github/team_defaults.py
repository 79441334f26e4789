"""
Teams that have every repository of their organisation, also those made later.

GitHub has no such teams. Ours carry a mark in their description, and each repository that we make
is given to them: one of them by the request that makes it.
"""

from __future__ import annotations

from ground.errors import AccessError, NotFoundError
from ground.names import RepoId
from orderkit.adapters.forges.calls import Found, done
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.calls import GitHubCalls

ALL = "Has every repository of this organisation (kept by Orderkit)"
"""The description of such a team."""


class TeamDefaults(GitHubCalls):
    """What making a repository has to know of teams."""

    def _teams_of_all(self, org: str) -> list[Found]:
        doing = f"list the teams of {org}"
        try:
            teams = list(self._pages(path_of("orgs", org, "teams"), {}, doing))
        except (AccessError, NotFoundError):  # making the repository says so
            return []
        return [team for team in teams if team.get("description") == ALL]

    def _add_repository(self, team: Found, repo: RepoId, right: str, doing: str) -> bool:
        """Give a team a right on a repository: ``pull``, ``push`` or ``admin``."""
        parts = ("orgs", repo.owner, "teams", str(team["slug"]), "repos", repo.owner, repo.name)
        answer = self._http.send("PUT", path_of(*parts), body={"permission": right})
        return done(answer, doing)
