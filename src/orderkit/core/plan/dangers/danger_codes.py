"""What dangers are called, and what besides two outcomes they are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orderkit.core.objects.kube_objects import Manifest
from orderkit.core.plan.pack_rules import PackRules


class Code(StrEnum):
    """What kind of danger. The values are stable."""

    DATA_LOSS = "data-loss"
    """A resource that holds data is deleted, or its data with it."""
    ABANDONED = "abandoned"
    """A resource stays where it is, and nobody looks after it any more."""
    MADE_AGAIN = "made-again"
    """The same object is wanted under another logical name: deleted first, then made again."""
    KEEPS_NAME = "keeps-name"
    """A station gives another name now; what exists keeps its old one."""
    IMMUTABLE = "immutable"
    """The API server or the provider will refuse the new value of this field."""
    NOT_READY = "not-ready"
    """It was Ready before, and is not in the end."""
    EMPTIED = "emptied"
    """Nothing is wanted any more: everything is deleted, and the order says Ready."""
    DROPPED = "dropped"
    """A resource goes that nobody asked to go: the fields of the order are the same."""
    NESTED = "nested-removed"
    """A nested XR goes, and with it everything that is composed for it."""
    FINALIZER = "finalizer"
    """What is deleted goes only when somebody else releases it."""
    DELETE_POLICY = "delete-policy"
    """What becomes of the real thing at the end changes, or who may touch it."""
    UNPROTECTED = "unprotected"
    """A guard of data is taken away: deletion protection, versions, backups, retention."""
    SHRINKS = "shrinks"
    """Less room for data than before."""
    PROVIDER = "provider-config"
    """Another account, project or cluster: the provider looks for the thing there."""
    STOPS = "stops"
    """What runs, or is looked after, stops."""
    STARTS = "starts"
    """What was held back runs again."""
    STATUS_LOST = "status-lost"
    """A field of the status is not shown any more; programs and people may read it."""
    CONNECTION_LOST = "connection-lost"
    """A connection Secret, or a key of a Secret, goes or moves."""
    COMPOSITION = "composition"
    """Another Composition may assemble the order than the one that is planned here."""
    DEFAULT = "default-changed"
    """A field changes that nobody set: its default is another one."""
    TEAM = "team-changed"
    """The order goes to another team."""
    ACCESS = "access-widened"
    """More people, programs or networks may do more than before."""
    EXPOSED = "secret-exposed"
    """A secret stands where everybody may read it."""
    UNSELECTED = "unselected"
    """A Service, policy or budget selects a workload no more."""
    DANGLING = "dangling"
    """A workload refers to an object that goes."""
    UNGUARDED = "unguarded"
    """A fence goes: a network policy, a quota, a disruption budget, a level of security."""
    UNPINNED = "unpinned"
    """An image without a fixed version."""
    API_VERSION = "api-version"
    """The object is written in another version of its API."""
    MISSING_FACT = "missing-fact"
    """Something that stations ask for was there, and is not there for what is wanted now."""
    WARNING = "warning"
    """The pipeline warns."""
    ADOPTS = "adopts"
    """An object exists and belongs to nobody: Crossplane takes it over without a word."""


@dataclass(frozen=True, slots=True, order=True)
class Danger:
    """One thing to think about, and about which resource."""

    path: str
    code: Code
    message: str


@dataclass(frozen=True, slots=True)
class DangerContext:
    """What dangers are judged by besides the two outcomes."""

    laws: PackRules = field(default_factory=PackRules)
    existing: Sequence[Manifest] = ()
    """Objects that were looked up, Secrets among them."""
