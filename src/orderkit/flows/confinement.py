"""
Render templates that nobody vouches for in a child process with limits.

The renderer has no way to the system, and bounds rounds, calls, texts and output; what it
cannot bound is time and memory together. So skeletons from elsewhere than the platform's own
published pack are rendered by a child that gets files and values on its standard input, and
answers on its standard output, both as JSON: nothing it says is ever executed. It is killed
when it takes too long, and the kernel refuses it more processor time, memory or output.

Called by ``flows.template.rendering`` and by ``fetch:template`` for templates from other
repositories.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from orderkit.core.errors import OrderkitError, RefusedError, shorten
from orderkit.core.portal.render import (
    Delimiters,
    FileOutcome,
    LimitError,
    Position,
    RenderError,
    SkeletonFile,
    Tree,
    TreeOptions,
    UndefinedValueError,
    UnsupportedError,
    judge_tree,
    lint_tree,
)
from orderkit.core.portal.render.integrations import hosts_known, integrations


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may use."""

    cpu_s: int = 10
    wall_s: float = 30
    memory_bytes: int = 1 << 30
    output_bytes: int = 32 << 20


_DEFAULTS = ChildLimits()
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from orderkit.flows import confinement; confinement.child(*map(int, sys.argv[2:]))"
)


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
    request = {
        "files": [[str(path), *_file(file)] for path, file in files.items()],
        "values": values,
        "options": _options(options),
        "hosts": None if (hosts := hosts_known()) is None else sorted(hosts),
    }
    answer = _ask(json.dumps(request), limits)
    if "error" in answer:
        raise _error(answer["error"])
    return [_outcome(found) for found in answer["outcomes"]]


def _ask(request: str, limits: ChildLimits) -> dict[str, Any]:
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answered:
        asked.write(request.encode("utf-8", "surrogatepass"))
        asked.seek(0)
        code = _run(asked, answered, limits)
        answered.seek(0)
        answer = answered.read(limits.output_bytes + 1)
    try:
        found = json.loads(answer) if code == 0 and len(answer) <= limits.output_bytes else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LimitError(
            f"rendering was stopped: it needs more than {limits.cpu_s} s of processor time, "
            f"{limits.memory_bytes >> 20} MiB of memory or {limits.output_bytes >> 20} MiB of "
            f"output (the child ended with {code})",
            hint="loops over loops and texts that grow are the usual cause",
        )
    return found


def _run(asked: IO[bytes], answered: IO[bytes], limits: ChildLimits) -> int:
    bounds = (limits.cpu_s, limits.memory_bytes, limits.output_bytes)
    command = [sys.executable, "-I", "-c", _CHILD, json.dumps(sys.path), *map(str, bounds)]
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and code, no shell
        command, stdin=asked, stdout=answered, stderr=subprocess.DEVNULL, env={}, cwd="/"
    )
    try:
        return child.wait(limits.wall_s)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        child.kill()
        child.wait()


# --- the child's side


def child(cpu_s: int, memory_bytes: int, output_bytes: int) -> None:
    """Limit this process, answer the one request on standard input, end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output_bytes, output_bytes))
    request = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    answer = json.dumps(_answer(request))
    with os.fdopen(1, "w", encoding="ascii", closefd=False) as out:
        out.write(answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    files = {PurePosixPath(path): _read_file(rest) for path, *rest in request["files"]}
    given = dict(request["options"])
    options = TreeOptions(
        copy_without_templating=tuple(given.pop("copy_without_templating")),
        template_file_extension=given.pop("template_file_extension"),
        links=given.pop("links"),
        delimiters=Delimiters(**given),
    )
    values = request["values"]
    judge: Callable[[], list[FileOutcome]] = (
        (lambda: lint_tree(files, options))
        if values is None
        else (lambda: judge_tree(files, values, options))
    )
    try:
        with integrations(request["hosts"]):
            return {"outcomes": [_written(outcome) for outcome in judge()]}
    except OrderkitError as error:
        return {"error": _written_error(error)}


# --- both sides: values as JSON and back


def _options(options: TreeOptions) -> dict[str, Any]:
    marks = options.delimiters
    return {
        "copy_without_templating": list(options.copy_without_templating),
        "template_file_extension": options.template_file_extension,
        "links": options.links,
        "start": marks.start,
        "end": marks.end,
        "trim_blocks": marks.trim_blocks,
        "lstrip_blocks": marks.lstrip_blocks,
        "cookiecutter": marks.cookiecutter,
    }


def _file(file: SkeletonFile) -> list[Any]:
    return [base64.b64encode(file.data).decode(), file.mode, file.symlink]


def _read_file(found: list[Any]) -> SkeletonFile:
    data, mode, symlink = found
    link = None if symlink is None else str(symlink)
    return SkeletonFile(base64.b64decode(str(data), validate=True), int(mode), link)


def _written(outcome: FileOutcome) -> dict[str, Any]:
    return {
        "path": str(outcome.path),
        "how": outcome.how,
        "target": None if outcome.target is None else str(outcome.target),
        "file": None if outcome.file is None else _file(outcome.file),
        "error": None if outcome.error is None else _written_error(outcome.error),
    }


def _outcome(found: dict[str, Any]) -> FileOutcome:
    return FileOutcome(
        PurePosixPath(found["path"]),
        str(found["how"]),
        None if found["target"] is None else PurePosixPath(found["target"]),
        None if found["file"] is None else _read_file(found["file"]),
        None if found["error"] is None else _error(found["error"]),
    )


_ERRORS: Mapping[str, type[RenderError]] = {
    kind.__name__: kind for kind in (RenderError, UndefinedValueError, UnsupportedError, LimitError)
}


def _written_error(error: OrderkitError) -> dict[str, Any]:
    if not isinstance(error, RenderError):
        return {"kind": "", "problem": str(error), "hint": error.hint}
    place = [error.position.line, error.position.column] if error.position else None
    return {
        "kind": type(error).__name__,
        "problem": error.problem,
        "hint": error.hint,
        "place": place,
        "name": error.name,
    }


def _error(found: dict[str, Any]) -> OrderkitError:
    problem, hint = shorten(str(found["problem"]), limit=2000), str(found["hint"])
    kind = _ERRORS.get(str(found["kind"]))
    if kind is None:
        return RefusedError(problem, hint=hint)
    place = found["place"]
    position = Position(int(place[0]), int(place[1])) if place else None
    return kind(problem, position, name=str(found["name"]), hint=hint)
