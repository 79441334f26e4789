"""
Which fields of a plan only the cluster can know: those that follow from a uid it has yet to give.

A name that is not set is made from the uid of the XR, and a station may use that uid too. So an
XR that does not exist yet is assembled a second time with another uid: whatever comes out
differently is a guess. Nothing is traced, so nothing that a station does with it is missed.

The uids of resources that are no XRs are taken to matter to nobody. Called by the flow that plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orderkit.core.objects.kube_objects import Manifest, metadata
from orderkit.core.order.change import differences
from orderkit.core.plan.assembly import Assembly, AssemblyContext, Guess, assemble

_SALT = "another"


def guessed(
    found: Assembly,
    xr: Manifest,
    workshop: AssemblyContext,
    observed: Mapping[str, Manifest],
    *,
    attributed: Mapping[str, str] | None = None,
) -> Assembly:
    """
    Return an assembly that tells its guesses.

    Args:
        observed: What exists in the cluster, whatever the assembly was made with.
        attributed: Which step asked for it, as `assemble` takes it.
    """
    if metadata(xr).get("uid") and not _new_xrs(found, workshop, observed):
        return found
    salted = replace(workshop, salt=_SALT)
    other = assemble(xr, salted, observed=observed, attributed=attributed)
    guesses = tuple(sorted(set(_guesses(found, other))))
    return replace(found, guesses=guesses, unknowns=(*found.unknowns, *_told(guesses)))


def _new_xrs(found: Assembly, workshop: AssemblyContext, observed: Mapping[str, Manifest]) -> bool:
    new = (each for path, each in found.observed.items() if path not in observed)
    return any(workshop.blueprint(each) is not None for each in new)


def _guesses(found: Assembly, other: Assembly) -> Iterator[Guess]:
    for path in found.resources.keys() | other.resources.keys():
        one, two = (_plain(each.resources.get(path, {})) for each in (found, other))
        for field in differences(one, two, into_lists=True):
            yield Guess(path, field.path)
    status, shown = ({"status": each.xr.get("status") or {}} for each in (found, other))
    for field in differences(status, shown, into_lists=True):
        yield Guess("", field.path)


def _plain(manifest: Manifest) -> Manifest:
    """Leave out what is a uid and no more than that."""
    meta: dict[str, Any] = dict(metadata(manifest))
    for key in ("uid", "ownerReferences"):
        meta.pop(key, None)
    return {**manifest, "metadata": meta} if meta else manifest


def _told(guesses: tuple[Guess, ...]) -> Iterator[str]:
    for each in guesses:
        field = ".".join(part for part in (each.path, each.field) if part)
        yield f"{field} follows from a uid that only the cluster gives"
