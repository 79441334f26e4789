"""
``fetch:template:file`` and ``fetch:plain:file``: bring one file into the workspace.

As in Backstage, the path is not rendered, binary files are not detected, and the mode is lost: an
executable source is refused, so that the loss is noticed. Text that is not UTF-8, which Backstage
would corrupt while rendering, is refused too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, RefusedError
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    is_executable,
)
from orderkit.flows.template.actions.fetch_folder import target_path, tree_options, written
from orderkit.flows.template.actions.file_sources import FetchedPath, source_of
from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.render import (
    RenderError,
    SkeletonFile,
    TreeOptions,
    compile_template,
)
from softwaretemplates.render.tree import PLAIN_MODE, check_size, is_template


def _template(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs["targetPath"])
    if target in context.workspace and not inputs.get("replace"):
        context.log(f"{target} exists already and is not replaced")
        return {}
    source = source_of(context, inputs["url"])
    confined = None if source.folder.trusted else context.confined
    options = tree_options(inputs, context)
    context.put(target, SkeletonFile(_rendered(_file(source).data, inputs, options, confined)))
    context.check_size()
    context.log(f"wrote {target}")
    return {}


def _rendered(
    data: bytes, inputs: Inputs, options: TreeOptions, confined: ConfinedRenderer | None
) -> bytes:
    values = inputs.get("values") or {}
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"{inputs['url']}: is not UTF-8 text: byte {error.start} cannot be read",
            hint="Backstage would destroy it; fetch it with fetch:plain:file",
        ) from error
    if not is_template(source):
        return data
    check_size(inputs["url"], len(data), options)
    try:
        if confined is not None:
            return _confined(confined, data, values, options)
        template = compile_template(source, options.delimiters)
        text = template.render(options.names(values), strict=options.is_strict)
    except RenderError as error:
        raise error.named(inputs["url"]) from error
    # A lone half of a surrogate pair becomes U+FFFD, as in Node.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _confined(
    confined: ConfinedRenderer, data: bytes, values: Mapping[str, Any], options: TreeOptions
) -> bytes:
    """Render an untrusted file in a child with limits."""
    (outcome,) = confined({PurePosixPath("file"): SkeletonFile(data)}, values, options)
    if outcome.error is not None:
        raise outcome.error
    if outcome.file is None or outcome.how != "rendered":
        raise RefusedError(f"the file is {outcome.how}, so it is not rendered")
    return outcome.file.data


def _plain(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs["targetPath"])
    context.put(target, replace(_file(source_of(context, inputs["url"])), mode=PLAIN_MODE))
    context.check_size()
    context.log(f"wrote {target}")
    return {}


def _file(source: FetchedPath) -> SkeletonFile:
    file = source.file()
    if file.symlink is not None:
        raise RefusedError(f"{source.url}: is a symbolic link", hint="put a file there")
    if is_executable(file):
        raise InvalidInputError(
            "url",
            source.url,
            "is executable, and Backstage loses the mode of single files",
            hint="fetch its folder with fetch:template or fetch:plain, which keep modes",
        )
    return file


_REQUIRED = ("url", "targetPath")
FETCH_PLAIN_FILE = TemplateAction(
    "fetch:plain:file",
    inputs_schema(_REQUIRED, url=TEXT, targetPath=TEXT, token=TEXT),
    _plain,
    dry_run=True,
    writes=written,
)
FETCH_TEMPLATE_FILE = TemplateAction(
    "fetch:template:file",
    inputs_schema(
        _REQUIRED,
        url=TEXT,
        targetPath=TEXT,
        token=TEXT,
        values=MAP,
        cookiecutterCompat=FLAG,
        replace=FLAG,
        trimBlocks=FLAG,
        lstripBlocks=FLAG,
    ),
    _template,
    dry_run=True,
    writes=written,
)
