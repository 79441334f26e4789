"""The file of a recorded plan, for ``orderkit plan --record`` and ``--snapshot``."""

from __future__ import annotations

from pathlib import Path

from orderkit.core.errors import InvalidInputError
from orderkit.core.plan.snapshot import PlanSnapshot, from_text, to_text

_FILE_MAX_BYTES = 500_000_000


def save(snapshot: PlanSnapshot, file: Path) -> None:
    """
    Write a snapshot, whole or not at all.

    Raises:
        InvalidInputError: The file cannot be written.
    """
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(to_text(snapshot), encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise InvalidInputError(
            "--record", str(file), f"cannot be written: {error.strerror}"
        ) from error


def load(file: Path) -> PlanSnapshot:
    """
    Read a snapshot.

    Raises:
        InvalidInputError: It cannot be read, is none, or of another version of the format.
    """
    try:
        if file.stat().st_size > _FILE_MAX_BYTES:
            raise InvalidInputError("--snapshot", str(file), "is larger than 500 MB")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("--snapshot", str(file), f"cannot be read: {error}") from error
    return from_text(text, name=str(file))
