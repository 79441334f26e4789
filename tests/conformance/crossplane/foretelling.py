"""
The scenes on paper: every step is foretold by `core.plan.assemble`, from what was delivered.

Nothing runs: `Paper` keeps what a scene delivers and takes away, and each step begins where the
foretelling of the step before it ended, as a plan begins with what the cluster holds. An assembly
is then written as an account, so that it can be laid beside what a live core did.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.crossplane.cores import functions
from tests.conformance.crossplane.furnishing import compositions, definitions
from tests.conformance.crossplane.playing import SCENES, Hold, Play
from tests.conformance.crossplane.seeing import stable_name

from compositions.composed import steps_of
from compositions.pipeline import UNMATCHED
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from kubeschema.validate import Validator
from kubeschema.xrd import default_composition, xr_kind
from orderkit.core.plan import Assembly, AssemblyContext, Blueprint, assemble

ChangePlan = dict[str, Any]


@dataclass(slots=True)
class Paper:
    """What a scene has delivered so far; it stands where a core's cluster stands."""

    known: dict[ObjectKey, Manifest] = field(default_factory=dict)

    @property
    def cluster(self) -> Paper:
        return self

    def apply(self, manifest: Manifest, *, owner: str, status: bool = False) -> None:
        """Keep an object, or the status of one."""
        assert owner
        key = ObjectKey.of(manifest)
        kept = self.known.get(key, {}).get("status")
        told = {"status": manifest["status"]} if status else ({"status": kept} if kept else {})
        self.known[key] = {**copy.deepcopy(self.known[key] if status else manifest), **told}

    def delete(self, key: ObjectKey) -> None:
        self.known.pop(key, None)

    def get(self, key: ObjectKey) -> Manifest | None:
        return self.known.get(key)

    def patch(self, key: ObjectKey, patch: Manifest, *, owner: str) -> None:
        """Merge into what was delivered; what others do to parts is undone, and leaves nothing."""
        assert owner
        known = self.known.get(key, {})
        for part in known.keys() & {"spec", "data"}:
            wanted = {**known[part], **patch.get(part, {})}
            known[part] = {name: value for name, value in wanted.items() if value is not None}


@dataclass(slots=True)
class PaperPlay(Play):
    """A scene whose steps are foretold."""

    core: Any = field(default_factory=Paper)
    workshop: AssemblyContext = field(kw_only=True)
    foretold: dict[str, ChangePlan] = field(default_factory=dict)
    _ends: dict[ObjectKey, Assembly] = field(default_factory=dict)

    def step(self, name: str, key: ObjectKey, *holds: Hold, root: Hold | None = None) -> None:
        """Foretell what there will be of the scene's XRs."""
        del key, holds, root
        self.foretold[name] = {}
        for each in self.roots:
            self.foretold[name] |= self._foretell(each)

    def _foretell(self, root: ObjectKey) -> ChangePlan:
        delivered = self.core.known.get(root)
        if delivered is None:
            self._ends.pop(root, None)
            return {}
        before = self._ends.get(root)
        facts = [found for key, found in self.core.known.items() if key != root]
        workshop = AssemblyContext(
            self.workshop.blueprints,
            self.workshop.functions,
            existing=facts,
            scopes=self.workshop.scopes,
        )
        xr = copy.deepcopy(delivered)
        if before is not None:
            xr["status"] = before.xr.get("status") or {}
        end = assemble(xr, workshop, observed=before.observed if before else None)
        if end.faults:
            words = end.faults[0].message.partition(UNMATCHED)[0]  # the rest is ours
            return {f"{root.kind.kind} {root.name}": {"fault": words}}
        self._ends[root] = end
        return dict(_written(root, end))


def plan_change(scene: str) -> dict[str, ChangePlan]:
    """Return what is foretold of each step of a scene."""
    play = PaperPlay(scene, workshop=workshop())
    SCENES[scene](play)
    return play.foretold


def workshop() -> AssemblyContext:
    """Return the kits of both packs as a workshop."""
    blueprints, scopes = {}, {}
    for xrd in definitions():
        kind = xr_kind(xrd)
        name = default_composition(xrd)
        (found,) = (one for one in compositions() if metadata(one)["name"] == name)
        blueprints[kind.group, kind.kind] = Blueprint(Validator(xrd), steps_of(found["spec"]))
        scopes[kind] = dig(xrd, "spec", "scope") == "Namespaced"
    return AssemblyContext(blueprints, functions(), scopes=scopes)


def _written(root: ObjectKey, end: Assembly) -> Iterator[tuple[str, Any]]:
    """Write an assembly as an account."""
    yield f"{root.kind.kind} {root.name}", _xr(end.xr)
    kinds = {xr_kind(xrd) for xrd in definitions()}
    for path, manifest in end.resources.items():
        yield f"{root.name}/{path}", _part(manifest)
        if Kind.of(manifest) in kinds:
            yield f"{Kind.of(manifest).kind} {root.name}/{path}", _xr(end.observed[path])


def _xr(xr: Manifest) -> ChangePlan:
    status = dict(xr.get("status") or {})
    conditions = {each["type"]: each for each in status.pop("conditions", None) or []}
    ready: Mapping[str, Any] = conditions.get("Ready") or {}
    own = {
        type_: f"{each['status']} {each['reason']}"
        + (f": {each['message']}" if each.get("message") else "")
        for type_, each in conditions.items()
        if type_ not in {"Ready", "Synced", "Responsive"}
    }
    return {"spec": xr["spec"], "status": status, "ready": ready.get("status"), "own": own}


def _part(manifest: Manifest) -> Manifest:
    found = copy.deepcopy(manifest)
    meta = metadata(found)
    meta["name"] = stable_name(meta["name"])
    for owner in meta.get("ownerReferences") or ():
        owner["uid"] = "<uid>"
    return found
