"""
Issues and comments as the API shows them; webhooks told of their changes and of pulls'.

Called by the endpoints of issues, comments and labels, after a change was made.
"""

from __future__ import annotations

from orderkit.adapters.embedded.forge.api import events
from orderkit.adapters.embedded.forge.api.calls import Call
from orderkit.adapters.embedded.forge.api.issueshapes import comment_shape, issue_shape, issue_url
from orderkit.adapters.embedded.forge.api.pullshapes import shown_to
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
        shape["pull_request"] = {"html_url": issue_url(repo, issue, forge.base_url)}
    return shape


def comment_as_shown(call: Call, repo: RepoRow, comment: Comment) -> Json:
    """Return a comment."""
    forge = call.forge
    issue = forge.issues.by_id(comment.issue_id)
    poster = forge.accounts.by_id(comment.poster_id)
    return comment_shape(repo, issue, comment, poster, forge.base_url)


def issue(call: Call, repo: RepoRow, changed: Issue, action: str) -> None:
    """Tell webhooks that an issue or pull request was opened, edited, closed or reopened."""
    if changed.is_pull:
        _pull(call, repo, changed, action, "pull_request")
        return
    shape = issue_as_shown(call, repo, changed)
    events.issue_changed(call.forge, repo, shape, action, by=call.user)


def _pull(call: Call, repo: RepoRow, changed: Issue, action: str, event_type: str) -> None:
    shape = shown_to(call, repo, call.forge.pulls.by_id(changed.id))
    events.pull_changed(call.forge, repo, shape, action, by=call.user, event_type=event_type)


def labelled(call: Call, repo: RepoRow, number: int) -> None:
    """Tell webhooks that an issue or pull request has other labels."""
    changed = call.forge.issues.find(repo.id, number)
    if changed is None:
        return
    if changed.is_pull:
        _pull(call, repo, changed, "label_updated", "pull_request_label")
        return
    shape = issue_as_shown(call, repo, changed)
    events.issue_changed(
        call.forge, repo, shape, "label_updated", by=call.user, event_type="issue_label"
    )


def comment(call: Call, repo: RepoRow, changed: Comment, action: str) -> None:
    """Tell webhooks that a comment was created, edited or deleted."""
    on = issue_as_shown(call, repo, call.forge.issues.by_id(changed.issue_id))
    shape = comment_as_shown(call, repo, changed)
    events.commented(call.forge, repo, on, shape, action, by=call.user)
