"""
The part of a forge that only some have: required reviews of any repository, and workflow runs.

Templates ask for it (``github:actions:dispatch``, ``publish:github``); orders never do. It is
reached through ``Forge.workflows``, which is None on a forge without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ground.names import CommitSha, RepoId


@dataclass(frozen=True, slots=True)
class ReviewRules:
    """What a branch demands of everyone who changes it."""

    approvals: int = 1
    checks: tuple[str, ...] = ()
    """Contexts of commit statuses that have to succeed."""
    is_up_to_date: bool = True
    """Whether a pull request has to contain its base's newest commit."""
    holds_admins: bool = True
    by_code_owners: bool = False
    dismisses_stale: bool = False
    resolves_conversations: bool = False
    after_last_push: bool = False
    """Whether somebody else than the last pusher has to approve."""
    is_linear: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of a workflow, as the forge lists it."""

    number: int
    api_url: str
    web_url: str


class ForgeWorkflows(Protocol):
    """
    Required reviews and workflow runs.

    `ports.forge.Forge` lists the errors that every method may raise.
    """

    def require_reviews(self, repo: RepoId, branch: str, rules: ReviewRules) -> bool:
        """
        Make sure that a branch is protected. Idempotent. True if it was not.

        A protection that is there already is left as it is: people may have changed it.

        Raises:
            RefusedError: The forge's plan has no protection for this repository.
            NotFoundError: No such repository or branch.
        """
        ...

    def dispatch_workflow(
        self, repo: RepoId, workflow: str, ref: str, inputs: Mapping[str, str]
    ) -> None:
        """
        Start a workflow on a branch or tag. Not idempotent: each call starts a run.

        Raises:
            NotFoundError: No such repository or workflow.
            InvalidInputError: No such branch or tag, or inputs that the workflow does not take.
        """
        ...

    def workflow_runs(
        self, repo: RepoId, workflow: str, commit: CommitSha
    ) -> tuple[WorkflowRun, ...]:
        """
        Return the runs of a workflow on a commit that somebody started, newest first.

        Raises:
            NotFoundError: No such repository or workflow.
        """
        ...
