"""
What prevents the end of an order: its own protection, and other orders that depend on it.

Both are annotations in the XR's file, so they change through Git like the rest of an order:

    metadata:
      annotations:
        orderkit.dev/protected: production until the audit in May    # any text; false lifts it
        orderkit.dev/depends-on: bucket-photos, network-blue         # ids of other orders

An XR also depends on another one if its kit declares that its stations read that kind
(``requires``) and a field of its spec has the other XR's name. Pure; called by
``flows.end.guard_check``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ground.names import OrderId
from ground.objects.kube_objects import Manifest, dig

PROTECTED = "orderkit.dev/protected"
DEPENDS_ON = "orderkit.dev/depends-on"
_LIFTED = ("", "false")


def protection(manifests: Iterable[Manifest]) -> str:
    """Return the reason of the first protected object; empty if none is protected."""
    for manifest in manifests:
        text = str(dig(manifest, "metadata", "annotations", PROTECTED, default="")).strip()
        if text.lower() not in _LIFTED:
            return text
    return ""


def needs(other: Manifest, order: OrderId, xr_name: str, *, reads_kind: bool) -> str:
    """
    Return how another XR depends on an order; empty if it does not.

    Args:
        xr_name: The name of the order's XR.
        reads_kind: Whether the other XR's kit reads objects of this order's kind.
    """
    depends_on = dig(other, "metadata", "annotations", DEPENDS_ON, default="")
    if order in str(depends_on).replace(",", " ").split():
        return f"its annotation {DEPENDS_ON}"
    if reads_kind:
        for path, value in _texts(other.get("spec"), "spec"):
            if value == xr_name:
                return f"its {path}"
    return ""


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")
