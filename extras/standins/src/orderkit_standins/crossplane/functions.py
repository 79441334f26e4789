"""
Function objects: report which of them this process can run.

No package is ever pulled. The embedded platform has a runner for what a Function's package is (the
last part of the path, whatever registry and release), or one of the Function's own name. Any other
one (go-templating, KCL, ...) has the reason ``NotRunHere``: a pipeline step that names it fails,
and with it only the orders of that kit.
"""

from __future__ import annotations

from collections.abc import Mapping

from compositions.function_twins.choice import package_name
from compositions.python_functions import NAMES, NOT_RUN_HERE, not_run
from compositions.station import Station
from ground.objects.conditions import Condition
from ground.objects.kube_objects import FUNCTION, Manifest, ObjectKey, dig, metadata
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting

INSTALLED = Condition("Installed", "True", "ActivePackageRevision")
HEALTHY = Condition("Healthy", "True", "HealthyPackageRevision")
NOT_RUN = Condition("Healthy", "True", NOT_RUN_HERE, not_run())
"""True, because Argo CD would hold back everything that it delivers after an unhealthy Function."""


class FunctionReconciler:
    """Keep the conditions of Function objects."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set Installed and Healthy, and for which package. Idempotent."""
        function = self._site.cluster.get(key)
        if function is not None and not is_deleting(function):
            stations = self._site.functions
            runs = runner(function, stations) is not None
            health = HEALTHY if runs else NOT_RUN
            status = {"currentIdentifier": dig(function, "spec", "package")}
            self._site.write_status(function, INSTALLED, health, status=status)
        return None


def runner(function: Manifest, stations: Mapping[str, Station]) -> Station | None:
    """Return what runs a Function here, if anything does."""
    package = package_name(str(dig(function, "spec", "package", default="")))
    name = metadata(function)["name"]
    if package in stations or name in NAMES:
        return stations.get(package)
    return stations.get(name)


def installed(site: ReconcilerContext) -> dict[str, Station | None]:
    """Return what runs each Function of the cluster here, None where nothing does."""
    functions = site.cluster.list(FUNCTION).items
    return {metadata(function)["name"]: runner(function, site.functions) for function in functions}
