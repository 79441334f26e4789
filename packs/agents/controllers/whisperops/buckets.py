"""
List the CSV files of a bucket, whichever store it is: ``gs://``, ``s3://``, ``file://``, ``memory://``.

fsspec does the listing; ``gcsfs`` and ``s3fs`` are needed for the first two and are in the
controllers' image. Every failure is one error of ours, so that a caller can tell "nothing there"
from "nobody answered". Blobs are never opened.

Called by ``watching``, ``planning`` and ``registry``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from orderkit.core.errors import InvalidInputError, RemoteError, UnreachableError, shorten
from whisperops.naming import SUFFIX

SCHEMES = ("gs", "s3", "file", "memory")
BLOBS_MAX = 100_000
"""More than a registry in etcd should hold: refused as a whole."""
_VERSIONS = ("etag", "ETag", "md5Hash", "mtime", "LastModified", "created")
_WALKED = ("file", "memory")
"""Stores that are walked: unless told, the walk leaves out silently what it cannot read."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A CSV as a listing shows it."""

    path: str
    """Below the root, with the name it has in the bucket."""
    size_bytes: int
    version: str
    """Changes with the content, as far as the store tells."""


class Bucket(Protocol):
    """Where blobs are listed. `root` ends in no slash."""

    @property
    def root(self) -> str: ...

    def blobs(self) -> list[Blob]:
        """
        Return every CSV, sorted by path.

        Raises:
            RemoteError: The store cannot be listed completely; UnreachableError: nor now.
        """
        ...


class FsspecBucket:
    """A bucket, or a folder of one, behind fsspec."""

    def __init__(self, url: str, *, timeout_s: float = 60.0) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `url` names no store that can be listed here.
        """
        self.root = checked_root(url)
        self._timeout_s = timeout_s
        self._scheme = urlsplit(self.root).scheme
        self._hanging: threading.Thread | None = None
        _check_package(self._scheme, self.root)
        self._files: Any = None
        self._folder = ""

    def blobs(self) -> list[Blob]:
        """
        Return every CSV, sorted by path; see the port.

        Raises:
            UnreachableError: No answer in time. RemoteError: the store refuses, or holds too many.
        """
        if self._hanging is not None and self._hanging.is_alive():
            raise UnreachableError(f"{self.root}: the listing before is still waiting")
        answer: list[list[Blob] | Exception] = []
        self._hanging = threading.Thread(target=self._answer, args=(answer,), daemon=True)
        self._hanging.start()
        self._hanging.join(self._timeout_s)
        if not answer:
            raise UnreachableError(f"{self.root}: no listing within {self._timeout_s:g} s")
        found = answer[0]
        if isinstance(found, Exception):
            raise self._failure(found) from found
        return found

    def _answer(self, answer: list[list[Blob] | Exception]) -> None:
        try:
            answer.append(sorted(self._listed(), key=lambda blob: blob.path))
        except Exception as error:  # noqa: BLE001  raised again by the caller's thread
            answer.append(error)

    def _listed(self) -> Iterator[Blob]:
        if self._files is None:  # not before: credentials may be looked for, and come later
            self._files, self._folder = _opened(self.root)
        self._files.invalidate_cache()
        how = {"on_error": "raise"} if self._scheme in _WALKED else {}
        found: Mapping[str, Mapping[str, Any]] = self._files.find(self._folder, detail=True, **how)
        if not found and not self._files.exists(self._folder):
            raise RemoteError(
                f"{self.root}: there is no such bucket or folder", hint="check --bucket"
            )
        inside = len(self._folder.rstrip("/"))
        wanted = {name[inside:].lstrip("/"): info for name, info in found.items()}
        csvs = {path: info for path, info in wanted.items() if path.endswith(SUFFIX)}
        if len(csvs) > BLOBS_MAX:
            raise RemoteError(
                f"{self.root}: {len(csvs)} CSV files, at most {BLOBS_MAX}",
                hint="name a folder of the bucket",
            )
        for path, info in csvs.items():
            yield Blob(path, _size(path, info), _version(info))

    def _failure(self, error: Exception) -> RemoteError:
        if isinstance(error, RemoteError):
            return error
        said = shorten(f"{type(error).__name__}: {error}")
        return UnreachableError(f"{self.root} cannot be listed: {said}")


def checked_root(url: str) -> str:
    """
    Return a bucket's address without its last slash.

    Raises:
        InvalidInputError: It names no bucket or folder, or no scheme of `SCHEMES`.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise InvalidInputError("bucket", url, f"begins with none of {', '.join(SCHEMES)} and ://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError("bucket", parts.scheme, "must have no user, query or fragment")
    if not (parts.netloc + parts.path).strip("/"):
        raise InvalidInputError("bucket", url, "names no bucket", hint="for example gs://datasets")
    return url.rstrip("/")


def _check_package(scheme: str, root: str) -> None:
    import fsspec  # lazy: only who lists pays for it

    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise InvalidInputError(
            "bucket", root, f"needs a package that is not installed: {error}"
        ) from error


def _opened(root: str) -> tuple[Any, str]:
    import fsspec

    files, folder = fsspec.core.url_to_fs(root)
    return files, str(folder)


def _size(path: str, info: Mapping[str, Any]) -> int:
    size = info.get("size", info.get("Size"))
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise RemoteError(f"{path}: the listing names no size")
    return size


def _version(info: Mapping[str, Any]) -> str:
    """Return the first of what stores tell contents apart by."""
    for key in _VERSIONS:
        value = info.get(key)
        if isinstance(value, datetime):
            return value.isoformat()
        if value:
            return f"{value:.6f}" if isinstance(value, float) else str(value).strip('"')
    return ""
