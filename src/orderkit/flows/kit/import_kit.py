"""
Create a kit from an existing XRD, of a file or a cluster, with its Composition if there is one.

Without a Composition the kit gets a first station, so that it works at once. With one, the
Composition stays unchanged: functions that do not run in this process are delivered and reported.
`Imported.next` lists what a person has to do.

Called by ``orderkit kit import``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.core.crossplane.python_functions import STATION_FUNCTION
from orderkit.core.errors import InvalidInputError, NotFoundError
from orderkit.core.generate.imported_kit import (
    ImportSource,
    Pipeline,
    SourcedObject,
    cleaned,
    composition_for,
    functions_in,
    kit_name,
    pipeline_of,
    text_of,
    the_xrd,
)
from orderkit.core.generate.kit_draft import skeleton_values
from orderkit.core.kit.field_titles import spelt_out
from orderkit.core.objects.kube_objects import (
    COMPOSITION,
    FUNCTION,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.core.schema import xrd as definitions
from orderkit.core.yaml import yaml11
from orderkit.core.yaml.documents import Files
from orderkit.core.yaml.manifests import parse_manifests
from orderkit.flows.kit.start_kit import FailsItselfError, KitAdded, add_kit
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit.ports.pack_folder import PackFolder, SkeletonRenderer

FUNCTIONS = PurePosixPath("gitops", "functions")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The XRD to create a kit from, and the kit's name."""

    pack: PackFolder
    sources: Sequence[ImportSource]
    render_skeleton: SkeletonRenderer
    name: str = ""
    """The kit's; empty: from the XRD's kind."""
    composition: str = ""
    """Its name, where there are several to choose from."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A kit that is in the pack now, and what a person should do about it."""

    added: KitAdded
    starter: bool
    """It has no Composition of its own and got a first station."""
    next: tuple[str, ...]


def import_kit(request: ImportRequest) -> Imported:
    """
    Add a kit to the pack.

    Raises:
        InvalidInputError: Not one XRD, one that the API server would refuse, or a broken pack.
        RefusedError: The pack has such a kit, or files in its place.
        OrderkitError: The new kit fails its own tests; nothing was written.
    """
    xrd = the_xrd(request.sources)
    _check(xrd)
    composition = composition_for(xrd.manifest, request.sources, name=request.composition)
    pipeline = None if composition is None else pipeline_of(composition.manifest)
    name = request.name or kit_name(xrd.manifest)
    functions = _functions(request, pipeline)
    try:
        files = _files(request, name, xrd, composition, example=True)
        added = add_kit(request.pack, name, {**files, **functions})
        unguessed = "" if added.scenarios else "no example value could be guessed"
    except FailsItselfError as error:
        files = _files(request, name, xrd, composition, example=False)
        added = add_kit(request.pack, name, {**files, **functions})
        unguessed = error.why
    notes = _next(request.pack, name, pipeline, unguessed)
    return Imported(added, composition is None, tuple(notes))


def from_cluster(cluster: Cluster, name: str) -> ImportSource:
    """
    Read an XRD, its Compositions and the functions they name from a cluster.

    Args:
        name: The XRD's, for example ``xbuckets.example.org``.

    Raises:
        NotFoundError: No such XRD, or no Crossplane. RemoteError: The cluster does not answer.
    """
    try:
        xrd = cluster.get(ObjectKey(definitions.XRD_KIND, name))
        names = [
            metadata(manifest).get("name", "") for manifest in _list(cluster, definitions.XRD_KIND)
        ]
    except NoSuchKindError as error:
        raise NotFoundError("the cluster has no Crossplane", hint=str(error)) from error
    if xrd is None:
        raise NotFoundError(
            f"the cluster has no CompositeResourceDefinition '{name}'",
            hint=f"it has: {', '.join(sorted(map(str, names))) or 'none'}",
        )
    kind = dig(xrd, "spec", "names", "kind")
    compositions = [
        manifest
        for manifest in _list(cluster, COMPOSITION)
        if dig(manifest, "spec", "compositeTypeRef", "kind") == kind
    ]
    functions = _list(cluster, FUNCTION)
    return ImportSource(f"cluster: {name}", (xrd, *compositions, *functions))


def _list(cluster: Cluster, kind: Kind) -> Sequence[Manifest]:
    return cluster.list(kind).items


def _check(xrd: SourcedObject) -> None:
    for problem in definitions.problems(xrd.manifest):
        raise InvalidInputError(
            xrd.source.name, xrd.name, f"would be refused by the API server: {problem}"
        )


def _files(
    request: ImportRequest,
    name: str,
    xrd: SourcedObject,
    composition: SourcedObject | None,
    *,
    example: bool,
) -> Files:
    """Return the kit's own files: XRD and Composition as given, the rest from the skeleton."""
    kind = str(dig(xrd.manifest, "spec", "names", "kind", default=name))
    values = skeleton_values(name, spelt_out(kind), cleaned(xrd.manifest))
    values |= {"starter": composition is None, "guessed": example and values["guessed"]}
    files = {path: file.data for path, file in request.render_skeleton("kit", values).items()}
    left_out = {PurePosixPath("tests", "kits", name, "team-in-capitals")}
    if not values["guessed"]:
        left_out.add(PurePosixPath("tests", "kits"))
    apis = PurePosixPath("gitops", "apis", name)
    files[apis / "definition.yaml"] = text_of(xrd)
    if composition is not None:
        files[apis / "composition.yaml"] = text_of(composition)
        left_out |= {PurePosixPath("stations"), PurePosixPath("tests", "stations")}
    return {path: data for path, data in files.items() if left_out.isdisjoint(path.parents)}


def _functions(request: ImportRequest, pipeline: Pipeline | None) -> Files:
    """Return files for functions that the pipeline needs, the sources have and the pack lacks."""
    if pipeline is None:
        return {}
    source_functions, declared = functions_in(request.sources), _declared(request.pack)
    return {
        FUNCTIONS / f"{name}.yaml": yaml11.dump(cleaned(source_functions[name])).encode()
        for name in pipeline.functions
        if name in source_functions and name not in declared
    }


def _declared(pack: PackFolder) -> set[str]:
    function_files = {
        path: data
        for path, data in pack.files().items()
        if path.is_relative_to(FUNCTIONS) and path.suffix in {".yaml", ".yml"}
    }
    objects = [
        manifest
        for path, data in function_files.items()
        for manifest in parse_manifests(str(path), data)
    ]
    return {
        str(metadata(manifest).get("name"))
        for manifest in objects
        if manifest.get("kind") == FUNCTION.kind
    }


def _next(pack: PackFolder, name: str, pipeline: Pipeline | None, unguessed: str) -> Iterator[str]:
    """Yield what a person has to do that ``kit check`` does not report."""
    if pipeline is None:
        yield f"write what the kit is made of in stations/{name}/station.py"
    else:
        yield from _pipeline_next(pack, name, pipeline)
    if unguessed:
        yield f"write tests/kits/{name}/<case>/scenario.yaml by hand: {unguessed}"
    yield f"say in templates/{name}/kit.yaml what the XRD does not: titles, pages, changes, the end"
    yield f"after an edit: orderkit kit generate {name}, kit check {name}, kit test {name} --update"


def _pipeline_next(pack: PackFolder, name: str, pipeline: Pipeline) -> Iterator[str]:
    for step, function in pipeline.foreign:
        yield (
            f"step '{step}' is {function}'s: orders are delivered and formed, but only a real "
            "Crossplane assembles them; the embedded platform and plans refuse them by this name"
        )
    for station in pipeline.stations:
        if pack.file(PurePosixPath("stations", station, "station.py")) is None:
            yield f"write stations/{station}/station.py: the Composition runs it"
    if pipeline.functions != (STATION_FUNCTION,):
        yield f"list what the pipeline makes in templates/{name}/kit.yaml (composes): rights follow"
