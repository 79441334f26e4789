"""
What was done to an order past Orderkit, as data, and what Application and XR show of it.

``flows.order.order_damage`` asks ledger and forge; ``flows.order.repairing`` mends what it safely
can.

`CommitCheck` says what is wrong with the files of an order's commit, and `with_faults` what that
means for the order's state. This is the one place that decides it: ``status``, ``list``,
``repair``, ``doctor`` and the live model all say the same, in the sentences of ``orderkit
validate``. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from ground.argocd.delivery_obstacles import obstacle_of, pinned
from ground.errors import shorten
from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import Manifest, annotations_of, dig, labels_of, metadata
from kubeschema.validate.findings import (
    Finding,
    FindingAnswer,
    FindingSeverity,
    Located,
    Reason,
    answer,
    remedy,
    sentence,
)
from orderkit.core.order import ledger
from orderkit.core.order.added_documents import named, removal_by_hand
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import KEPT, is_entering, order_application
from orderkit.core.order.order_state import OrderState

_CLOCKS_DIFFER = timedelta(seconds=3)
"""How much the clocks of API server and Argo CD may differ."""


class DamageKind(StrEnum):
    """What was damaged."""

    TEAM = "team"
    LEDGER = "ledger"
    MOVED = "moved"
    DELETED = "deleted"
    ARCHIVED = "archived"
    NO_MAIN = "no main"
    PROTECTED = "protected"
    RECORD = "record"
    REWRITTEN = "rewritten"
    STUCK = "stuck"
    RECREATED = "recreated"
    LEASE = "lease"
    MISLEADING = "misleading"
    FINALIZER = "finalizer"
    HIDDEN = "hidden"
    ENTRY = "entry"
    COPY = "copy"
    DEFAULT_BRANCH = "default branch"


_REMARKS = (
    *(DamageKind.REWRITTEN, DamageKind.RECREATED, DamageKind.STUCK),
    *(DamageKind.MISLEADING, DamageKind.FINALIZER, DamageKind.LEASE, DamageKind.HIDDEN),
    DamageKind.DEFAULT_BRANCH,
)
"""The order's state says how it is; these only add to it."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that was done to an order, in words, and what helps."""

    kind: DamageKind
    what: str
    remedy: str = ""
    """What a person does; empty if ``orderkit repair`` does it."""
    place: str = ""
    """Where the repository is now, or the commit to go back to."""

    @property
    def is_remark(self) -> bool:
        """Whether the order works nevertheless."""
        return self.kind in _REMARKS

    def advice(self, order: str) -> str:
        """Return what to do."""
        return self.remedy or f"orderkit repair {order}"


_CAUSES = (
    *(DamageKind.TEAM, DamageKind.MOVED, DamageKind.DELETED, DamageKind.NO_MAIN),
    *(DamageKind.ENTRY, DamageKind.COPY),
)
"""What explains whatever Argo CD says besides."""


def state_with(state: OrderState, order: str, damages: Sequence[Damage]) -> OrderState:
    """Return a state whose reason and advice begin with the damages."""
    if not damages:
        return state
    blocking = [damage for damage in damages if not damage.is_remark]
    is_cause = any(damage.kind in _CAUSES for damage in damages)
    own_reason = "" if is_cause or (blocking and state.phase != "Failing") else state.reason
    words = [damage.what for damage in damages]
    reason = "; ".join(filter(None, (*words, own_reason) if blocking else (own_reason, *words)))
    advice = blocking[0].advice(order) if blocking else state.advice or damages[0].advice(order)
    phase = "Failing" if blocking else state.phase
    return replace(state, phase=phase, reason=reason, advice=advice)


ENTRY_FIELDS = (
    *(("project",), ("sources",), ("sourceHydrator",)),
    *(("source", "repoURL"), ("source", "path"), ("source", "targetRevision")),
    *(("source", "chart"), ("source", "helm"), ("source", "kustomize"), ("source", "plugin")),
    *(("destination", "server"), ("destination", "name"), ("destination", "namespace")),
)
"""
Below ``spec`` of an order's Application: what is delivered from where to where, by whose rights.

Nobody has a reason to edit these. Argo CD prefers ``sourceHydrator`` and ``sources`` to ``source``
(pkg/apis/application/v1alpha1/types.go, ``GetSource``).
"""


def source_order(application: Manifest, forge_url: str) -> OrderEntry | None:
    """Return the order whose repository an Application names, below the path of the forge."""
    url = str(dig(application, "spec", "source", "repoURL", default="")).removesuffix(".git")
    prefix, path = f"{urlsplit(forge_url).path}/", urlsplit(url).path
    repo = RepoId.parse(path.removeprefix(prefix)) if path.startswith(prefix) else None
    # on a forge with subgroups, ``else/ae86/x`` is no order of ae86
    is_order = repo is not None and "/" not in repo.owner
    return OrderEntry(TeamName(repo.owner), OrderId(repo.name)) if repo and is_order else None


PUSH = "commit and push the ledger"
_SHOWN_MAX = 80


def labelled_entry(application: Manifest | None) -> OrderEntry | None:
    """Return the order that an Application's labels name; None if they name none."""
    labels = labels_of(application or {})
    team, order = labels.get(ledger.TEAM_LABEL), labels.get(ledger.ORDER_LABEL)
    return OrderEntry(TeamName(team), OrderId(order)) if team and order else None


def in_entry(
    entry: OrderEntry,
    application: Manifest,
    forge_url: str | None = None,
    *,
    has_original: bool | None = None,
    added: Sequence[Manifest] = (),
) -> Iterator[Damage]:
    """
    Yield what Orderkit did not write so in an order's Application, of the ledger or the cluster.

    Args:
        has_original: Whether the ledger has the order that the labels name: without it, the file
            was moved and not copied, and must not be removed. None: not known.
        forge_url: The address of the forge, below whose path the order's repository must be; on a
            forge with subgroups, another group may have one of the same name. None: not known.
        added: The other documents of the order's file in the ledger.
    """
    whose = labelled_entry(application)
    if whose and whose != entry:
        yield _of_another(entry, whose, has_original=has_original)
        return
    if "spec" not in application:
        return  # the CRD requires it, so this was never delivered: nothing can be told from it
    # a commit as ``targetRevision`` is what pinning writes
    right = order_application(
        entry, kit="", forge_url="", commit=ledger.delivered_commit(application)
    )
    edits = []
    for steps in ENTRY_FIELDS:
        expected, now = dig(right, "spec", *steps), dig(application, "spec", *steps)
        # the forge's host may have changed
        if now == expected or (steps[-1] == "repoURL" and _ends(str(now), expected, forge_url)):
            continue
        is_now = "missing" if now is None else shorten(repr(now), limit=_SHOWN_MAX)
        edits.append(f"spec.{'.'.join(steps)} is {is_now}, not {expected or 'absent'}")
        if steps == ("project",):
            edits[-1] += " (the order left its team's AppProject)"
    edits += _automation(application)
    edits += [f"it has another document, {named(document)}" for document in added]
    if edits:
        path = entry.application_path
        what = f"{path} was edited: {'; '.join(edits)}"
        yield Damage(DamageKind.ENTRY, what, removal_by_hand(path, added))


def _of_another(entry: OrderEntry, whose: OrderEntry, *, has_original: bool | None) -> Damage:
    path, place = entry.application_path, whose.application_path
    if has_original is False:
        move = f"git mv {path} {place}"
        what = f"{path} was moved there, and no order is at {place} any more: {move}"
        return Damage(DamageKind.COPY, what, f"{move}; {PUSH}")
    name = whose.order if whose.team == entry.team else whose.repository
    what = f"{entry.order} delivers {name}'s repository"
    if has_original is None:
        return Damage(DamageKind.COPY, what)  # 'orderkit repair' finds out, and says what to do
    return Damage(DamageKind.COPY, f"{what}: git rm {path}", f"git rm {path}; {PUSH}")


def is_confirmed(application: Manifest) -> bool:
    """Say whether an order's Application is past its approval, and its place is confirmed."""
    is_kept = KEPT.items() <= annotations_of(application).items()
    return is_kept and not is_entering(application)


def _automation(application: Manifest) -> Iterator[str]:
    """Yield what keeps Argo CD from delivering a live order by itself, or lets it delete."""
    if not is_confirmed(application):
        return
    policy = dig(application, "spec", "syncPolicy", "automated")
    at = "spec.syncPolicy.automated"
    if not isinstance(policy, dict) or policy.get("enabled") is False:
        yield f"{at} is off, so Argo CD delivers no commit by itself"
    elif policy.get("prune"):
        yield f"{at}.prune is on, so Argo CD deletes the order's XR when its file is gone"
    elif not policy.get("selfHeal"):
        yield f"{at}.selfHeal is off, so changes past Git stay"


def _ends(url: str, expected: str, forge_url: str | None) -> bool:
    if forge_url is None:
        return url.endswith(expected)
    return urlsplit(url).path == f"{urlsplit(forge_url).path}{expected}"


def delivered_commits(application: Manifest | None) -> list[str]:
    """Return the commits that Argo CD delivered, oldest first; it keeps ten."""
    entries = dig(application or {}, "status", "history", default=()) or ()
    return [str(entry["revision"]) for entry in entries if entry.get("revision")]


def in_cluster(
    application: Manifest | None, xr: Manifest | None, head: CommitSha | None
) -> Iterator[Damage]:
    """Yield what Application and XR show by themselves."""
    if application is None:
        return
    commit = ledger.delivered_commit(application) or head
    if (commit and pinned(application) not in ("", commit)) or _gave_up(application):
        obstacle = obstacle_of(application, commit)
        if obstacle and (obstacle.failing or obstacle.waits_for):
            yield Damage(DamageKind.STUCK, "")
    yield from _recreated(application, xr)
    if finalizers := _delivered_finalizers(xr or {}):
        yield Damage(
            DamageKind.FINALIZER,
            f"Git gives its XR the finalizer {', '.join(finalizers)}: 'orderkit destroy' would wait"
            " until somebody removes it",
            "take metadata.finalizers out of the XR's file, unless something removes it at the end",
        )


def _delivered_finalizers(xr: Manifest) -> list[str]:
    """Return the finalizers that Argo CD wrote: those of controllers are not in Git."""
    return sorted(
        key.removeprefix("v:").strip('"')
        for fields in metadata(xr).get("managedFields") or ()
        if str(fields.get("manager", "")).startswith("argocd")
        for key in dig(fields, "fieldsV1", "f:metadata", "f:finalizers", default={})
        if key != "."
    )


def _gave_up(application: Manifest) -> bool:
    """Say whether Argo CD tried a commit as often as it may, and never will again."""
    return dig(application, "status", "operationState", "phase") in ("Failed", "Error")


def _recreated(application: Manifest, xr: Manifest | None) -> Iterator[Damage]:
    """Report an XR that is younger than the delivery of its commit: the one before was deleted."""
    history = dig(application, "status", "history", default=()) or ()
    born = metadata(xr or {}).get("creationTimestamp")
    if not born:
        return
    newest_before_it = datetime.fromisoformat(born) - _CLOCKS_DIFFER
    delivered_before = [
        entry["revision"]
        for entry in history
        if datetime.fromisoformat(entry["deployedAt"]) < newest_before_it
    ]
    if delivered_before[-1:] == [dig(application, "status", "sync", "revision")]:
        yield Damage(
            DamageKind.RECREATED,
            f"its XR was deleted in the cluster, and Argo CD made it again at {born}: what it held"
            " is not restored, and Git does not know who deleted it",
            "see whether something is missing; 'orderkit events' shows the last hour",
        )


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """The findings about one commit of an order, errors first, of these hooks; at most 20."""

    commit: CommitSha
    findings: tuple[Located, ...] = ()

    @property
    def errors(self) -> tuple[Located, ...]:
        return tuple(entry for entry in self.findings if _is_error(entry))

    @property
    def hooks(self) -> tuple[Located, ...]:
        """The objects that are hooks of Argo CD."""
        return tuple(entry for entry in self.findings if _reason_of(entry) is Reason.HOOK)

    @property
    def state(self) -> Literal["success", "failure", "warning"]:
        """What the commit status says."""
        if self.errors:
            return "failure"
        return "warning" if self.findings else "success"

    @property
    def summary(self) -> str:
        """Return the first finding on one line."""
        if not self.findings:
            return "valid"
        more, text = len(self.findings) - 1, sentence(self.findings[0])
        return f"{text} (and {more} more)" if more else text

    @property
    def answers(self) -> tuple[FindingAnswer, ...]:
        """Return the findings as ``orderkit validate --json`` has them."""
        answers = map(answer, self.findings)
        return tuple(found for found in answers if isinstance(found, FindingAnswer))


_PUSH = "; commit and push"


def weight(entry: Located) -> tuple[bool, bool]:
    """Return what sorts findings: errors first, of these hooks."""
    return not _is_error(entry), _reason_of(entry) is not Reason.HOOK


def _reason_of(entry: Located) -> StrEnum | None:
    return entry.about.reason if isinstance(entry.about, Finding) else None


def _is_error(entry: Located) -> bool:
    about = entry.about
    return isinstance(about, Finding) and about.severity is FindingSeverity.ERROR


def with_faults(state: OrderState, check: CommitCheck | None) -> OrderState:
    """
    Return the state with the faults of the commit that it is about as the reason.

    Argo CD delivers some faulty commits: such an order is Ready, and somebody should look at it.
    """
    if check is None or not check.errors or state.phase in ("Waiting", "Ending", "Ended"):
        return state
    if check.hooks:  # Argo CD calls an order Synced whose hooks it only runs later
        reason, advice = sentence(check.hooks[0]), remedy(check.hooks[0])
        return replace(state, phase="Failing", reason=reason, advice=advice)
    advice = f"{remedy(check.errors[0]).removesuffix(_PUSH)}{_PUSH}"
    if state.phase == "Ready":
        return replace(state, phase="Attention", reason=check.summary, advice=advice)
    if state.ready:  # something else asks for a look already
        return state
    # Argo CD calls it progress when the API server drops an unknown field at each sync.
    is_stuck = state.phase == "Delivering" and state.revision == check.commit
    phase = "Failing" if is_stuck else state.phase
    return replace(state, phase=phase, reason=check.summary, advice=advice)
