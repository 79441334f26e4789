"""JSON patches that copy without end, and what an API server answers."""

from __future__ import annotations

from typing import Any

OPERATIONS_MAX, COPIED_MAX = 10_000, 3 * 1024 * 1024
"""Of kube-apiserver: ``maxJSONPatchOperations`` and ``JSONPatchMaxCopyBytes``."""
SEED = "x" * 1000


def doubling(times: int) -> list[dict[str, Any]]:
    """Return a patch that copies the annotations into each other, twice as many each time."""
    grow = {"op": "copy", "from": "/metadata/annotations", "path": "/metadata/annotations/more"}
    return [{**grow, "path": f"/metadata/annotations/more{number}"} for number in range(times)]


def copying(size_bytes: int) -> list[dict[str, Any]]:
    """Return a patch that copies the seed as often as fits into `size_bytes`, and drops it."""
    copy = {"op": "copy", "from": "/data/seed", "path": "/data/copy"}
    return [copy] * (size_bytes // len(f'"{SEED}"'))


def comparisons(count: int) -> list[dict[str, Any]]:
    """Return a patch of so many operations that change nothing."""
    return [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * count


PATCHES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "doubles forty times": (doubling(40), 422),
    "copies as much as is allowed": (copying(COPIED_MAX), 200),
    "copies more than is allowed": (copying(COPIED_MAX + 1100), 422),
    "has as many operations as are allowed": (comparisons(OPERATIONS_MAX), 200),
    "has one operation too many": (comparisons(OPERATIONS_MAX + 1), 413),
    "tests in vain": ([{"op": "test", "path": "/data/seed", "value": "y"}], 422),
    "names no path": ([{"op": "remove", "path": "/data/none"}], 422),
}
"""By what each does: the patch, and the status code of the answer."""
