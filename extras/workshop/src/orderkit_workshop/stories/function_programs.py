"""
Bring the programs of functions to this machine, and choose in the pack which of them run.

The choice is an annotation of the Function in ``gitops/functions``. It is a digest, so the pack
decides what runs only among the programs that were added on a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from compositions.function_twins.choice import TWINS, function_name
from compositions.python_functions import (
    NAMES,
    PROGRAM,
    function_manifests,
    packages_of,
    program_digests,
    runs_here,
    typed_package,
)
from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import Files
from ground.objects.kube_objects import FUNCTION, Kind, Manifest, dig, metadata
from kubeschema.known.crd_files import PackageReference, parse_reference
from orderkit.adapters.functions.program_store import (
    StoredProgram,
    add_program,
    program_start,
    stored_program,
)
from orderkit_workshop.generate.imported_pipeline import (
    Dependency,
    dependencies_of,
    function_manifest,
)
from orderkit_workshop.ports.pack_folder import PackFolder
from orderkit_workshop.ports.packages import FunctionImage
from yamlfiles import yaml11
from yamlfiles.assignments import edit_bytes
from yamlfiles.edit import Edit
from yamlfiles.manifests import ManifestError, parse_manifests
from yamlfiles.positions import located_manifests

_META_GROUP = "meta.pkg.crossplane.io"
Fetch = Callable[[PackageReference], FunctionImage]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function of a pack, and what runs it here."""

    name: str
    package: str
    digest: str
    runs: str
    """``program``, ``station``, ``twin`` or ``nothing``."""
    note: str = ""


def list_functions(files: Files) -> Iterator[FunctionRow]:
    """
    Yield the functions that a pack delivers.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    packages, digests = packages_of(files), program_digests(files)
    for name, package in sorted(packages.items()):
        digest = digests.get(name, "")
        if digest and (program := stored_program(digest)) is not None:
            network = ", ".join(program.start.network)
            note = f"may reach {network}" if network else ""
            yield FunctionRow(name, package, digest, "program", note)
            continue
        note = "its program is not on this machine: orderkit functions add" if digest else ""
        runs = "nothing"
        if runs_here(name, packages):
            runs = "stations" if name not in _TWINS else "twin"
        yield FunctionRow(name, package, digest, runs, note)


_TWINS = NAMES - {"function-orderkit"}


def add_function(
    pack: PackFolder,
    image: FunctionImage,
    package: str,
    name: str = "",
    network: Sequence[str] = (),
) -> tuple[str, StoredProgram]:
    """
    Keep the program of an image on this machine, and write into the pack that it runs a function.

    Idempotent.

    Args:
        package: Where a cluster gets it; empty: the image is a file's.
        name: Of the Function; empty: the pack's Function of that package, else the package's name.
        network: Hosts that it may reach on this machine; those of an earlier time end.

    Raises:
        RefusedError: It is no package of a function, or cannot be unpacked.
        NotFoundError: The pack has no such Function, and no package to declare it with.
        ManifestError, EditRefusedError: A file of ``gitops/functions`` cannot be read or edited.
    """
    # the program comes first, so that a pack never names what was not there
    start = program_start(image.config, network)
    program, stream = add_program(image.digest, start, image.layers)
    own_name = _name_of(stream)
    files = pack.files()
    name = name or _installed(files, package, own_name)
    _choose(pack, files, name, package, image.digest)
    return name, program


@dataclass(frozen=True, slots=True)
class DependencyAdded:
    """What became of a package that a configuration depends on."""

    package: str
    name: str = ""
    """The Function's; empty: it is no function."""
    digest: str = ""
    """Of its program; empty: none was brought."""
    note: str = ""


def add_dependencies(
    pack: PackFolder, objects: Iterable[Manifest], fetch: Fetch
) -> Iterator[DependencyAdded]:
    """
    Declare the functions that a configuration depends on, and bring their programs.

    A function that a twin plays needs no program. Providers and configurations are named with what
    brings them.

    Raises:
        NotFoundError: Nothing depends on anything. Else as `add_function`.
    """
    dependencies = list(dict.fromkeys(dependencies_of(objects)))
    if not dependencies:
        raise NotFoundError(
            "no file of --from has spec.dependsOn",
            hint="give crossplane.yaml or upbound.yaml of a configuration, or its folder",
        )
    for dependency in dependencies:
        yield _added(pack, dependency, fetch)


def _added(pack: PackFolder, dependency: Dependency, fetch: Fetch) -> DependencyAdded:
    package, release = dependency.package, dependency.release
    if dependency.kind != FUNCTION.kind:
        command = f"orderkit kit schemas add {dependency.path}@{release or 'VERSION'}"
        if dependency.kind == "Configuration":
            command = "orderkit kit import XRD.yaml COMPOSITION.yaml, of its repository"
        return DependencyAdded(package, note=f"{dependency.kind}: {command}")
    name = _installed(pack.files(), package, _last(package))
    function = function_name(name, {name: package})
    if function in TWINS:
        path = PurePosixPath("gitops", "functions", f"{name}.yaml")
        if name not in packages_of(pack.files()) and not pack.exists(path):
            twin = f"{dependency.path}:{release or TWINS[function].release}"
            pack.write(path, yaml11.dump(function_manifest(name, twin)).encode())
        return DependencyAdded(package, name, note="a twin plays it: no program is needed")
    if not release:
        note = f"version '{dependency.version}' names no release"
        return DependencyAdded(package, name, note=f"{note}: orderkit functions add {package}:TAG")
    added, program = add_function(pack, fetch(parse_reference(package)), package)
    return DependencyAdded(package, added, program.digest)


def add_missing(pack: PackFolder, fetch: Fetch) -> Iterator[tuple[str, StoredProgram]]:
    """
    Bring every program that the pack names and this machine lacks.

    Raises:
        NotFoundError: A registry no longer has one. Else as `add_function`.
    """
    files = pack.files()
    packages = packages_of(files)
    for name, digest in program_digests(files).items():
        if stored_program(digest) is None:
            reference = parse_reference(packages[name].partition("@")[0])
            image = fetch(PackageReference(reference.registry, reference.path, digest=digest))
            yield name, add_program(digest, program_start(image.config), image.layers)[0]


def _name_of(package_yaml: bytes) -> str:
    try:
        manifests = parse_manifests("package.yaml", package_yaml) if package_yaml else ()
        for manifest in manifests:
            kind = Kind.of(manifest)
            if (kind.group, kind.kind) == (_META_GROUP, "Function"):
                return str(metadata(manifest)["name"])
    except (ManifestError, KeyError) as error:
        raise RefusedError(f"package.yaml of the image cannot be read: {error}") from error
    raise RefusedError(
        "the image is no package of a function: it has no package.yaml with a Function",
        hint="give the package, not the runtime image that some projects publish beside it",
    )


def _installed(files: Files, package: str, own_name: str) -> str:
    """Return under which name a pack has a package installed."""
    address = _address(package)
    packages = packages_of(files)
    named = [name for name, other in packages.items() if address and _address(other) == address]
    last = [n for n, other in packages.items() if _last(other) == own_name]
    return next(iter([*named, *(n for n in packages if n == own_name), *last]), own_name)


def _last(package: str) -> str:
    return _address(package).rpartition("/")[2]


def _address(package: str) -> str:
    head, slash, last = package.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _choose(pack: PackFolder, files: Files, name: str, package: str, digest: str) -> None:
    found = _place(files, name)
    if found is None:
        if not package:
            raise NotFoundError(
                f"the pack has no Function {name}",
                hint=f"give --name of a Function of the pack ({', '.join(packages_of(files))}), or "
                f"write gitops/functions/{name}.yaml with the package that a cluster installs",
            )
        path = PurePosixPath("gitops", "functions", f"{name}.yaml")
        if pack.exists(path):
            raise RefusedError(f"{path} is there and has no Function {name}")
        pack.write(path, _declared(name, package, digest).encode())
        return
    path, document = found
    change = Edit(("metadata", "annotations", PROGRAM), value=digest, document=document)
    edited = edit_bytes(str(path), files[path], [change])
    if edited.changed:
        pack.write(path, edited.after)


def _place(files: Files, name: str) -> tuple[PurePosixPath, int] | None:
    for path, data in sorted(files.items()):
        if path.is_relative_to("gitops/functions") and path.suffix in {".yaml", ".yml"}:
            for number, located in enumerate(located_manifests(str(path), data)):
                kind, meta = Kind.of(located.manifest), metadata(located.manifest)
                is_function = (kind.group, kind.kind) == (FUNCTION.group, FUNCTION.kind)
                if is_function and meta.get("name") == name:
                    return path, number
    return None


def _declared(name: str, package: str, digest: str) -> str:
    return f"""\
apiVersion: {FUNCTION.api_version}
kind: {FUNCTION.kind}
metadata:
  name: {name}
  annotations:
    {PROGRAM}: {digest}
spec:
  package: {package}
"""


def function_of(files: Files, name: str) -> str:
    """
    Return the package of a pack's Function, for ``functions add NAME``; empty if it has none.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    for manifest in function_manifests(files):
        if metadata(manifest).get("name") == name:
            return str(dig(manifest, "spec", "package", default=""))
    return ""


def reference_of(text: str, files: Files) -> PackageReference:
    """
    Read what to add: HOST/REPO:TAG, HOST/REPO@DIGEST, or the name of a Function of the pack.

    Raises:
        InvalidInputError: It is something else, or names no registry or version.
    """
    package = function_of(files, text) or text
    if package.startswith("__"):
        raise InvalidInputError(
            "package", text, "is one whose registry and version the platform fills in",
            hint=f"write {typed_package(package)}, with your registry as HOST, or a file",
        )  # fmt: skip
    reference = parse_reference(package)
    if not reference.registry or not reference.wanted:
        raise InvalidInputError(
            "package", text, "names no registry, or no version",
            hint="write HOST/PATH:TAG or HOST/PATH@sha256:…, or a file that is there",
        )  # fmt: skip
    return reference
