"""
``publish:gitea``, ``publish:github``, ``publish:gitlab``: the workspace becomes a repository.

Backstage's actions fail on their second run; here `Services.publish` ensures that the repository
holds the files. Author and signature are the platform's, and the requester is a trailer. Kits use
``publish:gitea`` on every forge; the others name the forge that they need. Where the forge's API
cannot make an executable file, executable files are refused.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from ground.errors import InvalidInputError, RefusedError
from ground.names import MAIN, RepoId
from orderkit.core.order import order_file
from orderkit.flows.template.actions.action_context import (
    ANYTHING,
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    PublishRequest,
    Schema,
    TemplateAction,
    inputs_schema,
    is_executable,
    outputs_schema,
)
from orderkit.flows.template.actions.forge_target import (
    check_forge,
    check_kind,
    note_unused,
    refuse_inputs,
    repository_of,
)
from orderkit.ports.workflows import ReviewRules
from softwaretemplates.render import SkeletonFile, check_path

_PRIVATE = ("private", "internal")
_OWN_CREDENTIALS = "Orderkit acts with the platform's own credentials, and grants no others rights"


def workspace_below(
    context: ActionContext, source_path: str | None
) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a folder of the workspace, by their paths in it.

    Raises:
        InvalidInputError: It holds none.
    """
    folder = check_path((source_path or ".").removeprefix("./") or ".", origin="sourcePath")
    inside = {
        path.relative_to(folder): file
        for path, file in context.workspace.items()
        if path.is_relative_to(folder)
    }
    if not inside:
        raise InvalidInputError("sourcePath", str(folder), "holds no file to publish")
    return inside


def executable_files(
    context: ActionContext, files: dict[PurePosixPath, SkeletonFile]
) -> frozenset[PurePosixPath]:
    """
    Return which files are executable.

    Raises:
        RefusedError: One is, and the forge's API would lose that.
    """
    found = sorted(path for path, file in files.items() if is_executable(file))
    if found and not context.services.forge.capabilities.makes_executables:
        raise RefusedError(
            f"{found[0]}: is executable, and the forge's API would publish it without that",
            hint="make it a plain file and run it as 'sh FILE', or publish with git push",
        )
    return frozenset(found)


def _publish(context: ActionContext, inputs: Inputs, *, visibility: str) -> Outputs:
    """Publish the workspace; return the outputs as ``publish:gitea`` has them."""
    branch = inputs.get("defaultBranch", MAIN)
    is_order = context.holds(order_file.PATH)
    if branch != MAIN and (is_order or context.services.forge.capabilities.kind == "gitea"):
        raise InvalidInputError("defaultBranch", branch, f"is not '{MAIN}'")
    repo = repository_of(inputs["repoUrl"], context.services.forge)
    files = workspace_below(context, inputs.get("sourcePath"))
    if visibility == "internal":
        context.log("repoVisibility: internal is made private")
    commit = context.services.publish(
        PublishRequest(
            repo=repo,
            files={path: file.data for path, file in files.items()},
            description=inputs.get("description", ""),
            message=inputs.get("gitCommitMessage", "initial commit"),
            private=visibility in _PRIVATE,
            requester=context.user.ref,
            proof=context.user.proof,
            agent=context.user.agent,
            executable=executable_files(context, files),
            branch=branch,
        )
    )
    context.published.add(repo)
    forge = context.services.forge
    url = f"{forge.base_url}/{repo}"
    context.log(f"{url}.git at {commit[:12]}")
    return {
        "remoteUrl": f"{url}.git",
        "repoContentsUrl": forge.capabilities.pages.folder(url, branch),
        "commitHash": commit,
    }


def _gitea(context: ActionContext, inputs: Inputs) -> Outputs:
    visibility = inputs.get("repoVisibility", "public")
    return _publish(context, inputs, visibility=visibility)


def _github(context: ActionContext, inputs: Inputs) -> Outputs:
    check_kind(context, "publish:github", "github")
    refuse_inputs(inputs, _GITHUB_REFUSED, _OWN_CREDENTIALS)
    note_unused(context, inputs, _GITHUB_UNUSED)
    outputs = _publish(context, inputs, visibility=inputs.get("repoVisibility", "private"))
    if inputs.get("protectDefaultBranch", True):
        _protect(context, inputs, repository_of(inputs["repoUrl"], context.services.forge))
    return {**outputs, "repoContentsUrl": outputs["repoContentsUrl"].rstrip("/")}


def _protect(context: ActionContext, inputs: Inputs, repo: RepoId) -> None:
    """Protect the branch as Backstage does; a plan without protection is only noted, as there."""
    workflows = context.services.forge.workflows
    if workflows is None or context.holds(order_file.PATH):
        return  # an order's branch is protected as its kit says
    branch = inputs.get("defaultBranch", MAIN)
    rules = ReviewRules(
        approvals=int(inputs.get("requiredApprovingReviewCount", 1)),
        checks=tuple(inputs.get("requiredStatusCheckContexts", ())),
        is_up_to_date=inputs.get("requireBranchesToBeUpToDate", True),
        holds_admins=inputs.get("protectEnforceAdmins", True),
        by_code_owners=inputs.get("requireCodeOwnerReviews", False),
        dismisses_stale=inputs.get("dismissStaleReviews", False),
        resolves_conversations=inputs.get("requiredConversationResolution", False),
        after_last_push=inputs.get("requireLastPushApproval", False),
        is_linear=inputs.get("requiredLinearHistory", False),
    )
    try:
        workflows.require_reviews(repo, branch, rules)
    except RefusedError as error:
        context.log(f"{branch} is not protected: {error}")


def _gitlab(context: ActionContext, inputs: Inputs) -> Outputs:
    forge = check_kind(context, "publish:gitlab", "gitlab")
    settings = inputs.get("settings") or {}
    refuse_inputs(inputs, _GITLAB_REFUSED, _OWN_CREDENTIALS)
    if inputs.get("sourcePath") is False:
        raise InvalidInputError("sourcePath", False, "would make an empty project")  # noqa: FBT003
    note_unused(context, inputs, _GITLAB_UNUSED)
    note_unused(context, settings, tuple(settings.keys() - {"description", "visibility"}))
    repo = repository_of(inputs["repoUrl"], forge)
    before = forge.repo(repo)
    if inputs.get("skipExisting") and before is not None and not before.empty:
        folder = forge.capabilities.pages.folder(before.web_url, before.default_branch)
        context.log(f"{repo} exists already")
        return {
            "remoteUrl": before.web_url,
            "repoContentsUrl": folder.rstrip("/"),
            "projectId": before.number,
            "created": False,
        }
    source = inputs.get("sourcePath")
    given = {
        **inputs,
        "description": settings.get("description", ""),
        "sourcePath": source if isinstance(source, str) else None,
    }
    visibility = settings.get("visibility") or inputs.get("repoVisibility", "private")
    outputs = _publish(context, given, visibility=visibility)
    made = forge.repo(repo)
    return {
        "remoteUrl": outputs["remoteUrl"].removesuffix(".git"),
        "repoContentsUrl": outputs["repoContentsUrl"].rstrip("/"),
        "commitHash": outputs["commitHash"],
        "projectId": made.number if made is not None else 0,
        "created": before is None,
    }


_COMMON: dict[str, Schema] = {
    "repoUrl": TEXT,
    "defaultBranch": TEXT,
    "gitCommitMessage": TEXT,
    "gitAuthorName": TEXT,
    "gitAuthorEmail": TEXT,
}
_ADDRESSES: dict[str, Schema] = {"remoteUrl": TEXT, "repoContentsUrl": TEXT, "commitHash": TEXT}
_VISIBILITY: Schema = {"enum": ["private", "public", "internal"]}

PUBLISH_GITEA = TemplateAction(
    "publish:gitea",
    inputs_schema(
        ("repoUrl", "description"),
        **_COMMON,
        description=TEXT,
        repoVisibility={"enum": ["private", "public"]},
        sourcePath=TEXT,
        signCommit=FLAG,
    ),
    _gitea,
    outputs_schema(**_ADDRESSES),
    remote=True,
    check=check_forge,
)

_GITHUB_REFUSED = (
    "token",
    "access",
    "collaborators",
    "restrictions",
    "bypassPullRequestAllowances",
    "repoVariables",
    "secrets",
    "oidcCustomization",
    "customProperties",
    "requiredCommitSigning",
)
_GITHUB_SETTINGS = (
    "allowMergeCommit",
    "allowSquashMerge",
    "allowRebaseMerge",
    "allowAutoMerge",
    "allowUpdateBranch",
    "deleteBranchOnMerge",
    "hasIssues",
    "hasProjects",
    "hasWiki",
    "subscribe",
)
_GITHUB_UNUSED = (
    *_GITHUB_SETTINGS,
    "homepage",
    "topics",
    "squashMergeCommitTitle",
    "squashMergeCommitMessage",
)
_GITHUB_PROTECTION = (
    "protectDefaultBranch",
    "protectEnforceAdmins",
    "requireBranchesToBeUpToDate",
    "requireCodeOwnerReviews",
    "dismissStaleReviews",
    "requiredConversationResolution",
    "requireLastPushApproval",
    "requiredCommitSigning",
    "requiredLinearHistory",
)
PUBLISH_GITHUB = TemplateAction(
    "publish:github",
    inputs_schema(
        ("repoUrl",),
        **_COMMON,
        **dict.fromkeys((*_GITHUB_SETTINGS, *_GITHUB_PROTECTION), FLAG),
        description=TEXT,
        homepage=TEXT,
        access=TEXT,
        token=TEXT,
        sourcePath=TEXT,
        repoVisibility=_VISIBILITY,
        topics=TEXTS,
        requiredApprovingReviewCount=NUMBER,
        requiredStatusCheckContexts=TEXTS,
        squashMergeCommitTitle=TEXT,
        squashMergeCommitMessage=TEXT,
        collaborators={"type": "array", "items": MAP},
        restrictions=MAP,
        bypassPullRequestAllowances=MAP,
        repoVariables=MAP,
        secrets=MAP,
        oidcCustomization=MAP,
        customProperties=MAP,
    ),
    _github,
    outputs_schema(**_ADDRESSES),
    remote=True,
    check=check_forge,
    ignored=("allowedHosts", "title"),
)

_GITLAB_REFUSED = ("token", "setUserAsOwner", "ownerUsername", "branches", "projectVariables")
_GITLAB_UNUSED = ("topics", "signCommit")
PUBLISH_GITLAB = TemplateAction(
    "publish:gitlab",
    inputs_schema(
        ("repoUrl",),
        **_COMMON,
        repoVisibility=_VISIBILITY,
        sourcePath={"type": ["string", "boolean"]},
        skipExisting=FLAG,
        signCommit=FLAG,
        setUserAsOwner=FLAG,
        ownerUsername=TEXT,
        token=TEXT,
        topics=TEXTS,
        settings=MAP,
        branches={"type": "array", "items": ANYTHING},
        projectVariables={"type": "array", "items": ANYTHING},
    ),
    _gitlab,
    outputs_schema(**_ADDRESSES, projectId=NUMBER, created=FLAG),
    remote=True,
    check=check_forge,
    ignored=("allowedHosts", "description", "title"),
)
