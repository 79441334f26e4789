"""
The codes of dangers, and the facts besides the two outcomes that they are judged by.

A kit accepts dangers for all of its orders, with a reason: plans list them apart
(`accepted_apart`). It names the code, the part, and perhaps words of the sentence. Every other
danger stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from ground.objects.kube_objects import Kind, Manifest
from orderkit.core.kit.kit_file import AcceptedDanger
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.composed_tree import PackRules


class Code(StrEnum):
    """The kind of a danger. The values are stable."""

    DATA_LOSS = "data-loss"
    """A resource that holds data is deleted, or its data with it."""
    ABANDONED = "abandoned"
    """A resource stays, but nothing manages it any more."""
    MADE_AGAIN = "made-again"
    """The same object gets another logical name: it is deleted and then created again."""
    KEEPS_NAME = "keeps-name"
    """A station gives another name now; existing objects keep the old one."""
    IMMUTABLE = "immutable"
    """The API server or the provider will refuse the new value of this field."""
    REPLACES = "needs-replacement"
    """No update can change this field, and a provider replaces nothing: it stays unsynced."""
    NOT_READY = "not-ready"
    """The order was Ready before and ends up not Ready."""
    EMPTIED = "emptied"
    """Nothing is composed any more: everything is deleted, and the order reports Ready."""
    DROPPED = "dropped"
    """A resource is removed although the fields of the order did not change."""
    NESTED = "nested-removed"
    """A nested XR is removed together with everything composed for it."""
    FINALIZER = "finalizer"
    """A deletion waits for a finalizer that somebody else has to remove."""
    DELETE_POLICY = "delete-policy"
    """What happens to the external resource at the end changes, or who may touch it."""
    UNPROTECTED = "unprotected"
    """A protection of data is removed: deletion protection, versions, backups, retention."""
    SHRINKS = "shrinks"
    """Less space for data than before."""
    PROVIDER = "provider-config"
    """Another account, project or cluster: the provider looks for the resource there."""
    TAKES_OVER = "takes-over"
    """The order begins to manage a resource that exists in the cloud, and changes it."""
    STOPS = "stops"
    """Something that runs or is managed stops."""
    STARTS = "starts"
    """Something that was held back runs again."""
    STATUS_LOST = "status-lost"
    """A field of the status is no longer set; programs and people may read it."""
    CONNECTION_LOST = "connection-lost"
    """A connection Secret, or a key of a Secret, disappears or moves."""
    COMPOSITION = "composition"
    """The order may be assembled by another Composition than in this plan."""
    DEFAULT = "default-changed"
    """A field that nobody set changes because its default changed."""
    TEAM = "team-changed"
    """The order moves to another team."""
    ACCESS = "access-widened"
    """People, programs or networks may do more than before."""
    EXPOSED = "secret-exposed"
    """A secret is stored where many can read it."""
    UNSELECTED = "unselected"
    """A Service, policy or budget no longer selects a workload."""
    DANGLING = "dangling"
    """A workload refers to an object that is removed."""
    UNGUARDED = "unguarded"
    """A guard is removed: network policy, quota, disruption budget, security level."""
    UNPINNED = "unpinned"
    """An image without a fixed version."""
    API_VERSION = "api-version"
    """The object uses another version of its API."""
    MISSING_FACT = "missing-fact"
    """An object that stations require now does not exist; before, none was missing."""
    WARNING = "warning"
    """The pipeline emits a warning."""
    ADOPTS = "adopts"
    """An object exists and has no owner: Crossplane silently takes it over."""


@dataclass(frozen=True, slots=True, order=True)
class Danger:
    """Something to check before merging, and the resource it concerns."""

    path: str
    code: Code
    message: str


@dataclass(frozen=True, slots=True)
class DangerContext:
    """Facts besides the two outcomes by which dangers are judged."""

    laws: PackRules = field(default_factory=PackRules)
    existing: Sequence[Manifest] = ()
    """Objects that were looked up, including Secrets."""


@dataclass(frozen=True, slots=True, order=True)
class AcceptedPlanDanger:
    """A danger of a plan, and why the kit accepts it."""

    danger: Danger
    reason: str


def accepted_apart(
    dangers: Sequence[Danger], after: Assembly, context: DangerContext | None
) -> tuple[tuple[Danger, ...], tuple[AcceptedPlanDanger, ...]]:
    """Return the dangers that nobody accepted, and those that the order's kit accepts."""
    kind = Kind.of(after.xr)
    rules = context.laws.accepts.get((kind.group, kind.kind), ()) if context else ()
    reasons = {danger: _reason(danger, rules) for danger in dangers}
    return (
        tuple(danger for danger in dangers if not reasons[danger]),
        tuple(AcceptedPlanDanger(d, reasons[d]) for d in dangers if reasons[d]),
    )


def _reason(danger: Danger, rules: Sequence[AcceptedDanger]) -> str:
    for rule in rules:
        is_meant = rule.code == danger.code and fnmatchcase(danger.path, rule.part)
        if is_meant and rule.words in danger.message:
            return rule.reason
    return ""
