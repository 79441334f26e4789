"""
``fetch:template`` and ``fetch:plain``: bring files into the workspace, rendered or as they are.

A relative ``url`` is a folder beside template.yaml (``../`` is refused, as Backstage does); an
absolute one is a folder in a repository of the platform's forge. File modes are not known
here, so every file is a plain one. ``token`` is ignored, as Backstage's Gitea reader does.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import InvalidInputError
from orderkit.core.names import RepoId
from orderkit.core.render import (
    BACKSTAGE,
    Delimiters,
    SkeletonFile,
    TreeOptions,
    check_path,
    check_tree,
    render_tree,
)
from orderkit.flows.actions.context import (
    FLAG,
    MAP,
    TEXT,
    TEXTS,
    Action,
    ActionContext,
    Inputs,
    Outputs,
    inputs_schema,
)

_SOURCE_URL = re.compile(
    r"(?P<base>https?://.+)/(?P<owner>[^/]+)/(?P<repo>[^/]+)/src/(branch|commit|tag)/"
    r"(?P<ref>[^/]+)(?:/(?P<path>.*?))?/?\Z"
)


def _template(context: ActionContext, inputs: Inputs) -> Outputs:
    if inputs.get("cookiecutterCompat"):
        raise InvalidInputError(
            "cookiecutterCompat",
            True,  # noqa: FBT003 - the value shown in the message
            "is not supported",
            hint="write templates with ${{ values.x }}",
        )
    extension = inputs.get("templateFileExtension") or ""
    literal = inputs.get("copyWithoutTemplating") or []
    if extension and literal:
        raise InvalidInputError(
            "templateFileExtension", extension, "cannot stand beside copyWithoutTemplating"
        )
    options = TreeOptions(
        copy_without_templating=tuple(literal),
        template_file_extension=".njk" if extension is True else extension,
        delimiters=Delimiters(
            BACKSTAGE.start,
            BACKSTAGE.end,
            trim_blocks=bool(inputs.get("trimBlocks")),
            lstrip_blocks=bool(inputs.get("lstripBlocks")),
        ),
    )
    rendered = render_tree(_source(context, inputs["url"]), inputs.get("values") or {}, options)
    _place(context, rendered, inputs, replace=bool(inputs.get("replace")))
    return {}


def _plain(context: ActionContext, inputs: Inputs) -> Outputs:
    files = _source(context, inputs["url"])
    check_tree(files)
    _place(context, files, inputs, replace=True)
    return {}


def _place(
    context: ActionContext,
    files: dict[PurePosixPath, SkeletonFile],
    inputs: Inputs,
    *,
    replace: bool,
) -> None:
    """Put files below ``targetPath``; what an earlier step wrote wins unless `replace`."""
    target = inputs.get("targetPath", ".").removeprefix("./") or "."
    folder = check_path(target, origin="targetPath")
    for path, file in files.items():
        place = folder / path
        if replace or place not in context.workspace:
            context.workspace[place] = file
    context.log(f"{len(files)} files in {folder}")


def _source(context: ActionContext, url: str) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a folder by paths relative to it.

    Raises:
        InvalidInputError: There is no such folder, or it is not on the platform's forge.
    """
    found = _from_forge(context, url) if "://" in url else _beside(context, url)
    if not found:
        raise InvalidInputError("url", url, "holds no file", hint="check the folder's name")
    return {path: SkeletonFile(data) for path, data in found.items()}


def _beside(context: ActionContext, url: str) -> dict[PurePosixPath, bytes]:
    folder = PurePosixPath(url)
    if ".." in folder.parts or folder.is_absolute():
        raise InvalidInputError(
            "url",
            url,
            "leaves the folder of template.yaml",
            hint="Backstage refuses it too: keep the skeleton beside template.yaml",
        )
    return {
        path.relative_to(folder): data
        for path, data in context.template_files.items()
        if path.is_relative_to(folder)
    }


def _from_forge(context: ActionContext, url: str) -> dict[PurePosixPath, bytes]:
    forge = context.services.forge
    found = _SOURCE_URL.match(url)
    if found is None or found["base"] != forge.base_url:
        raise InvalidInputError(
            "url",
            url,
            "is no folder on this platform's forge",
            hint=f"the form is {forge.base_url}/<owner>/<repo>/src/branch/<branch>/<folder>",
        )
    repo, folder = RepoId(found["owner"], found["repo"]), PurePosixPath(found["path"] or ".")
    commit = forge.head(repo, found["ref"])
    if commit is None:
        raise InvalidInputError("url", url, "names a repository or branch that does not exist")
    wanted = [path for path in forge.tree(repo, commit) if path.is_relative_to(folder)]
    read = {path: forge.read(repo, path, commit) for path in wanted}
    return {path.relative_to(folder): revision.data for path, revision in read.items() if revision}


_FETCH: dict[str, Any] = {"url": TEXT, "targetPath": TEXT, "token": TEXT}

FETCH_TEMPLATE = Action(
    "fetch:template",
    inputs_schema(
        ("url",),
        **_FETCH,
        values=MAP,
        copyWithoutTemplating=TEXTS,
        cookiecutterCompat=FLAG,
        templateFileExtension={"type": ["string", "boolean"]},
        replace=FLAG,
        trimBlocks=FLAG,
        lstripBlocks=FLAG,
    ),
    _template,
)
FETCH_PLAIN = Action("fetch:plain", inputs_schema(("url",), **_FETCH), _plain)
