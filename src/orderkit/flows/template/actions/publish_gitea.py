"""
``publish:gitea``: the workspace becomes a repository on the platform's forge.

Backstage's action fails on its second run; here `Services.publish` ensures that the repository
holds the files. ``gitAuthorName``, ``gitAuthorEmail`` and ``signCommit`` are
accepted and ignored: the author is the platform's account, and the requester is a trailer. The
forge's API cannot set the executable mode of a new file, so executable files are refused.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from ground.errors import InvalidInputError, RefusedError
from ground.names import RepoId
from orderkit.flows.template.actions.action_context import (
    FLAG,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    PublishRequest,
    TemplateAction,
    inputs_schema,
    is_executable,
    outputs_schema,
)
from softwaretemplates.render import check_path

BRANCH = "main"


def repository_of(url: str, *, base_url: str) -> RepoId:
    """
    Read ``host?owner=o&repo=r``, and check that the host is the platform's forge.

    Raises:
        InvalidInputError: Another host, or owner or repo is missing.
    """
    host, _, query = url.partition("?")
    parameters = {key: values[0] for key, values in parse_qs(query).items()}
    forge_host = base_url.partition("://")[2]
    if host not in {forge_host, forge_host.partition("/")[0]}:
        raise InvalidInputError(
            "repoUrl",
            url,
            f"is not on this platform's forge, {forge_host}",
            hint=f"write {forge_host}?owner=<team>&repo=<name>",
        )
    if not parameters.get("owner") or not parameters.get("repo"):
        raise InvalidInputError(
            "repoUrl",
            url,
            "lacks owner or repo",
            hint=f"write {forge_host}?owner=<team>&repo=<name>",
        )
    return RepoId(parameters["owner"], parameters["repo"])


def _check_forge(context: ActionContext, inputs: Inputs) -> None:
    if context.platform is not None:
        repository_of(inputs["repoUrl"], base_url=context.platform.forge.base_url)


def _publish(context: ActionContext, inputs: Inputs) -> Outputs:
    branch = inputs.get("defaultBranch", BRANCH)
    if branch != BRANCH:
        raise InvalidInputError("defaultBranch", branch, f"is not '{BRANCH}'")
    folder = check_path(
        inputs.get("sourcePath", ".").removeprefix("./") or ".", origin="sourcePath"
    )
    inside = {
        path.relative_to(folder): file
        for path, file in context.workspace.items()
        if path.is_relative_to(folder)
    }
    executable = sorted(str(path) for path, file in inside.items() if is_executable(file))
    if executable:
        raise RefusedError(
            f"{executable[0]}: is executable, and the forge's API would publish it without that",
            hint="make it a plain file and run it as 'sh FILE', or publish with git push",
        )
    files = {path: file.data for path, file in inside.items()}
    if not files:
        raise InvalidInputError("sourcePath", str(folder), "holds no file to publish")
    published = context.services.publish(
        PublishRequest(
            repo=repository_of(inputs["repoUrl"], base_url=context.services.forge.base_url),
            files=files,
            description=inputs["description"],
            message=inputs.get("gitCommitMessage", "initial commit"),
            private=inputs.get("repoVisibility", "public") == "private",
            requester=context.user.ref,
            proof=context.user.proof,
        )
    )
    context.log(f"{published.clone_url} at {published.commit[:12]}")
    return {
        "remoteUrl": published.clone_url,
        "repoContentsUrl": published.contents_url,
        "commitHash": published.commit,
    }


PUBLISH_GITEA = TemplateAction(
    "publish:gitea",
    inputs_schema(
        ("repoUrl", "description"),
        repoUrl=TEXT,
        description=TEXT,
        defaultBranch=TEXT,
        repoVisibility={"enum": ["private", "public"]},
        gitCommitMessage=TEXT,
        gitAuthorName=TEXT,
        gitAuthorEmail=TEXT,
        sourcePath=TEXT,
        signCommit=FLAG,
    ),
    _publish,
    outputs_schema(remoteUrl=TEXT, repoContentsUrl=TEXT, commitHash=TEXT),
    remote=True,
    check=_check_forge,
)
