"""
Judge objects with a pack's settings as Argo CD does: which check, and what the Lua says.

As read from the source of 3.0 to 3.2: a check of exactly this kind before one by a pattern, no
libraries for text and numbers, whatever is being deleted is Progressing. Argo CD's own checks are
not here, so a kind without one of ours has none.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

import lupa.lua51
import yaml

from ground.argocd.health import Health, HealthStatus
from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit_workshop.generate.health_checks import KEY

WORDS = ("Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown")


def judge(settings: Mapping[str, str], manifest: Manifest) -> Health | None:
    """Return what Argo CD with these settings says; None: it has no check of ours."""
    if metadata(manifest).get("deletionTimestamp"):
        return Health(HealthStatus.PROGRESSING, "Pending deletion")
    script = check_of(settings, Kind.of(manifest))
    if not script:
        return None
    told = run(script, manifest)
    if told.get("status") not in WORDS:
        return Health(HealthStatus.UNKNOWN, "Lua returned an invalid health status")
    return Health(HealthStatus(told["status"]), told.get("message") or "")


def check_of(settings: Mapping[str, str], kind: Kind) -> str | None:
    """Return the Lua that judges a kind."""
    exact = settings.get(KEY.format(group=kind.group, kind=kind.kind))
    if exact:
        return exact
    patterns = yaml.safe_load(settings.get("resource.customizations", "{}"))
    name = f"{kind.group}/{kind.kind}"
    found = [one["health.lua"] for key, one in patterns.items() if fnmatch.fnmatchcase(name, key)]
    assert len(found) < 2, f"{name}: Argo CD takes either of {len(found)} checks"
    return found[0] if found else None


def run(script: str, manifest: Manifest) -> dict[str, Any]:
    """Run a check on an object."""
    lua = lupa.lua51.LuaRuntime(unpack_returned_tuples=True, register_eval=False)
    for library in ("string", "math", "io", "debug", "coroutine", "python"):
        lua.globals()[library] = None
    lua.globals().obj = lua.table_from(manifest, recursive=True)
    return dict(lua.execute(script))
