"""
The outcome of a scenario as the files of its ``expected/`` folder, and how two outcomes differ.

YAML that Orderkit writes is compared as data, so comments and layout do not count; rendered files
are compared byte by byte. The owner reference and Crossplane's own label and annotation of composed
resources are omitted: they are the same for every kit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from compositions.composed import Composed
from compositions.composed_metadata import COMPOSITE_LABEL, RESOURCE_NAME_ANNOTATION
from compositions.simulation import Simulation
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest
from ground.unified_diff import unified_diff
from orderkit_workshop.check.scenario import RefusalStage
from yamlfiles import yaml11

FILES = PurePosixPath("files")
RESOURCES = PurePosixPath("resources.yaml")
OUTCOME = PurePosixPath("outcome.yaml")
ERROR = PurePosixPath("error.txt")
_DATA = {RESOURCES, OUTCOME}
_HEAD = "# Written by 'orderkit kit test --update'; compared as data.\n"
_MAP = {"type": "object"}

Golden = Mapping[PurePosixPath, bytes]
"""The files of ``expected/``, by their path in it."""


@dataclass(frozen=True, slots=True)
class ScenarioRefusal:
    """The stage that refused a scenario, and its message."""

    stage: RefusalStage
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """The outcome of a scenario: a refusal, or files and a run of the pipeline."""

    refusal: ScenarioRefusal | None = None
    files: Mapping[PurePosixPath, bytes] = field(default_factory=dict)
    simulation: Simulation | None = None
    not_run: str = ""
    """Why the pipeline was not run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file of ``expected/`` that differs from the outcome."""

    path: PurePosixPath
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """Return a unified diff from the expected to the actual file."""
        old = f"expected/{self.path}" if self.before is not None else "(nothing expected)"
        new = "what came out" if self.after is not None else "(nothing came out)"
        return unified_diff(self.before, self.after, old, new)


def golden(outcome: ScenarioOutcome) -> dict[PurePosixPath, bytes]:
    """Return the files that record an outcome. Deterministic."""
    if outcome.refusal is not None:
        hint = f"hint: {outcome.refusal.hint}\n" if outcome.refusal.hint else ""
        return {ERROR: f"{outcome.refusal.message}\n{hint}".encode()}
    files = {FILES / path: data for path, data in outcome.files.items()}
    if outcome.simulation is None:
        return {**files, OUTCOME: _yaml({"notRun": outcome.not_run})}
    composed = outcome.simulation.final
    resources = {
        name: {"ready": desired.ready, "object": _without_crossplane_metadata(desired.manifest)}
        for name, desired in composed.resources.items()
    }
    return {
        **files,
        RESOURCES: _yaml(resources),
        OUTCOME: _yaml(dict(_outcome_entries(composed, outcome.simulation))),
    }


def differences(expected: Golden, came: Golden) -> tuple[Difference, ...]:
    """Return the differing files, sorted by path."""
    return tuple(
        Difference(path, expected.get(path), came.get(path))
        for path in sorted({*expected, *came})
        if not _same(path, expected.get(path), came.get(path))
    )


def _same(path: PurePosixPath, before: bytes | None, after: bytes | None) -> bool:
    if before == after:
        return True
    if before is None or after is None or path not in _DATA:
        return False
    try:
        old = yaml11.load(before, name=str(path), schema=_MAP)
    except InvalidInputError:
        return False
    return old == yaml11.load(after, name=str(path), schema=_MAP)


def _yaml(value: dict[str, Any]) -> bytes:
    return f"{_HEAD}{yaml11.dump(value)}".encode()


def _outcome_entries(composed: Composed, simulation: Simulation) -> Iterator[tuple[str, Any]]:
    ready = composed.ready_condition
    condition = {"status": ready.status, "reason": ready.reason, "message": ready.message}
    yield "ready", {key: value for key, value in condition.items() if value}
    yield "status", dict(composed.status)
    if composed.conditions:
        yield (
            "conditions",
            [
                {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
                for c in composed.conditions
            ],
        )
    if composed.events:
        yield (
            "events",
            [{"type": e.type, "reason": e.reason, "message": e.message} for e in composed.events],
        )
    deleted = sorted({name for round_ in simulation.rounds for name in round_.deletions})
    if deleted:
        yield "deleted", deleted
    if len(simulation.appearance) > 1:
        yield "appear", [list(names) for names in simulation.appearance]


def _without_crossplane_metadata(manifest: Manifest) -> Manifest:
    """Return the object without what Crossplane adds to every composed resource."""
    meta = dict(manifest["metadata"])
    meta.pop("ownerReferences", None)
    for key, theirs in (("labels", COMPOSITE_LABEL), ("annotations", RESOURCE_NAME_ANNOTATION)):
        kept = {name: value for name, value in (meta.get(key) or {}).items() if name != theirs}
        meta.pop(key, None)
        if kept:
            meta[key] = kept
    return {**manifest, "metadata": meta}
