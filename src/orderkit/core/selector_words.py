"""Say in words what a selector asks for, and what there is instead. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ground.errors import shorten
from ground.objects.kube_objects import Manifest, first_and_more, labels_of, metadata

NO_COMPOSITION = "no compatible Compositions found"
"""Crossplane's words where a selector matches no Composition of the XR's kind."""
_SHOWN_MAX = 60


def what_there_is(kind: str, labels: Mapping[str, str], candidates: Iterable[Manifest]) -> str:
    """Return that no object has some labels, and the labels of those that there are."""
    shown = sorted(
        f"{metadata(each).get('name')} ({labels_text(labels_of(each)) or 'without labels'})"
        for each in candidates
    )
    asked = f"has the labels {labels_text(labels)}" if labels else "is there"
    there = f"there {'are' if len(shown) > 1 else 'is'} {first_and_more(shown)}"
    return f"no {kind} {asked}; {there if shown else 'there is none at all'}"


def labels_text(labels: Mapping[str, Any]) -> str:
    """Return labels as people write them in selectors."""
    pairs = sorted(f"{name}={value}" for name, value in labels.items())
    return shorten(", ".join(pairs), limit=_SHOWN_MAX)
