"""
List the CSV files of a bucket, whichever store it is: ``gs://``, ``s3://``, ``file://``, ``memory://``.

fsspec does the listing; it needs ``gcsfs`` and ``s3fs`` for the first two, which are in the
controllers' image. Every failure becomes an OrderkitError, so that a caller can tell an empty
bucket from one that does not answer. Blobs are never opened.

Called by ``watching``, ``planning`` and ``registry``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from orderkit.controllers import InvalidInputError, RemoteError, UnreachableError, shorten
from whisperops.naming import SUFFIX

SCHEMES = ("gs", "s3", "file", "memory")
BLOBS_MAX = 100_000
"""A larger bucket is refused: etcd should not hold more records."""
_VERSIONS = ("etag", "ETag", "md5Hash", "mtime", "LastModified", "created")
_WALKED = ("file", "memory")
"""Stores whose files fsspec walks; by default it silently leaves out what it cannot read."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A CSV file, as a listing shows it."""

    path: str
    """Relative to the root, spelt as in the bucket."""
    size_bytes: int
    version: str
    """Changes with the content, if the store reports anything that does."""


class Bucket(Protocol):
    """Lists blobs. `root` has no trailing slash."""

    @property
    def root(self) -> str: ...

    def blobs(self) -> list[Blob]:
        """
        Return every CSV, sorted by path.

        Raises:
            RemoteError: The store cannot be listed completely.
            UnreachableError: The store does not answer now.
        """
        ...


class FsspecBucket:
    """A bucket, or a folder of one, behind fsspec."""

    def __init__(self, url: str, *, timeout_s: float = 60.0) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `url` names no store, or one whose package is not installed.
        """
        self.root = checked_root(url)
        self._timeout_s = timeout_s
        self._scheme = urlsplit(self.root).scheme
        self._listing_thread: threading.Thread | None = None
        _check_package(self._scheme, self.root)
        self._files: Any = None
        self._folder = ""

    def blobs(self) -> list[Blob]:
        """
        Return every CSV, sorted by path; see `Bucket`.

        Raises:
            UnreachableError: No answer in time. RemoteError: the store refuses, or has too many.
        """
        if self._listing_thread is not None and self._listing_thread.is_alive():
            raise UnreachableError(f"{self.root}: the previous listing still waits for an answer")
        results: list[list[Blob] | Exception] = []
        self._listing_thread = threading.Thread(
            target=self._list_into, args=(results,), daemon=True
        )
        self._listing_thread.start()
        self._listing_thread.join(self._timeout_s)
        if not results:
            raise UnreachableError(f"{self.root}: no listing within {self._timeout_s:g} s")
        result = results[0]
        if isinstance(result, Exception):
            raise self._remote_error(result) from result
        return result

    def _list_into(self, results: list[list[Blob] | Exception]) -> None:
        try:
            results.append(sorted(self._list(), key=lambda blob: blob.path))
        except Exception as error:  # noqa: BLE001  raised again by the caller's thread
            results.append(error)

    def _list(self) -> Iterator[Blob]:
        if self._files is None:  # late: this may look for credentials, which may come later
            self._files, self._folder = _open(self.root)
        self._files.invalidate_cache()
        options = {"on_error": "raise"} if self._scheme in _WALKED else {}
        listing: Mapping[str, Mapping[str, Any]] = self._files.find(
            self._folder, detail=True, **options
        )
        if not listing and not self._files.exists(self._folder):
            raise RemoteError(
                f"{self.root}: there is no such bucket or folder", hint="check --bucket"
            )
        prefix = len(self._folder.rstrip("/"))
        infos = {name[prefix:].lstrip("/"): info for name, info in listing.items()}
        csvs = {path: info for path, info in infos.items() if path.endswith(SUFFIX)}
        if len(csvs) > BLOBS_MAX:
            raise RemoteError(
                f"{self.root}: {len(csvs)} CSV files, at most {BLOBS_MAX}",
                hint="name a folder of the bucket",
            )
        for path, info in csvs.items():
            yield Blob(path, _size(path, info), _version(info))

    def _remote_error(self, error: Exception) -> RemoteError:
        if isinstance(error, RemoteError):
            return error
        reason = shorten(f"{type(error).__name__}: {error}")
        return UnreachableError(f"{self.root} cannot be listed: {reason}")


def source_of(bucket: str) -> str:
    """Return the label of a bucket: ``gs://whisperops/csv`` is ``whisperops-csv``."""
    plain = re.sub(r"[^a-z0-9]+", "-", bucket.partition("://")[2].lower()).strip("-")
    return plain[:40].rstrip("-")


def checked_root(url: str) -> str:
    """
    Return a bucket's address without a trailing slash.

    Raises:
        InvalidInputError: It names no bucket or folder, or its scheme is not in `SCHEMES`.
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
    import fsspec  # lazy: half a second that `--help` and the meter need not spend

    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise InvalidInputError(
            "bucket", root, f"needs a package that is not installed: {error}"
        ) from error


def _open(root: str) -> tuple[Any, str]:
    import fsspec

    files, folder = fsspec.core.url_to_fs(root)
    return files, str(folder)


def _size(path: str, info: Mapping[str, Any]) -> int:
    size = info.get("size", info.get("Size"))
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise RemoteError(f"{path}: the listing shows no size")
    return size


def _version(info: Mapping[str, Any]) -> str:
    """Return the first value that changes with the content; which one depends on the store."""
    for key in _VERSIONS:
        value = info.get(key)
        if isinstance(value, datetime):
            return value.isoformat()
        if value:
            return f"{value:.6f}" if isinstance(value, float) else str(value).strip('"')
    return ""
