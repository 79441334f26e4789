"""
Actions on the workspace: ``fetch:*`` brings files in, ``fs:*`` and ``debug:*`` work on them.

``fetch:template`` and ``fetch:plain`` copy a folder into the workspace, rendered or unchanged. File
modes are kept. ``token`` is ignored, as in Backstage's Gitea reader. Files from outside the
platform's own pack are rendered in a child with limits (`ConfinedRenderer`).

``fetch:template:file`` and ``fetch:plain:file`` bring in one file. As in Backstage, the path is not
rendered, binary files are not detected, and the mode is lost: an executable source is refused, so
that the loss is noticed. Text that is not UTF-8, which Backstage would corrupt while rendering, is
refused too.

``fs:rename``, ``fs:delete`` and ``fs:readdir`` change or list the workspace. The workspace is in
memory and has no empty folders. ``fs:readdir`` sorts by name, and its ``fullPath`` starts at
``/workspace``: the portal uses another folder for every task, so templates cannot rely on it.

``debug:log`` logs a message or lists the workspace, ``debug:wait`` waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, RefusedError
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    FetchedPath,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    is_executable,
    outputs_schema,
    source_of,
)
from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.render import (
    BACKSTAGE,
    COOKIECUTTER,
    RenderError,
    SkeletonFile,
    TreeOptions,
    check_path,
    check_tree,
    compile_template,
    render_tree,
)
from softwaretemplates.render.tree import PLAIN_MODE, check_size, dotted, is_template
from softwaretemplates.render.tree_files import matching


def _template_folder(context: ActionContext, inputs: Inputs) -> Outputs:
    options = tree_options(inputs, context)
    source, values = source_of(context, inputs["url"]), inputs.get("values") or {}
    rendered = _rendered_folder(context, source, values, options)
    _place(context, rendered, inputs, overwrite=bool(inputs.get("replace")))
    return {}


def _rendered_folder(
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


def _plain_folder(context: ActionContext, inputs: Inputs) -> Outputs:
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
    _template_folder,
    dry_run=True,
    renamed={"copyWithoutRender": "copyWithoutTemplating"},
    writes=written,
)
FETCH_PLAIN = TemplateAction(
    "fetch:plain", inputs_schema(("url",), **_FETCH), _plain_folder, dry_run=True, writes=written
)


def _template_file(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs["targetPath"])
    if target in context.workspace and not inputs.get("replace"):
        context.log(f"{target} exists already and is not replaced")
        return {}
    source = source_of(context, inputs["url"])
    confined = None if source.folder.trusted else context.confined
    options = tree_options(inputs, context)
    context.put(target, SkeletonFile(_rendered_file(_file(source).data, inputs, options, confined)))
    context.check_size()
    context.log(f"wrote {target}")
    return {}


def _rendered_file(
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


def _plain_file(context: ActionContext, inputs: Inputs) -> Outputs:
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
    _plain_file,
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
    _template_file,
    dry_run=True,
    writes=written,
)


WORKSPACE = PurePosixPath("/workspace")
_GLOB = frozenset("*?[{!")


def _rename(context: ActionContext, inputs: Inputs) -> Outputs:
    for at, entry in enumerate(inputs["files"]):
        source = _path(entry["from"], f"files[{at}].from")
        target = _path(entry["to"], f"files[{at}].to")
        _move(context, source, target, at, overwrite=bool(entry.get("overwrite")))
    return {}


def _move(
    context: ActionContext,
    source: PurePosixPath,
    target: PurePosixPath,
    at: int,
    *,
    overwrite: bool,
) -> None:
    """Move a file or folder; an existing target is replaced as a whole, never merged."""
    if not context.holds(source):
        raise InvalidInputError(f"files[{at}].from", str(source), "is not in the workspace")
    if target.is_relative_to(source):
        raise InvalidInputError(f"files[{at}].to", str(target), f"is '{source}' or inside it")
    if context.holds(target) and not overwrite:
        raise InvalidInputError(
            f"files[{at}].to", str(target), "exists", hint="set overwrite: true to replace it"
        )
    moved = {p: f for p, f in context.workspace.items() if p.is_relative_to(source)}
    for path in [*moved, *context.workspace]:
        if path in moved or path.is_relative_to(target):
            context.workspace.pop(path, None)
    for path, file in moved.items():
        context.put(target / path.relative_to(source), file)


def _path(text: str, origin: str) -> PurePosixPath:
    return check_path(text.removeprefix("./").rstrip("/") or ".", origin=origin)


def _delete(context: ActionContext, inputs: Inputs) -> Outputs:
    for at, pattern in enumerate(inputs["files"]):
        plain = _path(pattern, f"files[{at}]")
        for path in matching([str(plain)], context.workspace):
            del context.workspace[path]
    return {}


def _readdir(context: ActionContext, inputs: Inputs) -> Outputs:
    files: list[dict[str, Any]] = []
    folders: list[dict[str, Any]] = []
    for at, folder_name in enumerate(inputs["paths"]):
        folder = _path(folder_name, f"paths[{at}]")
        inside = [p for p in context.workspace if p.is_relative_to(folder) and p != folder]
        if not inside and folder != PurePosixPath():
            raise InvalidInputError(f"paths[{at}]", folder_name, "is not a folder of the workspace")
        deep = bool(inputs.get("recursive"))
        files += _entries(p for p in inside if deep or p.parent == folder)
        nested = {q for p in inside for q in p.parents if q.is_relative_to(folder) and q != folder}
        folders += _entries(p for p in nested if deep or p.parent == folder)
    return {"files": files, "folders": folders}


def _entries(paths: Iterable[PurePosixPath]) -> list[dict[str, Any]]:
    return [
        {"name": path.name, "path": str(path), "fullPath": str(WORKSPACE / path)}
        for path in sorted(paths)
    ]


_ENTRIES = {"type": "array", "items": outputs_schema(name=TEXT, path=TEXT, fullPath=TEXT)}

FS_RENAME = TemplateAction(
    "fs:rename",
    inputs_schema(
        ("files",),
        files={
            "type": "array",
            "items": inputs_schema(("from", "to"), **{"from": TEXT, "to": TEXT, "overwrite": FLAG}),
        },
    ),
    _rename,
    dry_run=True,
    reads=lambda inputs: [entry["from"] for entry in inputs["files"]],
    writes=lambda inputs: [entry["to"] for entry in inputs["files"]],
)
FS_DELETE = TemplateAction(
    "fs:delete",
    inputs_schema(("files",), files=TEXTS),
    _delete,
    dry_run=True,
    reads=lambda inputs: [name for name in inputs["files"] if not _GLOB & set(name)],
)
FS_READDIR = TemplateAction(
    "fs:readdir",
    inputs_schema(
        ("paths",),
        paths={"type": "array", "items": {"type": "string", "minLength": 1}},
        recursive=FLAG,
    ),
    _readdir,
    outputs_schema(files=_ENTRIES, folders=_ENTRIES),
    dry_run=True,
    reads=lambda inputs: inputs["paths"],
)


WAIT_MAX_S = 600
"""Backstage's own limit."""


def _log(context: ActionContext, inputs: Inputs) -> Outputs:
    if "message" in inputs:
        context.log(inputs["message"])
    if inputs.get("listWorkspace"):
        context.log("Workspace: " + ", ".join(str(path) for path in sorted(context.workspace)))
        if inputs["listWorkspace"] == "with-contents":
            for path in sorted(context.workspace):
                data = context.workspace[path].data
                context.log(f"{path}\n{data.decode(errors='replace')}")
    return {}


def _wait(context: ActionContext, inputs: Inputs) -> Outputs:
    wanted_s = (
        inputs.get("minutes", 0) * 60
        + inputs.get("seconds", 0)
        + inputs.get("milliseconds", 0) / 1000
    )
    if not 0 <= wanted_s <= WAIT_MAX_S:
        raise InvalidInputError(
            "debug:wait",
            f"{wanted_s} s",
            f"is not between 0 and {WAIT_MAX_S} seconds",
            hint=f"wait at most {WAIT_MAX_S} seconds",
        )
    context.log(f"waiting {wanted_s:g} s")
    time.sleep(wanted_s)
    return {}


DEBUG_LOG = TemplateAction(
    "debug:log",
    inputs_schema(
        (),
        message=TEXT,
        listWorkspace={"enum": [True, False, "with-contents", "with-filenames"]},
    ),
    _log,
    dry_run=True,
)
DEBUG_WAIT = TemplateAction(
    "debug:wait", inputs_schema((), minutes=NUMBER, seconds=NUMBER, milliseconds=NUMBER), _wait
)
