"""
A live order: its entry in the ledger, its kit, and the file that holds its XR.

The file is found by the XR's kind, never by a fixed name: people rename files, put several
documents into one, or write a List.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.argocd import sync_rules
from ground.argocd.sync_rules import steering_annotations
from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import MAIN, BlobSha, CommitSha, RepoId, TeamName
from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from ground.objects.values import ABSENT, Steps
from kubeschema.validate.file_check import Definitions, definition_sources
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason, remedy, sentence
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_file
from orderkit.core.order.damage import Damage, in_entry, labelled_entry
from orderkit.core.order.ledger import OrderEntry, team_namespace
from orderkit.core.order.order_check import SUBMODULES
from orderkit.core.order.order_file import MANIFESTS, OrderFile
from orderkit.core.order.order_state import short
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.argocd.commit_pinning import documents_of
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order import order_report
from orderkit.flows.order.commit_judging import CheckedOrder, check_commit
from orderkit.flows.order.repository_damage import on_default_branch, without_main
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    pack_snapshot,
    published_kit,
    published_pack,
)
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import Commit, Forge
from yamlfiles.manifests import ManifestError, looks_like_manifest, parse_documents

_SUFFIXES = (".yaml", ".yml", ".json")
ANOTHER_XR = "{} it is another XR, and nothing updates the order's own any more"
"""Why a renamed XR is refused. Until the end of its order, a push deletes none (decision 19)."""


@dataclass(frozen=True, slots=True)
class LiveOrder:
    """An order that can be changed, with its kit, record and team."""

    entry: OrderEntry
    kit: Kit
    record: OrderFile
    team: TeamFile
    """What its team may order."""
    edits: tuple[Damage, ...] = ()
    """What people edited in its entry of the ledger."""
    remarks: tuple[Damage, ...] = ()
    """What was done to its repository that a change goes on in spite of."""
    pack: CommitSha | None = None
    """The commit of the pack that its kit was read at; None: not known."""

    @property
    def repository(self) -> RepoId:
        return self.entry.repository

    def is_xr(self, manifest: Manifest) -> bool:
        """Say whether an object is of the kit's kind, in whatever version."""
        kind = Kind.of(manifest)
        return (kind.group, kind.kind) == (self.kit.kind.group, self.kit.kind.kind)


@dataclass(frozen=True, slots=True)
class XrFile:
    """The XR at a commit, with its file and its position in it."""

    commit: CommitSha
    path: PurePosixPath
    data: bytes
    sha: BlobSha
    document: int
    """Its number in the file, from 0."""
    steps: Steps
    """Path within the document; empty unless the XR is an item of a List."""
    xr: Manifest

    @property
    def spec(self) -> Any:
        """The XR's ``spec``, `ABSENT` if there is none."""
        return self.xr.get("spec", ABSENT)


def find_living(
    platform: Platform,
    order: str,
    ledger_files: RepositorySnapshot | None = None,
    pack: RepositorySnapshot | None = None,
) -> LiveOrder:
    """
    Find an order that has not ended.

    Args:
        ledger_files: The ledger's files, if they were read already.
        pack: The pack's files, likewise.

    Raises:
        NotFoundError: There is none of that id (the nearest is named), it has ended, or its
            repository or its kit is gone.
        RefusedError: It is ending, its repository is archived, or its record names another kit.
    """
    snapshot = ledger_files or ledger_snapshot(platform)
    entry = order_report.find(order, snapshot.blobs)
    if entry.end_path in snapshot.blobs:
        raise RefusedError(
            f"{order} is ending and cannot be changed any more",
            hint=f"finish the end: orderkit destroy {order}",
        )
    if entry.waiting_path in snapshot.blobs:
        raise RefusedError(
            f"{order} waits for approval and cannot be changed yet",
            hint=f"'orderkit status {order}' names its approvers; to order something else:"
            f" orderkit destroy {order}",
        )
    repository = platform.forge.repo(entry.repository)
    if repository is None:
        raise NotFoundError(
            f"{order}: its repository {entry.repository} does not exist, or we may not read it",
            hint=f"'orderkit status {order}' shows what is left of it",
        )
    if repository.archived:
        raise RefusedError(
            f"{entry.repository} is archived, so the order cannot be changed",
            hint="unarchive it on the forge if that was a mistake",
        )
    record = _record(platform, entry)
    ledger_at = ledger_files.commit if ledger_files else MAIN
    application, added = check_kit(platform, entry, record.kit, ledger_at)
    forge_url = platform.forge.base_url
    whose = labelled_entry(application)
    is_listed = whose is not None and whose.application_path in snapshot.blobs
    found = in_entry(entry, application or {}, forge_url, has_original=is_listed, added=added)
    edits = tuple(found) if application else ()
    team = team_of(platform, entry.team, snapshot)
    remarks = tuple(on_default_branch(repository))
    pack = pack or pack_snapshot(platform)
    kit = published_kit(platform, record.kit, pack)
    return LiveOrder(entry, kit, record, team, edits, remarks, pack.commit)


def new_live_order(
    platform: Platform, entry: OrderEntry, snapshot: RepositorySnapshot, kit: str
) -> LiveOrder:
    """
    Return an order that is written and not delivered yet.

    Raises:
        NotFoundError: Its record or its kit is gone.
        InvalidInputError: Its record is broken.
    """
    team, pack = team_of(platform, entry.team, snapshot), pack_snapshot(platform)
    declared = published_kit(platform, kit, pack)
    return LiveOrder(entry, declared, _record(platform, entry), team, pack=pack.commit)


def check_observes(
    platform: Platform, live: LiveOrder, head: Callable[[], CommitSha | None]
) -> None:
    """
    Hold a new order to observing what it takes over. Its ``main`` is protected by now.

    Args:
        head: Returns the head of ``main``.

    Raises:
        RefusedError: It manages at once, which only a reviewed change may begin.
    """
    imports = live.kit.imports
    commit = head() if imports else None
    if imports is None or commit is None:
        return
    if dig(read_xr(platform, live, commit).xr, "spec", *imports.manage.split(".")):
        raise RefusedError(
            f"{live.entry.order}: spec.{imports.manage} is set, but a new order observes first",
            hint=f"take it out and register again; then: orderkit change {live.entry.order}"
            f" {imports.manage}=true",
        )


def check_hooks(forge: Forge, live: LiveOrder, commit: CommitSha) -> None:
    """
    Check that Argo CD finds no hook in what a new order delivers.

    Raises:
        RefusedError: It finds some, and would wait for them if the order is taken back; or an
            annotation has it make the XR again at each sync.
    """
    if refusals := hook_refusals(forge, live, commit):
        raise RefusedError(refusals[0], hint=f"{sync_rules.HINT}, and register again")


def check_kit(
    platform: Platform, entry: OrderEntry, kit: str, ledger_at: str = MAIN
) -> tuple[Manifest | None, tuple[Manifest, ...]]:
    """
    Check that a registered order still says that it is of the kit that it was registered with.

    Returns its Application, as the ledger has it, and the other documents of that file.

    Raises:
        RefusedError: Its record names another kit, whose rules it is not under.
    """
    file = platform.forge.read(platform.ledger, entry.application_path, ledger_at)
    application, added = documents_of(file)
    registered = ledger.kit_of(application or {})
    if registered and registered != kit:
        raise RefusedError(
            f"{entry.repository}/{order_file.PATH}: spec.kit is '{kit}', but {entry.order} is"
            f" registered as an order of kit '{registered}', and that never changes",
            hint=f"put '{registered}' back there, or end this order and place another",
        )
    return application, added


def _record(platform: Platform, entry: OrderEntry) -> OrderFile:
    revision = platform.forge.read(entry.repository, order_file.PATH, "main")
    if revision is None:
        if platform.forge.head(entry.repository) is None:
            application = get_object(platform.cluster, application_key(entry.order))
            damage = without_main(platform.forge, entry.repository, application)
            raise NotFoundError(damage.what, hint=damage.advice(entry.order))
        raise NotFoundError(
            f"{entry.repository}: no {order_file.PATH} on branch main",
            hint="restore that file from the repository's history",
        )
    return order_file.parse(revision.data, name=f"{entry.repository}/{order_file.PATH}")


def main_head(platform: Platform, repo: RepoId) -> CommitSha:
    """
    Return the head of an order's ``main``.

    Raises:
        RefusedError: Somebody removed or renamed it just now.
    """
    head = platform.forge.head(repo)
    if head is None:
        raise RefusedError(f"{repo} has no branch {MAIN}", hint=f"orderkit repair {repo.name}")
    return head


def read_xr(platform: Platform, live: LiveOrder, commit: CommitSha) -> XrFile:
    """
    Find the order's XR in a commit.

    Raises:
        NotFoundError: The commit, or an XR of the kit in it, does not exist; why, in the words of
            ``orderkit validate``.
        RefusedError: There are several.
        ManifestError: A file below ``manifests/`` is not a readable manifest.
    """
    xr_files = list(_xrs(platform.forge, live, commit))
    location = f"{live.repository} at {short(commit)}"
    if not xr_files:
        fault = _faults(platform, live, commit)[0]
        raise NotFoundError(f"{location}: {sentence(fault)}", hint=remedy(fault))
    if len(xr_files) > 1:
        for fault in filter(_is_undelivered, _faults(platform, live, commit)):
            raise RefusedError(f"{location}: {sentence(fault)}", hint=remedy(fault))
        places = ", ".join(
            f"{xr_file.path} ({metadata(xr_file.xr).get('name')})" for xr_file in xr_files
        )
        raise RefusedError(
            f"{location}: {len(xr_files)} objects of {live.kit.kind},"
            f" but an order has one: {places}",
            hint="remove the others by hand",
        )
    return xr_files[0]


def check_delivers(platform: Platform, live: LiveOrder, xr_file: XrFile) -> None:
    """
    Check that Argo CD delivers a commit's XR, whatever its fields are, to where the order lives.

    Needs no request for a commit that `read_xr` read.

    Raises:
        RefusedError: It reads another folder, refuses another object, fails at a submodule, or
            would make the XR again; in the words of ``orderkit validate``. Or the order's entry in
            the ledger was edited.
    """
    for edit in live.edits:
        raise RefusedError(f"{live.entry.order}: {edit.what}", hint=edit.advice(live.entry.order))
    commit = xr_file.commit
    has_submodules = SUBMODULES in platform.forge.tree(live.repository, commit)
    others = (
        entry for entry in _objects_of(platform.forge, live, commit) if not live.is_xr(entry.xr)
    )
    is_damaged = bool(sync_rules.hook_refusal(xr_file.xr)) or any(_damaging(xr_file.xr))
    if xr_file.path.parent == MANIFESTS and not (has_submodules or is_damaged or any(others)):
        return
    for fault in filter(_is_undelivered, _faults(platform, live, commit)):
        what = f"{live.repository} at {short(commit)} cannot be changed: {sentence(fault)}"
        raise RefusedError(what, hint=remedy(fault))


def _is_undelivered(fault: Located) -> bool:
    if not isinstance(fault.about, Finding) or fault.about.severity is not FindingSeverity.ERROR:
        return False
    reasons = (Reason.NO_XR, Reason.NOT_THE_ORDERS, Reason.STEERS, Reason.HOOK)
    return fault.about.reason in reasons or fault.file == SUBMODULES


def _faults(platform: Platform, live: LiveOrder, commit: CommitSha) -> tuple[Located, ...]:
    """Return what ``orderkit validate`` says of a commit, errors first."""
    pack = published_pack(platform)
    definitions = Definitions.of(definition_sources(PurePosixPath(), pack.files))
    return check_commit(
        platform.forge, CheckedOrder(live.entry, live.kit, definitions, None), commit
    ).findings


def check_name(live: LiveOrder, xr_file: XrFile) -> None:
    """
    Check that the XR has the name of its order.

    Raises:
        RefusedError: It was renamed: for the cluster that is another XR.
    """
    name, spec = metadata(xr_file.xr).get("name"), xr_file.xr.get("spec") or {}
    expected = live.kit.xr_name_of(live.entry.order, spec)
    if name != expected:
        raise RefusedError(
            f"{live.entry.order}: {xr_file.path} names its XR '{name}',"
            f" the order's is '{expected}'",
            hint=f"restore the name by hand: {ANOTHER_XR.format('with another name')}",
        )
    home = live.kit.namespace_of(spec)
    namespace = metadata(delivered_xr(live, xr_file.xr)).get("namespace")
    if home and namespace != home:
        raise RefusedError(
            f"{live.entry.order}: {xr_file.path} has its XR in '{namespace}', not in '{home}'",
            hint=f"restore the namespace by hand: {ANOTHER_XR.format('in another one')}",
        )


def delivered_xr(live: LiveOrder, xr: Manifest) -> Manifest:
    """Return an XR of Git with the namespace that Argo CD applies it with: see `placed_xr`."""
    return placed_xr(live.kit, live.entry.team, xr)


def placed_xr(kit: Kit, team: TeamName, xr: Manifest) -> Manifest:
    """
    Return an XR of a team's order with the namespace that Argo CD applies it with.

    A namespaced one without a namespace gets the destination's, a cluster-scoped one loses its own
    (argo-cd controller/state.go, ``DeduplicateTargetObjects``).
    """
    meta = {key: value for key, value in metadata(xr).items() if key != "namespace"}
    if kit.namespaced:
        meta["namespace"] = metadata(xr).get("namespace") or team_namespace(team)
    return {**xr, "metadata": meta}


def hook_refusals(forge: Forge, live: LiveOrder, commit: CommitSha) -> list[str]:
    """
    Return why objects of a commit are refused: as hooks of Argo CD, or because it damages them.

    Raises:
        NotFoundError: No such commit.
        ManifestError: A file below ``manifests/`` is not a readable manifest.
    """
    return [
        f"{entry.path}: {refusal}"
        for entry in _objects_of(forge, live, commit)
        for refusal in (sync_rules.hook_refusal(entry.xr), *_damaging(entry.xr))
        if refusal
    ]


def _damaging(xr: Manifest) -> Iterator[str]:
    return (str(found) for found in steering_annotations(xr) if found.is_dangerous)


def _xrs(forge: Forge, live: LiveOrder, commit: CommitSha) -> Iterator[XrFile]:
    return (entry for entry in _objects_of(forge, live, commit) if live.is_xr(entry.xr))


def _objects_of(forge: Forge, live: LiveOrder, commit: CommitSha) -> Iterator[XrFile]:
    files = {
        path: sha
        for path, sha in sorted(forge.tree(live.repository, commit).items())
        if path.is_relative_to(MANIFESTS) and path.suffix in _SUFFIXES
    }
    forge.read_ahead(live.repository, files, commit)
    for path, sha in files.items():
        revision = forge.read(live.repository, path, commit)
        if revision is not None:
            for document, steps, manifest in _objects(live, path, revision.data):
                yield XrFile(commit, path, revision.data, sha, document, steps, manifest)


def _objects(
    live: LiveOrder, path: PurePosixPath, data: bytes
) -> Iterator[tuple[int, Steps, Manifest]]:
    try:
        documents = parse_documents(f"{live.repository}/{path}", data)
    except ManifestError:
        if looks_like_manifest(data):
            raise
        return  # Argo CD skips it too
    for number, (document, _) in enumerate(documents):
        for steps, manifest in _items(document, ()):
            yield number, steps, manifest


def _items(document: object, steps: Steps) -> Iterator[tuple[Steps, Manifest]]:
    """Yield the objects of a document with their path; skip what is not an object."""
    if not isinstance(document, dict):
        return
    kind, items = document.get("kind"), document.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for number, item in enumerate(items):
            yield from _items(item, (*steps, "items", number))
    elif isinstance(kind, str) and isinstance(document.get("apiVersion"), str):
        yield steps, document


def find_commit(forge: Forge, live: LiveOrder, text: str, *, field: str) -> Commit:
    """
    Return the commit of the order's main branch that `text`, whole or shortened, names.

    Raises:
        InvalidInputError: None, or several.
    """
    prefix = text.strip().lower()
    history = forge.commits(live.repository, limit=_SEARCHED)
    matches = [commit for commit in history if prefix and commit.id.startswith(prefix)]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise InvalidInputError(
            field,
            text,
            f"is the beginning of {len(matches)} commit ids",
            hint="give more digits; orderkit history ORDER has them",
        )
    near = difflib.get_close_matches(prefix, [c.id[: len(prefix)] for c in history], n=1)
    hint = f"did you mean {near[0]}?" if near else f"see 'orderkit history {live.entry.order}'"
    raise InvalidInputError(
        field, text, f"is none of the newest {_SEARCHED} commits of {live.repository}", hint=hint
    )


_SEARCHED = 200
