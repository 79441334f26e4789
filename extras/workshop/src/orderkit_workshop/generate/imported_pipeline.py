"""
What the pipeline of an imported Composition needs of a pack: functions, stations, declared kinds.

Packages come from Function objects, from the ``dependsOn`` of a Configuration, and for functions
of crossplane-contrib from a list of releases. A function that the pack delivers under another
name is called by that name: Crossplane cannot install one package twice.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compositions.composed import PipelineStep, steps_of
from compositions.function_twins.choice import RELEASES, function_name, package_name
from compositions.python_functions import STATION_FUNCTION, is_own, runs_here
from ground.errors import RefusedError
from ground.objects.kube_objects import FUNCTION, Kind, Manifest, dig, metadata
from ground.objects.values import copied

_REGISTRY = "__ORDERKIT_REGISTRY__"
_CONFIGURATIONS = {
    ("meta.pkg.crossplane.io", "Configuration"),  # crossplane.yaml
    ("meta.dev.upbound.io", "Project"),  # upbound.yaml
}
_ANY = re.compile(r"v?0\.0\.0")
"""What ranges that take every release begin with: ``>=v0.0.0``."""
_RELEASE = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+[-.+0-9A-Za-z]*")
_PATCHING, _TEMPLATING = "function-patch-and-transform", "function-go-templating"
_ENVIRONMENT, _EXTRA = "function-environment-configs", "function-extra-resources"
_TEMPLATED = re.compile(r"^apiVersion: *([\w./-]+) *\nkind: *(\w+) *$", re.MULTILINE)
_META = "meta.gotemplating.fn.crossplane.io"
"""The group of documents with which a template speaks to its function."""
_ENVIRONMENT_CONFIG = Kind("apiextensions.crossplane.io", "v1beta1", "EnvironmentConfig")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a Composition requires of a pack."""

    foreign: tuple[tuple[str, str], ...]
    """Step and function, for functions that do not run as Python in this process."""
    stations: tuple[str, ...]
    functions: tuple[str, ...]
    composes: tuple[Kind, ...]
    """Kinds that can be read from its inputs."""
    requires: tuple[Kind, ...]


def pipeline_of(composition: Manifest, packages: Mapping[str, str]) -> Pipeline:
    """
    Read a Composition's pipeline.

    Args:
        packages: Of functions, by name, where they are known.

    Raises:
        RefusedError: It has none.
    """
    steps = steps_of(composition.get("spec") or {})
    if not steps:
        raise RefusedError(
            f"Composition {metadata(composition).get('name')} has no pipeline",
            hint="mode Resources is gone since Crossplane 2; add --convert to import it as a "
            "pipeline of function-patch-and-transform",
        )
    own_kind = Kind.parse(
        str(dig(composition, "spec", "compositeTypeRef", "apiVersion", default="")),
        str(dig(composition, "spec", "compositeTypeRef", "kind", default="")),
    )
    stations = [s.input.get("name", "") for s in steps if is_own(s.function, packages)]
    composed = {kind for step in steps for kind in _composed(step, packages)}
    required = {kind for step in steps for kind in _required(step, packages)}
    for entry in dig(composition, "spec", "pipeline", default=None) or ():
        required |= _kinds(dig(entry, "requirements", "requiredResources", default=None))
    return Pipeline(
        tuple((s.name, s.function) for s in steps if not runs_here(s.function, packages)),
        tuple(sorted({str(name) for name in stations})),
        tuple(sorted({step.function for step in steps})),
        tuple(sorted(composed - {own_kind})),
        tuple(sorted(required)),
    )


def map_keys(composition: Manifest) -> dict[str, tuple[str, ...]]:
    """Return the keys of the ``map`` transforms of fields, by the fields' paths below spec."""
    keys: dict[str, tuple[str, ...]] = {}
    for patch in _patches(dig(composition, "spec", "pipeline", default=None)):
        field, transforms = str(patch.get("fromFieldPath")), patch.get("transforms")
        first = transforms[0] if isinstance(transforms, list) and transforms else None
        table = dig(first, "map", default=None)
        if field.startswith("spec.") and isinstance(table, dict):
            path = field.removeprefix("spec.")
            keys[path] = tuple(k for k in keys.get(path, tuple(table)) if k in table)
    return {path: found for path, found in keys.items() if found}


def _patches(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the patches in the inputs of a pipeline."""
    if isinstance(value, dict):
        if "fromFieldPath" in value:
            yield value
        value = list(value.values())
    for entry in value if isinstance(value, list) else ():
        yield from _patches(entry)


def _kinds(entries: Any) -> set[Kind]:
    """Return the kinds that the entries of a list name."""
    kinds = set()
    for entry in entries or ():
        with contextlib.suppress(ValueError):
            kinds.add(Kind.of(entry if isinstance(entry, dict) else {}))
    return kinds


def _composed(step: PipelineStep, packages: Mapping[str, str]) -> set[Kind]:
    function = function_name(step.function, packages)
    if function == _PATCHING:
        resources = step.input.get("resources") or ()
        return _kinds(resource.get("base") for resource in resources)
    if function.endswith(_TEMPLATING):
        text = str(dig(step.input, "inline", "template", default=""))
        kinds = {Kind.parse(*pair) for pair in _TEMPLATED.findall(text.replace("\r\n", "\n"))}
        return {kind for kind in kinds if kind.group != _META}
    return set()


def _required(step: PipelineStep, packages: Mapping[str, str]) -> set[Kind]:
    function = function_name(step.function, packages)
    if function == _ENVIRONMENT:
        configs = dig(step.input, "spec", "environmentConfigs", default=None)
        return {_ENVIRONMENT_CONFIG} if configs else set()
    if function == _EXTRA:
        return _kinds(dig(step.input, "spec", "extraResources", default=None))
    return set()


def source_packages(objects: Iterable[Manifest]) -> dict[str, str]:
    """Return packages by name, from Functions and from the ``dependsOn`` of Configurations."""
    manifests = list(objects)
    packages: dict[str, str] = {}
    for dependency in dependencies_of(manifests):
        if dependency.kind == FUNCTION.kind and dependency.release:
            parts = dependency.path.split("/")
            packages |= dict.fromkeys((parts[-1], "-".join(parts[-2:])), dependency.package)
    for manifest in manifests:
        kind = Kind.of(manifest)
        package = str(dig(manifest, "spec", "package", default=""))
        # without a slash it is no image: `crossplane render` runs it elsewhere
        if (kind.group, kind.kind) == (FUNCTION.group, FUNCTION.kind) and "/" in package:
            packages[str(metadata(manifest).get("name", ""))] = package
    return packages


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that a Configuration or a Project depends on."""

    kind: str
    """``Function``, ``Provider`` or ``Configuration``."""
    path: str
    version: str
    """As it is written: a release, or a range of them."""

    @property
    def release(self) -> str:
        """The release that the version names; empty: it takes any."""
        found = _RELEASE.search(self.version)
        return found[0] if found and not _ANY.fullmatch(found[0]) else ""

    @property
    def package(self) -> str:
        return f"{self.path}:{self.release}" if self.release else self.path


def dependencies_of(objects: Iterable[Manifest]) -> Iterator[Dependency]:
    """Yield what Configurations (crossplane.yaml) and Projects (upbound.yaml) depend on."""
    for manifest in objects:
        kind = Kind.of(manifest)
        if (kind.group, kind.kind) not in _CONFIGURATIONS:
            continue
        for entry in dig(manifest, "spec", "dependsOn", default=None) or ():
            fields = entry if isinstance(entry, Mapping) else {}
            kinds = {name: fields.get(name.lower()) for name in _DEPENDENCIES}
            if fields.get("kind") in kinds:
                kinds[str(fields["kind"])] = fields.get("package")
            for name, path in kinds.items():
                if isinstance(path, str):
                    yield Dependency(name, path, str(fields.get("version", "")))


_DEPENDENCIES = ("Function", "Provider", "Configuration")


@dataclass(frozen=True, slots=True)
class FunctionsToAdd:
    """How a pack gets the functions of a pipeline."""

    renamed: Mapping[str, str]
    """Names under which the pack delivers a function already, by the pipeline's name."""
    packages: Mapping[str, str]
    """Packages to add, by name."""
    unknown: tuple[str, ...]
    """Functions whose package stands nowhere."""


def functions_to_add(
    names: Iterable[str], sources: Mapping[str, str], delivered: Mapping[str, str]
) -> FunctionsToAdd:
    """
    Return what to do for each function that a pipeline names.

    Args:
        sources: Packages that came with the Composition.
        delivered: Packages that the pack delivers.
    """
    renamed: dict[str, str] = {}
    packages: dict[str, str] = {}
    unknown = []
    delivered_names = {package_name(package): name for name, package in delivered.items()}
    for name in names:
        function = function_name(name, sources)
        if name in delivered:
            continue
        if function in delivered_names:
            renamed[name] = delivered_names[function]
        elif name in sources:
            packages[name] = sources[name]
        elif function in RELEASES:
            packages[name] = f"{_REGISTRY}/crossplane-contrib/{function}:{RELEASES[function]}"
        elif name != STATION_FUNCTION:
            unknown.append(name)
    return FunctionsToAdd(renamed, packages, tuple(unknown))


def with_renamed_functions(composition: Manifest, renamed: Mapping[str, str]) -> Manifest:
    """Return a Composition whose steps call functions by the pack's names."""
    changed: Manifest = copied(composition)
    for step in dig(changed, "spec", "pipeline", default=None) or ():
        reference = step.get("functionRef") or {}
        if reference.get("name") in renamed:
            reference["name"] = renamed[reference["name"]]
    return changed


def function_manifest(name: str, package: str) -> Manifest:
    """Return the Function that installs a package."""
    return {
        "apiVersion": FUNCTION.api_version,
        "kind": FUNCTION.kind,
        "metadata": {"name": name},
        "spec": {"package": package},
    }
