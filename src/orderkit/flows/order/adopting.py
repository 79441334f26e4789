"""
Turn a live XR, or a repository made by hand, into an order. The XR is not changed.

Adds what an order needs besides its XR: record, catalog entry, README, as the kit's skeleton writes
them for these values; then it is registered. An XR without a repository gets one, with the XR as
its author would have written it (``core.export``), so that its first delivery changes nothing.
Every step is *ensure*: a repetition continues, or finds everything done.

Refuses before anything is written what no order could be: another name than the kit gives it, a
value that the form or the XRD refuses, a repository that holds something else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import MAIN, CommitSha, RepoId, check_requester
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.core.export import authored
from orderkit.core.kit.change_forms import order_data
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_check import check_order_files, move_command
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.order.registration_check import check_free
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, published_pack, snapshot
from orderkit.flows.team.limit_check import check_may_order, check_values
from orderkit.flows.template import scaffolder
from orderkit.flows.template.published_templates import published_template
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import FileChange, Forge, Operation
from yamlfiles import yaml11
from yamlfiles.manifests import ManifestError, parse_manifests

CATALOG_FILE = PurePosixPath("catalog-info.yaml")
_YAML = (".yaml", ".yml", ".json")
Files = Mapping[PurePosixPath, bytes]


@dataclass(frozen=True, slots=True)
class AdoptRequest:
    """What to adopt: ``owner/repository``, or ``Kind/name`` of a live XR."""

    subject: str
    requester: str
    namespace: str = ""
    """Namespace of the XR; empty if it is cluster-scoped."""
    team: str = ""
    """The team that owns the order, if no field of the XR names it."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was taken over; `written` are the files that were missing, or would be."""

    entry: OrderEntry
    kit: str
    files_written: tuple[PurePosixPath, ...]
    commit: CommitSha | None
    """The repository's head afterwards; None for a dry run of a new one."""
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of ``--json``."""
        return {
            "order": self.entry.order,
            "team": self.entry.team,
            "kit": self.kit,
            "repository": str(self.entry.repository),
            "written": list(map(str, self.files_written)),
            "commit": self.commit,
            "changed": self.changed,
        }


@dataclass(frozen=True, slots=True)
class _Subject:
    """The XR to adopt, its kit, and the file that holds it or will hold it."""

    kit: Kit
    xr: Manifest
    path: PurePosixPath
    data: bytes
    repository: RepoId | None
    """The repository that holds it; None for a live XR."""


def adopt(platform: Platform, request: AdoptRequest) -> Adopted:
    """
    Turn an existing repository or XR into an order. Idempotent, resumable.

    Raises:
        NotFoundError: No such repository, XR or team; no kit has that kind.
        InvalidInputError: It cannot be an order of the kit: wrong name, repository or values.
        RefusedError: The repository holds something else, or several XRs; the team may not have it.
        AlreadyOrderedError: The order ended, or its id belongs to another team.
    """
    check_requester(request.requester)
    pack = published_pack(platform)
    kits = pack.kits()
    subject = _from_cluster(platform.cluster, request, kits)
    subject = subject or _from_repository(platform.forge, request, kits)
    pack.check_only(subject.kit.name)
    entry, rendered = _rendered(platform, request, subject)
    check_order_files(subject.kit, entry.order, {subject.path: subject.data})
    if subject.repository not in (None, entry.repository):
        raise InvalidInputError(
            "repository",
            str(subject.repository),
            f"is not the repository of this order, which is {entry.repository}",
            hint="rename or transfer it on the forge, then repeat the command",
        )
    snapshot = ledger_snapshot(platform)
    check_free(entry, snapshot.blobs)
    team = check_may_order(platform, entry, subject.kit.name, snapshot)
    if entry.application_path not in snapshot.blobs:
        check_values(team, subject.kit, subject.xr)
    missing = _missing(platform.forge, entry, subject, rendered)
    if request.dry_run:
        head = platform.forge.head(entry.repository)
        is_registered = entry.application_path in snapshot.blobs
        return Adopted(
            entry, subject.kit.name, tuple(missing), head, not is_registered or bool(missing)
        )
    return _adopted(platform, request, entry, subject, missing)


def _adopted(
    platform: Platform, request: AdoptRequest, entry: OrderEntry, subject: _Subject, missing: Files
) -> Adopted:
    if missing:
        _write(platform, request, entry, subject.kit, missing)
    registration = Registration(
        entry.order, subject.kit.name, entry.team, request.requester, is_adopted=True
    )
    registered = register(platform, registration)
    if not platform.portal_reads_orders:
        url = f"{platform.forge.base_url}/{entry.repository}"
        folder = platform.forge.capabilities.pages.folder(url, MAIN)
        platform.catalog.register(f"{folder}{CATALOG_FILE}")
    head = platform.forge.head(entry.repository)
    changed = bool(missing) or registered.changed
    return Adopted(entry, subject.kit.name, tuple(missing), head, changed)


def _write(
    platform: Platform, request: AdoptRequest, entry: OrderEntry, kit: Kit, files: Files
) -> None:
    title = kit.title or kit.name
    platform.forge.ensure_repo(
        entry.repository,
        description=f"{title} of team {entry.team}",
        private=platform.private,
    )
    digest = hashlib.sha256(b"\0".join(files[path] for path in sorted(files))).hexdigest()[:12]
    operation = Operation(
        f"adopt-{entry.order}-{digest}", request.requester, f"{entry.order}: adopted"
    )
    changes = [FileChange(path, files[path], None) for path in sorted(files)]
    platform.forge.write(entry.repository, changes, operation)


# --- what exists


def _from_cluster(
    cluster: Cluster, request: AdoptRequest, kits: tuple[Kit, ...]
) -> _Subject | None:
    """Find a live XR, if the subject names a kind of a kit."""
    kind, slash, name = request.subject.partition("/")
    kit = next((kit for kit in kits if slash and kit.kind.kind.lower() == kind.lower()), None)
    if kit is None:
        return None
    key = ObjectKey(kit.kind, name, request.namespace)
    xr = get_object(cluster, key)
    if xr is None:
        raise NotFoundError(
            f"{key} is not in the cluster",
            hint="check name and --namespace; a repository is named owner/name",
        )
    if metadata(xr).get("deletionTimestamp"):
        raise RefusedError(
            f"{key} is being deleted", hint="an XR that is being deleted cannot become an order"
        )
    manifest = authored(xr)
    head = "---\n# Taken over from the cluster: what `main` has of it is delivered.\n"
    text = head + yaml11.dump_block(manifest)
    path = MANIFESTS / f"{kit.kind.kind.lower()}.yaml"
    return _Subject(kit, manifest, path, text.encode(), None)


def _from_repository(forge: Forge, request: AdoptRequest, kits: tuple[Kit, ...]) -> _Subject:
    """Find the one XR of a repository made by hand."""
    repository = RepoId.parse(request.subject)
    if repository is None:
        kinds = ", ".join(kit.kind.kind for kit in kits)
        raise InvalidInputError(
            "subject",
            request.subject,
            "names neither a repository nor a live XR",
            hint=f"write owner/repository, or Kind/name with one of {kinds}",
        )
    files = snapshot(forge, repository)
    if files is None:
        raise NotFoundError(
            f"{repository}: no such repository, or it is empty",
            hint="orderkit adopt OWNER/REPOSITORY, a repository with a commit",
        )
    by_kind = {(kit.kind.group, kit.kind.kind): kit for kit in kits}
    subjects: list[_Subject] = []
    for path in sorted(path for path in files.blobs if path.suffix in _YAML):
        revision = forge.read(repository, path, files.commit)
        for xr in _objects(path, revision.data) if revision else ():
            kit = by_kind.get((Kind.of(xr).group, Kind.of(xr).kind))
            if kit and revision:
                subjects.append(_Subject(kit, xr, path, revision.data, repository))
    delivered = [subject for subject in subjects if subject.path.is_relative_to(MANIFESTS)]
    return _only_one(
        repository, delivered, [subject for subject in subjects if subject not in delivered]
    )


def _objects(path: PurePosixPath, data: bytes) -> tuple[Manifest, ...]:
    """Read the objects of a file; outside manifests/, skip what cannot be parsed."""
    try:
        return parse_manifests(str(path), data)
    except ManifestError:
        if path.is_relative_to(MANIFESTS):
            raise
        return ()


def _only_one(repository: RepoId, subjects: list[_Subject], elsewhere: list[_Subject]) -> _Subject:
    if len(subjects) == 1:
        return subjects[0]
    listed_xrs = ", ".join(
        f"{subject.path} ({metadata(subject.xr).get('name')})" for subject in subjects
    )
    if subjects:
        raise RefusedError(
            f"{repository} holds {len(subjects)} XRs, an order has one: {listed_xrs}",
            hint="give each a repository of its own",
        )
    if elsewhere:
        raise RefusedError(
            f"{repository}: {elsewhere[0].path} is not below {MANIFESTS}/,"
            " and only that folder is delivered",
            hint=f"move it there: {move_command(elsewhere[0].path)}",
        )
    raise NotFoundError(
        f"{repository}: no file below {MANIFESTS}/ holds an XR of one of this platform's kits",
        hint=f"write the XR into {MANIFESTS}/, and push",
    )


# --- what is missing


def _rendered(
    platform: Platform, request: AdoptRequest, subject: _Subject
) -> tuple[OrderEntry, dict[PurePosixPath, bytes]]:
    """Derive the order's name from its values, and render its skeleton without publishing."""
    order = subject.repository.name if subject.repository else str(metadata(subject.xr)["name"])
    team = subject.repository.owner if subject.repository else request.team
    if not team and not subject.kit.team_from:
        raise InvalidInputError(
            "team",
            "",
            "is not named by the XR",
            hint="name the team that owns the order: --team NAME",
        )
    source = published_template(platform, subject.kit.name)
    spec = dig(subject.xr, "spec", default={})
    parameters = source.template.validate(order_data(subject.kit, spec, order=order, team=team))
    result = scaffolder.run(
        source.template,
        parameters,
        files=source.folder,
        services=None,
        user=scaffolder.User(request.requester),
        task_id=f"adopt-{order}",
        on_step=lambda _: None,
        options=scaffolder.TaskOptions(dry_run=True),
    )
    entry = OrderEntry(subject.kit.team(parameters), subject.kit.order_id(parameters))
    return entry, {path: file.data for path, file in result.workspace.items()}


def _missing(
    forge: Forge, entry: OrderEntry, subject: _Subject, rendered: Files
) -> dict[PurePosixPath, bytes]:
    """Return the files that the repository lacks; existing files are never replaced."""
    files = snapshot(forge, entry.repository)
    blobs = files.blobs if files else {}
    if blobs and subject.repository is None and order_file.PATH not in blobs:
        raise RefusedError(
            f"{entry.repository} exists already and is not an order",
            hint=f"adopt the repository: orderkit adopt {entry.repository}",
        )
    contents = {p: data for p, data in rendered.items() if not p.is_relative_to(MANIFESTS)}
    if subject.repository is None and not any(p.is_relative_to(MANIFESTS) for p in blobs):
        contents[subject.path] = subject.data
    return {path: data for path, data in contents.items() if path not in blobs}
