"""
The Composition functions that Orderkit runs itself: stations of the pack, and twins.

All other functions (go-templating, KCL, ...) are foreign: a pack can deliver them, but neither the
embedded platform nor a simulation runs them. The embedded Crossplane, kit checks and plans all use
this module, so that they run the same code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from compositions.function_twins import Chosen, choose
from compositions.function_twins.choice import TWINS, function_name
from compositions.station import Station, station_runner
from ground.names import Files
from ground.objects.kube_objects import FUNCTION, Kind, Manifest, annotations_of, dig, metadata
from yamlfiles.manifests import parse_manifests

__all__ = [
    "AUTO_READY_FUNCTION",
    "NAMES",
    "NOT_RUN_HERE",
    "PROGRAM",
    "STATION_FUNCTION",
    "function_manifests",
    "functions_here",
    "is_not_run",
    "is_own",
    "not_run",
    "packages_of",
    "program_digests",
    "python_functions",
    "run_hint",
    "runs_here",
    "typed_package",
]

STATION_FUNCTION = "function-orderkit"
AUTO_READY_FUNCTION = "function-auto-ready"
NAMES = frozenset({STATION_FUNCTION, *TWINS})
"""By the last part of the package's path, which is also the usual name."""
NOT_RUN_HERE = "NotRunHere"
"""The reason of the condition Healthy of a Function that the embedded platform does not run."""
PROGRAM = "orderkit.dev/runs"
"""An annotation of a Function: the digest of the program that runs it here, if it was added."""
_NOT_RUN = "it does not run here"

_FILLED_IN = re.compile(r"__[A-Z_]+__")
_ROOM = PurePosixPath("gitops", "functions")


def python_functions(stations: Mapping[str, Station]) -> dict[str, Station]:
    """Return the functions by the last part of their package's path."""
    twins = {name: twin.station for name, twin in TWINS.items()}
    return {STATION_FUNCTION: station_runner(stations), **twins}


def functions_here(
    stations: Mapping[str, Station],
    packages: Mapping[str, str],
    function_names: Iterable[str],
    programs: Mapping[str, Station] = MappingProxyType({}),
) -> Chosen:
    """
    Return the functions by their installed names.

    Args:
        packages: The package of every function whose manifest is known, by its name.
        function_names: Names of functions that steps call.
        programs: Functions that run as what they are, by name; they take the place of twins.
    """
    all_names = {*function_names, *packages}
    twins = choose(packages, all_names)
    station_functions = {
        name for name in all_names if function_name(name, packages) == STATION_FUNCTION
    }
    run = station_runner(stations)
    functions = {**twins.functions, **dict.fromkeys(sorted(station_functions), run), **programs}
    notes = {name: note for name, note in twins.notes.items() if name not in programs}
    return Chosen(functions, notes)


def runs_here(name: str, packages: Mapping[str, str]) -> bool:
    """Return whether a function runs in this process, by its package if that is known."""
    return function_name(name, packages) in NAMES


def is_own(name: str, packages: Mapping[str, str]) -> bool:
    """Return whether a function is the one that runs a pack's stations."""
    return function_name(name, packages) == STATION_FUNCTION


def not_run(package: str = "") -> str:
    """Return why a step of a foreign function fails here, and what helps."""
    return f"{_NOT_RUN}; {run_hint(package)}"


def run_hint(package: str = "") -> str:
    """Return what helps where a function does not run."""
    command = f"orderkit functions add {typed_package(package) or 'PACKAGE'}"
    return f"'{command}' brings its program; Crossplane runs it in a cluster"


def typed_package(package: str) -> str:
    """Return a package with HOST and VERSION where the platform fills them in."""
    return _FILLED_IN.sub(lambda found: "VERSION" if found.start() else "HOST", package)


def is_not_run(reason: str) -> bool:
    """Return whether an order fails for what `not_run` returns: then waiting does not help."""
    return _NOT_RUN in reason


def packages_of(files: Files) -> dict[str, str]:
    """
    Return the packages of the functions that a pack delivers, by their names.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    return {
        str(metadata(manifest).get("name", "")): str(dig(manifest, "spec", "package", default=""))
        for manifest in function_manifests(files)
    }


def program_digests(files: Files) -> dict[str, str]:
    """
    Return which programs run a pack's functions (`PROGRAM`), by the functions' names.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    chosen = {
        str(metadata(manifest).get("name", "")): annotations_of(manifest).get(PROGRAM, "")
        for manifest in function_manifests(files)
    }
    return {name: digest for name, digest in chosen.items() if digest}


def function_manifests(files: Files) -> Iterator[Manifest]:
    """
    Yield the Function objects that a pack delivers.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    for path, data in sorted(files.items()):
        if path.is_relative_to(_ROOM) and path.suffix in {".yaml", ".yml"}:
            for manifest in parse_manifests(str(path), data):
                kind = Kind.of(manifest)
                if (kind.group, kind.kind) == (FUNCTION.group, FUNCTION.kind):
                    yield manifest
