"""
Create a kit from an existing XRD, of a file or a cluster, with its Composition if there is one.

Without a Composition the kit gets a first station, so that it works at once. With one, the pack
gets its functions, and kit.yaml the kinds that can be read from its pipeline. A Composition of mode
Resources becomes a pipeline if that is asked for. `Imported.next` lists what a person has to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from compositions.python_functions import packages_of, typed_package
from ground.errors import InvalidInputError, NotFoundError
from ground.names import Files
from ground.objects.kube_objects import (
    COMPOSITION,
    FUNCTION,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from kubeschema import xrd as definitions
from kubeschema.validate.xrd_check import hint_for
from orderkit.core.kit.field_names import spelt_out
from orderkit.core.kit.field_problems import nearest
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import fields_of
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit_workshop.check.file_checks import in_style
from orderkit_workshop.check.kit_under_check import misshapen
from orderkit_workshop.generate.converted_composition import (
    converted,
    is_legacy_mode,
    move_resources,
)
from orderkit_workshop.generate.imported_kit import (
    ImportSource,
    SourcedObject,
    cleaned,
    compositions_for,
    example_of,
    kit_name,
    left_out,
    packages_in,
    texts_of,
    the_xrd,
    with_default,
)
from orderkit_workshop.generate.imported_pipeline import (
    FunctionsToAdd,
    Pipeline,
    function_manifest,
    functions_to_add,
    map_keys,
    pipeline_of,
    with_renamed_functions,
)
from orderkit_workshop.generate.kit_draft import declared, skeleton_values
from orderkit_workshop.ports.pack_folder import PackFolder, SkeletonRenderer
from orderkit_workshop.stories.check_kits import style_of
from orderkit_workshop.stories.start_kit import FailsItselfError, KitAdded, add_kit
from yamlfiles import yaml11

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
    beside: Sequence[ImportSource] = ()
    """Files beside the sources that may name the packages of functions."""
    convert: bool = False
    """Turn a Composition of mode Resources into a pipeline."""
    not_secret: Sequence[str] = ()
    """Paths of fields that look like secrets and are none."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A kit that is in the pack now, and what a person should do about it."""

    added: KitAdded
    next: tuple[str, ...]


def import_kit(request: ImportRequest) -> Imported:
    """
    Add a kit to the pack.

    Raises:
        UsageError: Not one XRD.
        InvalidInputError: An XRD that the API server would refuse, or a broken pack.
        RefusedError: The pack has such a kit, or files in its place.
        OrderkitError: The new kit fails its own tests; nothing was written.
    """
    xrd = the_xrd(request.sources)
    _check(xrd)
    _check_fields(xrd, request.not_secret)
    found = compositions_for(xrd.manifest, request.sources, name=request.composition)
    name = request.name or kit_name(xrd.manifest)
    compositions = tuple(_composition(request, source) for source in found)
    added, unguessed = _added(request, name, xrd, compositions)
    notes = [*_next(request.pack, name, xrd, compositions, unguessed)]
    notes += [
        f"left out: {text}; put it below gitops/config if orders need it"
        for text in left_out(xrd.manifest, request.sources)
    ]
    return Imported(added, tuple(dict.fromkeys(notes)))


def _added(
    request: ImportRequest, name: str, xrd: SourcedObject, compositions: Sequence[_Composition]
) -> tuple[KitAdded, str]:
    """Add the kit with the example that passes, or without one, and why none does."""
    why = ""
    given = [Example.GIVEN] if example_of(xrd.manifest, request.sources) is not None else []
    for example in (*given, Example.SMALL, Example.COMPLETE):
        try:
            files = _files(request, name, xrd, compositions, example)
            added = add_kit(request.pack, name, files)
        except FailsItselfError as error:
            why = why or error.why
        else:
            return added, "" if added.scenarios else "no example value could be guessed"
    files = _files(request, name, xrd, compositions, Example.NONE)
    return add_kit(request.pack, name, files), why


class Example(Enum):
    """Which values the generated example of a kit has."""

    GIVEN = "given"
    """Those of the order that is among the files."""
    SMALL = "small"
    """What the XRD requires, and what its rules want beyond that."""
    COMPLETE = "complete"
    """Every field for which a value can be guessed."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class _Composition:
    """A Composition of the new kit as the pack will have it."""

    name: str
    text: bytes
    pipeline: Pipeline
    functions: FunctionsToAdd
    notes: tuple[str, ...]
    keys: Mapping[str, Sequence[str]]
    """Of ``map`` transforms, by the paths of fields."""


def _composition(request: ImportRequest, source: SourcedObject) -> _Composition:
    """Return the Composition with the pack's names of functions, converted if asked for."""
    manifest = cleaned(source.manifest)
    notes: tuple[str, ...] = ()
    legacy = request.convert and is_legacy_mode(manifest)
    if legacy:
        conversion = converted(manifest)
        manifest, notes = conversion.manifest, conversion.notes
    packages = packages_in((*request.beside, *request.sources))
    delivered = packages_of(request.pack.files())
    functions = functions_to_add(pipeline_of(manifest, packages).functions, packages, delivered)
    manifest = with_renamed_functions(manifest, functions.renamed)
    texts = texts_of(source, manifest, prepare=move_resources if legacy else None)
    text = in_style(texts, style_of(request.pack))
    pipeline = pipeline_of(manifest, {**functions.packages, **delivered})
    return _Composition(source.name, text, pipeline, functions, notes, map_keys(manifest))


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
    if path := misshapen(xrd.manifest):
        raise InvalidInputError(
            xrd.source.name, xrd.name, f"is no whole XRD: {path} is missing, or of another type"
        )
    for problem in definitions.problems(xrd.manifest):
        raise InvalidInputError(
            xrd.source.name,
            xrd.name,
            f"would be refused by the API server: {problem}",
            hint=hint_for(problem),
        )


def _check_fields(xrd: SourcedObject, paths: Sequence[str]) -> None:
    kit = Kit(name="draft", xrd=xrd.manifest)
    known = [field.path for field in fields_of(kit).walk()] if paths else []
    for path in paths:
        if path not in known:
            hint = nearest(path, known) or "write it as below spec: login.tokenCount"
            raise InvalidInputError("--not-secret", path, "is not a field of the XRD", hint=hint)


def _files(
    request: ImportRequest,
    name: str,
    xrd: SourcedObject,
    compositions: Sequence[_Composition],
    example: Example,
) -> Files:
    """Return the kit's own files: XRD, Composition and functions, the rest from the skeleton."""
    kind = str(dig(xrd.manifest, "spec", "names", "kind", default=name))
    xrd_manifest = with_default(cleaned(xrd.manifest), (each.name for each in compositions))
    values = skeleton_values(
        name,
        spelt_out(kind),
        xrd_manifest,
        complete=example is Example.COMPLETE,
        given=example_of(xrd_manifest, request.sources) if example is Example.GIVEN else None,
        not_secret=request.not_secret,
        keys=compositions[0].keys if compositions else None,
    )
    guessed = example is not Example.NONE and values["guessed"]
    values |= {"starter": not compositions, "guessed": guessed}
    if compositions:
        pipelines = [each.pipeline for each in compositions]
        values["declared"] = declared(
            tuple(sorted({kind for each in pipelines for kind in each.composes})),
            tuple(sorted({kind for each in pipelines for kind in each.requires})),
            _offered(xrd.manifest, compositions),
        )
    files = {path: file.data for path, file in request.render_skeleton("kit", values).items()}
    unused = {PurePosixPath("tests", "kits", name, "team-in-capitals")}
    if not values["guessed"]:
        unused.add(PurePosixPath("tests", "kits"))
    apis = PurePosixPath("gitops", "apis", name)
    style = style_of(request.pack)
    files[apis / "definition.yaml"] = in_style(texts_of(xrd, xrd_manifest), style)
    if compositions:
        unused |= {PurePosixPath("stations"), PurePosixPath("tests", "stations")}
    for number, composition in enumerate(compositions):
        file_name = f"composition-{composition.name}.yaml" if number else "composition.yaml"
        files[apis / file_name] = composition.text
        for function, package in composition.functions.packages.items():
            manifest = function_manifest(function, package)
            files[FUNCTIONS / f"{function}.yaml"] = yaml11.dump(manifest).encode()
    return {path: data for path, data in files.items() if unused.isdisjoint(path.parents)}


def _offered(xrd: Manifest, compositions: Sequence[_Composition]) -> tuple[str, ...]:
    """Return the Compositions among which an order may choose; empty: there is no choice."""
    is_open = len(compositions) > 1 and not dig(xrd, "spec", "enforcedCompositionRef", "name")
    return tuple(each.name for each in compositions) if is_open else ()


def _next(
    pack: PackFolder,
    name: str,
    xrd: SourcedObject,
    compositions: Sequence[_Composition],
    unguessed: str,
) -> Iterator[str]:
    """Yield what a person has to know or do that ``kit check`` does not report."""
    dropped = definitions.dropped(xrd.manifest)
    for text in dict.fromkeys(f"{cut.message}: {cut.hint}" for cut in dropped):
        yield f"left out of the XRD: {text}"
    if not compositions:
        yield f"write what the kit is made of in stations/{name}/station.py"
    for composition in compositions:
        yield from composition.notes
        yield from _pipeline_next(pack, name, composition)
    default = definitions.default_composition(xrd.manifest)
    if default and compositions and default not in {each.name for each in compositions}:
        yield f"Composition {default}, the XRD's default, is in none of the files: give it too"
    if len(compositions) > 1:
        names = ", ".join(composition.name for composition in compositions[1:])
        if _offered(xrd.manifest, compositions):
            yield (
                f"orders get Composition {compositions[0].name}; their form also offers {names}: "
                f"see spec.compositions of templates/{name}/kit.yaml"
            )
        else:
            yield (
                f"orders get Composition {compositions[0].name}, which the XRD enforces; the pack "
                f"also has {names}, and no order gets that"
            )
    if unguessed:
        yield f"write tests/kits/{name}/<case>/scenario.yaml by hand: {unguessed}"
    yield f"say in templates/{name}/kit.yaml what the XRD does not: titles, pages, changes, the end"
    yield f"after an edit: orderkit kit generate {name}, kit check {name}, kit test {name} --update"


def _pipeline_next(pack: PackFolder, name: str, composition: _Composition) -> Iterator[str]:
    pipeline, functions = composition.pipeline, composition.functions
    for old, new in functions.renamed.items():
        yield f"steps of {old} call {new} now: the pack delivers that function under this name"
    for function, package in functions.packages.items():
        yield f"gitops/functions/{function}.yaml installs {package}: compare it with your cluster's"
    for function in functions.unknown:
        yield (
            f"declare Function {function} in gitops/functions: none of the files names its package"
        )
    unknown = {name: f"HOST/PATH/{name}:VERSION" for name in functions.unknown}
    for step, function in pipeline.foreign:
        package = {**unknown, **functions.packages}.get(function, function)
        yield (
            f"step '{step}' is {function}'s, which Orderkit does not run itself: "
            f"'orderkit functions add {typed_package(package)}' brings its program "
            "for plans and 'orderkit up'"
        )
    for station in pipeline.stations:
        if pack.file(PurePosixPath("stations", station, "station.py")) is None:
            yield f"write stations/{station}/station.py: the Composition runs it"
    if pipeline.foreign:
        yield f"list what else the pipeline makes in templates/{name}/kit.yaml: spec.composes"
