"""
The published pack as a workshop for plans: its Compositions, and its stations.

A pack at a commit never changes, so it is read and loaded once per process.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from compositions.composed import steps_of
from compositions.function_processes import FunctionProcess, development_processes
from compositions.granted_rights import is_aggregated
from compositions.layered_settings import ENVIRONMENT
from compositions.managed_state import ManagedKinds
from compositions.python_functions import (
    NAMES,
    function_manifests,
    functions_here,
    packages_of,
    runs_here,
)
from compositions.station import Station
from ground.errors import InvalidInputError, NotFoundError
from ground.names import CommitSha, Files, RepoId
from ground.objects.kube_objects import Kind, Manifest, metadata
from kubeschema.known import layer_of
from kubeschema.validate import Validator
from orderkit.core.kit.compositions import composition_of, compositions_of, name_shown
from orderkit.core.kit.kit_file import Import
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack, read_pack
from orderkit.core.plan import AssemblyContext, Blueprint
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.live_state import defaults_of
from orderkit.ports.pipeline_functions import PipelineFunctions
from yamlfiles.manifests import ManifestError, parse_manifests

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform

_KEPT = 4
_STATIONS, _SCHEMAS = "stations", "schemas"
_GITOPS_DEPTH = 2
_UNREAD = ("apps", "argocd", "crossplane")
"""Folders of ``gitops`` that deliver neither kinds nor rights nor functions."""


_lock = threading.Lock()
_published: OrderedDict[
    tuple[str, RepoId, CommitSha], tuple[AssemblyContext, Sequence[FunctionProcess]]
] = OrderedDict()


def published_workshop(platform: Platform, commit: CommitSha | None = None) -> AssemblyContext:
    """
    Return what assembles the orders of this platform; it knows nothing of the cluster.

    Args:
        platform: Whose pack.
        commit: One of the pack's; None: the head.

    Raises:
        NotFoundError: No pack is published.
        InvalidInputError: The pack is broken, or a function that was asked for is called nowhere.
        UsageError: A function is a process, and nothing here speaks gRPC.
        RemoteError: The forge.
    """
    workshop, developed = _read_published(platform, commit)
    processes = (*developed, *platform.functions)
    return _calling(workshop, processes, platform.pipeline_functions)


def workshop_of(
    pack: Pack,
    stations: Mapping[str, Station],
    programs: Mapping[str, Station] = MappingProxyType({}),
) -> AssemblyContext:
    """
    Return what assembles the orders of a pack by stations that are loaded already.

    Raises:
        InvalidInputError: The pack is broken.
    """
    kits = pack.kits()
    blueprints, scopes = _blueprints(pack, kits)
    laws = laws_of(pack, kits)
    # a revision that an order is pinned to may call what the pack calls no more
    names = NAMES | _called(blueprints)
    available = functions_here(stations, packages_of(pack.files), names, programs)
    return AssemblyContext(
        blueprints,
        available.functions,
        scopes={**laws.scopes, **scopes},
        laws=laws,
        remote=programs.keys(),
        notes=available.notes,
    )


def _called(blueprints: Mapping[tuple[str, str], Blueprint]) -> set[str]:
    return {name for blueprint in blueprints.values() for name in blueprint.called}


def called_functions(pack: Pack) -> set[str]:
    """Return the functions that the Compositions of a pack call, by name."""
    return _called(_blueprints(pack, pack.kits())[0])


def kits_not_run(pack: Pack, programs: Collection[str]) -> dict[str, list[str]]:
    """
    Return the kits whose Compositions call functions that do not run here, with these functions.

    Args:
        programs: Functions that run as programs of their own.

    Raises:
        InvalidInputError: The pack is broken.
    """
    packages, found = packages_of(pack.files), dict[str, list[str]]()
    for kit in pack.kits():
        specs = [composition["spec"] for composition in compositions_of(pack.files, kit)]
        called = {step.function for spec in specs for step in steps_of(spec)} - {*programs}
        if foreign := sorted(name for name in called if not runs_here(name, packages)):
            found[kit.name] = foreign
    return found


def refuse_uncalled(processes: Iterable[FunctionProcess], called: Collection[str]) -> None:
    """
    Check that functions named on the command line are called by a step.

    Raises:
        InvalidInputError: One is not.
    """
    for process in processes:
        if process.is_asked and process.name not in called:
            raise InvalidInputError(
                "--function",
                process.name,
                "is not called by any step of the pack",
                hint=f"steps call: {', '.join(sorted(called)) or 'none'}",
            )


def _calling(
    workshop: AssemblyContext,
    processes: Sequence[FunctionProcess],
    functions: PipelineFunctions,
) -> AssemblyContext:
    """Replace stations by the functions that run as processes; the last of a name wins."""
    names = _called(workshop.blueprints)
    refuse_uncalled(processes, names)
    called = {process.name: process for process in processes if process.name in names}
    remote = {name: functions.connect(process) for name, process in called.items()}
    notes = {name: note for name, note in workshop.notes.items() if name not in remote}
    callable_functions = {**workshop.functions, **remote}
    is_remote = frozenset((*workshop.remote, *remote))
    return replace(workshop, functions=callable_functions, remote=is_remote, notes=notes)


def loaded_workshop(
    pack: Pack, functions: PipelineFunctions, processes: Sequence[FunctionProcess] = ()
) -> AssemblyContext:
    """
    Return what assembles the orders of a pack that is published nowhere; loads its stations.

    Args:
        processes: Functions to call instead of running them here.

    Raises:
        InvalidInputError: The pack is broken, or a function that was asked for is called nowhere.
        UsageError: A function is a process, and nothing here speaks gRPC.
    """
    stations, programs = functions.load_stations(pack.files), functions.load_programs(pack.files)
    workshop = workshop_of(pack, stations, programs)
    return _calling(workshop, processes, functions)


def needed_files(files: Files) -> Files:
    """Return those files of a pack that assembling its orders needs."""
    return {path: data for path, data in files.items() if is_needed(path)}


def _read_published(
    platform: Platform, commit: CommitSha | None
) -> tuple[AssemblyContext, Sequence[FunctionProcess]]:
    from orderkit.flows.platform import pack_files  # lazy: as in ``order_plan``

    commit = commit or platform.forge.head(platform.pack_repo)
    if commit is None:
        raise NotFoundError(
            f"{platform.pack_repo}: no pack on {platform.forge.base_url}",
            hint="the platform is not bootstrapped",
        )
    key = (platform.forge.base_url, platform.pack_repo, commit)
    with _lock:
        published = _published.get(key)
    if published is None:
        blobs = platform.forge.tree(platform.pack_repo, commit)
        paths = [path for path in blobs if is_needed(path)]
        pack = read_pack(pack_files(platform, commit, paths))
        developed = development_processes(function_manifests(pack.files))
        published = loaded_workshop(pack, platform.pipeline_functions), tuple(developed)
        with _lock:
            _published[key] = published
            if len(_published) > _KEPT:
                _published.popitem(last=False)
    return published


def is_needed(path: PurePosixPath) -> bool:
    """Say whether assembling the orders of a pack needs a file of it."""
    if path.suffix == ".md":
        return False
    if path.parts[0] == "gitops":
        return len(path.parts) > _GITOPS_DEPTH and path.parts[1] not in _UNREAD
    return (
        str(path) == "pack.yaml"
        or path.match("templates/*/kit.yaml")
        or path.parts[0] in (_STATIONS, _SCHEMAS)
    )


def _blueprints(
    pack: Pack, kits: Iterable[Kit]
) -> tuple[Mapping[tuple[str, str], Blueprint], Mapping[Kind, bool]]:
    """
    Return how each kind of XR is assembled, and whether it is namespaced.

    A kind that two kits define has no blueprint: the cluster holds one definition, and we do not
    know whose.
    """
    blueprints, scopes, kits = {}, {}, tuple(kits)
    defined = Counter((kit.kind.group, kit.kind.kind) for kit in kits)
    for kit in kits:
        composition = composition_of(pack.files, kit)
        scopes[kit.kind] = kit.namespaced
        if composition is not None and defined[kit.kind.group, kit.kind.kind] == 1:
            steps = steps_of(composition["spec"])
            name = name_shown(kit.xrd, composition)
            blueprints[kit.kind.group, kit.kind.kind] = Blueprint(
                Validator(kit.xrd),
                steps,
                name,
                defaults_of(kit.xrd),
                kit.xrd,
                {str(metadata(m)["name"]): m for m in compositions_of(pack.files, kit)},
            )
    return blueprints, scopes


def laws_of(pack: Pack, kits: Iterable[Kit]) -> PackRules:
    """
    Return what a pack says about outcomes. Files below ``gitops`` that hold no objects say nothing.

    Raises:
        InvalidInputError: A file of ``schemas/`` cannot be read.
    """
    delivered: list[Manifest] = []
    for path, data in sorted(pack.files.items()):
        if path.parts[0] == "gitops" and path.suffix in {".yaml", ".yml"}:
            with suppress(ManifestError):  # `kit check` reports it
                delivered += parse_manifests(str(path), data)
    managed_kinds = ManagedKinds.of_pack(pack.files)
    roles = [
        manifest
        for manifest in delivered
        if manifest["kind"] == "ClusterRole" and is_aggregated(manifest)
    ]
    data_kinds: dict[tuple[str, str], bool] = {}
    teams: dict[tuple[str, str], str] = {}
    imports: dict[tuple[str, str], Import] = {}
    public: dict[tuple[str, str], frozenset[str]] = {}
    for kit in kits:
        data_kinds |= kit.data_kinds
        teams |= {(kit.kind.group, kit.kind.kind): kit.team_from} if kit.team_from else {}
        public |= {(kit.kind.group, kit.kind.kind): kit.public_keys} if kit.public_keys else {}
        imports |= {(kit.kind.group, kit.kind.kind): kit.imports} if kit.imports else {}
    brought = layer_of(delivered)
    return PackRules(
        delivered={**managed_kinds.layer, **brought},
        described=frozenset(managed_kinds.layer.keys() - brought.keys()),
        roles=roles,
        data_kinds={**data_kinds, **pack.data_kinds},
        behaviours=managed_kinds.behaviours,
        team_fields=teams,
        imports=imports,
        public_keys=public,
        accepts={(k.kind.group, k.kind.kind): k.accepts for k in kits if k.accepts},
        settings=[manifest for manifest in delivered if Kind.of(manifest) == ENVIRONMENT],
    )
