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


def with_guesses(
    assembly: Assembly,
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
    if metadata(xr).get("uid") and not _new_xrs(assembly, workshop, observed):
        return assembly
    salted = replace(workshop, salt=_SALT)
    other = assemble(xr, salted, observed=observed, attributed=attributed)
    guesses = tuple(sorted(set(_guesses(assembly, other))))
    return replace(assembly, guesses=guesses, unknowns=(*assembly.unknowns, *_guess_texts(guesses)))


def _new_xrs(
    assembly: Assembly, workshop: AssemblyContext, observed: Mapping[str, Manifest]
) -> bool:
    new = (manifest for path, manifest in assembly.observed.items() if path not in observed)
    return any(workshop.blueprint(manifest) is not None for manifest in new)


def _guesses(assembly: Assembly, other: Assembly) -> Iterator[Guess]:
    for path in assembly.resources.keys() | other.resources.keys():
        manifest, other_manifest = (
            _plain(side.resources.get(path, {})) for side in (assembly, other)
        )
        for field in differences(manifest, other_manifest, into_lists=True):
            yield Guess(path, field.path)
    status, other_status = ({"status": side.xr.get("status") or {}} for side in (assembly, other))
    for field in differences(status, other_status, into_lists=True):
        yield Guess("", field.path)


def _plain(manifest: Manifest) -> Manifest:
    """Leave out what is a uid and no more than that."""
    meta: dict[str, Any] = dict(metadata(manifest))
    for key in ("uid", "ownerReferences"):
        meta.pop(key, None)
    return {**manifest, "metadata": meta} if meta else manifest


def _guess_texts(guesses: tuple[Guess, ...]) -> Iterator[str]:
    for guess in guesses:
        field = ".".join(segment for segment in (guess.path, guess.field) if segment)
        yield f"{field} follows from a uid that only the cluster gives"
