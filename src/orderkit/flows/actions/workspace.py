"""``fs:rename``, ``fs:delete`` and ``debug:log``: small changes to the workspace, and a look."""

from __future__ import annotations

from orderkit.core.errors import InvalidInputError
from orderkit.core.render import check_path
from orderkit.core.render.globbing import compile_glob
from orderkit.flows.actions.context import (
    FLAG,
    TEXT,
    TEXTS,
    Action,
    ActionContext,
    Inputs,
    Outputs,
    inputs_schema,
)


def _rename(context: ActionContext, inputs: Inputs) -> Outputs:
    for at, entry in enumerate(inputs["files"]):
        source = check_path(entry["from"].removeprefix("./"), origin=f"files[{at}].from")
        target = check_path(entry["to"].removeprefix("./"), origin=f"files[{at}].to")
        moved = {p: f for p, f in context.workspace.items() if p.is_relative_to(source)}
        if not moved:
            raise InvalidInputError(f"files[{at}].from", str(source), "is not in the workspace")
        for path in moved:
            del context.workspace[path]
        for path, file in moved.items():
            place = target / path.relative_to(source)
            if place in context.workspace and not entry.get("overwrite"):
                raise InvalidInputError(
                    f"files[{at}].to",
                    str(place),
                    "exists",
                    hint="set overwrite: true to replace it",
                )
            context.workspace[place] = file
    return {}


def _delete(context: ActionContext, inputs: Inputs) -> Outputs:
    for wanted in inputs["files"]:
        plain = wanted.removeprefix("./").rstrip("/")
        check_path(plain, origin="files")
        glob = compile_glob(plain)
        for path in list(context.workspace):
            names = [str(path), *map(str, path.parents)]
            if any(name == plain or glob.fullmatch(name) for name in names):
                del context.workspace[path]
    return {}


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


FS_RENAME = Action(
    "fs:rename",
    inputs_schema(
        ("files",),
        files={
            "type": "array",
            "items": inputs_schema(("from", "to"), **{"from": TEXT, "to": TEXT, "overwrite": FLAG}),
        },
    ),
    _rename,
)
FS_DELETE = Action("fs:delete", inputs_schema(("files",), files=TEXTS), _delete)
DEBUG_LOG = Action(
    "debug:log",
    inputs_schema(
        (),
        message=TEXT,
        listWorkspace={"enum": [True, False, "with-contents", "with-filenames"]},
    ),
    _log,
)
