"""
``publish:gitea``, ``publish:github``, ``publish:gitlab``: the workspace becomes a repository.

A step writes into the repository of its ``repoUrl`` (`repository_of`), with the platform's own
account, whoever fills the form in. So a step never writes to the ledger, to the pack or to an
order: these have their own ways in, with their own checks.

Backstage's actions fail on their second run; here `Services.publish` ensures that the repository
holds the files. Author and signature are the platform's, and the requester is a trailer. Kits use
``publish:gitea`` on every forge; the others name the forge that they need. Where the forge's API
cannot make an executable file, executable files are refused.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import parse_qs

from ground.errors import InvalidInputError, RefusedError
from ground.names import MAIN, RepoId
from orderkit.core.order import order_file
from orderkit.core.platform.forge_kinds import KINDS, ForgeKind
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
from orderkit.ports.forge import Forge, Repository
from orderkit.ports.workflows import ReviewRules
from softwaretemplates.render import SkeletonFile, check_path


def repository_of(url: str, forge: Forge) -> RepoId:
    """
    Read ``host?owner=o&repo=r``, and check that the host is the platform's forge.

    The host may be followed by the group that holds the platform; without it, `owner` begins with
    that group, as on the forge itself. Another path after the host means nothing, as in Backstage.

    Raises:
        InvalidInputError: Another host, or owner or repo is missing, or they are not ours.
    """
    address, _, query = url.removeprefix("https://").removeprefix("http://").partition("?")
    host = address.partition("/")[0]
    parameters = {key: values[0].strip("/") for key, values in parse_qs(query).items()}
    forge_host = forge.base_url.partition("://")[2]
    hint = f"write {forge_host}?owner=<team>&repo=<name>"
    if host != forge_host.partition("/")[0]:
        rule = f"is not on this platform's forge, {forge_host}"
        raise InvalidInputError("repoUrl", url, rule, hint=hint)
    if not parameters.get("owner") or not parameters.get("repo"):
        raise InvalidInputError("repoUrl", url, "lacks owner or repo", hint=hint)
    full_name = f"{parameters['owner']}/{parameters['repo']}"
    if address.rstrip("/") == forge_host:
        return RepoId(parameters["owner"], parameters["repo"])
    repo = forge.repository_named(full_name)
    if repo is None:
        raise InvalidInputError("repoUrl", url, "is outside of this platform's group", hint=hint)
    return repo


def check_forge(context: ActionContext, inputs: Inputs) -> None:
    """Check the host of ``repoUrl``, for dry runs with a platform."""
    if context.platform is not None:
        repository_of(inputs["repoUrl"], context.platform.forge)


def check_kind(context: ActionContext, action: str, kind: ForgeKind) -> Forge:
    """
    Return the platform's forge if it is the one that an action names.

    Raises:
        RefusedError: It is another kind; Backstage finds no integration then.
    """
    forge = context.services.forge
    if forge.capabilities.kind != kind:
        raise RefusedError(
            f"{action}: this platform's forge is {forge.capabilities.title}, not"
            f" {KINDS[kind].title}",
            hint=f"use an action for {forge.capabilities.title}, such as"
            f" publish:{forge.capabilities.kind}",
        )
    return forge


def open_repository(context: ActionContext, repo: RepoId, field: str = "repoUrl") -> Repository:
    """
    Return a repository to which a step may add a branch, a webhook or a run.

    Raises:
        InvalidInputError: It does not exist, or it is the ledger, the pack or an order.
    """
    services = context.services
    _refuse_own(context, repo, field)
    found = services.forge.repo(repo)
    if found is None:
        raise InvalidInputError(
            field,
            str(repo),
            "does not exist on the forge, or is hidden from Orderkit",
            hint="publish it first, or check the name",
        )
    if services.forge.read(repo, order_file.PATH, found.default_branch) is not None:
        raise InvalidInputError(
            field,
            str(repo),
            "is an order's repository",
            hint=f"change the order with 'orderkit change {repo.name} FIELD=VALUE'",
        )
    return found


def _refuse_own(context: ActionContext, repo: RepoId, field: str) -> None:
    own = {str(repository).lower() for repository in context.services.own_repositories}
    if str(repo).lower() in own:  # forges ignore case
        raise InvalidInputError(field, str(repo), "is a repository of the platform itself")


def refuse_inputs(inputs: Inputs, unsupported: tuple[str, ...], why: str) -> None:
    """
    Refuse inputs of the real action whose effect would be missed.

    Raises:
        InvalidInputError: One of them asks for something.
    """
    for name in unsupported:
        if inputs.get(name):
            shown = "..." if name in ("token", "secrets") else inputs[name]
            raise InvalidInputError(name, shown, f"is not supported: {why}", hint="leave it out")


def note_unused(context: ActionContext, inputs: Inputs, names: tuple[str, ...]) -> None:
    """Name in the log the inputs of the real action that change nothing here."""
    unused = [name for name in names if name in inputs]
    if unused:
        context.log(f"not used: {', '.join(unused)}")


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
    _refuse_own(context, repo, "repoUrl")
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
