"""
Choose which installed functions run in this process, and report how certain the choice is.

A function's package identifies it: the last part of its path, regardless of registry and tag. If
only the name of a function is known (a step names it, no manifest does), the name is trusted, and
`Chosen.notes` reports that.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compositions.station import Reader, Station

__all__ = ["RELEASES", "TWINS", "function_name", "package_name"]


@dataclass(frozen=True, slots=True)
class Twin:
    """A function that runs here, and the release of the real one that it reimplements."""

    module: str
    function: str
    release: str
    reads_only: bool = False

    @property
    def minor(self) -> tuple[int, int]:
        """Its first two numbers."""
        major, minor, _ = self.release.removeprefix("v").split(".")
        return int(major), int(minor)

    @property
    def station(self) -> Station:
        """Import the twin. Most pipelines call one or none."""
        station: Station = getattr(importlib.import_module(self.module), self.function)
        return Reader(station) if self.reads_only else station


TWINS: Mapping[str, Twin] = {
    "function-auto-ready": Twin("compositions.parts", "auto_ready", "v0.7.0", reads_only=True),
    "function-environment-configs": Twin(
        f"{__package__}.environment_configs", "environment_configs", "v0.7.1"
    ),
    "function-extra-resources": Twin(f"{__package__}.extra_resources", "extra_resources", "v0.3.0"),
    "function-patch-and-transform": Twin(
        f"{__package__}.patch_and_transform", "patch_and_transform", "v0.10.8"
    ),
}
"""By the last part of the package's path."""

RELEASES: Mapping[str, str] = {
    **{name: twin.release for name, twin in TWINS.items()},
    "function-cel-filter": "v0.2.0",
    "function-go-templating": "v0.12.2",
    "function-kcl": "v0.12.0",
    "function-kro": "v0.3.0",
    "function-python": "v0.2.0",
    "function-pythonic": "v0.6.0",
    "function-sequencer": "v0.5.0",
    "function-status-transformer": "v0.5.1",
    "function-tag-manager": "v0.9.0",
}
"""Functions of crossplane-contrib, and the release to install where no file names one."""

_PACKAGE = re.compile(r"(?:.*/)?(?P<name>[^/:@]+)(?::(?P<tag>[^/@]*))?(?:@.*)?\Z")
_RELEASE = re.compile(r"v?([0-9]+)\.([0-9]+)\.[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The functions that have a twin, by the name under which they are installed."""

    functions: Mapping[str, Station]
    notes: Mapping[str, str] = field(default_factory=dict)
    """What is uncertain about a twin, by the function's name: how it differs from what runs."""


def package_name(package: str) -> str:
    """Return the last part of a package's path, without registry, tag and digest."""
    match = _PACKAGE.match(package)
    return match["name"] if match else ""


def function_name(name: str, packages: Mapping[str, str]) -> str:
    """
    Return which function is installed under a name.

    Its package says so if it is known. Otherwise it is the name, without the organisation that
    Crossplane puts before it when a Configuration depends on the function.
    """
    if name in packages:
        return package_name(packages[name])
    return next((known for known in RELEASES if name.endswith(f"-{known}")), name)


def choose(packages: Mapping[str, str], function_names: Iterable[str]) -> Chosen:
    """
    Return the twins of the functions that steps name.

    Args:
        packages: The package of every function whose manifest is known, by the function's name:
            ``xpkg.example.org/crossplane-contrib/function-auto-ready:v0.6.0``. Its last part alone
            decides, so that a mirror's copy has the twin too.
        function_names: Names of functions that steps call.
    """
    functions, notes = {}, {}
    for name in sorted({*function_names, *packages}):
        twin = TWINS.get(function_name(name, packages))
        if twin is None:
            continue
        functions[name] = twin.station
        note = _note(name, packages.get(name), twin)
        if note:
            notes[name] = note
    return Chosen(functions, notes)


def _note(name: str, package: str | None, twin: Twin) -> str:
    if package is None:
        return f"{name} is taken for what its name says: its package is not known"
    match = _PACKAGE.match(package)
    release = _RELEASE.match((match["tag"] if match else "") or "")
    if release is None or (int(release[1]), int(release[2])) == twin.minor:
        return ""
    read = ".".join(map(str, twin.minor))
    return f"{name} is {release[0]} and is played by what {read} does"
