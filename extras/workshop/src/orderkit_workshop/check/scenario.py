"""
A scenario of a kit: its reason, its input, and whether it must be refused.

``tests/kits/<kit>/<case>/scenario.yaml`` holds one; the expected outcome is next to it in
``expected/`` (``check.expected_files``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta

from compositions.managed_state import FAILURES
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest
from ground.shapes import StrictShape, changed, json_schema, read_shape
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
