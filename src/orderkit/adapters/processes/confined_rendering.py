"""
Render templates that nobody vouches for in a child process with limits.

The renderer has no way to the system, and bounds rounds, calls, texts and output; what it
cannot bound is time and memory together. So skeletons from elsewhere than the platform's own
published pack are rendered by a child that gets files and values as JSON and answers as JSON:
nothing it says is ever executed. It is killed when it takes too long, and the kernel refuses it
more processor time, memory or output.

Given to flows as the port `ConfinedRenderer`.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import OrderkitError, RefusedError, shorten
from orderkit.adapters.processes.child_process import Answer, SocketChild
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits
from softwaretemplates.render import (
    Delimiters,
    FileOutcome,
    LimitError,
    Position,
    RenderError,
    SkeletonFile,
    Tree,
    TreeOptions,
    UndefinedValueError,
    Unknown,
    UnsupportedError,
    judge_tree,
    lint_tree,
    treat,
)
from softwaretemplates.render.integrations import hosts_known, integrations, is_planning, planning
from softwaretemplates.render.tree import RENDERED, Treatment
from softwaretemplates.size_limit import SIZE_LIMIT


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may use."""

    cpu_s: int = 10
    wall_s: float = 30
    memory_bytes: int = 1 << 30
    output_bytes: int = 32 << 20


_DEFAULTS = ChildLimits()
_UNKNOWN = "\0unknown"
_ENTRY = "orderkit.adapters.processes.confined_rendering:answer"


def judge_confined(
    files: Tree,
    values: Mapping[str, Any] | None,
    options: TreeOptions,
    limits: ChildLimits = _DEFAULTS,
) -> list[FileOutcome]:
    """
    Do what `judge_tree` does, or `lint_tree` if `values` is None, in a child with limits.

    Raises:
        LimitError: The child took more time, memory or output than it may.
        RenderError: The options or sizes are refused as a whole.
    """
    treatments = treat(files, options)
    request = {
        "files": [
            [str(path), *_file(file, treatments[path]), _treatment_document(treatments[path])]
            for path, file in files.items()
        ],
        "values": _marked(values),
        "options": _options(options),
        "planning": is_planning(),
        "hosts": None if (hosts := hosts_known()) is None else sorted(hosts),
    }
    most = limits.output_bytes * max(1, options.size_limit // SIZE_LIMIT)
    answer = _ask(json.dumps(request), replace(limits, output_bytes=most))
    if "error" in answer:
        raise _error(answer["error"])
    return [_outcome(outcome, files) for outcome in answer["outcomes"]]


def _ask(request: str, limits: ChildLimits) -> dict[str, Any]:
    bounds = ProcessLimits(
        address_bytes=limits.memory_bytes,
        cpu_s=limits.cpu_s,
        answer_bytes=limits.output_bytes,
        is_isolated=True,
    )
    until_s = time.monotonic() + limits.wall_s
    with SocketChild(_ENTRY, bounds) as child:
        try:
            child.send(request.encode("utf-8", "surrogatepass"), limits.wall_s)
            answer = json.loads(child.receive(max(0.0, until_s - time.monotonic())))
        except (ChildTimeoutError, ChildEndedError, ValueError) as error:
            raise LimitError(
                f"rendering was stopped: it needs more than {limits.wall_s:g} s, {limits.cpu_s} s "
                f"of processor time, {limits.memory_bytes >> 20} MiB of memory or "
                f"{limits.output_bytes >> 20} MiB of output ({error})",
                hint="loops over loops and texts that grow are the usual cause",
            ) from error
    return dict(answer)


# --- the child's side


def answer(request: bytes) -> tuple[bytes, Answer | None]:
    """Answer the one request; the entry of the child."""
    outcome = _answer(json.loads(request.decode("utf-8", "surrogatepass")))
    return json.dumps(outcome).encode("ascii"), None


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    files, treatments = {}, {}
    for name, *fields, treatment in request["files"]:
        path = PurePosixPath(name)
        files[path], treatments[path] = _read_file(fields), _treatment(treatment)
    marks = dict(request["options"])
    options = TreeOptions(
        copy_without_templating=tuple(marks.pop("copy_without_templating")),
        template_file_extension=marks.pop("template_file_extension"),
        links=marks.pop("links"),
        size_limit=marks.pop("size_limit"),
        is_strict=marks.pop("is_strict"),
        delimiters=Delimiters(**marks),
    )
    values = _unmarked(request["values"])
    judge: Callable[[], list[FileOutcome]] = (
        (lambda: lint_tree(files, options, treatments))
        if values is None
        else (lambda: judge_tree(files, values, options, treatments))
    )
    try:
        with integrations(request["hosts"]), planning(is_on=request["planning"]):
            return {"outcomes": [_outcome_document(outcome) for outcome in judge()]}
    except OrderkitError as error:
        return {"error": _error_document(error)}


# --- both sides: values as JSON and back


def _marked(value: Any) -> Any:
    """Mark what a dry run cannot know, which JSON has as text."""
    if isinstance(value, Unknown):
        return {_UNKNOWN: str(value)}
    if isinstance(value, Mapping):
        return {key: _marked(item) for key, item in value.items()}
    return [_marked(item) for item in value] if isinstance(value, list) else value


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_UNKNOWN}:
            return Unknown(value[_UNKNOWN])
        return {key: _unmarked(item) for key, item in value.items()}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _options(options: TreeOptions) -> dict[str, Any]:
    marks = options.delimiters
    return {
        "copy_without_templating": list(options.copy_without_templating),
        "template_file_extension": options.template_file_extension,
        "links": options.links,
        "size_limit": options.size_limit,
        "is_strict": options.is_strict,
        "start": marks.start,
        "end": marks.end,
        "trim_blocks": marks.trim_blocks,
        "lstrip_blocks": marks.lstrip_blocks,
        "cookiecutter": marks.cookiecutter,
    }


def _file(file: SkeletonFile, treatment: Treatment) -> list[Any]:
    """Return a file as the other side needs it: with content only if that is rendered."""
    data = file.data if treatment == RENDERED else b""
    return [base64.b64encode(data).decode(), file.mode, file.symlink]


def _treatment_document(treatment: Treatment) -> str | dict[str, Any]:
    return treatment if isinstance(treatment, str) else _error_document(treatment)


def _treatment(document: str | dict[str, Any]) -> Treatment:
    return document if isinstance(document, str) else _error(document)


def _read_file(fields: list[Any]) -> SkeletonFile:
    data, mode, symlink = fields
    link = None if symlink is None else str(symlink)
    return SkeletonFile(base64.b64decode(str(data), validate=True), int(mode), link)


def _outcome_document(outcome: FileOutcome) -> dict[str, Any]:
    return {
        "path": str(outcome.path),
        "how": outcome.how,
        "target": None if outcome.target is None else str(outcome.target),
        "file": None if outcome.file is None else _file(outcome.file, outcome.how),
        "error": None if outcome.error is None else _error_document(outcome.error),
    }


def _outcome(document: dict[str, Any], files: Tree) -> FileOutcome:
    """Read an outcome."""
    path, how, file = PurePosixPath(document["path"]), str(document["how"]), document["file"]
    if file is not None:
        # a file that is only copied is our own, not what the child says of it
        file = _read_file(file) if how == RENDERED else files[path]
    return FileOutcome(
        path,
        how,
        None if document["target"] is None else PurePosixPath(document["target"]),
        file,
        None if document["error"] is None else _error(document["error"]),
    )


_ERRORS: Mapping[str, type[RenderError]] = {
    kind.__name__: kind for kind in (RenderError, UndefinedValueError, UnsupportedError, LimitError)
}


def _error_document(error: OrderkitError) -> dict[str, Any]:
    if not isinstance(error, RenderError):
        return {"kind": "", "problem": str(error), "hint": error.hint}
    line_column = [error.position.line, error.position.column] if error.position else None
    return {
        "kind": type(error).__name__,
        "problem": error.problem,
        "hint": error.hint,
        "place": line_column,
        "name": error.name,
    }


def _error(document: dict[str, Any]) -> OrderkitError:
    problem, hint = shorten(str(document["problem"]), limit=2000), str(document["hint"])
    kind = _ERRORS.get(str(document["kind"]))
    if kind is None:
        return RefusedError(problem, hint=hint)
    line_column = document["place"]
    position = Position(int(line_column[0]), int(line_column[1])) if line_column else None
    return kind(problem, position, name=str(document["name"]), hint=hint)
