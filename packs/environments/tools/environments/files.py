"""
The files of a built front end: which there are, what they hold, and how browsers may keep them.

Pure but for reading the folder. Called by ``environments.sync``.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

KEY_BYTES_MAX = 1024
"""The longest key of S3, in UTF-8."""
SIZE_BYTES_MAX = 5 * 1024**3
"""The largest object of one PUT."""
ENTRY = "index.html"


class BuildError(Exception):
    """The folder cannot be published as it is; nothing was written."""


class Stage(IntEnum):
    """When a file is uploaded: each stage refers only to files of the stages before it."""

    HASHED = 0
    PLAIN = 1
    PAGE = 2
    ENTRY = 3


CACHE_CONTROL = {
    Stage.HASHED: "public, max-age=31536000, immutable",
    Stage.PLAIN: "public, max-age=60, must-revalidate",
    Stage.PAGE: "no-cache",
    Stage.ENTRY: "no-cache",
}
_ENTRY_SCRIPTS = frozenset({"remoteEntry.js", "service-worker.js", "sw.js"})
"""Scripts that others load by a fixed name: stale ones would load files that are gone."""

_TYPES = mimetypes.MimeTypes(
    filenames=()
)  # the same on every machine, whatever /etc/mime.types says
for _type, _suffixes in {
    "text/javascript": ".js .mjs",
    "application/json": ".map",
    "application/manifest+json": ".webmanifest",
    "application/wasm": ".wasm",
    "font/woff": ".woff",
    "font/woff2": ".woff2",
    "image/avif": ".avif",
    "image/webp": ".webp",
    "image/x-icon": ".ico",
}.items():
    for _suffix in _suffixes.split():
        _TYPES.add_type(_type, _suffix)
_COMPRESSED = {
    "gzip": "application/gzip",
    "br": "application/x-brotli",
    "bzip2": "application/x-bzip2",
}
_OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """One file of the build."""

    path: Path
    key: str
    size_bytes: int
    sha256: str
    """In hexadecimal."""
    stage: Stage

    @property
    def content_type(self) -> str:
        return content_type(self.key)

    @property
    def cache_control(self) -> str:
        if self.key.rpartition("/")[2] in _ENTRY_SCRIPTS:
            return CACHE_CONTROL[Stage.PAGE]
        return CACHE_CONTROL[self.stage]


def built_files(folder: Path, prefix: str = "") -> list[BuiltFile]:
    """
    Return the files below a folder, in the order of their keys.

    Raises:
        BuildError: The folder or its index.html is missing, or a file cannot be an object.
    """
    if not folder.is_dir():
        raise BuildError(f"{printable(folder)} is not a folder: build the front end first")
    root = folder.resolve()
    files = [_built(path, root, prefix) for path in _paths(folder)]
    if not any(file.key == prefix + ENTRY for file in files):
        raise BuildError(
            f"{printable(folder)} has no {ENTRY}: a build without it would remove the page that is "
            "served; name the folder that the build wrote"
        )
    return sorted(files, key=lambda file: file.key)


def _paths(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        for name in folders:
            if (Path(parent) / name).is_symlink():
                raise BuildError(f"{printable(Path(parent) / name)} is a link to a folder: copy it")
        yield from (Path(parent) / name for name in names)


def _refuse(error: OSError) -> None:
    raise BuildError(f"{printable(error.filename)} cannot be read: {error.strerror}") from error


def _built(path: Path, root: Path, prefix: str) -> BuiltFile:
    target = path.resolve()
    if not target.is_relative_to(root):
        raise BuildError(f"{printable(path)} leads out of the folder: copy the file")
    if not target.is_file():
        raise BuildError(f"{printable(path)} is not a file")
    try:
        key = prefix + (path.parent.resolve() / path.name).relative_to(root).as_posix()
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise BuildError(f"{printable(path)} has a name that is not UTF-8: rename it") from error
    size = target.stat().st_size
    if length > KEY_BYTES_MAX:
        raise BuildError(
            f"{printable(path)} makes a key of {length} bytes; {KEY_BYTES_MAX} are possible"
        )
    if size > SIZE_BYTES_MAX:
        raise BuildError(f"{printable(path)} has {size} bytes; {SIZE_BYTES_MAX} are possible")
    try:
        with target.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"{printable(path)} cannot be read: {error.strerror}") from error
    return BuiltFile(target, key, size, digest, stage_of(key.removeprefix(prefix)))


def stage_of(key: str) -> Stage:
    """Return when a file is uploaded."""
    if key == ENTRY:
        return Stage.ENTRY
    name = key.rpartition("/")[2]
    if name.endswith((".html", ".htm")):
        return Stage.PAGE
    return Stage.HASHED if has_hash(name) else Stage.PLAIN


_HEX = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{8,64}")
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])(?:[A-Za-z0-9_-]{8}|[A-Za-z0-9]{20,64})")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[-_]+")
_TURNS_MIN = 3


def has_hash(name: str) -> bool:
    """
    Return whether a file's name holds a hash of its content, as bundlers write it.

    ``main.3f2a9c1b.js`` (webpack), ``index-BtZ3kq1F.js`` (Vite), ``chunk-4XKQ2RTB.js`` (esbuild).
    In doubt it is none: a file without a hash that browsers keep for a year cannot be mended. So a
    hash without a digit, which is possible, does not count.
    """
    pieces = name.split(".")[:-1]
    return any(
        _is_hash(token) for n, piece in enumerate(pieces) for token in _tokens(piece, first=n == 0)
    )


def _tokens(piece: str, *, first: bool) -> Iterator[str]:
    """Yield what may be a hash: a whole part of the name, or what follows a dash in it."""
    if not first or _HEX.fullmatch(piece):
        yield piece
    for mark in "-_":
        before, _, token = piece.rpartition(mark)
        if before:
            yield token
    if piece[-9:-8] in {"-", "_"}:  # Vite's hashes may hold either
        yield piece[-8:]


def _is_hash(token: str) -> bool:
    if _HEX.fullmatch(token):
        return True
    return _MIXED.fullmatch(token) is not None and _turns(token) >= _TURNS_MIN


def _turns(token: str) -> int:
    """Count where words, capitals and digits follow each other: names have few."""
    return len(_PIECES.findall(token)) - 1


def content_type(key: str) -> str:
    """Return the media type by the name's ending, with the character set of texts."""
    kind, encoding = _TYPES.guess_type(key.rpartition("/")[2])
    if encoding is not None:
        return _COMPRESSED.get(encoding, _OCTETS)
    if kind is None:
        return _OCTETS
    is_text = kind.startswith("text/") or kind == "application/json"
    return f"{kind}; charset=utf-8" if is_text else kind


def printable(text: object) -> str:
    """Return a name as one line for a terminal, whatever characters it holds."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(text)
    )
