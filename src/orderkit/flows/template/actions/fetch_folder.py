"""
``fetch:template`` and ``fetch:plain``: copy a folder into the workspace, rendered or unchanged.

File modes are kept. ``token`` is ignored, as in Backstage's Gitea reader. Files from outside the
platform's own pack are rendered in a child with limits (`ConfinedRenderer`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
)
from orderkit.flows.template.actions.file_sources import FetchedPath, source_of
from softwaretemplates.render import (
    BACKSTAGE,
    COOKIECUTTER,
    SkeletonFile,
    TreeOptions,
    check_path,
    check_tree,
    render_tree,
)
from softwaretemplates.render.tree import dotted


def _template(context: ActionContext, inputs: Inputs) -> Outputs:
    options = tree_options(inputs, context)
    source, values = source_of(context, inputs["url"]), inputs.get("values") or {}
    rendered = _rendered(context, source, values, options)
    _place(context, rendered, inputs, overwrite=bool(inputs.get("replace")))
    return {}


def _rendered(
    context: ActionContext,
    source: FetchedPath,
    values: Mapping[str, Any],
    options: TreeOptions,
) -> Mapping[PurePosixPath, SkeletonFile]:
    """Render trusted files in this process, all others in a child with limits."""
    if source.folder.trusted:
        return render_tree(source.tree(), values, options)
    files: dict[PurePosixPath, SkeletonFile] = {}
    for outcome in context.confined(source.tree(), values, options):
        if outcome.error is not None:
            raise outcome.error
        if outcome.target is not None and outcome.file is not None:
            files[outcome.target] = outcome.file
    return files


def tree_options(inputs: Inputs, context: ActionContext) -> TreeOptions:
    """
    Read the inputs that say how to render.

    Raises:
        InvalidInputError: Two of them exclude each other.
    """
    extension = inputs.get("templateFileExtension") or ""
    compat = bool(inputs.get("cookiecutterCompat"))
    if extension and ("copyWithoutTemplating" in inputs or compat):
        other = "cookiecutterCompat" if compat else "copyWithoutTemplating"
        raise InvalidInputError("templateFileExtension", extension, f"cannot stand beside {other}")
    extension = dotted(".njk" if extension is True else extension)
    return TreeOptions(
        copy_without_templating=tuple(inputs.get("copyWithoutTemplating") or ()),
        template_file_extension=extension,
        delimiters=replace(
            COOKIECUTTER if compat else BACKSTAGE,
            trim_blocks=bool(inputs.get("trimBlocks")),
            lstrip_blocks=bool(inputs.get("lstripBlocks")),
        ),
        size_limit=context.size_limit,
        is_strict=context.is_strict,
    )


def _plain(context: ActionContext, inputs: Inputs) -> Outputs:
    files = source_of(context, inputs["url"]).tree()
    check_tree(files)
    _place(context, files, inputs, overwrite=True)
    return {}


def _place(
    context: ActionContext,
    files: Mapping[PurePosixPath, SkeletonFile],
    inputs: Inputs,
    *,
    overwrite: bool,
) -> None:
    """Put files below ``targetPath``; files of earlier steps are kept unless `overwrite`."""
    folder = target_path(inputs.get("targetPath", "."))
    for path, file in files.items():
        target = folder / path
        if overwrite or target not in context.workspace:
            context.put(target, file)
    context.check_size()
    context.log(f"{len(files)} files in {folder}")


def target_path(target: str) -> PurePosixPath:
    """
    Return a path of the workspace.

    Raises:
        RefusedError: It leaves the workspace, or is not a valid file path.
    """
    return check_path(target.removeprefix("./").rstrip("/") or ".", origin="targetPath")


def written(inputs: Inputs) -> list[object]:
    """Return where an action puts files: ``targetPath``, or the whole workspace."""
    return [inputs.get("targetPath", ".")]


_FETCH: dict[str, Any] = {"url": TEXT, "targetPath": TEXT, "token": TEXT}

FETCH_TEMPLATE = TemplateAction(
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
    dry_run=True,
    renamed={"copyWithoutRender": "copyWithoutTemplating"},
    writes=written,
)
FETCH_PLAIN = TemplateAction(
    "fetch:plain", inputs_schema(("url",), **_FETCH), _plain, dry_run=True, writes=written
)
