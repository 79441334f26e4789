"""Files of manifests on this machine, for ``orderkit validate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ground.errors import UsageError
from kubeschema.validate.file_check import SourceFile
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.order_file import MANIFESTS, OrderFile
from orderkit.core.order.repository_check import SUFFIXES, OrderRepository
from yamlfiles.manifests import DEFAULT_LIMITS


def sources(paths: Sequence[Path]) -> Iterator[SourceFile]:
    """
    Yield the files that are meant: each named one, and of folders all YAML and JSON.

    A folder with ``manifests/`` is an order's repository: only that is read. Symbolic links
    and hidden folders inside a folder are skipped.

    Raises:
        UsageError: A path does not exist.
    """
    for path in paths:
        if path.is_dir():
            root = path / MANIFESTS if (path / MANIFESTS).is_dir() else path
            yield from (_source(file, is_named=root != path) for file in _files(root))
        elif path.is_file():
            yield _source(path, is_named=True)
        else:
            raise UsageError(f"{path} does not exist", hint="give files or folders that exist")


def order_repository(folder: Path, kit: Kit, record: OrderFile) -> OrderRepository:
    """Return an order's repository as it lies in a folder; symbolic links are not followed."""

    def read(path: PurePosixPath) -> bytes | None:
        file = folder / path
        if file.is_symlink():
            return None
        with file.open("rb") as stream:
            return stream.read(DEFAULT_LIMITS.size_bytes + 1)

    files = (file for file in folder.rglob("*") if file.is_symlink() or file.is_file())
    paths = (PurePosixPath(file.relative_to(folder)) for file in files)
    own = sorted(path for path in paths if path.parts[0] != ".git")
    return OrderRepository(record.order, kit, own, read, folder)


def order_record(folder: Path) -> OrderFile | None:
    """
    Return the record of the order whose repository a folder is; None if it is none.

    Raises:
        InvalidInputError: The record cannot be read.
    """
    file = folder / order_file.PATH
    return order_file.parse(file.read_bytes(), name=str(file)) if file.is_file() else None


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*")):
        hidden = any(name.startswith(".") for name in file.relative_to(root).parts)
        plain = file.is_file() and not file.is_symlink()
        if file.suffix in SUFFIXES and plain and not hidden:
            yield file


def _source(path: Path, *, is_named: bool) -> SourceFile:
    size_bytes = path.stat().st_size
    data = path.read_bytes() if size_bytes <= DEFAULT_LIMITS.size_bytes else None
    return SourceFile(path, data, is_named=is_named)
