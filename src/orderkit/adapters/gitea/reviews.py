"""
Reviews and events of pull requests on Gitea, rights of people, and protection of branches.

A rule of a branch lets only the organisation's owners push and merge: they are the platform's
account and whoever was adopted.

`ports.pulls.ForgePulls` documents the contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ground.errors import RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    list_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.calls import Calls
from orderkit.ports.pulls import ForgeUser, PullEvent, Review, ReviewState

_STATES: Mapping[str, ReviewState] = {"APPROVED": "approved", "REQUEST_CHANGES": "rejected"}
_EVENT_OF = {state: event for event, state in _STATES.items()}
_EVENTS = ("pull_push", "change_target_branch")
_GLOB = re.compile(r"[*?\[\]{}\\]")
_OWNERS = "Owners"
_BINDS_ADMINS, _OF_FORGEJO = "block_admin_merge_override", "apply_to_admins"
"""That a rule holds for owners too: as Gitea says it, and as Forgejo's description does."""
_USERS = ("push_whitelist_usernames", "merge_whitelist_usernames")


class GiteaReviews(Calls):
    """The part of the port about reviews and protected branches."""

    def reviews(self, repo: RepoId, number: int) -> tuple[Review, ...]:
        """Return approvals and rejections, oldest first; see the port."""
        path = self._path(repo, "pulls", str(number), "reviews")
        reviews = sorted(
            self._pages(path, {}, f"read the reviews of {repo}#{number}"),
            key=lambda review: int(review.get("id") or 0),
        )
        return tuple(
            Review(
                reviewer=user_in(review),
                state=_STATES[str(review.get("state"))],
                commit=CommitSha(str(review.get("commit_id") or "")),
                official=bool(review.get("official")) and not review.get("dismissed"),
                when=str(review.get("submitted_at") or ""),
                dismissed=bool(review.get("dismissed")),
            )
            for review in reviews
            if review.get("state") in _STATES
        )

    def review(
        self, repo: RepoId, number: int, state: ReviewState, *, head: CommitSha, text: str
    ) -> None:
        """
        Approve or reject a pull request at a head; see the port.

        Raises:
            RefusedError: We opened it ourselves, or it is not open.
            NotFoundError: No such pull request, or we may not see it.
        """
        doing, login = f"review {repo}#{number}", self._login().lower()
        path = self._path(repo, "pulls", str(number), "reviews")
        body = {"event": _EVENT_OF[state], "body": text, "commit_id": head}

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            own = [r for r in self.reviews(repo, number) if r.reviewer.login.lower() == login]
            is_there = own and (own[-1].state, own[-1].commit) == (state, head)
            return True if is_there and not own[-1].dismissed else None

        def act() -> bool:
            answer = self._http.send("POST", path, body=body)
            if answer.status == INVALID:
                raise RefusedError(f"{doing} is refused: {answer.text}")
            return done(answer, doing)

        settle(look, act, doing)

    def pull_events(self, repo: RepoId, number: int) -> tuple[PullEvent, ...]:
        """Return pushes and changes of the base since it was opened; see the port."""
        path = self._path(repo, "issues", str(number), "timeline")
        events = self._pages(path, {}, f"read the timeline of {repo}#{number}")
        return tuple(_event(event) for event in events if event.get("type") in _EVENTS)

    def user_with_right(self, repo: RepoId, login: str) -> tuple[ForgeUser, str] | None:
        """Return somebody and their right on a repository, None for an unknown login."""
        answer = self._http.get(self._path(repo, "collaborators", login, "permission"))
        if answer.status in (MISSING, INVALID):
            return None
        doing = f"read the right of {login} on {repo}"
        shape = object_in(checked(answer, doing), doing)
        return user_in(shape), text_in(shape, "permission")

    def is_protected(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """Say whether the rule that counts for the branch is ours; see the port."""
        return self._is_ours(self._rules(repo), branch, checks)

    def _is_ours(self, rules: Sequence[Found], branch: str, checks: Sequence[str]) -> bool:
        first = next((rule for rule in rules if _may_match(rule, branch)), None)
        if first is None or not _has(first, _rule(branch, checks)):
            return False
        names = {name for key in _USERS for name in first.get(key) or ()}
        return not names or names == {self._login()}

    def protect_branch(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """
        Let only owners of the organisation push to and merge into a branch. See the port.

        Raises:
            RefusedError: Another rule, a pattern, counts before ours.
            NotFoundError: No such repository.
        """
        doing, rule = f"protect {branch} of {repo}", _rule(branch, checks)
        path, rules = self._path(repo, "branch_protections"), list[Found]()

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            rules[:] = self._rules(repo)
            return attempted if self._is_ours(rules, branch, checks) else None

        def act() -> bool:
            for other in rules:
                name = str(other.get("rule_name"))
                if name == branch:
                    answer = self._http.send("PATCH", path + path_of(branch), body=rule)
                    return done(answer, doing)
                if _may_match(other, branch):
                    raise RefusedError(
                        f"{doing}: the rule '{name}' counts first",
                        hint="remove that rule on the forge, or place it behind",
                    )
            return done(self._http.send("POST", path, body=rule), doing)

        changed = settle(look, act, doing)
        if changed:
            self._keep_own_rights(repo, branch, rule, doing)
        return changed

    def _keep_own_rights(
        self, repo: RepoId, branch: str, rule: Mapping[str, Any], doing: str
    ) -> None:
        """Name our account in the rule if it is not an owner."""
        if self._object(self._path(repo, "branches", branch), doing).get("user_can_push"):
            return
        # else we would lock ourselves out
        body = {**rule, **{key: [self._login()] for key in _USERS}}
        path = self._path(repo, "branch_protections", branch)
        done(self._http.send("PATCH", path, body=body), doing)

    def _login(self) -> str:
        return text_in(self._object("/user", "read our account"), "login")

    def _rules(self, repo: RepoId) -> list[Found]:
        """Return the rules of a repository, the one that counts first first."""
        doing = f"read the protected branches of {repo}"
        answer = checked(self._http.get(self._path(repo, "branch_protections")), doing)
        rules = list_in(answer.json() or [])  # the forge answers all of them at once
        return sorted(rules, key=lambda rule: int(rule.get("priority") or 0))


def _rule(branch: str, checks: Sequence[str]) -> dict[str, Any]:
    return {
        "rule_name": branch,
        "enable_push": True,
        "enable_push_whitelist": True,
        **{key: [] for key in _USERS},
        "push_whitelist_teams": [_OWNERS],
        "push_whitelist_deploy_keys": False,
        "enable_force_push": False,
        "enable_merge_whitelist": True,
        "merge_whitelist_teams": [_OWNERS],
        # these alone protect nothing: everybody who may push can set a status
        "enable_status_check": True,
        "status_check_contexts": list(checks),
        _BINDS_ADMINS: True,
        _OF_FORGEJO: True,
        "enable_bypass_allowlist": False,
        # files that match could be pushed by everybody who may write
        "unprotected_file_patterns": "",
    }


def _has(rule: Found, expected: Mapping[str, Any]) -> bool:
    """Say whether a rule says what is expected; a setting that is absent is off."""
    binds_admins = rule.get(_BINDS_ADMINS) or rule.get(_OF_FORGEJO)
    rule = {**rule, _BINDS_ADMINS: binds_admins, _OF_FORGEJO: binds_admins}
    settings = {key: value for key, value in expected.items() if key not in _USERS}
    return all((rule.get(key) or False) == (value or False) for key, value in settings.items())


def _may_match(rule: Found, branch: str) -> bool:
    name = str(rule.get("rule_name"))
    return name.lower() == branch.lower() or bool(_GLOB.search(name))


def _event(event: Found) -> PullEvent:
    try:
        push = json.loads(str(event.get("body") or "{}"))
    except ValueError:
        push = {}
    commits = push.get("commit_ids") if isinstance(push, dict) else None
    return PullEvent(
        kind="push" if event.get("type") == "pull_push" else "retarget",
        by=user_in(event),
        when=str(event.get("created_at") or ""),
        commits=tuple(CommitSha(str(commit)) for commit in commits or ()),
    )
