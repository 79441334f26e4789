"""
Endpoints of branches and comparison: list, show, create, rename, delete, compare.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import pygit2
from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitmerge, gitread, gitwrite, guards
from orderkit.adapters.embedded.forge.api import access, fields, guarding
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.shapes import Json, branch_shape, commit_shape
from orderkit.adapters.embedded.forge.protections import Rule
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.core.names import CommitSha

IS_EMPTY = "Git Repository is empty."


def index(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/branches; an empty repository has ``null`` of them."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    names = gitread.branch_names(git)
    if not names:
        return json_answer(None)
    return paged(call, names, lambda name: _shape(call, repo, git, name))


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/branches/{branch}."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    return json_answer(_shape(call, repo, git, call.param("branch")))


def _shape(call: Call, repo: RepoRow, git: pygit2.Repository, name: str) -> Json:
    tip = gitread.branch_commit(git, name)
    if tip is None:
        raise ApiError(404)
    right = access.right_on(call.forge.accounts, call.actor, repo)
    shape = branch_shape(repo, name, tip, call.forge.base_url, right)
    rule = guarding.rule_for(call.forge, repo, name)
    return shape | _protection(call, repo, rule) if rule is not None else shape


def _protection(call: Call, repo: RepoRow, rule: Rule) -> Json:
    account, contexts = call.actor.account, rule.settings.status_check_contexts
    doer = guarding.doer_on(call.forge, repo, account) if account is not None else None
    return {
        "protected": True,
        "required_approvals": rule.settings.required_approvals,
        "enable_status_check": rule.settings.enable_status_check,
        "status_check_contexts": list(contexts) if contexts is not None else None,
        "user_can_push": doer is not None and guards.may_push(rule, doer),
        "user_can_merge": doer is not None and guards.may_merge(rule, doer),
        "effective_branch_protection_name": rule.name if _right(call, repo) >= Right.ADMIN else "",
    }


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/branches; an unknown ``old_ref_name`` is 500 in Gitea."""
    repo, body = access.writable(call), call.json()
    name = _new_name(body, "new_branch_name", "BranchName")
    git = _filled(repo)
    if git.references.get(gitread.TAGS + name) is not None:
        raise ApiError(409, "The branch with the same tag already exists.")
    start = _start(git, repo, body)
    guarding.refuse_new_branch(call.forge, repo, call.user, name, (), status=500)
    try:
        gitwrite.create_branch(repo.path, name, str(start.id))
    except gitwrite.WriteError as error:
        raise ApiError(409, _CLASHES.get(error.kind, str(error))) from error
    call.forge.pushed(repo.repo, name, CommitSha(str(start.id)), by=call.user)
    return json_answer(_shape(call, repo, git, name), 201)


_CLASHES: dict[str, str] = {
    "exists": "The branch already exists.",
    "prefix": "The branch with the same name already exists.",
}


def _start(git: pygit2.Repository, repo: RepoRow, body: Json) -> pygit2.Commit:
    ref, branch = body.get("old_ref_name"), body.get("old_branch_name")
    if not ref and branch:
        found = gitread.branch_commit(git, str(branch))
        if found is None:
            raise ApiError(404, "The old branch does not exist")
        return found
    wanted = str(ref or repo.default_branch)
    found = gitread.resolve(git, wanted) or gitread.by_short_id(git, wanted)
    if found is None:
        raise ApiError(500, f"object does not exist [id: {wanted}, rel_path: ]")
    return found


def _new_name(body: Json, key: str, field: str) -> str:
    name = body.get(key)
    if not isinstance(name, str) or not name:
        raise ApiError(422, f"[{field}]: Required")
    if not gitread.is_branch_name(name):
        raise ApiError(422, f"[{field}]: GitRefName")
    return name


def _filled(repo: RepoRow) -> pygit2.Repository:
    git = gitread.open_repository(repo.path)
    if not gitread.branch_names(git):
        raise ApiError(404, IS_EMPTY)
    return git


def update(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/branches/{branch}: move it, backwards only by force (1.26)."""
    if not call.forge.behaviour.branches_are_updated:
        raise ApiError(405)
    repo, name, body = access.writable(call), call.param("branch"), call.json()
    wanted = fields.required_text(body, "new_commit_id", "NewCommitID")
    git = _filled(repo)
    tip = gitread.branch_commit(git, name)
    if tip is None:
        raise ApiError(404, errors=[f"branch does not exist [repo_id: {repo.id} name: {name}]"])
    expected, old = fields.text(body, "old_commit_id"), str(tip.id)
    if expected not in ("", old):
        raise ApiError(422, f"branch commit does not match [expected: {expected}, given: {old}]")
    found = gitread.resolve(git, wanted) or gitread.by_short_id(git, wanted)
    if found is None:
        raise ApiError(500, f"object does not exist [id: {wanted}, rel_path: ]")
    new = str(found.id)
    forces = not gitmerge.is_ancestor(git, old, new)
    if forces and fields.optional_flag(body, "force") is not True:
        raise ApiError(422, f"Force push {name} need a confirm force parameter")
    guarding.refuse_move(call.forge, repo, call.user, name, (old, new))
    try:
        gitwrite.move_branch(repo.path, name, old, new)
    except gitwrite.WriteError as error:
        raise ApiError(500, str(error)) from error
    if new != old:
        call.forge.pushed(repo.repo, name, CommitSha(new), by=call.user, before=old)
    return empty_answer()


def rename(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/branches/{branch}; pull requests follow it."""
    repo, old = access.writable(call), call.param("branch")
    new = _new_name(call.json(), "name", "Name")
    git = _filled(repo)
    if new == old or gitread.branch_commit(git, new) is not None:
        raise ApiError(
            422,
            "Cannot rename a branch using the same name or rename to a branch that already exists.",
        )
    tip = gitread.branch_commit(git, old)
    if tip is None:
        raise ApiError(404, "Branch doesn't exist.")
    _refuse_protected_rename(call, repo, old, new)
    try:
        gitwrite.create_branch(repo.path, new, str(tip.id))
        if old == repo.default_branch:
            call.forge.registry.update(repo, default_branch=new)
        call.forge.pulls.branch_renamed(repo.id, old, new)
        call.forge.protections.rename(repo.id, old, new)
        gitwrite.delete_branch(repo.path, old, expected=str(tip.id))
    except gitwrite.WriteError as error:
        raise ApiError(500, str(error)) from error
    call.forge.pushed(repo.repo, old, None, by=call.user, before=str(tip.id))
    call.forge.pushed(repo.repo, new, CommitSha(str(tip.id)), by=call.user)
    return empty_answer()


def _refuse_protected_rename(call: Call, repo: RepoRow, old: str, new: str) -> None:
    guarded = old == repo.default_branch or call.forge.protections.find(repo.id, old)
    if guarded and _right(call, repo) < Right.ADMIN:
        raise ApiError(
            403, "User must be a repo or site admin to rename default or protected branches."
        )
    rule = guarding.rule_for(call.forge, repo, new)
    doer = guarding.doer_on(call.forge, repo, call.user)
    if rule is not None and not guards.may_push(rule, doer):
        raise ApiError(403, "Failed to rename branch due to branch protection rules.")


def _right(call: Call, repo: RepoRow) -> Right:
    return access.right_on(call.forge.accounts, call.actor, repo)


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/branches/{branch}; 403 for the default branch."""
    repo, name = access.writable(call), call.param("branch")
    _filled(repo)
    if name == repo.default_branch:
        raise ApiError(403, "can not delete default or pull request target branch")
    if guarding.rule_for(call.forge, repo, name) is not None:
        raise ApiError(403, "branch protected")
    before = gitread.heads(repo.path).get(name, "")
    try:
        if not gitwrite.delete_branch(repo.path, name):
            raise ApiError(404, errors=[f"branch does not exist [name: {name}]"])
    except gitwrite.WriteError as error:
        raise ApiError(403, str(error)) from error
    call.forge.pushed(repo.repo, name, None, by=call.user, before=before)
    return empty_answer()


def compare(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/compare/{base}...{head}: the commits head has more."""
    repo, spec = access.repository(call), call.param("spec")
    git = gitread.open_repository(repo.path)
    base_name, dots, head_name = spec.partition("...")
    if not dots:
        base_name, dots, head_name = spec.partition("..")
    if not dots:
        base_name, head_name = repo.default_branch, spec
    head_name = _own_branch(repo, head_name)
    base, head = (
        gitread.resolve(git, name or repo.default_branch) or gitread.by_short_id(git, name)
        for name in (base_name, head_name)
    )
    if base is None or head is None:
        raise ApiError(404)
    if not gitmerge.merge_base_of(git, str(base.id), str(head.id)):
        raise ApiError(500, f"MergeBase: get merge-base of {base.id} and {head.id} failed")
    found = gitmerge.commits_between(git, str(base.id), str(head.id))
    shapes = [commit_shape(repo, each, call.forge.base_url) for each in found]
    return json_answer({"total_commits": len(found), "commits": shapes})


def _own_branch(repo: RepoRow, name: str) -> str:
    """Return the branch of ``owner:branch`` or ``owner/name:branch`` if that is this repository."""
    where, colon, branch = name.rpartition(":")
    if not colon:
        return name
    if where.lower() not in (repo.repo.owner.lower(), repo.full_name.lower()):
        raise ApiError(404)
    return branch
