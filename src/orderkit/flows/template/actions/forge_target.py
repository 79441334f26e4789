"""
Where a template's step writes on the forge: the repository of ``repoUrl``, and who may be meant.

The platform's own account writes, whoever fills the form in. So a step never writes to the ledger,
to the pack or to an order: these have their own ways in, with their own checks.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from ground.errors import InvalidInputError, RefusedError
from ground.names import RepoId
from orderkit.core.order import order_file
from orderkit.core.platform.forge_kinds import KINDS, ForgeKind
from orderkit.flows.template.actions.action_context import ActionContext, Inputs
from orderkit.ports.forge import Forge, Repository


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
    if repo in services.own_repositories:
        raise InvalidInputError(field, str(repo), "is a repository of the platform itself")
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
