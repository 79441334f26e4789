"""
``fs:rename``, ``fs:delete`` and ``fs:readdir``: change or list the workspace.

The workspace is in memory and has no empty folders. ``fs:readdir`` sorts by name, and its
``fullPath`` starts at ``/workspace``: the portal uses another folder for every task, so templates
cannot rely on it.

``debug:log`` and ``debug:wait``: log a message, list the workspace, wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from orderkit.flows.template.actions.action_context import (
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from softwaretemplates.render import check_path
from softwaretemplates.render.globs import matching

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
