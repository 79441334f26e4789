"""
Function objects: say which of them this process can run.

No package is ever pulled. A Function is Healthy when the embedded platform has a runner of
that name, whatever its package says; any other one (go-templating, KCL, ...) is installed but
not healthy, and a pipeline step that names it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from orderkit.adapters.embedded.assembly.site import Site, is_deleting
from orderkit.core.conditions import Condition
from orderkit.core.objects import FUNCTION, ObjectKey, metadata
from orderkit.core.station import Station

INSTALLED = Condition("Installed", "True", "ActivePackageRevision")
HEALTHY = Condition("Healthy", "True", "HealthyPackageRevision")


def unhealthy(name: str, known: Mapping[str, Station]) -> Condition:
    """Return why a Function cannot run here."""
    names = ", ".join(sorted(known)) or "none"
    text = f'the embedded platform has no runner for "{name}"; it runs: {names}'
    return Condition("Healthy", "False", "UnhealthyPackageRevision", text)


class FunctionReconciler:
    """Keep the conditions of Function objects."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set Installed and Healthy. Idempotent."""
        function = self._site.cluster.get(key)
        if function is not None and not is_deleting(function):
            known = self._site.functions
            health = HEALTHY if key.name in known else unhealthy(key.name, known)
            self._site.write_status(function, INSTALLED, health)
        return None


def installed(site: Site) -> frozenset[str]:
    """Return the names of all Function objects in the cluster."""
    return frozenset(metadata(found)["name"] for found in site.cluster.list(FUNCTION).items)
