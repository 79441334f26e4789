"""What keeps an order from being ended."""

from __future__ import annotations

from typing import Any

import pytest

from ground.names import OrderId
from orderkit.core.order.end_record import DEPENDS_ON, PROTECTED, needs, protection


@pytest.mark.parametrize(
    ("value", "said", "reason"),
    [
        ("production", "production", "any text protects and says why"),
        ("true", "true", "so does a bare yes"),
        ("  audited \n", "audited", "blanks around it do not count"),
        ("false", "", "lifted"),
        ("False", "", "YAML writers capitalise"),
        (False, "", "an unquoted false, which the API server would refuse"),
        ("", "", "emptied"),
    ],
)
def test_an_annotation_protects(value: Any, said: str, reason: str) -> None:
    assert protection([{"kind": "X"}, xr(annotations={PROTECTED: value})]) == said, reason


@pytest.mark.parametrize(
    ("other", "reads_kind", "how", "reason"),
    [
        ({"annotations": {DEPENDS_ON: "a, disk-x"}}, False, "annotation", "named"),
        ({"annotations": {DEPENDS_ON: "a disk-x"}}, False, "annotation", "blanks separate too"),
        ({"annotations": {DEPENDS_ON: "disk-x2"}}, False, "", "another id that begins alike"),
        ({"spec": {"from": {"disks": ["a", "x"]}}}, True, "spec.from.disks[1]", "a name in spec"),
        ({"spec": {"from": {"disks": ["a", "x"]}}}, False, "", "its kit does not read disks"),
        ({"spec": {"note": "uses x"}}, True, "", "only whole values are names"),
        ({}, True, "", "nothing said"),
    ],
)
def test_another_order_needs_it(
    other: dict[str, Any], *, reads_kind: bool, how: str, reason: str
) -> None:
    found = needs(xr(**other), OrderId("disk-x"), "x", reads_kind=reads_kind)

    assert (how in found) if how else found == "", reason


def xr(annotations: dict[str, Any] | None = None, spec: Any = None) -> dict[str, Any]:
    return {"kind": "XDisk", "metadata": {"name": "y", "annotations": annotations}, "spec": spec}
