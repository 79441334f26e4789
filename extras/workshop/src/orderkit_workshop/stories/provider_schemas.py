"""
Copy CRDs of providers into a pack's ``schemas/``, and compare what is there with its record.

The CRDs come from a provider's package in a registry or from files. Only the kinds that the pack's
kits compose are written, or those that are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import Files
from ground.objects.kube_objects import Kind, dig, first_and_more
from ground.shapes import changed
from ground.suggestions import did_you_mean
from kubeschema.known.crd_files import (
    FOLDER,
    SOURCES,
    CrdDocument,
    PackageReference,
    SchemaSource,
    crd_documents,
    crd_file,
    file_digest,
    parse_reference,
    read_sources,
    sources_file,
)
from kubeschema.known.known_kinds import GroupKind
from orderkit_workshop.check import PackFacts
from orderkit_workshop.check.kind_checks import (
    ComposedKind,
    composed_kinds,
    file_problem,
    without_schema,
)
from orderkit_workshop.ports.pack_folder import PackFolder
from orderkit_workshop.ports.packages import Packages

PROVIDER = Kind("pkg.crossplane.io", "v1", "Provider")
_REGISTRY = "__ORDERKIT_REGISTRY__"


@dataclass(frozen=True, slots=True)
class CrdFolder:
    """CRDs that lie in files: an alternative to a package."""

    name: str
    """Recorded in ``schemas/sources.yaml``."""
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemasRequest:
    """Which CRDs to copy into a pack. Either `provider` or `folder` is set."""

    pack: PackFolder
    provider: str = ""
    """``[HOST/]PATH@VERSION``, or the name of a package whose Provider the pack delivers."""
    folder: CrdFolder | None = None
    kinds: Sequence[str] = ()
    """``Kind.group`` or ``Kind``; empty: those that the kits compose."""
    registry: str = ""
    """Host of a provider without one."""
    descriptions: bool = False


@dataclass(frozen=True, slots=True)
class SchemasAdded:
    """What became of each kind. Files are relative to the pack."""

    source: SchemaSource
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that somebody wrote or edited by hand; they stay."""
    not_served: tuple[str, ...]
    """In words: a kit composes a version that the CRD does not serve."""
    missing: tuple[str, ...]
    """In words: kinds that kits compose and that still have no schema."""


def add_schemas(request: SchemasRequest, packages: Packages) -> SchemasAdded:
    """
    Copy CRDs into ``schemas/`` and record their source there.

    Idempotent; each file is put in place as a whole.

    Raises:
        InvalidInputError: The reference, a kind or a CRD is malformed.
        NotFoundError: The source has none of the kinds, or lacks one that was named.
        RefusedError: The version means another package than when it was recorded, or a file of a
            named kind is written by hand.
        RemoteError: The registry.
    """
    facts = PackFacts(request.pack.files())
    sources = read_sources(facts.files)
    source, documents = _read(request, facts, sources, packages)
    before = next((old for old in sources if old.identity == source.identity), None)
    kinds = [kind for kind in composed_kinds(facts) if kind.needs_schema]
    selected = _chosen(request, documents, kinds, _recorded_kinds(before, facts.files))
    if not selected:
        raise _nothing(source, documents, kinds)
    crds = [document.parsed() for document in selected]
    files = dict(crd_file(crd, source.name, descriptions=request.descriptions) for crd in crds)
    kept = _hand_written(files, facts.files, sources)
    if kept and request.kinds:
        raise RefusedError(
            f"{first_and_more(kept)} was written or edited by hand",
            hint="delete it to get the provider's CRD",
        )
    new_files = {str(path): data for path, data in files.items() if str(path) not in kept}
    updated = [path for path, data in new_files.items() if _at(facts.files, path) != data]
    digests = {
        path.removeprefix(f"{FOLDER}/"): file_digest(data) for path, data in new_files.items()
    }
    source = changed(source, files=digests)
    # the record comes last: a repeated command finishes what one that was interrupted began
    _write(request.pack, files, updated, _recorded(sources, source))
    return SchemasAdded(
        source,
        tuple(updated),
        tuple(path for path in new_files if path not in updated),
        tuple(kept),
        tuple(_not_served(crds, kinds)),
        tuple(without_schema(PackFacts(request.pack.files()))),
    )


@dataclass(frozen=True, slots=True)
class SchemasReport:
    """How ``schemas/`` compares with its record and with what the kits compose."""

    sources: tuple[SchemaSource, ...]
    changed: Mapping[str, str]
    """What is wrong with a file, by its path."""
    missing: tuple[str, ...]
    """In words: composed kinds without a schema."""


def check_schemas(pack: PackFolder) -> SchemasReport:
    """
    Compare ``schemas/`` with its record, without a registry.

    Raises:
        InvalidInputError: The pack, or a file of ``schemas/``, cannot be read.
    """
    facts = PackFacts(pack.files())
    sources = read_sources(facts.files)
    problems = {
        str(FOLDER / name): file_problem(source, name, facts.files.get(FOLDER / name))
        for source in sources
        for name in source.files
    }
    changed = {path: problem for path, problem in sorted(problems.items()) if problem}
    return SchemasReport(sources, changed, tuple(without_schema(facts)))


def _read(
    request: SchemasRequest,
    facts: PackFacts,
    sources: Sequence[SchemaSource],
    packages: Packages,
) -> tuple[SchemaSource, dict[GroupKind, CrdDocument]]:
    """Return the source and its CRDs by kind."""
    if request.folder is not None:
        source = SchemaSource(folder=request.folder.name, descriptions=request.descriptions)
        documents = [
            document
            for name, data in sorted(request.folder.files.items())
            for document in crd_documents(name, data)
        ]
        return source, {document.group_kind: document for document in documents}
    recorded_as, reference = package_reference(request.provider, facts, request.registry)
    package = packages.fetch(reference)
    source = SchemaSource(
        package=recorded_as,
        version=reference.tag,
        digest=package.digest,
        descriptions=request.descriptions,
    )
    moved = next(
        (
            old
            for old in sources
            if (old.package, old.version) == (source.package, source.version)
            and old.digest != package.digest
        ),
        None,
    )
    if moved and not reference.digest:
        raise RefusedError(
            f"{source.name} is {package.digest} now, and was {moved.digest} when its CRDs were"
            f" copied",
            hint=f"somebody moved the tag; if you trust it: {recorded_as}@{reference.tag}"
            f"@{package.digest}",
        )
    return source, {
        document.group_kind: document for document in crd_documents(str(reference), package.stream)
    }


def package_reference(text: str, facts: PackFacts, registry: str) -> tuple[str, PackageReference]:
    """
    Return how a package is recorded, and its complete reference.

    A name without a path is one of the pack's Provider manifests; a version that is missing is the
    one that ``pack.yaml`` pins. A digest that it pins counts.

    Raises:
        InvalidInputError: It is not a reference, or has no version.
        NotFoundError: No Provider of the pack has that name.
    """
    reference = parse_reference(text)
    delivered = {provider.name: provider for provider in _delivered(facts)}
    provider = delivered.get(reference.name)
    if "/" not in reference.path and not reference.registry:
        if provider is None:
            path = "write its path too: crossplane-contrib/provider-aws-ec2@v2.6.0"
            raise NotFoundError(
                f"no Provider in gitops/ has the package '{reference.name}'",
                hint=did_you_mean(reference.name, list(delivered), path),
            )
        reference = replace(reference, registry=provider.registry, path=provider.path)
    if provider and provider.path == reference.path and reference.tag in ("", provider.tag):
        digest = reference.digest or provider.digest
        reference = replace(reference, tag=provider.tag, digest=digest)
    if not reference.wanted:
        raise InvalidInputError(
            "provider", text, "has no version", hint=f"write {text}@VERSION, such as {text}@v2.6.0"
        )
    recorded_as = "/".join(filter(None, (reference.registry, reference.path)))
    return recorded_as, replace(reference, registry=reference.registry or registry)


def _delivered(facts: PackFacts) -> Iterable[PackageReference]:
    """Yield the packages of the pack's Provider manifests, at the versions of pack.yaml."""
    for doc in facts.of_kind(PROVIDER):
        package = str(dig(doc.manifest, "spec", "package", default=""))
        for sentinel, pin in facts.versions.items():
            package = package.replace(sentinel, pin)
        try:
            yield parse_reference(package.removeprefix(f"{_REGISTRY}/"))
        except InvalidInputError:
            continue  # `kit check` reports it


def _recorded_kinds(source: SchemaSource | None, files: Files) -> set[GroupKind]:
    """Return the kinds that were copied from a source before: a newer version renews them."""
    if source is None:
        return set()
    return {
        document.group_kind
        for name in source.files
        for document in crd_documents(name, files.get(FOLDER / name, b""))
    }


def _chosen(
    request: SchemasRequest,
    documents: Mapping[GroupKind, CrdDocument],
    kinds: Sequence[ComposedKind],
    recorded: set[GroupKind],
) -> list[CrdDocument]:
    if request.kinds:
        requested = {_named(text, documents) for text in request.kinds}
    else:
        requested = {kind.group_kind for kind in kinds}
    return [documents[key] for key in sorted((requested | recorded) & documents.keys())]


def _named(text: str, documents: Mapping[GroupKind, CrdDocument]) -> GroupKind:
    kind, _, group = text.partition(".")
    matches = [key for key in documents if key[1] == kind and group in ("", key[0])]
    names = sorted(f"{key[1]}.{key[0]}" for key in documents)
    if not matches:
        choices = names if group else [key[1] for key in documents]
        hint = did_you_mean(text, choices, f"it has {first_and_more(names)}")
        raise NotFoundError(f"--kinds: the source has no kind '{text}'", hint=hint)
    if len(matches) > 1:
        groups = " and ".join(sorted(f"{key[1]}.{key[0]}" for key in matches))
        raise InvalidInputError("--kinds", text, f"is several kinds: {groups}", hint="name one")
    return matches[0]


def _nothing(
    source: SchemaSource,
    documents: Mapping[GroupKind, CrdDocument],
    kinds: Sequence[ComposedKind],
) -> NotFoundError:
    composed = sorted({str(kind.kind) for kind in kinds})
    has = sorted(f"{kind}.{group}" for group, kind in documents)
    if not kinds:
        return NotFoundError(
            "no kit of the pack names a managed resource in 'composes'",
            hint="name kinds there, or with --kinds",
        )
    return NotFoundError(
        f"{source.name} has none of the kinds that the kits compose: {first_and_more(composed)}",
        hint=f"it has {first_and_more(has)}" if has else "it has no CRDs at all",
    )


def _hand_written(files: Files, present: Files, sources: Sequence[SchemaSource]) -> list[str]:
    digests = {name: digest for source in sources for name, digest in source.files.items()}
    return [
        str(path)
        for path, data in files.items()
        if path in present
        and present[path] != data
        and digests.get(path.name) != file_digest(present[path])
    ]


def _at(files: Files, path: str) -> bytes | None:
    return next((data for other, data in files.items() if str(other) == path), None)


def _recorded(sources: Sequence[SchemaSource], source: SchemaSource) -> bytes | None:
    """Return the record with this source, whose files no other source has any more."""
    records = [source] if source.files else []
    for other in sources:
        if other.identity != source.identity:
            files = {name: d for name, d in other.files.items() if name not in source.files}
            records += [changed(other, files=files)] if files else []
    return sources_file(records) if records else None


def _write(pack: PackFolder, files: Files, updated: Sequence[str], record: bytes | None) -> None:
    for path, data in files.items():
        if str(path) in updated:
            pack.write(path, data)
    if pack.file(SOURCES) != record:
        pack.write(SOURCES, record)


def _not_served(
    crds: Sequence[Mapping[str, object]], kinds: Sequence[ComposedKind]
) -> Iterable[str]:
    for crd in crds:
        spec: object = crd["spec"]
        key = (dig(spec, "group"), dig(spec, "names", "kind"))
        served = [
            str(dig(version, "name"))
            for version in dig(spec, "versions", default=())
            if dig(version, "served")
        ]
        for kind in kinds:
            if kind.group_kind == key and kind.kind.version not in served:
                yield (
                    f"{kind.kind} has {', '.join(served)}, and {kind.where} composes "
                    f"{kind.kind.version}"
                )
