"""The JSON shapes of GitHub's API: every field that its description requires."""

from __future__ import annotations

from dataclasses import dataclass

import pygit2

from orderkit_standins.forge import git_read, pull_requests
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.calls import RootUrl
from orderkit_standins.forge.api.shapes import Json, when
from orderkit_standins.forge.github.answers import API
from orderkit_standins.forge.github.apps import BOT, Apps
from orderkit_standins.forge.issues import Comment, Issues
from orderkit_standins.forge.pull_requests import Pull, Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import Review
from orderkit_standins.forge.statuses import Status
from orderkit_standins.forge.teams import Team
from orderkit_standins.forge.webhooks import Webhook

EPOCH = "2026-01-01T00:00:00Z"
"""The time of what this forge keeps no time of."""
_USER_URLS = (
    *("events", "followers", "following", "gists", "organizations", "received_events"),
    *("repos", "starred", "subscriptions"),
)
_REPOSITORY_URLS = (
    *("archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits"),
    *("compare", "contents", "contributors", "deployments", "downloads", "events", "forks"),
    *("git_commits", "git_refs", "git_tags", "hooks", "issue_comment", "issue_events", "issues"),
    *("keys", "labels", "languages", "merges", "milestones", "notifications", "pulls", "releases"),
    *("stargazers", "statuses", "subscribers", "subscription", "tags", "teams", "trees"),
)
_ORG_URLS = ("repos", "events", "hooks", "issues", "members", "public_members")
_PULL_LINKS = {
    "comments": "/issues/{n}/comments",
    "commits": "/pulls/{n}/commits",
    "statuses": "/statuses/{sha}",
    "issue": "/issues/{n}",
    "review_comments": "/pulls/{n}/comments",
    "review_comment": "/pulls/comments/{{number}}",
    "self": "/pulls/{n}",
}
STATES = {"APPROVED": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_MERGEABLE = ("mergeable", "empty", "ancestor")


@dataclass(frozen=True, slots=True)
class GitHubShapes:
    """Makes the shapes of one forge."""

    root_url: RootUrl
    accounts: Accounts
    issues: Issues
    pulls: Pulls
    apps: Apps

    def api(self, repo: Repository) -> str:
        """Return the address of a repository in the API."""
        return f"{self.root_url}{API}/repos/{repo.full_name}"

    def page(self, repo: Repository) -> str:
        """Return the address of a repository's page."""
        return f"{self.root_url}/{repo.full_name}"

    # People

    def login(self, account: Account) -> str:
        """Return the login of an account, which of an App's says so."""
        return account.name + (BOT if self.apps.has_account(account.name) else "")

    def user(self, account: Account) -> Json:
        """Return a user or organisation as others name it."""
        login = self.login(account)
        api = f"{self.root_url}{API}/users/{login}"
        kind = "Organization" if account.is_org else "User"
        return {
            "login": login,
            "id": account.id,
            "node_id": f"U_{account.id}",
            "avatar_url": f"{self.root_url}/avatars/{account.id}",
            "gravatar_id": "",
            "url": api,
            "html_url": f"{self.root_url}/{account.name}",
            "type": kind if login == account.name else "Bot",
            "site_admin": account.admin,
            **{f"{name}_url": f"{api}/{name}" for name in _USER_URLS},
        }

    def user_by_id(self, account_id: int) -> Json:
        """Return a user."""
        return self.user(self.accounts.by_id(account_id))

    def public_user(self, account: Account) -> Json:
        """Return a user as ``/user`` and ``/users/NAME`` show it."""
        unknown = dict.fromkeys(("bio", "blog", "company", "hireable", "location"))
        counts = dict.fromkeys(("followers", "following", "public_gists", "public_repos"), 0)
        times = {"created_at": EPOCH, "updated_at": EPOCH}
        named = {"email": account.email or None, "name": account.name, "user_view_type": "public"}
        return {**self.user(account), **unknown, **counts, **times, **named}

    def organisation(self, org: Account) -> Json:
        """Return an organisation as others name it."""
        api = f"{self.root_url}{API}/orgs/{org.name}"
        return {
            "login": org.name,
            "id": org.id,
            "node_id": f"O_{org.id}",
            "url": api,
            "avatar_url": f"{self.root_url}/avatars/{org.id}",
            "description": org.description,
            **{f"{name}_url": f"{api}/{name}" for name in _ORG_URLS},
        }

    def whole_organisation(self, org: Account) -> Json:
        """Return an organisation as its own address shows it."""
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        return {
            **self.organisation(org),
            **counts,
            "html_url": f"{self.root_url}/{org.name}",
            "has_organization_projects": False,
            "has_repository_projects": False,
            "default_repository_permission": "none",
            "type": "Organization",
            "created_at": EPOCH,
            "updated_at": EPOCH,
            "archived_at": None,
        }

    def team(self, team: Team) -> Json:
        """Return a team with what GitHub adds when it is made."""
        org = self.accounts.by_id(team.org_id)
        settings = team.settings
        api = f"{self.root_url}{API}/organizations/{org.id}/team/{team.id}"
        level = settings.level("repo.code")
        return {
            "id": team.id,
            "node_id": f"T_{team.id}",
            "url": api,
            "members_url": f"{api}/members{{/member}}",
            "repositories_url": f"{api}/repos",
            "html_url": f"{self.root_url}/orgs/{org.name}/teams/{settings.name.lower()}",
            "name": settings.name,
            "slug": settings.name.lower(),
            "description": settings.description,
            "privacy": "closed",
            "permission": {"write": "push", "admin": "admin", "owner": "admin"}.get(level, "pull"),
            "type": "organization",
            "parent": None,
        }

    def made_team(self, team: Team) -> Json:
        """Return a team as its own address shows it."""
        org = self.accounts.by_id(team.org_id)
        counts = {"members_count": 0, "repos_count": 0}
        times = {"created_at": EPOCH, "updated_at": EPOCH}
        return {
            **self.team(team),
            **counts,
            **times,
            "organization": {**self.whole_organisation(org), **times},
        }

    # Repositories

    def repository(self, repo: Repository, right: Right) -> Json:
        """Return a repository as somebody with this right sees it."""
        api, page = self.api(repo), self.page(repo)
        counts = (
            *("forks", "forks_count", "open_issues", "open_issues_count", "stargazers_count"),
            *("watchers", "watchers_count", "network_count", "subscribers_count", "size"),
        )
        flags = (
            *("fork", "has_projects", "has_wiki", "has_pages", "has_discussions", "disabled"),
            "has_downloads",
        )
        rights = {"admin": Right.ADMIN, "maintain": Right.ADMIN, "push": Right.WRITE}
        rights |= {"triage": Right.WRITE, "pull": Right.READ}
        writes = right >= Right.WRITE
        return {
            "id": repo.id,
            "node_id": f"R_{repo.id}",
            "name": repo.repo.name,
            "full_name": repo.full_name,
            "owner": self.user_by_id(repo.owner_id),
            "private": repo.private,
            "visibility": "private" if repo.private else "public",
            "archived": repo.archived,
            "description": repo.description,
            "default_branch": repo.default_branch,
            "has_issues": True,
            "topics": [],
            "url": api,
            "html_url": page,
            "clone_url": f"{page}.git",
            "git_url": f"git:{page}.git",
            "ssh_url": f"ssh:{page}.git",
            "svn_url": page,
            **dict.fromkeys(("homepage", "language", "license", "mirror_url")),
            **dict.fromkeys(("pushed_at", "created_at", "updated_at"), EPOCH),
            **dict.fromkeys(counts, 0),
            **dict.fromkeys(flags, False),
            **{f"{name}_url": f"{api}/{name}" for name in _REPOSITORY_URLS},
            "permissions": {name: right >= least for name, least in rights.items()},
            **({"allow_squash_merge": repo.allow_squash_merge} if writes else {}),
            **({"allow_merge_commit": True, "allow_rebase_merge": False} if writes else {}),
        }

    # Git

    def commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        """Return a commit as lists show it."""
        api, sha = self.api(repo), str(commit.id)
        return {
            "sha": sha,
            "node_id": f"C_{sha}",
            "url": f"{api}/commits/{sha}",
            "html_url": f"{self.page(repo)}/commit/{sha}",
            "comments_url": f"{api}/commits/{sha}/comments",
            "commit": {
                "author": _dated(commit.author),
                "committer": _dated(commit.committer),
                "message": git_read.message(commit).rstrip("\n"),
                "tree": {"sha": str(commit.tree_id), "url": f"{api}/git/trees/{commit.tree_id}"},
                "url": f"{api}/git/commits/{sha}",
                "comment_count": 0,
            },
            "author": None,
            "committer": None,
            "parents": [
                {"sha": str(parent), "url": f"{api}/commits/{parent}"}
                for parent in commit.parent_ids
            ],
        }

    def git_commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        """Return a commit as git has it."""
        whole, api = self.commit(repo, commit), self.api(repo)
        inner = whole["commit"]
        verification = dict.fromkeys(("signature", "payload", "verified_at"))
        return {
            **{key: whole[key] for key in ("sha", "node_id", "html_url")},
            "url": f"{api}/git/commits/{commit.id}",
            **{key: inner[key] for key in ("author", "committer", "message", "tree")},
            "parents": [{**parent, "html_url": parent["url"]} for parent in whole["parents"]],
            "verification": {"verified": False, "reason": "unsigned", **verification},
        }

    def ref(self, repo: Repository, name: str, sha: str) -> Json:
        """Return a reference."""
        api = f"{self.api(repo)}/git"
        target = {"type": "commit", "sha": sha, "url": f"{api}/commits/{sha}"}
        return {"ref": name, "node_id": f"REF_{name}", "url": f"{api}/{name}", "object": target}

    # Pull requests and what is said of them

    def pull(self, repo: Repository, pull: Pull, right: Right, *, whole: bool) -> Json:
        """Return a pull request; `whole` as its own address shows it."""
        issue = self.issues.by_id(pull.id)
        tips = pull_requests.tips(repo.path, pull)
        head_sha = pull_requests.last_head(repo.path, pull) if pull.merged else tips.head
        api, page, number = self.api(repo), f"{self.page(repo)}/pull/{pull.number}", pull.number
        links = {k: api + path.format(n=number, sha=head_sha) for k, path in _PULL_LINKS.items()}
        author, merged = self.user_by_id(issue.poster_id), pull.merged
        shape = self.repository(repo, right)
        owner = {"repo": shape, "user": shape["owner"]}
        ends = {"head": (pull.head, head_sha), "base": (pull.base, tips.base)}
        simple: Json = {
            "id": pull.id,
            "node_id": f"PR_{pull.id}",
            "number": number,
            "title": issue.title,
            "body": issue.body or None,
            "state": "closed" if issue.closed else "open",
            "draft": pull.draft,
            "locked": False,
            "user": author,
            "labels": [],
            "author_association": "MEMBER",
            **dict.fromkeys(("assignee", "milestone", "auto_merge", "active_lock_reason")),
            **{key: [] for key in ("assignees", "requested_reviewers", "requested_teams")},
            "created_at": issue.created,
            "updated_at": issue.updated,
            "closed_at": issue.closed or None,
            "merged_at": merged.at if merged else None,
            "merge_commit_sha": merged.commit if merged else None,
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "url": links["self"],
            **{f"{key}_url": url for key, url in links.items() if key != "self"},
            "_links": {key: {"href": url} for key, url in {**links, "html": page}.items()},
            **{
                side: {"label": f"{repo.repo.owner}:{ref}", "ref": ref, "sha": sha, **owner}
                for side, (ref, sha) in ends.items()
            },
        }
        return {**simple, **self._details(repo, pull)} if whole else simple

    def _details(self, repo: Repository, pull: Pull) -> Json:
        state = pull_requests.state(repo.path, pull, self.pulls.checks)
        counts = (
            *("additions", "changed_files", "comments", "commits", "deletions"),
            "review_comments",
        )
        mergeable = None if state == "checking" else state in _MERGEABLE and not pull.draft
        return {
            **dict.fromkeys(counts, 0),
            "mergeable": None if pull.merged else mergeable,
            "mergeable_state": {None: "unknown", True: "clean", False: "dirty"}[mergeable],
            "merged": pull.merged is not None,
            "merged_by": self.user_by_id(pull.merged.by) if pull.merged else None,
            "maintainer_can_modify": False,
        }

    def review(self, repo: Repository, pull: Pull, review: Review) -> Json:
        """Return a review; one that was dismissed does not say what it was."""
        page = f"{self.page(repo)}/pull/{pull.number}#pullrequestreview-{review.id}"
        api = f"{self.api(repo)}/pulls/{pull.number}"
        return {
            "id": review.id,
            "node_id": f"PRR_{review.id}",
            "user": self.user_by_id(review.reviewer_id),
            "body": review.body,
            "state": "DISMISSED" if review.dismissed else STATES.get(review.state, "COMMENTED"),
            "commit_id": review.sha,
            "submitted_at": review.submitted,
            "html_url": page,
            "pull_request_url": api,
            "_links": {"html": {"href": page}, "pull_request": {"href": api}},
            "author_association": "MEMBER",
        }

    def comment(self, repo: Repository, comment: Comment) -> Json:
        """Return a comment."""
        issue, api = self.issues.by_id(comment.issue_id), self.api(repo)
        return {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "url": f"{api}/issues/comments/{comment.id}",
            "html_url": f"{self.page(repo)}/pull/{issue.number}#issuecomment-{comment.id}",
            "issue_url": f"{api}/issues/{issue.number}",
            "user": self.user_by_id(comment.poster_id),
            "body": comment.body,
            "created_at": comment.created,
            "updated_at": comment.created,
            "author_association": "MEMBER",
        }

    def status(self, repo: Repository, status: Status) -> Json:
        """Return a commit status."""
        state = status.state if status.state in ("pending", "success", "failure") else "error"
        return {
            "id": status.id,
            "node_id": f"SC_{status.id}",
            "url": f"{self.api(repo)}/statuses/{status.sha}",
            "avatar_url": None,
            "state": state,
            "context": status.context,
            "description": status.description,
            "target_url": status.target_url or None,
            "created_at": status.created,
            "updated_at": status.created,
        }

    def hook(self, hook: Webhook, api: str, *, of_repository: bool) -> Json:
        """Return a webhook; its secret is never shown."""
        settings = hook.settings
        url = f"{api}/hooks/{hook.id}"
        events = {event for event in settings.events if event in _EVENTS}
        shape = {
            "id": hook.id,
            "type": "Repository" if of_repository else "Organization",
            "name": "web",
            "active": settings.active,
            "events": sorted(events),
            "config": {"url": settings.url, "content_type": "json"},
            "url": url,
            "ping_url": f"{url}/pings",
            "created_at": EPOCH,
            "updated_at": EPOCH,
        }
        last = {"code": None, "status": "unused", "message": None}
        more = {"test_url": f"{url}/test", "last_response": last} if of_repository else {}
        return {**shape, **more}


_EVENTS = ("push", "pull_request", "pull_request_review", "issues", "issue_comment")


def _dated(person: pygit2.Signature) -> Json:
    name, email = git_read.name_and_email(person)
    return {"name": name, "email": email, "date": when(person.time, person.offset)}
