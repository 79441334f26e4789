"""
The end of an order as recorded in the ledger: the current step, and what must be gone.

``data/<team>/<order>/end.yaml`` while it ends, ``tombstone.yaml`` afterwards. Each step is recorded
before it is carried out, so that a repeated command knows where to continue. The list of objects
that must disappear is made before anything is changed.

Written by ``flows.end.destroying``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ground.names import OrderId
from ground.objects.kube_objects import ObjectKey
from yamlfiles import yaml11
from yamlfiles.documents import record, record_schema

Step = Literal["marked", "emptying", "removing", "unregistering", "closing"]
STEPS: tuple[Step, ...] = get_args(Step)
Phase = Literal["first"] | Step
"""The phases that an end reports; ``first`` comes before anything is recorded."""
Survivor = Literal["archive", "delete"]
"""What happens to the repository."""

_OBJECT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "name"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
_SCHEMA = record_schema(
    ["End", "Tombstone"],
    {
        **{
            key: {"type": "string"}
            for key in ("requester", "kit", "startedAt", "endedAt", "emptiedAt")
        },
        "repository": {"enum": ["archive", "delete"]},
        "step": {"enum": list(STEPS)},
        "mustBeGone": {"type": "array", "items": _OBJECT},
        "survives": {"type": "array", "items": {"type": "string"}},
    },
    ["requester", "kit", "repository", "step", "mustBeGone"],
)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """One order's end. Times are UTC in ISO 8601."""

    order: OrderId
    kit: str
    requester: str
    repository: Survivor
    step: Step
    started_at: str
    must_be_gone: Sequence[ObjectKey]
    emptied_at: str = ""
    """The commit in the order's repository that removed its manifests."""
    ended_at: str = ""
    survives: Sequence[str] = ()
    """What outlives the order according to its kit, in words."""

    @property
    def is_withdrawal(self) -> bool:
        """Whether it is the end of an order that waited, of which nothing was ever delivered."""
        return self.passed("removing") and not (self.must_be_gone or self.emptied_at)

    def at(self, step: Step) -> EndRecord:
        """Return the record at a later step."""
        return replace(self, step=step)

    def passed(self, step: Step) -> bool:
        """Say whether a step after `step` is recorded."""
        return STEPS.index(self.step) > STEPS.index(step)

    def to_yaml(self) -> str:
        spec: dict[str, Any] = {
            "requester": self.requester,
            "kit": self.kit,
            "repository": self.repository,
            "step": self.step,
            "startedAt": self.started_at,
            "emptiedAt": self.emptied_at,
            "endedAt": self.ended_at,
            "mustBeGone": [key.to_json() for key in self.must_be_gone],
            "survives": list(self.survives) or "",
        }
        kept = {key: value for key, value in spec.items() if value != ""}
        kind = "Tombstone" if self.ended_at else "End"
        return yaml11.dump(record(kind, str(self.order), kept))


def parse(text: str, *, name: str) -> EndRecord:
    """
    Read a record; `name` is what messages call the file.

    Raises:
        InvalidInputError: It is unreadable or incomplete.
    """
    document = yaml11.load(text, name=name, schema=_SCHEMA)
    spec = document["spec"]
    return EndRecord(
        order=OrderId(document["metadata"]["name"]),
        kit=spec["kit"],
        requester=spec["requester"],
        repository=spec["repository"],
        step=spec["step"],
        started_at=spec.get("startedAt", ""),
        must_be_gone=tuple(ObjectKey.from_json(entry) for entry in spec["mustBeGone"]),
        emptied_at=spec.get("emptiedAt", ""),
        ended_at=spec.get("endedAt", ""),
        survives=tuple(spec.get("survives", ())),
    )
