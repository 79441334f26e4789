"""
Move an order's XR to the version of the XRD that its kit has now.

The kit's conversions say how. Before a file is touched, its own values go there and back, the new
XRD accepts them, and the plan shows that no data is lost. The text is edited with proof, so
comments stay; where one cannot stay, people look first.

`check_version` checks that the cluster is ready for orders of another version, and `retirement`
says when the old one may go. The cluster's own definition counts, not the pack's: it may not have
taken the pack yet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ground.errors import InvalidInputError, RefusedError
from ground.names import CommitSha, OrderId
from ground.objects.kube_objects import CRD, Kind, Manifest, ObjectKey, dig, metadata
from ground.objects.values import ABSENT, Steps, same, value_at, with_value
from kubeschema.field_paths import steps_of
from kubeschema.pruning import prune
from kubeschema.validate import Validator
from orderkit.core.campaign.three_way import MergedFile
from orderkit.core.kit.conversion_proof import conversion_problems, dropped_fields, round_trip
from orderkit.core.kit.converting import Converter, converted, converter
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_check import check_order_files
from orderkit.flows.campaign.files_work import FilesDraft, FileStep
from orderkit.flows.change.request import plan_change, refuse_faults, refuse_losses
from orderkit.flows.order.live_order import LiveOrder, XrFile, check_delivers, read_xr
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import Cluster
from yamlfiles import edit as yamledit

_COMMENT = re.compile(r"(?:^|\s)#(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class VersionDrafter:
    """The kind ``version`` (see `files_work.Drafter`)."""

    platform: Platform
    kit: Kit

    def on(self, platform: Platform) -> VersionDrafter:
        """See `Drafter`."""
        found = replace(self, platform=platform)
        found.__dict__["_validator"] = self._validator
        return found

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.kit.xrd)

    def draft(
        self,
        live: LiveOrder,
        head: CommitSha,
        cluster_xr: Manifest | None,  # noqa: ARG002 - another kind needs it
    ) -> FilesDraft:
        """
        Say how an order's XR gets to the kit's version.

        Raises:
            InvalidInputError: A value would be lost, or the version refuses what would come out.
            NotFoundError: The kit has no conversion from the XR's version.
            RefusedError: Argo CD does not deliver the file, data would go, or the order would fail.
        """
        file = read_xr(self.platform, live, head)
        check_delivers(self.platform, live, file)
        target, version = self.kit.kind.version, Kind.of(file.xr).version
        if version == target:
            return FilesDraft(same=f"it is at {target} already", version=version)
        way = converter(self.kit, version, target, self._validator)
        data, checked = moved(way, live.entry.order, file)
        return self._planned(live, file, checked, data, way)

    def _planned(
        self, live: LiveOrder, file: XrFile, xr: Manifest, data: bytes, way: Converter
    ) -> FilesDraft:
        old = self._as_stored(file.xr, way)
        change_plan = plan_change(self.platform, live, old, xr)
        refuse_losses(live, change_plan)
        refuse_faults(self.platform, live, change_plan, old)
        gone = lost_comments(file.data, data)
        reviews = (f"the comment '# {gone[0]}' goes with what is replaced",) if gone else ()
        effects = [f"{way.source} → {way.target}"]
        effects += [f"{old} → {new}" for old, new in named_steps(file.xr.get("spec") or {}, way)]
        return FilesDraft(
            (FileStep(file.path, MergedFile(data), file.sha),),
            f"moves from {way.source} to {way.target}",
            reviews=reviews,
            effects=tuple(effects),
            note=f"no plan: {change_plan.why_not}" if change_plan.plan is None else "",
            plan=change_plan.plan,
            version=way.source,
        )

    def _as_stored(self, xr: Manifest, way: Converter) -> Manifest:
        """Return an XR as the cluster has it today: in the stored version, by its own strategy."""
        if dig(self.kit.xrd, "spec", "conversion", "strategy", default="None") == "Webhook":
            return converted(xr, way)
        group = str(xr["apiVersion"]).partition("/")[0]
        renamed = {**xr, "apiVersion": f"{group}/{way.target}"}
        return dict(prune(self._validator.schema(way.target), renamed)[0])


def moved(way: Converter, order: OrderId, file: XrFile) -> tuple[bytes, Manifest]:
    """
    Return an XR's file in the other version, and the XR, proved to be one; nothing is lost.

    Raises:
        InvalidInputError: A value would be lost, or the version refuses what would come out.
        EditRefusedError: The text does not allow it.
    """
    spec, name = file.xr.get("spec") or {}, way.kit.name
    for path, what in round_trip(way, spec):
        raise InvalidInputError(
            f"{order}: spec.{path}", value_at(spec, tuple(steps_of(path))),
            f"would not come back from {way.target}: {what}",
            hint=f"loses: [{path}] in spec.conversions of kit {name}, if it may",
        )  # fmt: skip
    data = edited(file, converted(file.xr, way), way)
    return data, check_order_files(way.kit, order, {file.path: data}, way.validator)


def named_steps(spec: Mapping[str, Any], way: Converter) -> Iterator[tuple[str, str]]:
    """Yield which fields of an order become which, without their values."""
    conversion = way.conversion
    split = {old: ", ".join(step.into) for old, step in conversion.split.items()}
    pairs = {**way.moves, **({new: old for old, new in split.items()} if way.is_back else split)}
    for old, new in pairs.items():
        if value_at(spec, tuple(steps_of(old.partition(",")[0]))) is not ABSENT:
            yield old, new


def lost_comments(before: bytes, after: bytes) -> list[str]:
    """Return the comments that a text has no more; what looks like one counts, too."""
    was, becomes = (
        Counter(comment.strip() for comment in _COMMENT.findall(text.decode(errors="replace")))
        for text in (before, after)
    )
    return [comment for comment in (was - becomes) if comment]


def edited(file: XrFile, xr: Manifest, way: Converter) -> bytes:
    """
    Return the text of an XR's file in the other version, edited with proof.

    Raises:
        EditRefusedError: The text does not allow it.
    """
    home, document = file.steps, file.document
    edits = [yamledit.Edit((*home, "apiVersion"), yamledit.Op.SET, xr["apiVersion"], document)]
    spec: Any = file.xr.get("spec") or {}
    wanted = xr["spec"]
    for source, target in way.moves.items():
        old, new = tuple(steps_of(source)), tuple(steps_of(target))
        value = value_at(spec, old)
        if ABSENT in (value, value_at(wanted, new)) or value_at(spec, new) is not ABSENT:
            continue
        at = (*home, "spec", *old)
        place: list[yamledit.Value] = [*home, "spec", *new]
        edits.append(yamledit.Edit(at, yamledit.Op.MOVE, place, document))
        spec = with_value(with_value(spec, new, value), old, ABSENT)
    for steps, value in _differing(spec, wanted, ()):
        op = yamledit.Op.UNSET if value is ABSENT else yamledit.Op.SET
        at = (*home, "spec", *steps)
        edits.append(yamledit.Edit(at, op, None if value is ABSENT else value, document))
    return yamledit.edit(file.data, edits, name=str(file.path))


def _differing(before: Any, after: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """Yield the places that differ, each with what becomes of it; `ABSENT`: it goes."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in after:
            yield from _differing(before.get(key, ABSENT), after[key], (*steps, key))
        yield from (((*steps, key), ABSENT) for key in before if key not in after)
    elif before is ABSENT or not same(before, after):
        yield steps, after


def check_version(cluster: Cluster, kit: Kit, version: str) -> tuple[str, ...]:
    """
    Check what a campaign to a version needs; return what to know about it.

    Raises:
        InvalidInputError: It is not the kit's version, or the kit's conversions lose something.
        RefusedError: The cluster does not serve or store the version, or would drop fields.
        RemoteError: The cluster does not answer.
    """
    if version != kit.kind.version:
        raise InvalidInputError(
            "spec.what.version.to", version,
            f"is not the version that the Compositions of kit {kit.name} refer to",
            hint=f"write {kit.kind.version}; for another one, make it referenceable in the XRD",
        )  # fmt: skip
    for problem in conversion_problems(kit):
        place = ".".join(map(str, problem.steps))
        raise InvalidInputError(
            f"kit {kit.name}: {place}", problem.value, problem.rule, hint=problem.hint
        )
    # the cluster's definition counts, not the pack's: it may not have taken the pack yet
    crd = _crd(cluster, kit)
    versions = {str(v.get("name")): v for v in dig(crd, "spec", "versions", default=[])}
    _check_served(kit, version, versions)
    strategy = str(dig(crd, "spec", "conversion", "strategy", default=None) or "None")
    validator = Validator(kit.xrd)
    for other in _others(kit):
        way = converter(kit, other, version, validator)
        _check_dropped(kit, way, strategy)
    words = "a webhook" if strategy == "Webhook" else "renaming the version (strategy None)"
    return (f"the cluster stores {version}, and converts by {words}",)


def _crd(cluster: Cluster, kit: Kit) -> Manifest:
    name = str(metadata(kit.xrd)["name"])
    crd = get_object(cluster, ObjectKey(CRD, name))
    if crd is None:
        raise RefusedError(
            f"the cluster has no CustomResourceDefinition {name}",
            hint="'orderkit platform status' shows whether the pack is delivered",
        )
    return crd


def _others(kit: Kit) -> list[str]:
    """Return the versions that the kit converts to its own one."""
    ends = [(c.from_, c.to) for c in kit.conversions if kit.kind.version in (c.from_, c.to)]
    if not ends:
        raise InvalidInputError(
            f"kit {kit.name}: spec.conversions", None, "is missing",
            hint=f"say in kit.yaml how fields get to {kit.kind.version}, and publish the pack",
        )  # fmt: skip
    return [a if b == kit.kind.version else b for a, b in ends]


def _check_served(kit: Kit, version: str, versions: Mapping[str, Any]) -> None:
    served = [name for name, found in versions.items() if found.get("served")]
    hint = "deliver the pack first: orderkit platform upgrade; then wait for its layer 'apis'"
    if version not in served:
        names = ", ".join(served) or "none"
        raise RefusedError(
            f"the cluster does not serve {version} of {kit.kind.kind}: served: {names}", hint=hint
        )
    stored = next((name for name, found in versions.items() if found.get("storage")), "")
    if stored != version:
        text = f"the cluster stores {kit.kind.kind} as {stored}, not as {version}"
        raise RefusedError(text, hint=hint)


def _check_dropped(kit: Kit, way: Converter, strategy: str) -> None:
    dropped = dropped_fields(kit, way, strategy)
    if dropped:
        raise RefusedError(
            f"the cluster's conversion strategy is None, which drops spec.{dropped[0]} of"
            f" {way.source}: {way.target} does not declare it",
            hint=f"declare spec.{dropped[0]} in {way.target} too until no order has it, or set up"
            " a conversion webhook in spec.conversion of the XRD",
        )


def retirement(
    cluster: Cluster, kit: Kit, versions: Mapping[str, str], orders: Collection[str]
) -> tuple[str, ...]:
    """
    Say of each older version whether it can be switched off.

    Args:
        versions: The version of each order's XR in Git; empty where that is not known.
        orders: The names of XRs that are orders.

    Raises:
        RemoteError: The cluster does not answer.
    """
    crd = _crd(cluster, kit)
    stored = dig(crd, "status", "storedVersions", default=None) or []
    xrs = {str(metadata(xr)["name"]) for xr in cluster.list(kit.kind).items}
    strangers = sorted(xrs - set(orders))
    unknown = [order for order, version in versions.items() if not version]
    return tuple(
        _retired(other, kit, versions, stored, [*strangers, *unknown]) for other in _others(kit)
    )


def _retired(
    other: str, kit: Kit, versions: Mapping[str, str], stored: Collection[str], unknown: list[str]
) -> str:
    users = [order for order, version in versions.items() if version == other]
    if users:
        return f"{other} cannot be switched off: {len(users)} orders have it, such as {users[0]}"
    if unknown:
        return (
            f"{other} has no order, but nobody knows the version of {len(unknown)} other XRs, such"
            f" as {unknown[0]}: look before you switch it off"
        )
    if other in stored:
        return (
            f"{other} can be switched off (served: false): no order has it. Before it leaves the"
            f" XRD: store every {kit.kind.kind} once more (kubectl get -o yaml | kubectl replace"
            f" -f -), and take {other} out of status.storedVersions of its CRD"
        )
    return f"{other} can be switched off (served: false), and then leave the XRD: nothing has it"
