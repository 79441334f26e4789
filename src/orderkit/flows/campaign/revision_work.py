"""
Pin orders to a revision of their kit's Composition, in Git, or let them follow the newest again.

Crossplane never compares a pinned revision with the Composition (crossplane #7220), so that is done
here: before the campaign starts, and for each order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from compositions.composition_choice import NAME_LABEL, number_of
from ground.errors import NotFoundError, RefusedError
from ground.names import CommitSha
from ground.objects.kube_objects import COMPOSITION_REVISION, Manifest, dig, metadata
from ground.objects.values import with_value
from kubeschema.xrd import default_composition, machinery_path, update_policy_of
from orderkit.core.campaign.definition import RevisionTarget, duration
from orderkit.core.campaign.three_way import MergedFile
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_check import check_order_files
from orderkit.flows.campaign.files_work import FilesDraft, FileStep
from orderkit.flows.change.request import plan_change, refuse_faults, refuse_losses
from orderkit.flows.order.live_order import LiveOrder, check_delivers, check_name, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.clock import Clock
from yamlfiles import edit as yamledit

NEWEST, CURRENT, AUTOMATIC = "newest", "current", "automatic"
_POLICY, _REFERENCE, _SELECTOR = (
    "compositionUpdatePolicy", "compositionRevisionRef", "compositionRevisionSelector",
)  # fmt: skip


@dataclass(frozen=True)
class RevisionDrafter:
    """The kind ``revision`` (see `files_work.Drafter`)."""

    platform: Platform
    kit: Kit
    target: str
    """A revision's name, ``current`` or ``automatic``."""

    def on(self, platform: Platform) -> RevisionDrafter:
        """See `Drafter`."""
        return replace(self, platform=platform)

    def draft(self, live: LiveOrder, head: CommitSha, cluster_xr: Manifest | None) -> FilesDraft:
        """
        Say how an order is pinned, or no more.

        Raises:
            RefusedError: The order has another Composition, or the change would break it.
            NotFoundError: Crossplane has chosen nothing for it yet.
            EditRefusedError: The text does not allow it.
        """
        file = read_xr(self.platform, live, head)
        check_name(live, file)
        check_delivers(self.platform, live, file)
        path = machinery_path(self.kit.xrd)
        own: dict[str, Any] = dig(file.xr, *path, default=None) or {}
        wanted = self._wanted(live, own, cluster_xr)
        if wanted == own:
            return FilesDraft(same=f"it is {self._said(wanted)} already")
        xr = with_value(file.xr, path, wanted)
        data = yamledit.edit(file.data, list(self._edits(file.document, file.steps, own, wanted)))
        check_order_files(self.kit, live.entry.order, {file.path: data})
        change_plan = plan_change(self.platform, live, file.xr, xr)
        refuse_losses(live, change_plan)
        refuse_faults(self.platform, live, change_plan, file.xr)
        has_selector = _SELECTOR in {**(dig(cluster_xr, *path, default=None) or {}), **own}
        return FilesDraft(
            (FileStep(file.path, MergedFile(data), file.sha),),
            f"is {self._said(wanted)}",
            effects=(f"{self._said(own)} → {self._said(wanted)}",),
            note=_SELECTOR_NOTE if has_selector and _REFERENCE in wanted else "",
            plan=change_plan.plan,
        )

    def _wanted(
        self, live: LiveOrder, own: dict[str, Any], cluster_xr: Manifest | None
    ) -> dict[str, Any]:
        """Return what Git has to say of Crossplane's choice."""
        rest = {k: v for k, v in own.items() if k not in (_POLICY, _REFERENCE)}
        if self.target == AUTOMATIC:
            if not own.keys() & {_POLICY, _REFERENCE}:
                return own
            # The group stays: without it, a client-side apply removes all that Crossplane wrote
            # there, references to composed resources included. And a selector counts only under
            # the very word.
            return {**rest, _POLICY: "Automatic"}
        name = self.target
        stored = dig(cluster_xr, *machinery_path(self.kit.xrd), default=None) or {}
        if name == CURRENT:
            name = str(dig(stored, _REFERENCE, "name", default=None) or "")
            if not name:
                raise NotFoundError(
                    f"{live.entry.order}: Crossplane has chosen no revision for it yet",
                    hint="wait until it is Ready, and retry the campaign",
                )
        elif own.get(_POLICY) == "Manual" and dig(own, _REFERENCE, "name") == name:
            return own
        composition = dig(stored, "compositionRef", "name", default="")
        expected = default_composition(self.kit.xrd)
        if composition and composition != expected:
            raise RefusedError(
                f"{live.entry.order}: it is composed by {composition}, and {name} is a revision of"
                f" {expected}: Crossplane would not notice (#7220)",
                hint="leave it out: spec.which.except",
            )
        return {**rest, _POLICY: "Manual", _REFERENCE: {"name": name}}

    def _said(self, machinery: dict[str, Any]) -> str:
        name = dig(machinery, _REFERENCE, "name", default="")
        if machinery.get(_POLICY, update_policy_of(self.kit.xrd)) == "Manual" and name:
            return f"pinned to {name}"
        return "composed by the newest revision"

    def _edits(
        self, document: int, home: tuple[Any, ...], own: dict[str, Any], wanted: dict[str, Any]
    ) -> Iterator[yamledit.Edit]:
        path = (*home, *machinery_path(self.kit.xrd))
        for key in (_POLICY, _REFERENCE):
            if key in wanted and wanted[key] != own.get(key):
                yield yamledit.Edit((*path, key), yamledit.Op.SET, wanted[key], document)
            elif key in own and key not in wanted:
                yield yamledit.Edit((*path, key), yamledit.Op.UNSET, None, document)

    def undo(
        self, live: LiveOrder, before: CommitSha, commit: CommitSha, head: CommitSha
    ) -> FilesDraft:
        """See `files_work.Undoer`: the group that Crossplane writes to stays in the file."""
        path = machinery_path(self.kit.xrd)
        old, did, now = (
            dig(read_xr(self.platform, live, at).xr, *path, default=None) or {}
            for at in (before, commit, head)
        )
        if any(did.get(key) != now.get(key) for key in (_POLICY, _REFERENCE)):
            raise RefusedError(
                f"{live.entry.order}: somebody pinned it to something else since",
                hint=f"orderkit history {live.entry.order}",
            )
        name = str(dig(old, _REFERENCE, "name", default="") or AUTOMATIC)
        target = name if old.get(_POLICY) == "Manual" else AUTOMATIC
        return replace(self, target=target).draft(live, head, None)


_SELECTOR_NOTE = (
    "it has a compositionRevisionSelector, which does not count while it is pinned: Crossplane"
    " reads it only under policy Automatic"
)


@dataclass(frozen=True, slots=True)
class ChosenRevision:
    """What a campaign pins orders to, and what to know about it."""

    name: str
    """A revision, ``current`` or ``automatic``."""
    notes: tuple[str, ...]


def choose_revision(platform: Platform, kit: Kit, target: RevisionTarget) -> ChosenRevision:
    """
    Check the revision of a campaign, and find the newest that is old enough.

    Raises:
        RefusedError: The kit's policy lets nobody pin, or no revision is old enough.
        NotFoundError: The kit's Composition has no such revision.
        RemoteError: The cluster does not answer.
    """
    if target.to == AUTOMATIC:
        note = "from then on each new revision reaches these orders at once, all at the same time"
        return ChosenRevision(AUTOMATIC, (note,))
    composition = default_composition(kit.xrd)
    if not kit.pins or not composition:
        raise RefusedError(
            f"orders of kit {kit.name} may not be pinned: the kit's policy refuses what a push says"
            " of compositionRevisionRef",
            hint="write pins: true in its kit.yaml (its XRD names a Composition), run 'orderkit kit"
            " generate', and publish the pack",
        )
    labels = {NAME_LABEL: composition}
    revisions = [*platform.cluster.list(COMPOSITION_REVISION, labels=labels).items]
    if target.to == CURRENT:
        return ChosenRevision(CURRENT, _notes(composition, revisions))
    revision = _old_enough(platform.clock, target, composition, revisions)
    name = str(metadata(revision)["name"])
    number, newest = number_of(revision), max(map(number_of, revisions))
    age = f"{name} is revision {number} of {newest} of {composition}"
    return ChosenRevision(name, (age, *_notes(composition, [revision])))


def _old_enough(
    clock: Clock, target: RevisionTarget, composition: str, revisions: list[Manifest]
) -> Manifest:
    now, least = clock.now(), duration(target.min_age)
    named = [r for r in revisions if target.to in (NEWEST, metadata(r)["name"])]
    if not named:
        names = ", ".join(sorted(str(metadata(r)["name"]) for r in revisions)) or "none"
        raise NotFoundError(
            f"spec.what.revision.to: {target.to} is no revision of {composition}",
            hint=f"its revisions: {names}",
        )
    ripe = [r for r in named if now - _made(r) >= least]
    if not ripe:
        first = min(_made(r) for r in named) + least
        raise RefusedError(
            f"no such revision of {composition} is {target.min_age} old",
            hint=f"start it after {first.isoformat(timespec='seconds')}, or lower"
            " spec.what.revision.minAge",
        )
    return max(ripe, key=number_of)


def _made(revision: Manifest) -> datetime:
    return datetime.fromisoformat(str(metadata(revision)["creationTimestamp"]))


def _notes(composition: str, revisions: list[Manifest]) -> tuple[str, ...]:
    steps = [s for r in revisions for s in dig(r, "spec", "pipeline", default=None) or ()]
    functions = sorted({str(dig(step, "functionRef", "name", default="")) for step in steps} - {""})
    compared = (
        f"Crossplane does not compare a pinned revision with {composition} (#7220); this campaign"
        " does. A later change of the order's Composition has no effect while it is pinned"
    )
    unpinned = (
        f"functions are not pinned with it ({', '.join(functions) or 'none'}): a new version of"
        " their packages reaches every order at once"
    )
    return compared, unpinned, "a compositionRevisionSelector does not count while it is pinned"
