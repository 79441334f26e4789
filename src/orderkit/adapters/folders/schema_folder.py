"""
Read a folder of schemas for one plan: CRDs, XRDs, OpenAPI documents.

The pack's own ``schemas/`` is read with the pack. Called by ``orderkit plan --schemas``.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from orderkit.core.errors import InvalidInputError
from orderkit.core.schema.known import Layer, read_layer

_FILE_MAX_BYTES = 20_000_000


def read_schemas(folder: Path) -> Layer:
    """
    Read a folder of schemas: CRDs, XRDs, OpenAPI documents; other files are skipped.

    Raises:
        InvalidInputError: A link, a file beyond 20 MB, or one that cannot be read.
    """
    files: dict[PurePosixPath, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.suffix not in {".yaml", ".yml", ".json"}:
            continue
        if path.is_symlink() or path.stat().st_size > _FILE_MAX_BYTES:
            raise InvalidInputError(str(path), None, "is a symbolic link, or larger than 20 MB")
        files[PurePosixPath(path.relative_to(folder))] = path.read_bytes()
    return read_layer(files)
