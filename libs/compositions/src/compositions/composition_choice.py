"""
Which Composition, and which of its revisions, composes an XR: Crossplane's rule.

The Composition is the one that the XRD enforces, else the one that the XR names, else the XRD's
default if the XR has no selector, else one that matches the XR's selector; where several match,
Crossplane picks one at random. The revision is the XR's own under ``Manual`` (never checked against
the Composition), else the Composition's newest; ``compositionRevisionSelector`` counts only where
the policy is literally ``Automatic`` (``composite/api.go`` of Crossplane 2.3.4).

The choice is returned, and whoever asked writes it into the XR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compositions.composed import COMPOSE_REASON, Lookup, XrEvent
from compositions.station import Selector
from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    Kind,
    Manifest,
    controller,
    dig,
    metadata,
)
from ground.objects.values import with_value
from kubeschema.xrd import is_legacy, machinery_path, update_policy_of

__all__ = [
    "CHOICE_FIELDS",
    "CONNECTION",
    "HASH_LABEL",
    "NAME_LABEL",
    "Choice",
    "choose",
    "choose_in_the_end",
    "connection_namespace",
    "latest_revision",
    "number_of",
    "with_stored_choice",
]

NAME_LABEL = "crossplane.io/composition-name"
HASH_LABEL = "crossplane.io/composition-hash"
SELECT_REASON = "SelectComposition"
_DEFAULT_REASON = "CompositionSelection"
CHOICE_FIELDS = (
    "compositionRef",
    "compositionSelector",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionUpdatePolicy",
)
"""The fields of an XR that the choice reads and writes."""
CONNECTION = "writeConnectionSecretToRef"
"""The field of a legacy XR with its connection Secret."""

Pick = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Choice:
    """What Crossplane chooses for one XR, or why it cannot."""

    revision: Manifest | None
    """None: there is an `error`."""
    composition: str = ""
    """The name of the Composition that the XR refers to then."""
    machinery: Mapping[str, Any] = field(default_factory=dict)
    """The fields to write into the XR, also after an error."""
    events: tuple[XrEvent, ...] = ()
    matching: tuple[str, ...] = ()
    """The Compositions from which one was picked at random; empty: there was no such choice."""
    error: str = ""
    reason: str = ""
    """The reason of the error's event."""


class _UnusableError(OrderkitError):
    def __init__(self, message: str, reason: str = COMPOSE_REASON) -> None:
        super().__init__(message)
        self.reason = reason


def choose(xr: Manifest, xrd: Manifest, lookup: Lookup, pick: Pick) -> Choice:
    """
    Choose Composition and revision for an XR in its present state.

    Args:
        lookup: Finds Compositions and CompositionRevisions, by name or by labels.
        pick: Takes one of several names, as Crossplane does at random.
    """
    choosing = _Choosing(xr, xrd, lookup, pick)
    revision, error, reason = None, "", ""
    try:
        revision = choosing.revision()
    except _UnusableError as problem:
        error, reason = str(problem), problem.reason
    return Choice(
        revision,
        choosing.composition_ref(),
        choosing.machinery,
        tuple(choosing.events),
        choosing.matching,
        error,
        reason,
    )


def choose_in_the_end(xr: Manifest, xrd: Manifest, lookup: Lookup, pick: Pick) -> Choice:
    """
    Choose as Crossplane does in the end, once its choice is stored with the XRD's default policy.

    A modern XR has no policy at its first reconcile, so a revision selector counts from the second.
    """
    path = machinery_path(xrd)
    first = choose(xr, xrd, lookup, pick)
    if first.error:
        return first
    policy = {"compositionUpdatePolicy": update_policy_of(xrd)}
    stored = {**policy, **(dig(xr, *path, default=None) or {}), **first.machinery}
    second = choose(with_value(xr, path, stored), xrd, lookup, pick)
    return Choice(
        second.revision,
        second.composition,
        {**first.machinery, **second.machinery},
        (*first.events, *second.events),
        first.matching,
        second.error,
        second.reason,
    )


def with_stored_choice(
    xr: Manifest, stored: Manifest | None, xrd: Manifest, *, applied: Manifest | None = None
) -> Manifest:
    """
    Return an XR with what its stored state says about the choice, where it says nothing.

    Args:
        applied: As it was applied before: what that said and `xr` does not is removed.
    """
    path = machinery_path(xrd)
    own, said = (dig(manifest, *path, default=None) or {} for manifest in (xr, applied))
    kept = dig(stored, *path, default=None) or {}
    names = [name for name in CHOICE_FIELDS if name not in own and name not in said]
    missing = {name: kept[name] for name in names if name in kept}
    return with_value(xr, path, {**own, **missing}) if missing else xr


def connection_namespace(xrd: Manifest, composition: Manifest) -> str:
    """
    Return where a Composition, or a revision of it, keeps connection Secrets of legacy XRs.

    Empty: nowhere, or the XRs are modern. Crossplane refers each legacy XR that names no Secret to
    one there, named by the XR's uid (``APIConfigurator`` in ``composite/api.go``).
    """
    if not is_legacy(xrd):
        return ""
    return _text(dig(composition, "spec", "writeConnectionSecretsToNamespace")) or ""


def missing_text(kind: Kind, name: str) -> str:
    """Return the API server's text for an object that does not exist."""
    return f'{kind} "{name}" not found'


class _Choosing:
    def __init__(self, xr: Manifest, xrd: Manifest, lookup: Lookup, pick: Pick) -> None:
        self._xr, self._xrd, self._lookup, self._pick = xr, xrd, lookup, pick
        self._path = machinery_path(xrd)
        self.machinery: dict[str, Any] = {}
        self.events: list[XrEvent] = []
        self.matching: tuple[str, ...] = ()

    def revision(self) -> Manifest:
        composition = self._composition()
        self._default_revision_selector()
        current = self._field("compositionRevisionRef", "name")
        if current and self._field("compositionUpdatePolicy") == "Manual":
            return self._configured(self._compatible(self._pinned(str(current))))
        latest = self._latest(composition)
        name = metadata(latest)["name"]
        if name != current:
            self.machinery["compositionRevisionRef"] = {"name": name}
            self._tell(SELECT_REASON, f"Selected composition revision: {name}")
        return self._configured(self._compatible(latest))

    def _configured(self, revision: Manifest) -> Manifest:
        """Refer the XR to its connection Secret, if the revision keeps such Secrets."""
        namespace = connection_namespace(self._xrd, revision)
        if namespace and self._field(CONNECTION) is None:
            uid = metadata(self._xr).get("uid", "")
            self.machinery[CONNECTION] = {"name": uid, "namespace": namespace}
        return revision

    def composition_ref(self) -> str:
        return _text(self._field("compositionRef", "name")) or ""

    def _field(self, name: str, *path: str) -> Any:
        home = {name: self.machinery[name]} if name in self.machinery else None
        return dig(home or dig(self._xr, *self._path, default=None), name, *path)

    def _tell(self, reason: str, text: str) -> None:
        self.events.append(XrEvent("Normal", reason, text))

    def _composition(self) -> str:
        present = self.composition_ref()
        enforced = _text(dig(self._xrd, "spec", "enforcedCompositionRef", "name"))
        default = None if enforced or present else self._default()
        name = enforced or present or default or self._matching()
        if default or (enforced and enforced != present):
            word = "Default" if default else "Enforced"
            self._tell(_DEFAULT_REASON, f"{word} composition has been selected")
        if name != present:
            self.machinery["compositionRef"] = {"name": name}
            self._tell(SELECT_REASON, f"Successfully selected composition: {name}")
        return name

    def _default(self) -> str | None:
        if self._field("compositionSelector") is not None:
            return None
        return _text(dig(self._xrd, "spec", "defaultCompositionRef", "name"))

    def _matching(self) -> str:
        labels = self._field("compositionSelector", "matchLabels") or {}
        kind = Kind.of(self._xr)
        xr_type = {"apiVersion": kind.api_version, "kind": kind.kind}
        names = sorted(
            str(metadata(composition)["name"])
            for composition in self._lookup(_selector(COMPOSITION, labels=labels))
            if dig(composition, "spec", "compositeTypeRef") == xr_type
        )
        if not names:
            text = "cannot select Composition: no compatible Compositions found"
            raise _UnusableError(text, SELECT_REASON)
        name = self._pick(names)
        if len(names) > 1:
            self.matching = tuple(names)
            text = f"{len(names)} Compositions match ({', '.join(names)}): picked {name} at random"
            self.events.append(XrEvent("Warning", SELECT_REASON, text))
        return name

    def _default_revision_selector(self) -> None:
        """Take over the XRD's default, once: an XR that has a revision keeps it."""
        default = dig(self._xrd, "spec", "defaultCompositionRevisionSelector", default=None)
        if not default or self._field("compositionRevisionRef") is not None:
            return
        if self._field("compositionRevisionSelector") is None:
            self.machinery["compositionRevisionSelector"] = default
            self._tell(_DEFAULT_REASON, "Default revision selector has been selected")

    def _pinned(self, name: str) -> Manifest:
        revisions = self._lookup(_selector(COMPOSITION_REVISION, name=name))
        if not revisions:
            raise _UnusableError(
                "cannot fetch Composition: cannot get CompositionRevision: "
                + missing_text(COMPOSITION_REVISION, name)
            )
        return revisions[0]

    def _latest(self, name: str) -> Manifest:
        compositions = self._lookup(_selector(COMPOSITION, name=name))
        if not compositions:
            raise _UnusableError(
                "cannot fetch Composition: cannot get Composition: "
                + missing_text(COMPOSITION, name)
            )
        labels = {NAME_LABEL: name}
        # the selector counts only under the very word (``composite/api.go`` of Crossplane 2.3.4)
        if self._field("compositionUpdatePolicy") == "Automatic":
            labels = {
                **(self._field("compositionRevisionSelector", "matchLabels") or {}),
                **labels,
            }
        revisions = self._lookup(_selector(COMPOSITION_REVISION, labels=labels))
        latest = latest_revision(compositions[0], revisions)
        if latest is None:
            raise _UnusableError(
                "cannot fetch Composition: no compatible CompositionRevisions found"
            )
        return latest

    def _compatible(self, revision: Manifest) -> Manifest:
        """Refuse a revision for another kind, as Crossplane does for legacy XRs only."""
        kind = Kind.of(self._xr)
        xr_type = {"apiVersion": kind.api_version, "kind": kind.kind}
        if is_legacy(self._xrd) and dig(revision, "spec", "compositeTypeRef") != xr_type:
            raise _UnusableError(
                "cannot configure composite resource: referenced composition is not compatible "
                "with this composite resource"
            )
        return revision


def _selector(kind: Kind, *, name: str = "", labels: Mapping[str, str] | None = None) -> Selector:
    return Selector(kind.api_version, kind.kind, name, labels or {})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def latest_revision(composition: Manifest, revisions: Sequence[Manifest]) -> Manifest | None:
    """Return the revision with the highest number among those the Composition controls."""
    uid = metadata(composition).get("uid")
    ours = [r for r in revisions if (controller(r) or {}).get("uid") == uid]
    return max(ours, key=number_of, default=None)


def number_of(revision: Manifest) -> int:
    """Return ``spec.revision``."""
    return int(dig(revision, "spec", "revision", default=0))
