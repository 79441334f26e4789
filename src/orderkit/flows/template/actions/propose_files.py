"""
``publish:github:pull-request`` and ``publish:gitlab:merge-request``: files on a branch, to review.

Backstage fails if the branch exists. Here a second run finds the branch and the pull request of
the first, by the operation id in commit and text. A branch of somebody else is a conflict, unless
``update`` says to add to it. The base itself is never written to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import ConflictError, InvalidInputError, RefusedError
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.flows.template.actions.action_context import (
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.publish_repository import (
    check_forge,
    check_kind,
    executable_files,
    note_unused,
    open_repository,
    refuse_inputs,
    repository_of,
    workspace_below,
)
from orderkit.ports.forge import FileChange, Forge, Operation, PullDraft, PullRequest
from softwaretemplates.render import check_path

_WHY = "Orderkit opens pull requests for review, with the platform's own credentials"
_Tree = Mapping[PurePosixPath, BlobSha]


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A pull request to be, and the files that it brings; None: the file is deleted."""

    repo: RepoId
    draft: PullDraft
    files: Mapping[PurePosixPath, bytes | None]
    executable: frozenset[PurePosixPath]
    message: str
    verb: str = "auto"
    """``create``, ``update`` or ``auto``: what must be so of each file on the base."""
    updates: bool = False
    """Whether a branch that exists gets another commit."""

    def operation(self, context: ActionContext) -> Operation:
        """Name the write: the same files for the same branch are the same operation."""
        digest = hashlib.sha256(repr((self.repo, self.draft, sorted(self.executable))).encode())
        for path in sorted(self.files):
            data = self.files[path]
            digest.update(f"\0{path}\0{data is None}\0".encode() + (data or b""))
        name = f"propose-{digest.hexdigest()[:20]}"
        return Operation(name, context.user.ref, self.message, context.user.proof)


def _proposed(context: ActionContext, proposal: _Proposal) -> PullRequest:
    """
    Make sure that the branch holds the files, and that it is proposed. Idempotent.

    Raises:
        ConflictError: The branch exists and is not ours, or a file is not as `verb` says.
        RefusedError: There is nothing to propose.
    """
    forge, repo, draft = context.services.forge, proposal.repo, proposal.draft
    operation = proposal.operation(context)
    for pull in forge.pulls(repo, state="all", base=draft.base, head=draft.head):
        if pull.operation == operation.id:
            context.log(f"{pull.web_url} is there already")
            return pull
    _write(forge, proposal, operation)
    pull = forge.open_pull(repo, draft, operation)
    context.log(f"{pull.web_url} from {draft.head} into {draft.base}")
    return pull


def _write(forge: Forge, proposal: _Proposal, operation: Operation) -> None:
    repo, draft = proposal.repo, proposal.draft
    head = forge.head(repo, draft.head)
    if head is None:
        base = forge.head(repo, draft.base)
        if base is None:
            raise InvalidInputError("targetBranchName", draft.base, f"is no branch of {repo}")
        changes = _changes(proposal, forge.tree(repo, base))
        if not changes:
            raise RefusedError(f"{repo}: {draft.base} has these files already", hint=_NOTHING)
        forge.ensure_branch(repo, draft.head, base)
    else:
        ours = forge.compare(repo, draft.base, draft.head)
        if any(commit.operation == operation.id for commit in ours):
            return
        if ours and not proposal.updates:
            raise ConflictError(
                f"{repo}: the branch {draft.head} exists and holds other commits",
                hint="choose another branchName, or delete the branch",
            )
        changes = _changes(proposal, forge.tree(repo, CommitSha(head)))
    forge.write(repo, changes, operation, branch=draft.head)


_NOTHING = "change the form's values, or set createWhenEmpty: false where that is an input"


def _changes(proposal: _Proposal, tree: _Tree) -> list[FileChange]:
    """
    Return what differs from a tree.

    Raises:
        ConflictError: A file is there that has to be new, or lacks that has to be changed.
    """
    changes = []
    for path, data in sorted(proposal.files.items()):
        sha = tree.get(path)
        if data is None:
            changes += [] if sha is None else [FileChange(path, None, sha)]
            continue
        wrong = {"create": sha is not None, "update": sha is None}
        if wrong.get(proposal.verb):
            there = "exists already" if sha else "does not exist"
            raise ConflictError(
                f"{proposal.repo}: {path} {there}, and commitAction is {proposal.verb}",
                hint="write commitAction: auto",
            )
        if sha is None or sha != blob_sha(data, sha):
            changes.append(FileChange(path, data, sha, path in proposal.executable))
    return changes


def _below(folder: str | None, path: PurePosixPath) -> PurePosixPath:
    return check_path((folder or ".").removeprefix("./") or ".", origin="targetPath") / path


def _draft(context: ActionContext, inputs: Inputs, repo: RepoId) -> PullDraft:
    base = inputs.get("targetBranchName") or open_repository(context, repo).default_branch
    if inputs["branchName"] == base:
        raise InvalidInputError(
            "branchName", base, "is the branch to merge into", hint="choose another name"
        )
    return PullDraft(inputs["title"], inputs.get("description", ""), inputs["branchName"], base)


def _github(context: ActionContext, inputs: Inputs) -> Outputs:
    forge = check_kind(context, "publish:github:pull-request", "github")
    refuse_inputs(inputs, ("token", "forceFork", "draft"), _WHY)
    note_unused(context, inputs, _GITHUB_UNUSED)
    repo = repository_of(inputs["repoUrl"], forge)
    open_repository(context, repo)
    target = inputs.get("targetPath")
    sources = workspace_below(context, inputs.get("sourcePath"))
    files: dict[PurePosixPath, bytes | None] = {
        _below(target, path): file.data for path, file in sources.items()
    }
    for text in inputs.get("filesToDelete", ()):
        files[_below(target, check_path(text, origin="filesToDelete"))] = None
    proposal = _Proposal(
        repo,
        _draft(context, inputs, repo),
        files,
        frozenset(_below(target, path) for path in executable_files(context, sources)),
        inputs.get("commitMessage") or inputs["title"],
        updates=inputs.get("update", False),
    )
    try:
        pull = _proposed(context, proposal)
    except RefusedError as error:
        if error.hint != _NOTHING or inputs.get("createWhenEmpty", True):
            raise
        context.log(f"no pull request: {error}")
        return {}
    return {
        "targetBranchName": pull.base,
        "remoteUrl": pull.web_url,
        "pullRequestNumber": pull.number,
    }


def _gitlab(context: ActionContext, inputs: Inputs) -> Outputs:
    forge = check_kind(context, "publish:gitlab:merge-request", "gitlab")
    refuse_inputs(inputs, ("token", "projectid", "autoMerge"), _WHY)
    note_unused(context, inputs, _GITLAB_UNUSED)
    repo = repository_of(inputs["repoUrl"], forge)
    open_repository(context, repo)
    target, verb = inputs.get("targetPath"), inputs.get("commitAction", "auto")
    if verb == "skip":
        raise InvalidInputError("commitAction", verb, "would propose no file", hint="write auto")
    sources = workspace_below(context, inputs.get("sourcePath") or target)
    draft = _draft(context, inputs, repo)
    proposal = _Proposal(
        repo,
        draft,
        {_below(target, p): None if verb == "delete" else f.data for p, f in sources.items()},
        frozenset(_below(target, path) for path in executable_files(context, sources)),
        draft.title,
        verb,
    )
    pull = _proposed(context, proposal)
    full_name = f"{forge.base_url}/{repo}".partition("://")[2].partition("/")[2]
    return {
        "projectid": full_name,
        "projectPath": full_name,
        "targetBranchName": pull.base,
        "mergeRequestUrl": pull.web_url,
    }


_GITHUB_UNUSED = (
    "reviewers",
    "teamReviewers",
    "assignees",
    "gitAuthorName",
    "gitAuthorEmail",
    "forceEmptyGitAuthor",
)
PUBLISH_GITHUB_PULL_REQUEST = TemplateAction(
    "publish:github:pull-request",
    inputs_schema(
        ("repoUrl", "branchName", "title", "description"),
        **dict.fromkeys(
            (
                "repoUrl",
                "branchName",
                "targetBranchName",
                "title",
                "description",
                "sourcePath",
                "targetPath",
                "token",
                "commitMessage",
                "gitAuthorName",
                "gitAuthorEmail",
            ),
            TEXT,
        ),
        **dict.fromkeys(("filesToDelete", "reviewers", "assignees", "teamReviewers"), TEXTS),
        **dict.fromkeys(
            ("draft", "update", "forceFork", "forceEmptyGitAuthor", "createWhenEmpty"), FLAG
        ),
    ),
    _github,
    outputs_schema(targetBranchName=TEXT, remoteUrl=TEXT, pullRequestNumber=NUMBER),
    remote=True,
    check=check_forge,
    ignored=("allowedHosts", "repoVisibility", "targetBranch"),
)

_GITLAB_UNUSED = (
    "removeSourceBranch",
    "assignee",
    "reviewers",
    "assignReviewersFromApprovalRules",
    "labels",
)
PUBLISH_GITLAB_MERGE_REQUEST = TemplateAction(
    "publish:gitlab:merge-request",
    inputs_schema(
        ("repoUrl", "branchName", "title"),
        **dict.fromkeys(
            (
                "repoUrl",
                "branchName",
                "targetBranchName",
                "title",
                "description",
                "sourcePath",
                "targetPath",
                "token",
                "projectid",
                "assignee",
            ),
            TEXT,
        ),
        **dict.fromkeys(
            ("removeSourceBranch", "assignReviewersFromApprovalRules", "autoMerge"), FLAG
        ),
        commitAction={"enum": ["create", "delete", "update", "skip", "auto"]},
        reviewers=TEXTS,
        labels={"anyOf": [TEXT, TEXTS]},
    ),
    _gitlab,
    outputs_schema(projectid=TEXT, projectPath=TEXT, targetBranchName=TEXT, mergeRequestUrl=TEXT),
    remote=True,
    check=check_forge,
)
