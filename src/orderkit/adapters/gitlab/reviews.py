"""
Approvals and events of merge requests on GitLab, rights of people, and protection of branches.

GitLab says who approved and when, in every tier, but not at which commit. So an approval counts for
the newest version of the merge request that was there *before* it (doc/api/merge_requests.md, "Get
merge request diff versions"): who pushes after an approval gets none.

Source: doc/api/merge_request_approvals.md, events.md, members.md, users.md (`bot`),
protected_branches.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from ground.errors import AccessError, OrderkitError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    MISSING,
    UNAUTHORIZED,
    Found,
    checked,
    done,
    list_in,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.gitlab.pulls import GitLabMerging
from orderkit.adapters.gitlab.transport import (
    ADMINISTERS,
    BOT,
    OWNS,
    READS,
    WRITES,
    level_of,
    person,
)
from orderkit.ports.forge import Commit
from orderkit.ports.pulls import ForgeUser, PullEvent, Review, ReviewState

_REJECTION = re.compile(r"<!-- orderkit-review: rejected ([0-9a-f]{40,64}) -->\s*\Z")
_RETARGET = "changed target branch from"
_RIGHTS: Mapping[int, str] = {OWNS: "owner", ADMINISTERS: "admin", WRITES: "write", READS: "read"}
_GLOB = "*"


class GitLabReviews(GitLabMerging):
    """The part of the port about reviews and protected branches."""

    def reviews(self, repo: RepoId, number: int) -> tuple[Review, ...]:
        """Return approvals and rejections, oldest first; see the port."""
        doing = f"read the approvals of {repo}#{number}"
        answer = checked(self._http.get(self._pull_path(repo, number, "approvals")), doing)
        approvals = list_in(object_in(answer, doing).get("approved_by") or [])
        notes = [n for n in self._comments(repo, number, doing) if _rejection_in(n)]
        if not approvals and not notes:
            return ()
        versions = self._versions(repo, number) if approvals else []
        writers = self._writers(repo)
        reviews = [_approval(approval, versions, writers) for approval in approvals]
        reviews += [_rejection(note, writers) for note in notes]
        return tuple(sorted(reviews, key=lambda review: _moment(review.when)))

    def _versions(self, repo: RepoId, number: int) -> list[Found]:
        doing = f"read the versions of {repo}#{number}"
        return list(self._pages(self._pull_path(repo, number, "versions"), {}, doing))

    def _writers(self, repo: RepoId) -> frozenset[int]:
        """Return the ids of the members that may write, whichever group they have it from."""
        members = self._pages(self._path(repo, "members", "all"), {}, f"list members of {repo}")
        return frozenset(number_in(m, "id") for m in members if level_of(m) >= WRITES)

    def review(
        self, repo: RepoId, number: int, state: ReviewState, *, head: CommitSha, text: str
    ) -> None:
        """
        Approve or reject a pull request at a head; see the port.

        Raises:
            RefusedError: We opened it ourselves, or it is not open.
            NotFoundError: No such pull request, or we may not see it.
        """
        doing, login = f"review {repo}#{number}", self.user().lower()
        pull = self._pull_or_raise(repo, number)
        if pull.author.login.lower() == login or pull.state != "open":
            reason = "it is not open" if pull.state != "open" else "we opened it ourselves"
            raise RefusedError(f"{doing} is refused: {reason}")

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            own = [r for r in self.reviews(repo, number) if r.reviewer.login.lower() == login]
            return True if own and (own[-1].state, own[-1].commit) == (state, head) else None

        def act() -> bool:
            if state == "approved":
                return self._approve(repo, number, head, doing)
            self._http.send("POST", self._pull_path(repo, number, "unapprove"))
            # GitLab has no rejection by API in every tier: ours is a note with a hidden line
            line = f"<!-- orderkit-review: rejected {head} -->"
            self._new_comment(repo, number, f"{text.rstrip()}\n\n{line}\n", doing)
            return True

        settle(look, act, doing)

    def _approve(self, repo: RepoId, number: int, head: CommitSha, doing: str) -> bool:
        """Approve at a head."""
        # an approval of ours may be for another head
        self._http.send("POST", self._pull_path(repo, number, "unapprove"))
        path = self._pull_path(repo, number, "approve")
        answer = self._http.send("POST", path, body={"sha": head})
        if answer.status == UNAUTHORIZED:  # GitLab's word for a missing right, too
            raise self._may_not_approve(repo, number)
        if answer.status in (FORBIDDEN, CONFLICT):
            raise RefusedError(f"{doing} is refused: {answer.text}")
        return done(answer, doing)

    def _may_not_approve(self, repo: RepoId, number: int) -> OrderkitError:
        """Return the error for somebody whom GitLab lets read a merge request, and not approve."""
        login = self.user()
        found = self.user_with_right(repo, login)
        if found is None or found[1] in ("none", "read"):
            return AccessError(
                f"{login} may not approve {repo}!{number}: approvers need the role Developer or a"
                " higher one",
                hint=f"ask an owner of {self._full(repo.owner)} for the role Developer, or let"
                " somebody approve who has it",
            )
        return RefusedError(
            f"GitLab does not let {login} approve {repo}!{number}",
            hint="let somebody approve who neither opened it nor pushed to it; the project's"
            " merge request settings say who may",
        )

    def pull_events(self, repo: RepoId, number: int) -> tuple[PullEvent, ...]:
        """Return pushes and changes of the base; see the port."""
        pull = self._pull_or_raise(repo, number)
        refs = (self._pull_object(repo, number) or {}).get("diff_refs") or {}
        since = str(refs.get("base_sha") or pull.base)  # once merged, the base has all of it
        commits = self.compare(repo, since, pull.head_commit)
        pushes = list(self._pushes(repo, pull.head, commits))
        doing = f"read the notes of {repo}#{number}"
        notes = list(self._pages(self._pull_path(repo, number, "notes"), {"sort": "asc"}, doing))
        moves = [
            PullEvent("retarget", person(note.get("author")), str(note.get("created_at") or ""))
            for note in notes
            if note.get("system") and str(note.get("body")).startswith(_RETARGET)
        ]
        return tuple(sorted((*pushes, *moves), key=lambda event: _moment(event.when)))

    def _pushes(self, repo: RepoId, branch: str, commits: Sequence[Commit]) -> Iterator[PullEvent]:
        """Yield who pushed which of `commits` to a branch, as GitLab noted it."""
        parents = {commit.id: commit.parents for commit in commits}
        path, query = self._path(repo, "events"), {"action": "pushed", "sort": "asc"}
        for event in self._pages(path, query, f"read the events of {repo}"):
            push = event.get("push_data") or {}
            if (push.get("ref_type"), push.get("ref")) != ("branch", branch):
                continue
            before = _history(str(push.get("commit_from") or ""), parents)
            added = _history(str(push.get("commit_to") or ""), parents) - before
            if added:
                who = self._known(person(event.get("author")))
                when = str(event.get("created_at") or "")
                yield PullEvent("push", who, when, tuple(sorted(added)))

    def user_with_right(self, repo: RepoId, login: str) -> tuple[ForgeUser, str] | None:
        """Return somebody and their right on a repository, None for an unknown login."""
        named = self._user_named(login)
        if named is None:
            return None
        user = self._known(named)
        doing = f"read the right of {login} on {repo}"
        path = self._path(repo, "members", "all", str(user.id))
        member = self._optional(path, doing)
        level = level_of(member) if member else 0
        right = next((right for floor, right in _RIGHTS.items() if level >= floor), "none")
        if right == "none":
            project = self._object(self._path(repo), doing)
            right = "none" if project.get("visibility") == "private" else "read"
        return user, right

    def _known(self, user: ForgeUser) -> ForgeUser:
        """Return somebody, and whether it is the account of an access token or a service."""
        if user.id not in self._are_machines:
            is_named_so = BOT.match(user.login) is not None
            entry = None if is_named_so else self._optional(f"/users/{user.id}", "read a user")
            self._are_machines[user.id] = is_named_so or bool(entry and entry.get("bot"))
        return replace(user, is_machine=self._are_machines[user.id])

    @cached_property
    def _are_machines(self) -> dict[int, bool]:
        """By id; GitLab makes no person of a machine."""
        return {}

    def _user_named(self, login: str) -> ForgeUser | None:
        """Return the user with a login, whatever its case; blocked users are none."""
        answer = checked(self._http.get("/users", {"username": login}), f"look for user {login}")
        for entry in list_in(answer.json() or []):
            if text_in(entry, "username").lower() == login.lower():
                return person(entry) if entry.get("state", "active") == "active" else None
        return None

    def is_protected(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """Say whether the branch is protected as `protect_branch` leaves it; see the port."""
        return self._holds(repo, self._rules(repo), branch, checks)

    def _holds(
        self, repo: RepoId, rules: Sequence[Found], branch: str, checks: Sequence[str]
    ) -> bool:
        rules = [rule for rule in rules if _matches(rule, branch)]
        doing = f"read the settings of {repo}"
        project = self._object(self._path(repo), doing)
        waits = bool(project.get("only_allow_merge_if_pipeline_succeeds")) or not checks
        lets_skip = bool(project.get("allow_merge_on_skipped_pipeline"))
        return bool(rules) and waits and not lets_skip and all(map(self._is_narrow, rules))

    def protect_branch(self, repo: RepoId, branch: str, *, checks: Sequence[str]) -> bool:
        """
        Let only the platform, or maintainers, push to and merge into a branch. See the port.

        GitLab Free knows no single users there: its maintainers and owners may push. Merging waits
        for the pipeline, in which our statuses are; each of them has to succeed.

        Raises:
            RefusedError: Another rule, a pattern, gives more.
            NotFoundError: No such repository.
        """
        doing, path = f"protect {branch} of {repo}", self._path(repo, "protected_branches")
        rules: list[Found] = []

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            rules[:] = self._rules(repo)
            return attempted if self._holds(repo, rules, branch, checks) else None

        def act() -> bool:
            names = {text_in(rule, "name") for rule in rules}
            for rule in rules:
                name = text_in(rule, "name")
                if not _matches(rule, branch) or self._is_narrow(rule):
                    continue
                if name != branch:
                    raise RefusedError(
                        f"{doing}: the rule '{name}' counts first",
                        hint="remove that rule on the forge, or let only maintainers push there",
                    )
                answer = self._http.send("DELETE", f"{path}/{branch}")
                if answer.status != MISSING:
                    done(answer, doing)
                names.remove(name)
            if branch not in names:
                answer = self._http.send("POST", path, body=self._rule(branch))
                if answer.status != CONFLICT:
                    done(answer, doing)
            settings = {
                "only_allow_merge_if_pipeline_succeeds": bool(checks),
                "allow_merge_on_skipped_pipeline": False,
            }
            return self._change(repo, settings, doing)

        return settle(look, act, doing)

    def _rule(self, branch: str) -> dict[str, Any]:
        """Return our rule: our account alone where the tier knows users, else maintainers."""
        me = [{"user_id": number_in(self._object("/user", "read our account"), "id")}]
        return {
            "name": branch,
            "push_access_level": ADMINISTERS,
            "merge_access_level": ADMINISTERS,
            # GitLab Free knows no single users: there the levels count, and maintainers may push
            "allowed_to_push": me,
            "allowed_to_merge": me,
            "allow_force_push": False,
        }

    def _is_narrow(self, rule: Found) -> bool:
        """Say whether a rule lets no one push or merge but us, or maintainers."""
        entries = [
            entry
            for key in ("push_access_levels", "merge_access_levels")
            for entry in list_in(rule.get(key) or [])
        ]
        me = number_in(self._object("/user", "read our account"), "id")
        is_narrow = all(_is_ours(entry, me) for entry in entries)
        return bool(entries) and is_narrow and not rule.get("allow_force_push")

    def _rules(self, repo: RepoId) -> list[Found]:
        path, doing = self._path(repo, "protected_branches"), f"read the protection of {repo}"
        return list(self._pages(path, {}, doing, key="name"))


def _is_ours(entry: Found, me: int) -> bool:
    if entry.get("deploy_key_id") or entry.get("group_id"):
        return False
    if entry.get("user_id"):
        return entry.get("user_id") == me
    level = entry.get("access_level")
    return level == 0 or (isinstance(level, int) and level >= ADMINISTERS)


def _matches(rule: Found, branch: str) -> bool:
    """Say whether a rule is about a branch; ``*`` stands for anything."""
    parts = (re.escape(part) for part in text_in(rule, "name").split(_GLOB))
    return re.fullmatch(".*".join(parts), branch) is not None


def _history(commit: str, parents: Mapping[CommitSha, Sequence[CommitSha]]) -> set[CommitSha]:
    """Return those of some commits that `commit` contains."""
    found: set[CommitSha] = set()
    waiting = [CommitSha(commit)]
    while waiting:
        now = waiting.pop()
        if now in parents and now not in found:
            found.add(now)
            waiting += parents[now]
    return found


def _approval(approval: Found, versions: Sequence[Found], writers: frozenset[int]) -> Review:
    """
    Return an approval at the head that its giver could have seen.

    Without a time (an older GitLab) the approval is for no commit.
    """
    user, when = person(approval.get("user")), str(approval.get("approved_at") or "")
    # a version of the same moment does not count: it may have been pushed just after
    seen = [v for v in versions if when and _moment(str(v.get("created_at"))) < _moment(when)]
    newest = max(seen, key=lambda v: number_in(v, "id"), default=None)
    commit = CommitSha(text_in(newest, "head_commit_sha") if newest else "")
    return Review(user, "approved", commit, user.id in writers, when)


def _rejection_in(note: Found) -> re.Match[str] | None:
    return _REJECTION.search(str(note.get("body") or ""))


def _rejection(note: Found, writers: frozenset[int]) -> Review:
    user, match = person(note.get("author")), _rejection_in(note)
    commit = CommitSha(match[1] if match else "")
    when = str(note.get("created_at") or "")
    return Review(user, "rejected", commit, user.id in writers, when)


def _moment(text: str) -> datetime:
    """
    Return a time of GitLab.

    Raises:
        ValueError: It is none.
    """
    return datetime.fromisoformat(text)
