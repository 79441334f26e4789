"""
Publish an order's repository: the interpreter's ``publish:*``, with *ensure* semantics.

Backstage's own action dies on a second run ("409 Conflict", measured). Here a repository that
already holds the same order is the order; one that holds another order is a clear error. The
XR is checked against the XRD before the repository is even created.
"""

from __future__ import annotations

import hashlib
import json
import shlex

from ground.errors import AlreadyOrderedError, ConflictError
from ground.names import CommitSha, blob_sha
from orderkit.core.order import order_file
from orderkit.flows.order.registration_check import archived
from orderkit.flows.template.actions.action_context import PublishRequest
from orderkit.ports.forge import FileChange, Forge, Operation, Repository, agent_notes

_HISTORY = 200


def operation(request: PublishRequest) -> Operation:
    """Name the write: the same files for the same repository are the same operation."""
    digest = hashlib.sha256(str(request.repo).encode())
    for path in sorted(request.files):
        mode = b"\0+x" if path in request.executable else b""
        digest.update(b"\0" + str(path).encode() + mode + b"\0" + request.files[path])
    return Operation(
        f"publish-{digest.hexdigest()[:20]}",
        request.requester,
        request.message,
        request.proof,
        agent_notes(request.agent),
    )


def publish(forge: Forge, request: PublishRequest) -> CommitSha:
    """
    Make sure the repository holds this order; return its head. Idempotent.

    Raises:
        AlreadyOrderedError: It holds something else, or was archived at its end.
        NotFoundError: The organisation does not exist.
        ConflictError: Others wrote in every round.
    """
    repository = forge.ensure_repo(
        request.repo, description=request.description, private=request.private, may_squash=False
    )
    if repository.archived:
        raise archived(request.repo)
    head = forge.head(request.repo)
    if head is None:
        return _first_commit(forge, request)
    return _same_order(forge, repository, request, head)


def _first_commit(forge: Forge, request: PublishRequest) -> CommitSha:
    try:
        return forge.write(request.repo, _new_files(request), operation(request)).commit
    except ConflictError:
        # Somebody placed an order of this name at the same moment: ours or another?
        head = forge.head(request.repo)
        repository = forge.repo(request.repo)
        if head is None or repository is None:
            raise
        return _same_order(forge, repository, request, head)


def _new_files(request: PublishRequest) -> list[FileChange]:
    return [
        FileChange(path, request.files[path], None, path in request.executable)
        for path in sorted(request.files)
    ]


def _same_order(
    forge: Forge, repository: Repository, request: PublishRequest, head: CommitSha
) -> CommitSha:
    revision = forge.read(request.repo, order_file.PATH, head)
    ours = request.files.get(order_file.PATH)
    if revision is None or ours is None:
        raise AlreadyOrderedError(
            f"{request.repo} exists and is not an order of ours",
            hint=f"look at {repository.web_url}, or order under another name",
        )
    old = order_file.parse(revision.data, name=f"{request.repo}/{order_file.PATH}")
    new = order_file.parse(ours, name=str(order_file.PATH))
    if not old.same_order(new):
        raise AlreadyOrderedError(
            f"{request.repo.name} was ordered by {old.requester} with other values: "
            f"{_differences(old, new)}",
            hint=_change_command(old, new) or f"see 'orderkit status {old.order}'",
        )
    return head


def _differences(old: order_file.OrderFile, new: order_file.OrderFile) -> str:
    keys = sorted({*old.ordered, *new.ordered})
    parts = [
        f"{key} was {old.ordered.get(key)!r}, asked for {new.ordered.get(key)!r}"
        for key in keys
        if old.ordered.get(key) != new.ordered.get(key)
    ]
    if old.kit != new.kit or old.team != new.team:
        parts.append(f"kit {old.kit} of team {old.team}")
    return "; ".join(parts)


def _change_command(old: order_file.OrderFile, new: order_file.OrderFile) -> str:
    """Return the command that changes the order; empty if another one was meant."""
    if (old.kit, old.team) != (new.kit, new.team):
        return ""
    edits = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in sorted(new.ordered.items())
        if old.ordered.get(key) != value
    ]
    return shlex.join(("orderkit", "change", old.order, *edits)) if edits else ""


def publish_files(forge: Forge, request: PublishRequest) -> CommitSha:
    """
    Make sure a repository was made from these files; return that commit. Idempotent.

    Raises:
        AlreadyOrderedError: It was made from something else.
    """
    repository = forge.ensure_repo(
        request.repo, description=request.description, private=request.private
    )
    if repository.archived:
        raise archived(request.repo)
    write = operation(request)
    branch = request.branch
    if forge.head(request.repo, branch) is None:
        return forge.write(request.repo, _new_files(request), write, branch=branch).commit
    for commit in forge.commits(request.repo, ref=branch, limit=_HISTORY):
        if commit.operation == write.id and _holds(forge, request, commit.id):
            return commit.id
    raise AlreadyOrderedError(
        f"{request.repo} exists and was not made from these files",
        hint=f"look at {repository.web_url}, or publish under another name; Backstage would "
        "fail with '409 Conflict'",
    )


def _holds(forge: Forge, request: PublishRequest, commit: CommitSha) -> bool:
    """Say whether a commit has exactly these files: anybody can write an operation's id."""
    tree = forge.tree(request.repo, commit)
    return dict(tree) == {
        path: blob_sha(data, tree.get(path, "")) for path, data in request.files.items()
    }
