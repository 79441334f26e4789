"""
A scenario of a kit: its reason, its input, and whether it must be refused.

``tests/kits/<kit>/<case>/scenario.yaml`` holds one; the expected outcome is next to it in
``expected/`` (``check.expected_files``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from compositions.managed_state import FAILURES
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest
from yamlfiles import yaml11

Run = Literal["settle", "once"]


class RefusalStage(StrEnum):
    """The stages that may refuse a scenario, in their order."""

    FORM = "form"
    FILES = "files"
    XR = "xr"
    PIPELINE = "pipeline"


_OBJECT = {"type": "object", "required": ["apiVersion", "kind"]}
SCENARIO_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reason"],
    "properties": {
        "reason": {"type": "string", "pattern": r"\S.*\S"},
        "values": {"type": "object"},
        "xr": {"type": "object"},
        "status": {"type": "object"},
        "observed": {"type": "object", "additionalProperties": _OBJECT},
        "run": {"enum": ["settle", "once"]},
        "statuses": {"type": "object", "additionalProperties": {"type": "object"}},
        "fail": {"type": "object", "additionalProperties": {"enum": list(FAILURES)}},
        "required": {"type": "array", "items": _OBJECT},
        "refused": {"enum": [stage.value for stage in RefusalStage]},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The input of a scenario. Exactly one of `values` and `xr` is set."""

    reason: str
    values: Mapping[str, Any] | None = None
    """Answers of the form."""
    xr: Manifest | None = None
    """An XR as in Git; apiVersion, kind and name may be omitted."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The XR's status before the run."""
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources that exist before the run, by logical name."""
    run: Run = "settle"
    statuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Status that composed resources get once they exist, by logical name."""
    fail: Mapping[str, str] = field(default_factory=dict)
    """How composed resources fail, by logical name, as if their twin was asked to."""
    required: Sequence[Manifest] = ()
    """Other objects of the cluster that stations may require."""
    refused: RefusalStage | None = None


def read_scenario(data: bytes, *, name: str) -> Scenario:
    """
    Read scenario.yaml; `name` is what messages call it.

    Raises:
        InvalidInputError: It is malformed, has no reason, or not exactly one of values and xr.
    """
    entries = yaml11.load(data, name=name, schema=SCENARIO_SCHEMA)
    if ("values" in entries) == ("xr" in entries):
        raise InvalidInputError(
            name,
            sorted(entries),
            "must have either values or xr",
            hint="values: answers of the form; xr: an XR as in Git",
        )
    observed = entries.get("observed", {})
    objects = [*observed.values(), *entries.get("required", ())]
    for manifest in objects:
        try:
            Kind.of(manifest)
        except ValueError as error:
            raise InvalidInputError(
                name, manifest, f"is not a Kubernetes object: {error}"
            ) from error
    return Scenario(
        reason=entries["reason"],
        values=entries.get("values"),
        xr=entries.get("xr"),
        status=entries.get("status", {}),
        observed=observed,
        run=entries.get("run", "once" if observed else "settle"),
        statuses=entries.get("statuses", {}),
        fail=entries.get("fail", {}),
        required=tuple(entries.get("required", ())),
        refused=RefusalStage(entries["refused"]) if "refused" in entries else None,
    )
