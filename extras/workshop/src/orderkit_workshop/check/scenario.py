"""
A scenario of a kit: its reason, its input, whether it must be refused, and its outcome as files.

``tests/kits/<kit>/<case>/scenario.yaml`` holds one; the expected outcome is next to it in
``expected/``: `golden` returns its files, and `differences` says how two outcomes differ.

YAML that Orderkit writes is compared as data, so comments and layout do not count; rendered files
are compared byte by byte. The owner reference and Crossplane's own label and annotation of composed
resources are omitted: they are the same for every kit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import Meta

from compositions.composed import COMPOSITE_LABEL, RESOURCE_NAME_ANNOTATION, Composed
from compositions.managed_state import FAILURES
from compositions.simulation import Simulation
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest
from ground.shapes import StrictShape, changed, json_schema, read_shape
from ground.unified_diff import unified_diff
from yamlfiles import yaml11

Run = Literal["settle", "once"]


class RefusalStage(StrEnum):
    """The stages that may refuse a scenario, in their order."""

    FORM = "form"
    FILES = "files"
    XR = "xr"
    PIPELINE = "pipeline"


_Object = Annotated[
    Manifest, Meta(extra_json_schema={"type": "object", "required": ["apiVersion", "kind"]})
]


class Scenario(StrictShape, frozen=True, kw_only=True):
    """The input of a scenario. Exactly one of `values` and `xr` is set."""

    reason: Annotated[str, Meta(pattern=r"\S.*\S")]
    values: Mapping[str, Any] | None = None
    """Answers of the form."""
    xr: Manifest | None = None
    """An XR as in Git; apiVersion, kind and name may be omitted."""
    status: Mapping[str, Any] = {}
    """The XR's status before the run."""
    observed: Mapping[str, _Object] = {}
    """Composed resources that exist before the run, by logical name."""
    run: Run = "settle"
    """``once`` if resources exist and nothing is said."""
    statuses: Mapping[str, Mapping[str, Any]] = {}
    """Status that composed resources get once they exist, by logical name."""
    fail: Mapping[str, Annotated[str, Meta(extra_json_schema={"enum": list(FAILURES)})]] = {}
    """How composed resources fail, by logical name, as if their twin was asked to."""
    required: tuple[_Object, ...] = ()
    """Other objects of the cluster that stations may require."""
    refused: RefusalStage | None = None


def read_scenario(data: bytes, *, name: str) -> Scenario:
    """
    Read scenario.yaml; `name` is what messages call it.

    Raises:
        InvalidInputError: It is malformed, has no reason, or not exactly one of values and xr.
    """
    entries = yaml11.load(data, name=name, schema=json_schema(Scenario))
    if ("values" in entries) == ("xr" in entries):
        raise InvalidInputError(
            name,
            sorted(entries),
            "must have either values or xr",
            hint="values: answers of the form; xr: an XR as in Git",
        )
    scenario = read_shape(Scenario, entries)
    for manifest in (*scenario.observed.values(), *scenario.required):
        try:
            Kind.of(manifest)
        except ValueError as error:
            raise InvalidInputError(
                name, manifest, f"is not a Kubernetes object: {error}"
            ) from error
    is_once = scenario.observed and "run" not in entries
    return changed(scenario, run="once") if is_once else scenario


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
