"""
Issues and what they have in common with pull requests: a number, a title, a text, comments.

A pull request is an issue with branches (``pull_requests``). Both draw their numbers from one
sequence per repository; a number is never given twice. Callers check permissions.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import NotFoundError
from orderkit_standins.forge.store import Store, load, timestamp

_COMMENTS = "SELECT c.*, i.repo_id FROM comments c JOIN issues i ON i.id = c.issue_id"


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue or the issue half of a pull request. `closed` is the time, or empty."""

    id: int
    repo_id: int
    number: int
    is_pull: bool
    poster_id: int
    title: str
    body: str
    created: str
    updated: str
    closed: str


@dataclass(frozen=True, slots=True)
class NewIssue:
    """The fields of a new issue or pull request."""

    poster_id: int
    title: str
    body: str = ""
    is_pull: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on an issue or pull request."""

    id: int
    issue_id: int
    poster_id: int
    body: str
    created: str


class Issues:
    """Issues and comments in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, repo_id: int, new: NewIssue) -> Issue:
        """Create an issue under the next number."""
        now = timestamp()
        with self._store.transaction():
            issue_id = self._store.insert(
                "issues",
                repo_id=repo_id,
                number=self._take_number(repo_id),
                is_pull=new.is_pull,
                poster_id=new.poster_id,
                title=new.title,
                body=new.body,
                created=now,
                updated=now,
            )
        return self.by_id(issue_id)

    def _take_number(self, repo_id: int) -> int:
        """Return the next number of a repository and never return it again."""
        sql = (
            "INSERT INTO numbers VALUES (?, 1)"
            " ON CONFLICT (repo_id) DO UPDATE SET last = last + 1 RETURNING last"
        )
        (row,) = self._store.rows(sql, repo_id)
        return int(row["last"])

    def find(self, repo_id: int, number: int) -> Issue | None:
        """Return an issue or pull request by its number, or None."""
        sql = "SELECT * FROM issues WHERE repo_id = ? AND number = ?"
        row = self._store.row(sql, repo_id, number)
        return load(Issue, row) if row else None

    def all(self, repo_id: int) -> list[Issue]:
        """Return the issues and pull requests of a repository, newest first."""
        sql = "SELECT * FROM issues WHERE repo_id = ? ORDER BY number DESC"
        return [load(Issue, row) for row in self._store.rows(sql, repo_id)]

    def by_id(self, issue_id: int) -> Issue:
        """
        Return an issue.

        Raises:
            NotFoundError: There is none.
        """
        row = self._store.row("SELECT * FROM issues WHERE id = ?", issue_id)
        if row is None:
            raise NotFoundError(f"no issue {issue_id}")
        return load(Issue, row)

    def edit(
        self,
        issue: Issue,
        *,
        title: str | None = None,
        body: str | None = None,
        closed: bool | None = None,
    ) -> Issue:
        """
        Change the given fields.

        Raises:
            NotFoundError: It was deleted meanwhile.
        """
        now = timestamp()
        self._store.update(
            "issues",
            issue.id,
            title=title,
            body=body,
            closed=None if closed is None else (issue.closed or now) if closed else "",
            updated=now,
        )
        return self.by_id(issue.id)

    def touch(self, issue_id: int) -> None:
        """Set the time of the issue's last change to now."""
        self._store.update("issues", issue_id, updated=timestamp())

    # Comments

    def add_comment(self, issue: Issue, poster_id: int, body: str) -> Comment:
        """Add a comment."""
        now = timestamp()
        comment_id = self._store.insert(
            "comments",
            issue_id=issue.id,
            poster_id=poster_id,
            body=body,
            created=now,
            updated=now,
        )
        return Comment(comment_id, issue.id, poster_id, body, now)

    def find_comment(self, repo_id: int, comment_id: int) -> Comment | None:
        """Return a comment of a repository, or None."""
        row = self._store.row(f"{_COMMENTS} WHERE i.repo_id = ? AND c.id = ?", repo_id, comment_id)
        return load(Comment, row) if row else None

    def comments(self, issue_id: int) -> list[Comment]:
        """Return the comments of an issue, oldest first."""
        rows = self._store.rows(f"{_COMMENTS} WHERE c.issue_id = ? ORDER BY c.id", issue_id)
        return [load(Comment, row) for row in rows]

    def edit_comment(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""
        self._store.update("comments", comment.id, body=body, updated=timestamp())

    def delete_comment(self, comment: Comment) -> None:
        """Remove a comment."""
        self._store.change("DELETE FROM comments WHERE id = ?", comment.id)
