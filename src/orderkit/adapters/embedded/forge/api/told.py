"""
Issues and comments as the API shows them; webhooks told of their changes and of pulls'.

Called by the endpoints of issues, comments and labels, after a change was made.
"""

from __future__ import annotations

from orderkit.adapters.embedded.forge.api import events
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import Call
from orderkit.adapters.embedded.forge.api.issueshapes import comment_shape, issue_shape, issue_url
from orderkit.adapters.embedded.forge.api.pullshapes import pull_shape
from orderkit.adapters.embedded.forge.api.shapes import Json
from orderkit.adapters.embedded.forge.comments import Comment
from orderkit.adapters.embedded.forge.issues import Issue
from orderkit.adapters.embedded.forge.registry import RepoRow


def issue_as_shown(call: Call, repo: RepoRow, issue: Issue) -> Json:
    """Return an issue or the issue half of a pull request."""
    forge = call.forge
    shape = issue_shape(
        repo,
        issue,
        forge.accounts.by_id(issue.poster_id),
        forge.issues.labels_on(issue.id),
        forge.base_url,
    )
    shape["comments"] = len(forge.comments.on_issue(issue.id))
    if issue.is_pull:
        pull = forge.pulls.by_id(issue.id)
        shape["pull_request"] = {
            "draft": pull.draft,
            "merged": pull.merged is not None,
            "merged_at": pull.merged.at if pull.merged else None,
            "html_url": issue_url(repo, issue, forge.base_url),
        }
    return shape


def comment_as_shown(call: Call, repo: RepoRow, comment: Comment) -> Json:
    """Return a comment."""
    forge = call.forge
    issue = forge.issues.by_id(comment.issue_id)
    poster = forge.accounts.by_id(comment.poster_id)
    return comment_shape(repo, issue, comment, poster, forge.base_url)


def issue(call: Call, repo: RepoRow, changed: Issue, action: str) -> None:
    """Tell webhooks that an issue or pull request was opened, edited, closed or reopened."""
    _changed(call, repo, changed, action, "")


def labelled(call: Call, repo: RepoRow, changed: Issue) -> None:
    """Tell webhooks that an issue or pull request has other labels."""
    _changed(call, repo, changed, "label_updated", "_label")


def _changed(call: Call, repo: RepoRow, changed: Issue, action: str, kind: str) -> None:
    if changed.is_pull:
        events.pull_changed(
            call.forge,
            repo,
            lambda: _pull(call, repo, changed),
            action,
            by=call.user,
            event_type=f"pull_request{kind}",
        )
    else:
        events.issue_changed(
            call.forge,
            repo,
            lambda: issue_as_shown(call, repo, call.forge.issues.by_id(changed.id)),
            action,
            by=call.user,
            event_type=f"issue{kind}" if kind else "issues",
        )


def _pull(call: Call, repo: RepoRow, changed: Issue) -> Json:
    return pull_shape(call.forge, repo, call.forge.pulls.by_id(changed.id), Right.ADMIN)


def comment(call: Call, repo: RepoRow, changed: Comment, action: str) -> None:
    """Tell webhooks that a comment was created, edited or deleted."""
    on = call.forge.issues.by_id(changed.issue_id)

    def said() -> Json:
        return {
            "issue": issue_as_shown(call, repo, on),
            **({"pull_request": _pull(call, repo, on)} if on.is_pull else {}),
            "comment": comment_as_shown(call, repo, changed),
        }

    events.commented(call.forge, repo, said, action, by=call.user, is_pull=on.is_pull)
