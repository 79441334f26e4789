"""
Render a skeleton, a tree of files in memory, as Backstage's ``fetch:template`` does.

Paths are templates too; a path that becomes empty, starts with a slash or has an empty part
drops its file. Binary files, and those matched by ``copyWithoutTemplating``, keep their
bytes. Stricter than Backstage, because a form user types the values: a value that was never
passed is an error, not an empty string; two files that render to one path, links, text that
is no UTF-8 and names that some system cannot hold are refused; and nothing leaves the tree.

Called by the actions ``fetch:template`` and ``fetch:plain``. It does no I/O.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.core.errors import RefusedError
from orderkit.core.render.binary import is_binary
from orderkit.core.render.engine import compile_template
from orderkit.core.render.faults import LimitError, RenderError
from orderkit.core.render.globbing import compile_glob
from orderkit.core.render.javascript import Closed, Value
from orderkit.core.render.lexer import BACKSTAGE, Delimiters

FILES_MAX, FILE_BYTES_MAX, TREE_BYTES_MAX = 500, 1 << 20, 5 << 20
NAME_BYTES_MAX, PATH_BYTES_MAX = 255, 1024
PLAIN_MODE, EXECUTABLE_MODE = 0o100644, 0o100755
_MARKS = re.compile(r"\{\{|\{%|\{#|#\}")
"""What a path without templates has none of."""
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)


@dataclass(frozen=True, slots=True)
class SkeletonFile:
    """A file of a tree. `mode` is git's; `symlink` is a link's target."""

    data: bytes
    mode: int = PLAIN_MODE
    symlink: str | None = None


Tree = Mapping[PurePosixPath, SkeletonFile]


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """The inputs of ``fetch:template`` that say how to render."""

    copy_without_templating: tuple[str, ...] = ()
    template_file_extension: str = ""
    """Only files with this extension have templates in them; it is cut off."""
    delimiters: Delimiters = BACKSTAGE


_DEFAULTS = TreeOptions()


def render_tree(
    files: Tree, values: Mapping[str, Value], options: TreeOptions = _DEFAULTS
) -> dict[PurePosixPath, SkeletonFile]:
    """
    Render every file and path. Either all of it or an error; the input is not changed.

    Args:
        values: What templates see as ``values``. Data: never rendered again.

    Raises:
        RenderError: A template is malformed or fails; file, line and column are named.
        UndefinedValueError: A template prints a value that `values` has not.
        RefusedError: A path would leave the tree, a link, a collision of names.
        LimitError: Too many files, or too large.
    """
    check_tree(files)
    context = {"values": Closed(values)}
    literal = [compile_glob(glob) for glob in options.copy_without_templating]
    rendered: dict[PurePosixPath, SkeletonFile] = {}
    origins: dict[str, PurePosixPath] = {}
    for path in sorted(files):
        target = _render_path(path, context, options)
        if target is None:
            continue
        key = unicodedata.normalize("NFC", str(target)).casefold()
        if key in origins:
            raise RefusedError(
                f"{path}: renders to '{target}', which {origins[key]} renders to already",
                hint="give the files names that differ by more than case",
            )
        origins[key] = path
        verbatim = any(glob.fullmatch(str(path)) for glob in literal)
        rendered[target] = _render_file(path, files[path], context, options, verbatim=verbatim)
    _check_folders(rendered)
    check_tree(rendered)
    return rendered


def check_tree(files: Tree) -> None:
    """
    Refuse what no tree of ours may have.

    Raises:
        LimitError: Too many files, or too large.
        RefusedError: A link, or a path that could leave the tree.
    """
    if len(files) > FILES_MAX:
        raise LimitError(f"{len(files)} files; at most {FILES_MAX} are rendered")
    total = 0
    for path, file in files.items():
        check_path(str(path), origin=str(path))
        if file.symlink is not None:
            raise RefusedError(
                f"{path}: is a symbolic link", hint="put a file there; links are not rendered"
            )
        if len(file.data) > FILE_BYTES_MAX:
            raise LimitError(f"{path}: {len(file.data)} bytes; at most {FILE_BYTES_MAX}")
        total += len(file.data)
    if total > TREE_BYTES_MAX:
        raise LimitError(f"{total} bytes in all files; at most {TREE_BYTES_MAX}")


def check_path(path: str, *, origin: str) -> PurePosixPath:
    """
    Return a relative path that stays below its root on every system.

    Raises:
        RefusedError: It is absolute, climbs, or has a part that some system cannot hold.
    """
    reason = _path_problem(path)
    if reason:
        shown = path if len(path) <= 80 else f"{path[:79]}…"  # noqa: PLR2004 - a line of a terminal
        raise RefusedError(
            f"{origin}: the path {shown!r} {reason}", hint="change the value that is in the name"
        )
    return PurePosixPath(path)


@functools.lru_cache(maxsize=4096)
def _path_problem(path: str) -> str | None:
    return next(_path_problems(path), None)


def _path_problems(path: str) -> Iterator[str]:
    if path.startswith("/") or not path:
        yield "is absolute or empty"
    if len(path.encode("utf-8", "replace")) > PATH_BYTES_MAX:
        yield f"is longer than {PATH_BYTES_MAX} bytes"
    for part in path.split("/"):
        if part == "..":
            yield "leaves its folder"
        if part.casefold() in {".git", "git~1"}:
            yield "would write into git's own folder"
        if "\\" in part or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in part):
            yield "has a control, format or backslash character"
        if len(part.encode("utf-8", "replace")) > NAME_BYTES_MAX:
            yield f"has a name longer than {NAME_BYTES_MAX} bytes"
        if part.partition(".")[0].casefold() in _DEVICES:
            yield "has the name of a device"


def _render_path(
    path: PurePosixPath, context: Mapping[str, Value], options: TreeOptions
) -> PurePosixPath | None:
    """Return the target path, or None if the file is to be left out."""
    source = str(path)
    if not options.template_file_extension and not _MARKS.search(source):
        return check_path(source, origin=source)
    try:
        rendered = compile_template(source, options.delimiters).render(context, strict=True)
    except RenderError as error:
        raise error.named(f"the path {source}") from error
    if not rendered or rendered.startswith("/") or "//" in rendered:
        return None
    extension = options.template_file_extension
    if extension and source.endswith(extension):
        rendered = rendered.removesuffix(extension)
    return check_path(rendered, origin=source)


def _render_file(
    path: PurePosixPath,
    file: SkeletonFile,
    context: Mapping[str, Value],
    options: TreeOptions,
    *,
    verbatim: bool,
) -> SkeletonFile:
    extension = options.template_file_extension
    skipped = bool(extension) and not str(path).endswith(extension)
    if verbatim or skipped or is_binary(file.data):
        return file
    try:
        source = file.data.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"{path}: is neither UTF-8 text nor binary: byte {error.start} cannot be read",
            hint="Backstage would destroy it; store it as UTF-8 or list it in "
            "copyWithoutTemplating",
        ) from error
    try:
        text = compile_template(source, options.delimiters).render(context, strict=True)
    except RenderError as error:
        raise error.named(str(path)) from error
    return SkeletonFile(_encode(text), file.mode)


def _encode(text: str) -> bytes:
    """Encode as UTF-8; a lone half of a surrogate pair becomes U+FFFD, as in Node."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _check_folders(files: Tree) -> None:
    for path in files:
        for parent in path.parents:
            if parent in files:
                raise RefusedError(
                    f"{path}: its folder '{parent}' is also the path of a file",
                    hint="rename one of them",
                )
