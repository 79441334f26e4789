"""
Find fields of a plan that only the cluster can determine: those derived from a future uid.

A generated name depends on the uid of the XR, and a station may use that uid too. So an XR that
does not exist yet is assembled a second time with another uid, and every difference is a guess.
This finds every use that a station makes of the uid, without tracing it.

The uids of resources other than XRs are assumed not to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ground.objects.kube_objects import Manifest, metadata
from orderkit.core.order.change import differences
from orderkit.core.plan.assembly import Assembly, Guess
from orderkit.core.plan.composed_tree import AssemblyContext, assemble

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
    Return an assembly with its guesses.

    Args:
        observed: The objects in the cluster, whatever the assembly was made with.
        attributed: The step that composed each of them, as `assemble` takes it.
    """
    if metadata(xr).get("uid") and not _new_xrs(assembly, workshop, observed):
        return assembly
    salted = replace(workshop, salt=_SALT)
    other = assemble(xr, salted, observed=observed, attributed=attributed)
    guesses = tuple(sorted(set(_guesses(assembly, other))))
    return replace(assembly, guesses=guesses, unknowns=(*assembly.unknowns, *guess_texts(guesses)))


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
    """Remove values that are nothing but a uid."""
    meta: dict[str, Any] = dict(metadata(manifest))
    for key in ("uid", "ownerReferences"):
        meta.pop(key, None)
    return {**manifest, "metadata": meta} if meta else manifest


def guess_texts(guesses: Iterable[Guess]) -> Iterator[str]:
    """Yield the sentences about guesses."""
    for guess in guesses:
        field = ".".join(segment for segment in (guess.path, guess.field) if segment)
        yield f"{field} follows from a uid that only the cluster gives"
