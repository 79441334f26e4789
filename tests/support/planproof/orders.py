"""
Orders of a kit and changes of them, made from its schema: what a form could send, and more.

Values come from hypothesis, by the XRD's schema; fields that must fit the world (names, teams,
datasets) come from a table. A change sets each field of one of the kit's allowed changes to
another value, or takes it away where the schema lets it be absent.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formanswers import value
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ground.objects.kube_objects import Manifest, dig
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.model import Kit

DATASETS = {
    "california-housing": ("gs://whisperops-datasets/California_Housing.csv", 1_992_294),
    "spotify-tracks": ("gs://whisperops-datasets/spotify-tracks.csv", 900_000_000),
    "online-retail": ("gs://other-bucket/2026/online.csv", 45_000_000),
    "everything": ("gs://third-bucket/all.csv", 9_000_000_000),
}
NOT_READY, MISSING = "half-uploaded", "never-heard-of"
_NAMES = st.sampled_from([*DATASETS, *DATASETS, *DATASETS, *DATASETS, NOT_READY, MISSING])
_FIXED: Mapping[str, Callable[[str], Any]] = {
    "agentName": str,
    "teamName": str,
    "owner": lambda _: "ae86",
    "baseDomain": lambda _: "apps.example.org:8443",
    "projectId": lambda _: "whisperops-lab",
}
_CHOSEN: Mapping[str, st.SearchStrategy[Any]] = {
    "datasetRef.name": _NAMES,
    "targets": st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["planner", "worker", "third"])},
            optional={"replicas": st.integers(1, 3)},
        ),
        min_size=1,
        unique_by=lambda target: target["name"],
    ),
}
"""Fields whose values name what the ground has."""


@dataclass(frozen=True)
class Change:
    """A step in the life of an order: the whole XR as it is wanted from then on."""

    name: str
    xr: Manifest


@dataclass(frozen=True)
class Order:
    """An order as it is placed, and every allowed change of it, one after the other."""

    kit: Kit
    xr: Manifest
    changes: Sequence[Change] = field(default=())

    @property
    def name(self) -> str:
        return str(self.xr["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.xr["metadata"].get("namespace") or "")


def orders(kit: Kit, count: int, *, chance: int, first: int = 1) -> list[Order]:
    """
    Return so many orders of a kit, with all their changes.

    Args:
        chance: The seed.
        first: Number of the first one's name.
    """
    drawn: list[tuple[dict[str, Any], list[Any]]] = []
    wanted = list(_wanted(kit))
    schema = kit.xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    @seed(chance)
    @settings(
        max_examples=max(1, count),
        derandomize=False,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_spec(schema), st.tuples(*(_other(schema, path) for _, path, _ in wanted)))
    def draw(spec: dict[str, Any], values: tuple[Any, ...]) -> None:
        drawn.append((spec, list(values)))

    while len(drawn) < count:  # a small schema has fewer examples than are wanted
        draw()
    return [
        _order(kit, f"{kit.name[:6]}-{first + number:04d}", spec, zip(wanted, values, strict=True))
        for number, (spec, values) in enumerate(drawn[:count])
    ]


def _wanted(kit: Kit) -> Iterator[tuple[str, str, bool]]:
    """Yield each change's name, field, and whether the field goes."""
    schema = kit.xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for change in kit.changes:
        if change.direction is Direction.NEVER:
            continue
        for path in change.fields:
            yield f"{change.name} {path}", path, False
    for change in kit.changes:
        for path in change.fields if change.direction is not Direction.NEVER else ():
            if not _is_required(schema, path.split(".")):
                yield f"{change.name} without {path}", path, True


def _is_required(schema: Mapping[str, Any], steps: Sequence[str]) -> bool:
    for step in steps:
        if step not in schema.get("required", ()):
            return False
        schema = schema["properties"][step]
    return True


def _spec(schema: Mapping[str, Any], above: str = "") -> st.SearchStrategy[dict[str, Any]]:
    needed: dict[str, st.SearchStrategy[Any]] = {}
    more: dict[str, st.SearchStrategy[Any]] = {}
    for name, inner in schema["properties"].items():
        path = f"{above}{name}"
        (needed if name in schema.get("required", ()) else more)[name] = _field(inner, path)
    return st.fixed_dictionaries(needed, optional=more)


def _field(schema: Mapping[str, Any], path: str) -> st.SearchStrategy[Any]:
    if path in _CHOSEN:
        return _CHOSEN[path]
    if path in _FIXED:
        return st.just("")
    if schema.get("type") == "object" and "properties" in schema:
        return _spec(schema, f"{path}.")
    return value(schema)


def _other(schema: Mapping[str, Any], path: str) -> st.SearchStrategy[Any]:
    for step in path.split("."):
        schema = schema["properties"][step]
    return _field(schema, path)


def _order(kit: Kit, name: str, spec: dict[str, Any], drawn: Any) -> Order:
    for path, made in _FIXED.items():
        if path in spec:
            spec = {**spec, path: made(name)}
    kind = kit.kind
    meta = {"name": name, **({"namespace": f"agent-{name}"} if kit.xr_namespace else {})}
    xr = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
    changes, present = [], xr
    for (label, path, goes), new in drawn:
        present = _edited(present, path.split("."), None if goes else new)
        changes.append(Change(label, present))
    return Order(kit, xr, changes)


def _edited(xr: Manifest, steps: Sequence[str], new: Any) -> Manifest:
    found = copy.deepcopy(xr)
    home = found["spec"]
    for step in steps[:-1]:
        home = home.setdefault(step, {})
    if new is None:
        home.pop(steps[-1], None)
    else:
        home[steps[-1]] = new
    return found


def datasets() -> Iterator[tuple[Manifest, Manifest]]:
    """Yield the registry that orders choose from: each record, and its status."""
    head = {"apiVersion": "whisperops.io/v1alpha1", "kind": "XDataset"}
    known = {**DATASETS, NOT_READY: ("gs://whisperops-datasets/half.csv", 77)}
    for name, (path, size) in known.items():
        spec = {"gcsPath": path, "displayName": name.title(), "sizeBytes": size}
        record = {**head, "metadata": {"name": name}, "spec": spec}
        yield record, {**record, "status": {"ready": name != NOT_READY}}


def is_refused(order: Manifest) -> bool:
    """Say whether an order names a dataset that cannot be used."""
    return dig(order, "spec", "datasetRef", "name") in (NOT_READY, MISSING)
