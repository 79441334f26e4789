"""
Say in words what a selector asks for that matches nothing, and what there is instead.

Crossplane and its providers only write that nothing matched. Only reads; what may not be read is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ground.errors import AccessError
from ground.objects.kube_objects import (
    COMPOSITION,
    Kind,
    Manifest,
    controller,
    dig,
)
from orderkit.core.selector_words import NO_COMPOSITION, labels_text, what_there_is
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import NoSuchKindError

_REFERENTS = re.compile(
    r"mg\.Spec\.ForProvider\.(?:[\w\[\]]+\.)*(\w+).*: no resources matched selector"
)
_VALUE_OF = re.compile(r"(?:Ids?|Arns?|Names?|Ref|Links?)\Z")


def is_unmatched(reason: str) -> bool:
    """Say whether a reason is that a selector matches nothing."""
    return NO_COMPOSITION in reason or _REFERENTS.search(reason) is not None


def in_words(platform: Platform, manifest: Manifest, reason: str) -> str:
    """Return the reason, with what the selector asks for and what there is."""
    with suppress(AccessError, NoSuchKindError):
        if NO_COMPOSITION in reason:
            return f"{reason}: {_of_compositions(platform, manifest)}"
    if found := _REFERENTS.search(reason):
        for stem, selector in _selectors(dig(manifest, "spec", default={})):
            if found[1].lower() in (stem.lower(), f"{stem}s".lower()):
                return f"{reason}: {_of_referents(platform, manifest, stem, selector)}"
    return reason


def _of_compositions(platform: Platform, xr: Manifest) -> str:
    kind = Kind.of(xr)
    selector = dig(xr, "spec", "crossplane", "compositionSelector", default=None) or dig(
        xr, "spec", "compositionSelector", default={}
    )
    wanted = {"apiVersion": kind.api_version, "kind": kind.kind}
    candidates = [
        each
        for each in platform.cluster.list(COMPOSITION).items
        if dig(each, "spec", "compositeTypeRef", default=None) == wanted
    ]
    labels = dig(selector, "matchLabels", default=None) or {}
    return what_there_is(f"Composition of {kind.kind}", labels, candidates)


def _selectors(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the selectors of a managed resource, each with the field that it fills."""
    if isinstance(value, list):
        for entry in value:
            yield from _selectors(entry)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("Selector") and isinstance(inner, dict):
                yield name.removesuffix("Selector"), inner
            else:
                yield from _selectors(inner)


def _of_referents(
    platform: Platform, managed: Manifest, stem: str, selector: Mapping[str, Any]
) -> str:
    labels = dig(selector, "matchLabels", default=None) or {}
    own = controller(managed) if selector.get("matchControllerRef") else None
    whose = f" of the same {own.get('kind')}" if own else ""
    name = _VALUE_OF.sub("", stem)
    for word in (name[:1].upper() + name[1:], name.upper()):
        kind = Kind(Kind.of(managed).group, Kind.of(managed).version, word)
        with suppress(AccessError, NoSuchKindError):
            candidates = [
                each
                for each in platform.cluster.list(kind).items
                if own is None or (controller(each) or {}).get("uid") == own.get("uid")
            ]
            return what_there_is(word + whose, labels, candidates)
    asked = f"the labels {labels_text(labels)}" if labels else "no labels"
    return f"{stem}Selector asks for {asked}{whose and ', and for an object' + whose}"
