"""What is given on the command line: edits of fields, one XR in a file, prices, schemas."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest
from ground.objects.values import path_text
from orderkit.core.order.change import FieldEdit
from yamlfiles import assignments
from yamlfiles.manifests import parse_manifests

if TYPE_CHECKING:
    from kubeschema.known import Layer
    from orderkit.core.order.change.change_fields import Op
    from orderkit.core.plan.price_table import PriceTable


def edits(texts: Iterable[str]) -> tuple[FieldEdit, ...]:
    """
    Read ``field=value``, ``+=``, ``-=`` and ``field-``; values are read by their field later.

    Raises:
        InvalidInputError: One is not an edit.
    """
    parsed = (assignments.parse(text, as_text=True) for text in texts)
    return tuple(
        FieldEdit(
            path_text(assignment.path),
            cast("Op", assignment.op.value),
            assignment.value,
            typed=True,
        )
        for assignment in parsed
    )


def read_one(file: Path) -> Manifest:
    """
    Read a file with one XR.

    Raises:
        InvalidInputError: It holds none, or several. ManifestError: it is broken.
    """
    manifests = parse_manifests(str(file), file.read_bytes())
    if len(manifests) != 1:
        raise InvalidInputError(
            "--file",
            str(file),
            f"holds {len(manifests)} objects, not one XR",
            hint="keep one XR in the file, and order each other one from a file of its own",
        )
    return manifests[0]


def prices_of(file: Path | None) -> PriceTable | None:
    """
    Read a price table.

    Raises:
        InvalidInputError: It is broken.
    """
    if file is None:
        return None
    from orderkit.core.plan.price_table import read_prices

    today = datetime.now(UTC).date()
    return read_prices(file.read_bytes(), name=str(file), today=today)


def schemas_of(folder: Path | None) -> Layer | None:
    """Read a folder of schemas; raises like `read_schemas`."""
    if folder is None:
        return None
    from orderkit.adapters.folders.plan_files import read_schemas

    return read_schemas(folder)
