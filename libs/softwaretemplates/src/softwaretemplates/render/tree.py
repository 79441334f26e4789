"""
Render a skeleton, a tree of files in memory, as Backstage's ``fetch:template`` does.

Paths are templates too. A path that becomes empty, starts with a slash or has an empty part drops
its file. Binary files, links, text without a mark of the language, and files matched by
``copyWithoutTemplating`` keep their bytes: they are read in pieces, and have no limit of size.
Stricter than Backstage, because users of the form type the values: a value that was never passed is
an error, not an empty string. Refused are two files that render to one path, text that is not
UTF-8, names that some system cannot store, and links that leave the tree. Folders exist only as
parts of paths, because git stores no empty ones.

No I/O.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from ground.errors import OrderkitError, RefusedError
from softwaretemplates.render.engine import KEPT_MAX, Renderable, compile_template
from softwaretemplates.render.integrations import is_planning
from softwaretemplates.render.javascript import Closed, Value
from softwaretemplates.render.lexer import BACKSTAGE, Delimiters
from softwaretemplates.render.refusals import LimitError, RenderError
from softwaretemplates.render.tree_files import (
    HEAD_BYTES,
    TakenPaths,
    check_path,
    is_binary,
    matching,
)
from softwaretemplates.size_limit import MIB, SIZE_LIMIT

__all__ = [
    "EXECUTABLE_MODE",
    "LINK_MODE",
    "PLAIN_MODE",
    "RENDERED",
    "StoredContent",
    "Treatment",
    "check_size",
    "dotted",
    "is_template",
    "size_error",
    "treat",
]

PLAIN_MODE, EXECUTABLE_MODE, LINK_MODE = 0o100644, 0o100755, 0o120000
RENDERED = "rendered"
_MARKS = re.compile(r"\{\{|\{%|\{#|#\}")


class StoredContent(Protocol):
    """The content of a file that stays where it is until it is needed."""

    @property
    def size(self) -> int: ...

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces, from its beginning."""
        ...


@dataclass(frozen=True, slots=True)
class SkeletonFile:
    """A file of a tree. `mode` is git's; `symlink` is a link's target."""

    content: bytes | StoredContent
    mode: int = PLAIN_MODE
    symlink: str | None = None

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @property
    def held_bytes(self) -> int:
        """How much memory its content takes: none if it is read when it is needed."""
        return len(self.content) if isinstance(self.content, bytes) else 0

    @property
    def data(self) -> bytes:
        """The whole content; of a large file, prefer `chunks`."""
        return self.content if isinstance(self.content, bytes) else b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces."""
        if isinstance(self.content, bytes):
            yield self.content
        else:
            yield from self.content.chunks()


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
    size_limit: int = SIZE_LIMIT
    is_strict: bool = True
    """Whether printing a value that nobody passed is an error; else it prints nothing."""

    @property
    def rendered_max(self) -> int:
        """Most bytes that are rendered, and that rendering may give."""
        return self.size_limit // 2

    @property
    def file_max(self) -> int:
        """Most bytes of one file that is rendered, before and after."""
        return self.size_limit // 8

    @property
    def root(self) -> str:
        """The name under which templates see the values."""
        return "cookiecutter" if self.delimiters.cookiecutter else "values"

    def names(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the names that a template sees."""
        return {self.root: Closed(values) if self.is_strict else dict(values)}


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


Treatment = str | OrderkitError
"""What happens to a file: how it is copied, ``rendered``, or why it is refused."""

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
        LimitError: What has to be rendered is too large.
    """
    rendered: dict[PurePosixPath, SkeletonFile] = {}
    for outcome in _outcomes(files, values, options):
        if outcome.error is not None:
            raise outcome.error
        if outcome.target is not None and outcome.file is not None:
            rendered[outcome.target] = outcome.file
    return rendered


def judge_tree(
    files: Tree,
    values: Mapping[str, Value],
    options: TreeOptions = _DEFAULTS,
    treatments: Mapping[PurePosixPath, Treatment] | None = None,
) -> list[FileOutcome]:
    """
    Render what can be rendered, and return the outcome of each file.

    Args:
        treatments: What `treat` said; content of a file that is copied is then not looked at.

    Raises:
        LimitError: What has to be rendered is too large, before or after rendering.
    """
    return list(_outcomes(files, values, options, treatments))


def lint_tree(
    files: Tree,
    options: TreeOptions = _DEFAULTS,
    treatments: Mapping[PurePosixPath, Treatment] | None = None,
) -> list[FileOutcome]:
    """
    Compile every file and path without values; the outcomes have no files.

    Raises:
        LimitError: What has to be rendered is too large.
    """
    plan = _Plan(files, options, treatments)
    return [plan.lint(path) for path in sorted(files)]


def treat(files: Tree, options: TreeOptions = _DEFAULTS) -> dict[PurePosixPath, Treatment]:
    """
    Return what happens to each file. Reads every text once, in pieces, and runs no template.

    Raises:
        LimitError: What has to be rendered is too large.
        UnsupportedError: A glob is refused.
    """
    verbatim = matching(options.copy_without_templating, files)
    treatments: dict[PurePosixPath, Treatment] = {}
    total = 0
    for path in sorted(files):
        try:
            treatments[path] = _treatment(path, files[path], options, is_verbatim=path in verbatim)
        except RefusedError as error:
            treatments[path] = error
        if treatments[path] == RENDERED:
            total += check_size(path, files[path].size, options, total)
    return treatments


def _outcomes(
    files: Tree,
    values: Mapping[str, Value],
    options: TreeOptions,
    treatments: Mapping[PurePosixPath, Treatment] | None = None,
) -> Iterator[FileOutcome]:
    plan = _Plan(files, options, treatments)
    context = options.names(values)
    claimed = TakenPaths()
    size = 0
    for path in sorted(files):
        outcome = plan.outcome(path, context)
        if outcome.file is not None and outcome.target is not None:
            clash = claimed.claim(outcome.target, path)
            if clash is not None:
                yield FileOutcome(path, "refused", outcome.target, error=clash)
                continue
            if outcome.how == RENDERED:
                size += check_size(path, outcome.file.size, options, size)
        yield outcome


class _Plan:
    """How each file of one tree is treated."""

    def __init__(
        self,
        files: Tree,
        options: TreeOptions,
        treatments: Mapping[PurePosixPath, Treatment] | None = None,
    ) -> None:
        if options.template_file_extension and options.delimiters.cookiecutter:
            raise RenderError("templateFileExtension cannot stand beside cookiecutterCompat")
        if options.template_file_extension and options.copy_without_templating:
            raise RenderError("templateFileExtension cannot stand beside copyWithoutTemplating")
        self._files, self._options = files, options
        self._treatments = treat(files, options) if treatments is None else treatments

    def outcome(self, path: PurePosixPath, context: Mapping[str, Value]) -> FileOutcome:
        try:
            target = self._target(path, context)
            if target is None:
                return FileOutcome(path, "skipped: its name becomes empty")
            how = self._treatment(path)
            file = self._files[path]
            if how == RENDERED:
                file = SkeletonFile(self._rendered(path, file.data, context), file.mode)
            return FileOutcome(path, how, target, file)
        except (RenderError, RefusedError) as error:
            return FileOutcome(path, "refused", error=error)

    def lint(self, path: PurePosixPath) -> FileOutcome:
        try:
            source = str(path)
            if is_template(source):
                self._compile(source, f"the path {source}")
            else:
                check_path(source, origin=source)
            how = self._treatment(path)
            if how == RENDERED:
                self._compile(self._files[path].data.decode(), source)
        except UnicodeDecodeError as error:
            return FileOutcome(path, "refused", error=_no_text(path, error.start))
        except (RenderError, RefusedError) as error:
            return FileOutcome(path, "refused", error=error)
        return FileOutcome(path, "fits" if how == RENDERED else how)

    def _compile(self, source: str, name: str) -> None:
        try:
            compile_template(source, self._options.delimiters)
        except RenderError as error:
            raise error.named(name) from error

    def _treatment(self, path: PurePosixPath) -> str:
        treatment = self._treatments[path]
        if isinstance(treatment, OrderkitError):
            raise treatment
        return treatment

    def _target(self, path: PurePosixPath, context: Mapping[str, Value]) -> PurePosixPath | None:
        """Return the target path, or None if the file is left out."""
        source = str(path)
        extension = self._options.template_file_extension
        cut = source.removesuffix(extension) if path.suffix == extension else source
        if not is_template(cut):
            return check_path(cut, origin=source)
        try:
            template = compile_template(cut, self._options.delimiters)
            rendered = template.render(context, strict=self._options.is_strict)
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
            text = template.render(context, strict=self._options.is_strict)
        except UnicodeDecodeError as error:
            raise _no_text(path, error.start) from error
        except RenderError as error:
            raise error.named(str(path)) from error
        return _encode(text)


def _treatment(
    path: PurePosixPath, file: SkeletonFile, options: TreeOptions, *, is_verbatim: bool
) -> str:
    if file.symlink is not None:
        _check_link(path, file.symlink, are_kept=options.links)
        return "copied: a symbolic link"
    extension = options.template_file_extension
    copied = "copied: copyWithoutTemplating" if is_verbatim else ""
    if extension and path.suffix != extension:
        copied = "copied: without the extension"
    if is_binary(_head(file)):
        return copied or "copied: binary"
    has_marks = _scan_text(path, file)
    return copied or (RENDERED if has_marks else "copied: nothing to render")


def is_template(text: str) -> bool:
    """Say whether a text has marks of the language; without one, rendering changes nothing."""
    return _MARKS.search(text) is not None


def _head(file: SkeletonFile) -> bytes:
    head = b""
    for chunk in file.chunks():
        head += chunk[:HEAD_BYTES]
        if len(head) >= HEAD_BYTES:
            break
    return head


def _scan_text(path: PurePosixPath, file: SkeletonFile) -> bool:
    """
    Say whether a text has marks of the language.

    Raises:
        RefusedError: Backstage, which reads and writes it as UTF-8, would destroy it.
    """
    decoder, place, last, has_marks = codecs.getincrementaldecoder("utf-8")(), 0, "", False
    for chunk in itertools.chain(file.chunks(), (b"",)):
        held = len(decoder.getstate()[0])  # bytes of a character that the chunk before cut
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise _no_text(path, place - held + error.start) from error
        place += len(chunk)
        # with the last character of the chunk before: a mark has two
        has_marks = has_marks or is_template(last + text)
        last = text[-1:] or last
    return has_marks


def _check_link(path: PurePosixPath, link: str, *, are_kept: bool) -> None:
    if not are_kept:
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


def _template_of(data: bytes, delimiters: Delimiters) -> Renderable:
    """Compile a file's bytes; equal bytes only once."""
    if len(data) > KEPT_MAX:
        return compile_template(data.decode(), delimiters)
    return _kept_template(data, delimiters, _planning=is_planning())


@functools.lru_cache(maxsize=2048)
def _kept_template(data: bytes, delimiters: Delimiters, *, _planning: bool) -> Renderable:
    # A plan takes filters that a run refuses: they are not compiled alike.
    return compile_template(data.decode(), delimiters)


def _no_text(path: PurePosixPath, byte: int) -> RefusedError:
    return RefusedError(
        f"{path}: is neither UTF-8 text nor binary: byte {byte} cannot be read",
        hint="Backstage would destroy it, also if it is only copied; store it as UTF-8",
    )


def _encode(text: str) -> bytes:
    """Encode as UTF-8; a lone surrogate becomes U+FFFD, as in Node."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def check_tree(files: Tree) -> None:
    """
    Refuse trees that we never write.

    Raises:
        RefusedError: A link, or a path that could leave the tree.
    """
    for path, file in files.items():
        check_path(str(path), origin=str(path))
        if file.symlink is not None:
            raise RefusedError(
                f"{path}: is a symbolic link", hint="put a file there; links are not rendered"
            )


def check_size(path: PurePosixPath | str, size: int, options: TreeOptions, total: int = 0) -> int:
    """
    Return a file's size if it may be rendered besides `total` other bytes.

    Raises:
        LimitError: It may not.
    """
    if size > options.file_max:
        what = f"{path}: has {size} bytes to render; one file may have at most {options.file_max}"
        raise size_error(what, 8 * size)
    if total + size > options.rendered_max:
        what = (
            f"{path}: has {size} bytes, with which {total + size} bytes are rendered; one folder "
            f"may have at most {options.rendered_max}"
        )
        raise size_error(what, 2 * (total + size))
    return size


def size_error(problem: str, wanted_bytes: int) -> LimitError:
    """Return the error for what exceeds the limit of sizes, and would fit into a higher one."""
    wanted = -(-wanted_bytes // MIB)
    return LimitError(
        problem,
        hint=f"raise the limit: --size-limit {wanted}, or templates.sizeMiB: {wanted} in "
        "platform.yaml; or copy what needs no rendering: copyWithoutTemplating",
    )
