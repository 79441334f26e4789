"""
Function objects: report which of them this process can run.

No package is ever pulled. A Function whose program was added on this machine is run by it. Else the
embedded platform has a runner for what its package is (the last part of the path, whatever registry
and release), or one of the Function's own name. Any other one has the reason ``NotRunHere``: a
pipeline step that names it fails, and with it only the orders of that kit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from compositions.function_twins.choice import package_name
from compositions.python_functions import NAMES, NOT_RUN_HERE, PROGRAM, not_run
from compositions.station import Station
from ground.objects.conditions import Condition
from ground.objects.kube_objects import (
    FUNCTION,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.adapters.functions.program_function import ProgramFunction
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting

INSTALLED = Condition("Installed", "True", "ActivePackageRevision")
HEALTHY = Condition("Healthy", "True", "HealthyPackageRevision")


def not_run_condition(function: Manifest) -> Condition:
    """Return True: Argo CD would hold back all that it delivers after an unhealthy Function."""
    return Condition("Healthy", "True", NOT_RUN_HERE, not_run(_package(function)))


@dataclass(frozen=True, slots=True)
class InstalledFunctions:
    """The Functions of a cluster, by name."""

    running: Mapping[str, Station]
    foreign: Mapping[str, str]
    """Why it does not run here."""
    programs: Collection[str]
    """Those of `running` that are programs of their own."""


class FunctionReconciler:
    """Keep the conditions of Function objects."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set Installed and Healthy, and for which package. Idempotent."""
        function = self._site.cluster.get(key)
        if function is not None and not is_deleting(function):
            health = (
                not_run_condition(function) if runner(function, self._site) is None else HEALTHY
            )
            status = {"currentIdentifier": dig(function, "spec", "package")}
            self._site.write_status(function, INSTALLED, health, status=status)
        return None


def runner(function: Manifest, site: ReconcilerContext) -> Station | None:
    """Return what runs a Function here, if anything does: its own program before a twin."""
    program = site.program_of(annotations_of(function).get(PROGRAM, ""))
    if program is not None:
        return program
    package, stations = package_name(_package(function)), site.functions
    name = metadata(function)["name"]
    if package in stations or name in NAMES:
        return stations.get(package)
    return stations.get(name)


def installed(site: ReconcilerContext) -> InstalledFunctions:
    """Return what runs the Functions of the cluster here."""
    running, foreign, programs = dict[str, Station](), dict[str, str](), set[str]()
    for function in site.cluster.list(FUNCTION).items:
        name, station = metadata(function)["name"], runner(function, site)
        if station is None:
            foreign[name] = not_run(_package(function))
        else:
            running[name] = station
            if isinstance(station, ProgramFunction):
                programs.add(name)
    return InstalledFunctions(running, foreign, programs)


def _package(function: Manifest) -> str:
    return str(dig(function, "spec", "package", default=""))
