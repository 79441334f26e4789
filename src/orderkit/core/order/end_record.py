"""
The end of an order: its record in the ledger, and what prevents it.

The record has the current step, and what must be gone. It is ``data/<team>/<order>/end.yaml`` while
the order ends, ``tombstone.yaml`` afterwards. Each step is recorded before it is carried out, so
that a repeated command knows where to continue. The list of objects that must disappear is made
before anything is changed.

What prevents an end is an order's own protection (`protection`), and other orders that depend on it
(`needs`). Both are annotations in the XR's file, so they change through Git like the rest of an
order:

    metadata:
      annotations:
        orderkit.dev/protected: production until the audit in May    # any text; false lifts it
        orderkit.dev/depends-on: bucket-photos, network-blue         # ids of other orders

An XR also depends on another one if its kit declares that its stations read that kind
(``requires``) and a field of its spec has the other XR's name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from ground.names import OrderId
from ground.objects.kube_objects import Manifest, ObjectKey, dig
from ground.shapes import ObjectReference, Shape, changed
from orderkit.core.documents import read_document, write_document

Step = Literal["marked", "emptying", "removing", "unregistering", "closing"]
STEPS: tuple[Step, ...] = get_args(Step)
Phase = Literal["first"] | Step
"""The phases that an end reports; ``first`` comes before anything is recorded."""
Survivor = Literal["archive", "delete"]
"""What happens to the repository."""


class EndRecord(Shape, frozen=True, kw_only=True):
    """One order's end. Times are UTC in ISO 8601."""

    order: OrderId
    requester: str
    kit: str
    repository: Survivor
    step: Step
    started_at: str = ""
    emptied_at: str = ""
    """The commit in the order's repository that removed its manifests."""
    ended_at: str = ""
    removal_scheduled: str = ""
    """The day on which the forge was told to remove the repository, which it keeps for a while."""
    must_be_gone: tuple[ObjectReference, ...]
    survives: tuple[str, ...] = ()
    """What outlives the order according to its kit, in words."""

    @property
    def objects(self) -> tuple[ObjectKey, ...]:
        """What must be gone."""
        return tuple(reference.key for reference in self.must_be_gone)

    @property
    def repository_is(self) -> str:
        """What became of the repository, in words: ``archived``, ``deleted`` or until when."""
        if self.removal_scheduled:
            return f"scheduled for deletion since {self.removal_scheduled}"
        return f"{self.repository}d"

    @property
    def is_withdrawal(self) -> bool:
        """Whether it is the end of an order that waited, of which nothing was ever delivered."""
        return self.passed("removing") and not (self.must_be_gone or self.emptied_at)

    def at(self, step: Step) -> EndRecord:
        """Return the record at a later step."""
        return changed(self, step=step)

    def passed(self, step: Step) -> bool:
        """Say whether a step after `step` is recorded."""
        return STEPS.index(self.step) > STEPS.index(step)

    def to_yaml(self) -> str:
        kind = "Tombstone" if self.ended_at else "End"
        return write_document(kind, self, named="order")


def parse(text: str, *, name: str) -> EndRecord:
    """
    Read a record; `name` is what messages call the file.

    Raises:
        InvalidInputError: It is unreadable or incomplete.
    """
    kinds = ("End", "Tombstone")
    return read_document(EndRecord, text, name=name, kinds=kinds, named="order")


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
