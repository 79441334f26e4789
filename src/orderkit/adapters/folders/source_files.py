"""Files of manifests on this machine, for ``orderkit validate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from orderkit.core.errors import UsageError
from orderkit.core.schema.validate.file_check import SourceFile
from orderkit.core.yaml.manifests import DEFAULT_LIMITS

_SUFFIXES = (".yaml", ".yml", ".json")
_MANIFESTS = "manifests"


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
            root = path / _MANIFESTS if (path / _MANIFESTS).is_dir() else path
            yield from (_source(file, is_named=root != path) for file in _files(root))
        elif path.is_file():
            yield _source(path, is_named=True)
        else:
            raise UsageError(f"{path} does not exist", hint="give files or folders that exist")


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*")):
        hidden = any(name.startswith(".") for name in file.relative_to(root).parts)
        plain = file.is_file() and not file.is_symlink()
        if file.suffix in _SUFFIXES and plain and not hidden:
            yield file


def _source(path: Path, *, is_named: bool) -> SourceFile:
    size_bytes = path.stat().st_size
    data = path.read_bytes() if size_bytes <= DEFAULT_LIMITS.size_bytes else None
    return SourceFile(path, data, is_named=is_named)
