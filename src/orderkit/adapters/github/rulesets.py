"""
Protection of branches on GitHub, by a ruleset of the repository.

Its rule ``update`` lets only those past who may bypass it: the owners of the organisation and our
App. They alone push to the branch and merge into it. Commit statuses hold everybody else.
A private repository of a free plan has neither rulesets nor protected branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ground.errors import NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    MISSING,
    Found,
    checked,
    done,
    list_in,
    object_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.transport import GitHubCalls

_CHECKS = "required_status_checks"


class Rulesets(GitHubCalls):
    """The part of the port about protected branches."""

    def is_protected(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """Say whether our ruleset is there and says what it has to; see the port."""
        wanted = self._ruleset(branch, checks)
        return any(_has(found, wanted) for found in self._own(repo, branch))

    def protect_branch(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """
        Let only owners of the organisation and us push to and merge into a branch. See the port.

        Raises:
            RefusedError: We are neither an App nor an owner, or the plan has no rulesets.
            NotFoundError: No such repository.
        """
        doing, wanted = f"protect {branch} of {repo}", self._ruleset(branch, checks)
        found: list[Found] = []

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            found[:] = self._own(repo, branch)
            return attempted if any(_has(ruleset, wanted) for ruleset in found) else None

        def act() -> bool:
            self._refuse_non_owners(repo, doing)
            path = self._path(repo, "rulesets")
            if found:
                answer = self._http.send("PUT", f"{path}/{found[0]['id']}", body=wanted)
            else:
                answer = self._http.send("POST", path, body=wanted)
            if answer.status == FORBIDDEN and self._is_private(repo):
                raise RefusedError(
                    f"{doing}: {answer.text}",
                    hint="a free plan protects no branches of private repositories: use another"
                    " plan, or public repositories",
                )
            return done(answer, doing)

        return settle(look, act, doing)

    def blocking_rule(self, repo: RepoId, branch: str) -> str:
        """
        Return the ruleset that keeps us from pushing to a branch, "" if none does; see the port.

        Raises:
            NotFoundError: No such repository or branch.
        """
        doing = f"read the rules of {branch} of {repo}"
        answer = self._http.get(self._path(repo, "branches", branch))
        checked(answer, doing)
        for rule in self._rules(repo, branch, doing):
            if rule.get("type") not in ("update", "pull_request", _CHECKS):
                continue
            number = str(rule.get("ruleset_id"))
            found = self._optional(self._path(repo, "rulesets", number), doing) or {}
            if found.get("current_user_can_bypass", "never") == "never":
                return str(found.get("name") or rule.get("ruleset_source") or number)
        return ""

    def _rules(self, repo: RepoId, branch: str, doing: str) -> list[Found]:
        answer = self._http.get(self._path(repo, "rules", "branches", branch))
        return list_in(checked(answer, doing).json() or [])

    def _own(self, repo: RepoId, branch: str) -> Iterator[Found]:
        """Yield the repository's own rulesets of that name, whole."""
        doing = f"read the rulesets of {repo}"
        answer = self._http.get(self._path(repo, "rulesets"), {"includes_parents": "false"})
        if answer.status == MISSING:
            raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
        if answer.status == FORBIDDEN:  # a free plan
            return
        for entry in list_in(checked(answer, doing).json() or []):
            if entry.get("name") == branch:
                path = self._path(repo, "rulesets", str(entry.get("id")))
                found = self._optional(path, doing)
                if found is not None:
                    yield found

    def _ruleset(self, branch: str, checks: Sequence[str]) -> dict[str, Any]:
        app = self._http.app
        # the number of the owners means nothing (GitHub's description)
        actors = [{"actor_id": 1, "actor_type": "OrganizationAdmin", "bypass_mode": "always"}]
        if app is not None:
            own = {"actor_id": app.app_id, "actor_type": "Integration", "bypass_mode": "always"}
            actors.append(own)
        required = {
            "strict_required_status_checks_policy": False,
            _CHECKS: [{"context": check} for check in checks],
        }
        rules: list[dict[str, Any]] = [{"type": kind} for kind in ("update", "deletion")]
        rules.append({"type": "non_fast_forward"})
        rules += [{"type": _CHECKS, "parameters": required}] if checks else []
        return {
            "name": branch,
            "target": "branch",
            "enforcement": "active",
            "bypass_actors": actors,
            "conditions": {"ref_name": {"include": [f"refs/heads/{branch}"], "exclude": []}},
            "rules": rules,
        }

    def _refuse_non_owners(self, repo: RepoId, doing: str) -> None:
        """
        Refuse a rule that would lock ourselves out.

        Raises:
            RefusedError: We are neither an App nor an owner of the organisation.
        """
        # an App may bypass the rule by its own entry
        if self._http.app is not None:
            return
        login = str(self._object("/user", doing).get("login"))
        answer = self._http.get(path_of("orgs", repo.owner, "memberships", login))
        if not answer.ok or object_in(answer, doing).get("role") != "admin":
            raise RefusedError(
                f"{doing}: our account {login} is no owner of {repo.owner}",
                hint="make it an owner, or act as a GitHub App (forge.app in platform.yaml)",
            )

    def _is_private(self, repo: RepoId) -> bool:
        return bool(self._object(self._path(repo), f"read {repo}").get("private"))


def _has(found: Found, wanted: dict[str, Any]) -> bool:
    """Say whether a ruleset says what is wanted, and lets nobody else past."""
    rules = {str(rule.get("type")): rule.get("parameters") for rule in found.get("rules") or ()}
    contexts = {
        str(check.get("context")) for check in (rules.get(_CHECKS) or {}).get(_CHECKS) or ()
    }
    return (
        all(found.get(key) == wanted[key] for key in ("target", "enforcement", "conditions"))
        and {rule["type"] for rule in wanted["rules"]} <= rules.keys()
        and contexts >= {c["context"] for r in wanted["rules"] for c in _contexts(r)}
        and _actors(found) <= _actors(wanted)
    )


def _contexts(rule: dict[str, Any]) -> list[dict[str, str]]:
    return (rule.get("parameters") or {}).get(_CHECKS) or []


def _actors(ruleset: Found) -> set[tuple[str, int]]:
    """Return who may bypass."""
    return {
        # see `_ruleset`: the number of the owners means nothing
        (kind, 0 if kind == "OrganizationAdmin" else int(actor.get("actor_id") or 0))
        for actor in ruleset.get("bypass_actors") or ()
        if (kind := str(actor.get("actor_type")))
    }
