"""
Which Composition, and which revision of it, an XR gets.

Enforced by the XRD, else named by the XR, else the XRD's default, else matched by the XR's
selector. Where several match, Crossplane picks one at random; so do we, and a warning event
reports it. The choice is returned; the caller writes it into the XR.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orderkit.adapters.embedded.crossplane.reconciler_context import ReconcilerContext, missing
from orderkit.core.crossplane.composed import COMPOSE_REASON, XrEvent
from orderkit.core.errors import OrderkitError
from orderkit.core.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    Kind,
    Manifest,
    ObjectKey,
    controller,
    dig,
    metadata,
)
from orderkit.core.schema.xrd import machinery_path

NAME_LABEL = "crossplane.io/composition-name"
HASH_LABEL = "crossplane.io/composition-hash"
SELECT_REASON = "SelectComposition"


class CompositionSelectionError(OrderkitError):
    """No usable Composition; `reason` is the reason of its event."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class Choice:
    """The machinery fields to write into the XR, and warnings for events."""

    machinery: dict[str, Any] = field(default_factory=dict)
    events: list[XrEvent] = field(default_factory=list)
    revision: Manifest | None = None


class CompositionSelector:
    """Selection for the XRs of one XRD."""

    def __init__(self, site: ReconcilerContext, xrd: Manifest) -> None:
        self._site, self._xrd = site, xrd
        self._path = machinery_path(xrd)

    def choose(self, xr: Manifest, choice: Choice) -> None:
        """
        Fill `choice`; after a failure it keeps the values set so far.

        Raises:
            SelectionError: Nothing fits, or what was chosen does not exist.
        """
        name = self._composition(xr, choice)
        current = self._field(xr, "compositionRevisionRef", "name")
        if current and self._field(xr, "compositionUpdatePolicy") == "Manual":
            choice.revision = self._pinned(current)
            return
        latest = self._latest(xr, name)
        choice.revision = latest
        if metadata(latest)["name"] != current:
            choice.machinery["compositionRevisionRef"] = {"name": metadata(latest)["name"]}
            text = f"Selected composition revision: {metadata(latest)['name']}"
            choice.events.append(XrEvent("Normal", SELECT_REASON, text))

    def composition_of(self, xr: Manifest) -> str | None:
        """Return the name of the Composition the XR refers to, if it does."""
        return _text(self._field(xr, "compositionRef", "name"))

    def _field(self, xr: Manifest, *path: str) -> Any:
        return dig(xr, *self._path, *path)

    def _composition(self, xr: Manifest, choice: Choice) -> str:
        present = self.composition_of(xr)
        enforced = self._enforced()
        default = None if enforced or present else self._default(xr)
        name = enforced or present or default or self._matching(xr, choice)
        if default or (enforced and enforced != present):
            text = f"{'Default' if default else 'Enforced'} composition has been selected"
            choice.events.append(XrEvent("Normal", "CompositionSelection", text))
        if name != present:
            choice.machinery["compositionRef"] = {"name": name}
            text = f"Successfully selected composition: {name}"
            choice.events.append(XrEvent("Normal", SELECT_REASON, text))
        return name

    def _enforced(self) -> str | None:
        return _text(dig(self._xrd, "spec", "enforcedCompositionRef", "name"))

    def _default(self, xr: Manifest) -> str | None:
        if self._field(xr, "compositionSelector") is not None:
            return None
        return _text(dig(self._xrd, "spec", "defaultCompositionRef", "name"))

    def _matching(self, xr: Manifest, choice: Choice) -> str:
        labels = self._field(xr, "compositionSelector", "matchLabels") or {}
        kind = Kind.of(xr)
        xr_type = {"apiVersion": kind.api_version, "kind": kind.kind}
        names = sorted(
            str(metadata(composition)["name"])
            for composition in self._site.cluster.list(COMPOSITION, labels=labels).items
            if dig(composition, "spec", "compositeTypeRef") == xr_type
        )
        if not names:
            text = "cannot select Composition: no compatible Compositions found"
            raise CompositionSelectionError(text, SELECT_REASON)
        name = self._site.chance.choice(names)
        if len(names) > 1:
            text = f"{len(names)} Compositions match ({', '.join(names)}): picked {name} at random"
            choice.events.append(XrEvent("Warning", SELECT_REASON, text))
        return name

    def _pinned(self, name: str) -> Manifest:
        revision = self._site.cluster.get(ObjectKey(COMPOSITION_REVISION, name))
        if revision is None:
            raise CompositionSelectionError(
                "cannot fetch Composition: cannot get CompositionRevision: "
                + missing(COMPOSITION_REVISION, name),
                COMPOSE_REASON,
            )
        return revision

    def _latest(self, xr: Manifest, name: str) -> Manifest:
        composition = self._site.cluster.get(ObjectKey(COMPOSITION, name))
        if composition is None:
            raise CompositionSelectionError(
                f"cannot fetch Composition: cannot get Composition: {missing(COMPOSITION, name)}",
                COMPOSE_REASON,
            )
        labels = {NAME_LABEL: name}
        if self._field(xr, "compositionUpdatePolicy") == "Automatic":
            labels = {**(self._revision_labels(xr)), **labels}
        latest = latest_revision(
            composition, self._site.cluster.list(COMPOSITION_REVISION, labels=labels).items
        )
        if latest is None:
            text = "cannot fetch Composition: no compatible CompositionRevisions found"
            raise CompositionSelectionError(text, COMPOSE_REASON)
        return latest

    def _revision_labels(self, xr: Manifest) -> dict[str, str]:
        xr_labels = self._field(xr, "compositionRevisionSelector", "matchLabels")
        default = dig(self._xrd, "spec", "defaultCompositionRevisionSelector", "matchLabels")
        return dict(xr_labels or default or {})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def latest_revision(composition: Manifest, revisions: tuple[Manifest, ...]) -> Manifest | None:
    """Return the revision with the highest number among those the Composition controls."""
    uid = metadata(composition).get("uid")
    ours = [r for r in revisions if (controller(r) or {}).get("uid") == uid]
    return max(ours, key=number_of, default=None)


def number_of(revision: Manifest) -> int:
    """Return ``spec.revision``."""
    return int(dig(revision, "spec", "revision", default=0))
