"""
Render a skeleton, a tree of files in memory, as Backstage's ``fetch:template`` does.

Paths are templates too. A path that becomes empty, starts with a slash or has an empty part drops
its file. Binary files, links, and files matched by ``copyWithoutTemplating`` keep their bytes.
Stricter than Backstage, because users of the form type the values: a value that was never passed is
an error, not an empty string. Refused are two files that render to one path, text that is not
UTF-8, names that some system cannot store, and links that leave the tree. Folders exist only as
parts of paths, because git stores no empty ones.

No I/O.
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import OrderkitError, RefusedError
from softwaretemplates.render.binary import is_binary
from softwaretemplates.render.engine import KEPT_MAX, Renderable, compile_template
from softwaretemplates.render.globs import matching
from softwaretemplates.render.javascript import Closed, Value
from softwaretemplates.render.lexer import BACKSTAGE, Delimiters
from softwaretemplates.render.render_errors import LimitError, RenderError

__all__ = [
    "EXECUTABLE_MODE",
    "FILES_MAX",
    "FILE_BYTES_MAX",
    "LINK_MODE",
    "PLAIN_MODE",
    "TREE_BYTES_MAX",
    "check_count",
    "check_size",
    "check_total",
    "dotted",
]

FILES_MAX, FILE_BYTES_MAX, TREE_BYTES_MAX = 500, 1 << 20, 5 << 20
NAME_BYTES_MAX, PATH_BYTES_MAX = 255, 1024
PLAIN_MODE, EXECUTABLE_MODE, LINK_MODE = 0o100644, 0o100755, 0o120000
_MARKS = re.compile(r"\{\{|\{%|\{#|#\}")
"""A path without a match contains no template."""
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
    """The inputs of ``fetch:template`` that control rendering."""

    copy_without_templating: tuple[str, ...] = ()
    template_file_extension: str = ""
    """Only files with this extension, with its dot, are templates; it is removed."""
    delimiters: Delimiters = BACKSTAGE
    links: bool = False
    """Symbolic links inside the tree are kept as they are; otherwise they are refused."""

    @property
    def root(self) -> str:
        """The name under which templates see the values."""
        return "cookiecutter" if self.delimiters.cookiecutter else "values"


def dotted(extension: str) -> str:
    """Return a file's extension with its dot, which Backstage adds too."""
    return f".{extension}" if extension and not extension.startswith(".") else extension


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The result for one file of a skeleton: `file` is set if it is written, `error` if refused."""

    path: PurePosixPath
    how: str
    """For people: rendered, copied and why, skipped and why, refused."""
    target: PurePosixPath | None = None
    file: SkeletonFile | None = None
    error: OrderkitError | None = None


_DEFAULTS = TreeOptions()


def render_tree(
    files: Tree, values: Mapping[str, Value], options: TreeOptions = _DEFAULTS
) -> dict[PurePosixPath, SkeletonFile]:
    """
    Render every file and path. Either everything or an error; the input is not changed.

    Args:
        values: What templates see as ``values``. Data: never rendered again.

    Raises:
        RenderError: A template is malformed or fails; file, line and column are named.
        UndefinedValueError: A template prints a value that `values` lacks.
        RefusedError: A path would leave the tree, a link, a collision of names.
        LimitError: Too many files, or too large.
    """
    rendered: dict[PurePosixPath, SkeletonFile] = {}
    for outcome in _outcomes(files, values, options):
        if outcome.error is not None:
            raise outcome.error
        if outcome.target is not None and outcome.file is not None:
            rendered[outcome.target] = outcome.file
    return rendered


def judge_tree(
    files: Tree, values: Mapping[str, Value], options: TreeOptions = _DEFAULTS
) -> list[FileOutcome]:
    """
    Render what can be rendered, and return the outcome of each file.

    Raises:
        LimitError: Too many files, or too large, before or after rendering.
    """
    return list(_outcomes(files, values, options))


def lint_tree(files: Tree, options: TreeOptions = _DEFAULTS) -> list[FileOutcome]:
    """
    Compile every file and path without values; the outcomes have no files.

    Raises:
        LimitError: Too many files, or too large.
    """
    _check_sizes(files)
    plan = _Plan(files, options)
    return [plan.lint(path) for path in sorted(files)]


def _outcomes(
    files: Tree, values: Mapping[str, Value], options: TreeOptions
) -> Iterator[FileOutcome]:
    _check_sizes(files)
    plan = _Plan(files, options)
    context = {options.root: Closed(values)}
    claimed = _Taken()
    size = 0
    for path in sorted(files):
        outcome = plan.outcome(path, context)
        if outcome.file is not None and outcome.target is not None:
            clash = claimed.claim(outcome.target, path)
            if clash is not None:
                yield FileOutcome(path, "refused", outcome.target, error=clash)
                continue
            size += len(outcome.file.data)
            if size > TREE_BYTES_MAX:
                raise LimitError(
                    f"the rendered files have more than {TREE_BYTES_MAX} bytes together",
                    hint=_SMALLER,
                )
        yield outcome


class _Plan:
    """How each file of one tree is treated."""

    def __init__(self, files: Tree, options: TreeOptions) -> None:
        if options.template_file_extension and options.delimiters.cookiecutter:
            raise RenderError("templateFileExtension cannot stand beside cookiecutterCompat")
        if options.template_file_extension and options.copy_without_templating:
            raise RenderError("templateFileExtension cannot stand beside copyWithoutTemplating")
        self._files, self._options = files, options
        self._verbatim = matching(options.copy_without_templating, files)

    def outcome(self, path: PurePosixPath, context: Mapping[str, Value]) -> FileOutcome:
        try:
            target = self._target(path, context)
            if target is None:
                return FileOutcome(path, "skipped: its name becomes empty")
            how = self._treatment(path)
            file = self._files[path]
            if how == "rendered":
                file = SkeletonFile(self._rendered(path, file.data, context), file.mode)
            return FileOutcome(path, how, target, file)
        except (RenderError, RefusedError) as error:
            return FileOutcome(path, "refused", error=error)

    def lint(self, path: PurePosixPath) -> FileOutcome:
        try:
            source = str(path)
            if _MARKS.search(source):
                self._compile(source, f"the path {source}")
            else:
                check_path(source, origin=source)
            how = self._treatment(path)
            if how == "rendered":
                self._compile(self._files[path].data.decode(), source)
        except UnicodeDecodeError as error:
            return FileOutcome(path, "refused", error=_no_text(path, error))
        except (RenderError, RefusedError) as error:
            return FileOutcome(path, "refused", error=error)
        return FileOutcome(path, "fits" if how == "rendered" else how)

    def _compile(self, source: str, name: str) -> None:
        try:
            compile_template(source, self._options.delimiters)
        except RenderError as error:
            raise error.named(name) from error

    def _treatment(self, path: PurePosixPath) -> str:
        file, extension = self._files[path], self._options.template_file_extension
        if file.symlink is not None:
            self._check_link(path, file.symlink)
            return "copied: a symbolic link"
        copied = "copied: copyWithoutTemplating" if path in self._verbatim else ""
        if extension and path.suffix != extension:
            copied = "copied: without the extension"
        if is_binary(file.data):
            return copied or "copied: binary"
        if copied:
            _check_text(path, file.data)
        return copied or "rendered"

    def _check_link(self, path: PurePosixPath, link: str) -> None:
        if not self._options.links:
            raise RefusedError(
                f"{path}: is a symbolic link", hint="put a file there; links are not rendered"
            )
        inside = posixpath.normpath(posixpath.join(str(path.parent), link))
        if link.startswith("/") or inside == ".." or inside.startswith("../") or "\0" in link:
            raise RefusedError(
                f"{path}: is a symbolic link to {link!r}, which leaves the tree",
                hint="link to a file of the skeleton, by a relative path",
            )
        if any(segment.casefold() == ".git" for segment in inside.split("/")):
            raise RefusedError(f"{path}: is a symbolic link into git's own folder")

    def _target(self, path: PurePosixPath, context: Mapping[str, Value]) -> PurePosixPath | None:
        """Return the target path, or None if the file is left out."""
        source = str(path)
        extension = self._options.template_file_extension
        cut = source.removesuffix(extension) if path.suffix == extension else source
        if not _MARKS.search(cut):
            return check_path(cut, origin=source)
        try:
            rendered = compile_template(cut, self._options.delimiters).render(context, strict=True)
        except RenderError as error:
            raise error.named(f"the path {source}") from error
        if not rendered or rendered.startswith("/") or "//" in rendered:
            return None
        target = check_path(rendered, origin=source)
        if not target.parts:
            raise RefusedError(
                f"the path {source} renders to '{rendered}', which is the folder itself",
                hint="change the value that is in the name, or empty it to leave the file out",
            )
        return target

    def _rendered(self, path: PurePosixPath, data: bytes, context: Mapping[str, Value]) -> bytes:
        try:
            template = _template_of(data, self._options.delimiters)
            text = template.render(context, strict=True)
        except UnicodeDecodeError as error:
            raise _no_text(path, error) from error
        except RenderError as error:
            raise error.named(str(path)) from error
        encoded = _encode(text)
        if len(encoded) > FILE_BYTES_MAX:
            raise _too_large(path, f"renders to {len(encoded)}")
        return encoded


def _check_text(path: PurePosixPath, data: bytes) -> None:
    """Refuse text that Backstage, which reads and writes it as UTF-8, would destroy."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise _no_text(path, error) from error


def _template_of(data: bytes, delimiters: Delimiters) -> Renderable:
    """Compile a file's bytes; equal bytes only once."""
    if len(data) > KEPT_MAX:
        return compile_template(data.decode(), delimiters)
    return _kept_template(data, delimiters)


@functools.lru_cache(maxsize=2048)
def _kept_template(data: bytes, delimiters: Delimiters) -> Renderable:
    return compile_template(data.decode(), delimiters)


def _no_text(path: PurePosixPath, error: UnicodeDecodeError) -> RefusedError:
    return RefusedError(
        f"{path}: is neither UTF-8 text nor binary: byte {error.start} cannot be read",
        hint="Backstage would destroy it, also if it is only copied; store it as UTF-8",
    )


def _encode(text: str) -> bytes:
    """Encode as UTF-8; a lone surrogate becomes U+FFFD, as in Node."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class _Taken:
    """The paths in use, as files or folders, by case-folded name."""

    def __init__(self) -> None:
        self._files: dict[str, PurePosixPath] = {}
        self._folders: dict[str, PurePosixPath] = {}

    def claim(self, target: PurePosixPath, origin: PurePosixPath) -> RefusedError | None:
        """Claim a path, or return the error that names the file that has it."""
        key = folded(str(target))
        parents = [key[:at] for at, char in enumerate(key) if char == "/"]
        other = self._files.get(key)
        if other is not None:
            return RefusedError(
                f"{origin}: renders to '{target}', which {other} renders to already",
                hint="give the files names that differ by more than case",
            )
        other = self._folders.get(key) or next(
            (self._files[parent] for parent in parents if parent in self._files), None
        )
        if other is not None:
            return RefusedError(
                f"{origin}: '{target}' and what {other} renders to are file and folder of one path",
                hint="rename one of them",
            )
        self._files[key] = origin
        for parent in parents:
            self._folders.setdefault(parent, origin)
        return None


@functools.lru_cache(maxsize=4096)
def folded(path: str) -> str:
    """Return the path as systems see it that ignore case or Unicode normalization."""
    return path.casefold() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def check_tree(files: Tree) -> None:
    """
    Refuse trees that we never write.

    Raises:
        LimitError: Too many files, or too large.
        RefusedError: A link, or a path that could leave the tree.
    """
    _check_sizes(files)
    for path, file in files.items():
        check_path(str(path), origin=str(path))
        if file.symlink is not None:
            raise RefusedError(
                f"{path}: is a symbolic link", hint="put a file there; links are not rendered"
            )


def _check_sizes(files: Tree) -> None:
    check_count(len(files))
    for path, file in files.items():
        check_size(path, len(file.data))
    check_total(sum(len(file.data) for file in files.values()))


_SMALLER = "leave out what needs no rendering, or fetch it in a step of its own"


def check_count(count: int) -> None:
    """
    Refuse a tree of too many files.

    Raises:
        LimitError: It has more than 500.
    """
    if count > FILES_MAX:
        raise LimitError(f"{count} files; one folder may have at most {FILES_MAX}", hint=_SMALLER)


def check_size(path: PurePosixPath, size: int) -> None:
    """
    Refuse a file that is too large.

    Raises:
        LimitError: It has more than 1 MiB.
    """
    if size > FILE_BYTES_MAX:
        raise _too_large(path, f"has {size}")


def check_total(size: int) -> None:
    """
    Refuse files that are too large together.

    Raises:
        LimitError: They have more than 5 MiB.
    """
    if size > TREE_BYTES_MAX:
        raise LimitError(
            f"all files together have {size} bytes, at most {TREE_BYTES_MAX} are allowed",
            hint=_SMALLER,
        )


def _too_large(path: PurePosixPath, size: str) -> LimitError:
    return LimitError(
        f"{path}: the file {size} bytes, one file may have at most {FILE_BYTES_MAX}", hint=_SMALLER
    )


def check_path(path: str, *, origin: str) -> PurePosixPath:
    """
    Return a relative path that stays below its root on every system.

    Raises:
        RefusedError: It is absolute, climbs, or has a part that some system cannot store.
    """
    reason, relative_path = _checked(path)
    if reason:
        path_text = path if len(path) <= 80 else f"{path[:79]}…"  # noqa: PLR2004 - a line of a terminal
        raise RefusedError(
            f"{origin}: the path {path_text!r} {reason}",
            hint="change the value that is in the name",
        )
    return relative_path


@functools.lru_cache(maxsize=4096)
def _checked(path: str) -> tuple[str | None, PurePosixPath]:
    return next(_path_problems(path), None), PurePosixPath(path)


def _path_problems(path: str) -> Iterator[str]:
    if path.startswith("/") or not path:
        yield "is absolute or empty"
    if len(path.encode("utf-8", "replace")) > PATH_BYTES_MAX:
        yield f"is longer than {PATH_BYTES_MAX} bytes"
    for segment in path.split("/"):
        if segment == "..":
            yield "leaves its folder"
        if segment.casefold() in {".git", "git~1"}:
            yield "would write into git's own folder"
        if "\\" in segment or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in segment):
            yield "has a control, format or backslash character"
        if len(segment.encode("utf-8", "replace")) > NAME_BYTES_MAX:
            yield f"has a name longer than {NAME_BYTES_MAX} bytes"
        if segment.partition(".")[0].casefold() in _DEVICES:
            yield "has the name of a device"
