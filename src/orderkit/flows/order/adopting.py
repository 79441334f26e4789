"""
Take a living XR, or a repository made by hand, over as an order; the XR is not touched.

What an order needs besides its XR is added: record, catalog entry, README, as the kit's skeleton
writes them for these values; then it is registered. An XR without a repository gets one, with the
XR as its author would have written it (``core.objects.export``), so that its first delivery changes
nothing. Every step is *ensure*: repeating it goes on, or finds everything done.

What an order could not look like is refused before anything is written: another name than the
kit gives it, a value that form or XRD refuse, a repository that is something else.

Called by ``orderkit adopt``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import InvalidInputError, NotFoundError, RefusedError
from orderkit.core.kit.change_forms import order_data
from orderkit.core.kit.model import Kit
from orderkit.core.names import CommitSha, RepoId, check_requester
from orderkit.core.objects.export import authored
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.core.order import order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_check import check_order_files
from orderkit.core.order.order_file import MANIFESTS
from orderkit.core.yaml import yaml11
from orderkit.core.yaml.manifests import ManifestError, parse_manifests
from orderkit.flows.order.registering import Registration, check_free, register
from orderkit.flows.platform import (
    Platform,
    get_object,
    ledger_snapshot,
    published_pack,
    snapshot,
)
from orderkit.flows.team.limit_check import check_may_order, check_values
from orderkit.flows.template import scaffolder
from orderkit.flows.template.published_templates import published_template
from orderkit.ports.forge import FileChange, Operation

CATALOG_FILE = PurePosixPath("catalog-info.yaml")
_YAML = (".yaml", ".yml", ".json")
Files = Mapping[PurePosixPath, bytes]


@dataclass(frozen=True, slots=True)
class AdoptRequest:
    """What to take over: ``owner/repository``, or ``Kind/name`` of a living XR."""

    subject: str
    requester: str
    namespace: str = ""
    """Of a namespaced XR."""
    team: str = ""
    """Whose a living XR becomes, where no field of its kit says so."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was taken over; `written` are the files that were missing, or would be."""

    entry: OrderEntry
    kit: str
    written: tuple[PurePosixPath, ...]
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
            "written": list(map(str, self.written)),
            "commit": self.commit,
            "changed": self.changed,
        }


@dataclass(frozen=True, slots=True)
class _Subject:
    """An XR found, its kit, and the file that holds it or shall hold it."""

    kit: Kit
    xr: Manifest
    path: PurePosixPath
    data: bytes
    repository: RepoId | None
    """Where it stands already."""


def adopt(platform: Platform, wanted: AdoptRequest) -> Adopted:
    """
    Make an order of what is there. Idempotent, resumable.

    Raises:
        NotFoundError: No such repository, XR or team; no kit has that kind.
        InvalidInputError: What is there is no order of the kit: its name, place or values.
        RefusedError: The repository holds something else, or several XRs; the team may not have it.
        AlreadyOrderedError: The order ended, or its id belongs to another team.
    """
    check_requester(wanted.requester)
    kits = published_pack(platform).kits()
    found = _living(platform, wanted, kits) or _written(platform, wanted, kits)
    entry, rendered = _rendered(platform, wanted, found)
    check_order_files(found.kit, entry.order, {found.path: found.data})
    if found.repository not in (None, entry.repository):
        raise InvalidInputError(
            "repository",
            str(found.repository),
            f"is not where this order belongs: {entry.repository}",
            hint="rename or transfer it on the forge, then repeat the command",
        )
    seen = ledger_snapshot(platform)
    check_free(entry, seen.blobs)
    team = check_may_order(platform, entry, found.kit.name, seen)
    if entry.application_path not in seen.blobs:
        check_values(team, found.kit, found.xr)
    missing = _missing(platform, entry, found, rendered)
    if wanted.dry_run:
        head = platform.forge.head(entry.repository)
        known = entry.application_path in seen.blobs
        return Adopted(entry, found.kit.name, tuple(missing), head, not known or bool(missing))
    return _taken(platform, wanted, entry, found, missing)


def _taken(
    platform: Platform, wanted: AdoptRequest, entry: OrderEntry, found: _Subject, missing: Files
) -> Adopted:
    if missing:
        _write(platform, wanted, entry, found.kit, missing)
    registration = Registration(entry.order, found.kit.name, entry.team, wanted.requester)
    registered = register(platform, registration)
    url = f"{platform.forge.base_url}/{entry.repository}/src/branch/main/{CATALOG_FILE}"
    platform.catalog.register(url)
    head = platform.forge.head(entry.repository)
    changed = bool(missing) or registered.changed
    return Adopted(entry, found.kit.name, tuple(missing), head, changed)


def _write(
    platform: Platform, wanted: AdoptRequest, entry: OrderEntry, kit: Kit, files: Files
) -> None:
    title = kit.title or kit.name
    platform.forge.ensure_repo(entry.repository, description=f"{title} of team {entry.team}")
    digest = hashlib.sha256(b"\0".join(files[path] for path in sorted(files))).hexdigest()[:12]
    operation = Operation(
        f"adopt-{entry.order}-{digest}", wanted.requester, f"{entry.order}: adopted"
    )
    changes = [FileChange(path, files[path], None) for path in sorted(files)]
    platform.forge.write(entry.repository, changes, operation)


# --- what is there


def _living(platform: Platform, wanted: AdoptRequest, kits: tuple[Kit, ...]) -> _Subject | None:
    """Find a living XR, if the subject names a kind of a kit."""
    kind, slash, name = wanted.subject.partition("/")
    kit = next((kit for kit in kits if slash and kit.kind.kind.lower() == kind.lower()), None)
    if kit is None:
        return None
    key = ObjectKey(kit.kind, name, wanted.namespace)
    xr = get_object(platform, key)
    if xr is None:
        raise NotFoundError(
            f"{key} is not in the cluster",
            hint="check name and --namespace; a repository is named owner/name",
        )
    if metadata(xr).get("deletionTimestamp"):
        raise RefusedError(f"{key} is being deleted", hint="there is nothing left to take over")
    manifest = authored(xr)
    head = "---\n# Taken over as it was living. Edit it, commit, and the change is delivered.\n"
    text = head + yaml11.dump(manifest).removeprefix("---\n")
    path = MANIFESTS / f"{kit.kind.kind.lower()}.yaml"
    return _Subject(kit, manifest, path, text.encode(), None)


def _written(platform: Platform, wanted: AdoptRequest, kits: tuple[Kit, ...]) -> _Subject:
    """Find the one XR of a repository made by hand."""
    owner, slash, name = wanted.subject.partition("/")
    if not (owner and slash and name) or "/" in name:
        kinds = ", ".join(kit.kind.kind for kit in kits)
        raise InvalidInputError(
            "subject",
            wanted.subject,
            "names neither a repository nor a living XR",
            hint=f"write owner/repository, or Kind/name with one of {kinds}",
        )
    repository = RepoId(owner, name)
    seen = snapshot(platform, repository)
    if seen is None:
        raise NotFoundError(f"{repository}: no such repository, or it is empty")
    by_kind = {(kit.kind.group, kit.kind.kind): kit for kit in kits}
    found: list[_Subject] = []
    for path in sorted(path for path in seen.blobs if path.suffix in _YAML):
        revision = platform.forge.read(repository, path, seen.commit)
        for xr in _objects(path, revision.data) if revision else ():
            kit = by_kind.get((Kind.of(xr).group, Kind.of(xr).kind))
            if kit and revision:
                found.append(_Subject(kit, xr, path, revision.data, repository))
    delivered = [each for each in found if each.path.is_relative_to(MANIFESTS)]
    return _only(repository, delivered, [each for each in found if each not in delivered])


def _objects(path: PurePosixPath, data: bytes) -> tuple[Manifest, ...]:
    """Read what is delivered; elsewhere any other YAML may stand."""
    try:
        return parse_manifests(str(path), data)
    except ManifestError:
        if path.is_relative_to(MANIFESTS):
            raise
        return ()


def _only(repository: RepoId, found: list[_Subject], elsewhere: list[_Subject]) -> _Subject:
    if len(found) == 1:
        return found[0]
    told = ", ".join(f"{each.path} ({metadata(each.xr).get('name')})" for each in found)
    if found:
        raise RefusedError(
            f"{repository} holds {len(found)} XRs, an order has one: {told}",
            hint="give each a repository of its own",
        )
    if elsewhere:
        raise RefusedError(
            f"{repository}: {elsewhere[0].path} is not below {MANIFESTS}/, which is delivered",
            hint=f"move it there: git mv {elsewhere[0].path} {MANIFESTS}/",
        )
    raise NotFoundError(
        f"{repository}: no file below {MANIFESTS}/ holds an XR of a kit of this platform"
    )


# --- what is missing


def _rendered(
    platform: Platform, wanted: AdoptRequest, found: _Subject
) -> tuple[OrderEntry, dict[PurePosixPath, bytes]]:
    """Name the order by its values, and render what its skeleton writes for them, dry."""
    order = found.repository.name if found.repository else str(metadata(found.xr)["name"])
    team = found.repository.owner if found.repository else wanted.team
    if not team and not found.kit.team_from:
        raise InvalidInputError(
            "team", "", "is not said by the XR", hint="say whose it becomes: --team NAME"
        )
    source = published_template(platform, found.kit.name)
    spec = dig(found.xr, "spec", default={})
    parameters = source.template.validate(order_data(found.kit, spec, order=order, team=team))
    result = scaffolder.run(
        source.template,
        parameters,
        files=source.folder,
        services=None,
        user=scaffolder.User(wanted.requester),
        task_id=f"adopt-{order}",
        on_step=lambda _: None,
        options=scaffolder.TaskOptions(dry_run=True),
    )
    entry = OrderEntry(found.kit.team(parameters), found.kit.order_id(parameters))
    return entry, {path: file.data for path, file in result.workspace.items()}


def _missing(
    platform: Platform, entry: OrderEntry, found: _Subject, rendered: Files
) -> dict[PurePosixPath, bytes]:
    """Return what the repository lacks; what it has stays as it is."""
    seen = snapshot(platform, entry.repository)
    there = seen.blobs if seen else {}
    if there and found.repository is None and order_file.PATH not in there:
        raise RefusedError(
            f"{entry.repository} is there already, and no order",
            hint=f"take the repository over: orderkit adopt {entry.repository}",
        )
    needed = {p: data for p, data in rendered.items() if not p.is_relative_to(MANIFESTS)}
    if found.repository is None and not any(p.is_relative_to(MANIFESTS) for p in there):
        needed[found.path] = found.data
    return {path: data for path, data in needed.items() if path not in there}
