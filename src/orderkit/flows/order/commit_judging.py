"""
Judge a commit of an order: who made it, and what it delivers.

`CommitJudge` judges who made it: only a valid signature proves that Orderkit wrote it for its
requester. The public keys are in the ledger, which only the platform's own people can write. A
signature counts for one commit: a copy of a commit's message and content, pushed again later, is
detected by reading the whole history.

`check_commit` checks what it delivers, from its files and not from the cluster's words. ``status``
explains with it why a commit is not delivered, ``commit_status`` tells it on the forge. Files,
names and values are untrusted: they are only parsed, within limits, and cut before they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta

from ground.argocd.delivery_obstacles import pinned, short
from ground.errors import OrderkitError, RefusedError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import Manifest, metadata
from ground.shapes import StrictShape, json_schema, plain, read_shape
from kubeschema.validate.file_check import Definitions, definition_sources
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack, definition_path
from orderkit.core.order.damage import CommitCheck, weight, with_faults
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_check import OrderRepository, check_repository
from orderkit.core.order.order_state import OrderState
from orderkit.flows.platform import Platform, read_text
from orderkit.ports.forge import Commit, Forge
from orderkit.ports.signatures import PublicKey, is_signed_by, read_changes, signature_of
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION

KEYS_PATH = PurePosixPath("signing-keys.yaml")
"""In the ledger: the public keys whose signatures count."""
_WHOLE_HISTORY = 1_000_000  # to detect a copy of a signed commit that was pushed again later


class _Key(StrictShape, frozen=True):
    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    ed25519: Annotated[str, Meta(pattern="^[A-Za-z0-9+/]{43}=$")]


class _KeysFile(StrictShape, frozen=True, omit_defaults=False):
    keys: tuple[_Key, ...]
    api_version: Annotated[str, Meta(extra_json_schema={"const": API_VERSION})]
    kind: Annotated[str, Meta(extra_json_schema={"const": "SigningKeys"})]


class SignatureVerdict(StrEnum):
    """What the signature of a commit is worth; only `VALID` proves anything."""

    VALID = "valid"
    NONE = "none"
    """The commit names neither operation nor requester: it was made by hand."""
    MISSING = "missing"
    """It names them and is not signed: by Orderkit 0.2, or without the key, or by anybody."""
    UNKNOWN_KEY = "unknown key"
    INVALID = "invalid"
    """It was made for another message, other content or another repository."""
    COPIED = "copied"
    """Another commit has the same signature, and this one is not the older of the two."""


def published_keys(platform: Platform) -> Mapping[str, PublicKey]:
    """
    Return the public keys in the ledger by their ids; empty if there are none.

    Raises:
        InvalidInputError: The file is broken.
    """
    text = read_text(platform.forge, platform.ledger, KEYS_PATH, "main")
    if text is None:
        return {}
    name = f"{platform.ledger}/{KEYS_PATH}"
    file = read_shape(_KeysFile, yaml11.load(text, name=name, schema=json_schema(_KeysFile)))
    return {key.id: PublicKey(key.id, key.ed25519) for key in file.keys}


def keys_file(keys: Iterable[PublicKey]) -> str:
    """Write the file of public keys."""
    file = _KeysFile(tuple(_Key(key.id, key.text) for key in keys), API_VERSION, "SigningKeys")
    return yaml11.dump(plain(file))


def whole_history(forge: Forge, repo: RepoId, head: CommitSha) -> Sequence[Commit]:
    """Return every commit that a commit contains, and itself."""
    return forge.commits(repo, ref=head, limit=_WHOLE_HISTORY)


def branch_of(commit: Commit) -> str:
    """Return the branch for which a commit was signed; "" without a signature. Not checked."""
    signature = signature_of(commit.message)
    return signature.branch if signature else ""


@dataclass
class CommitJudge:
    """Judges the commits in the history of one commit; reads keys and history once."""

    platform: Platform
    repo: RepoId
    head: CommitSha

    @cached_property
    def keys(self) -> Mapping[str, PublicKey]:
        """The platform's public keys by their ids; raises as `published_keys`."""
        return published_keys(self.platform)

    def verdict(self, commit: Commit) -> SignatureVerdict:
        """
        Judge one commit of the history.

        Raises:
            InvalidInputError: The ledger's file of public keys is broken.
        """
        if not (commit.operation or commit.requester):
            return SignatureVerdict.NONE
        signature = signature_of(commit.message)
        if signature is None:
            return SignatureVerdict.MISSING
        key = self.keys.get(signature.key_id)
        if key is None:
            return SignatureVerdict.UNKNOWN_KEY
        changes = read_changes(self.platform.forge, self.repo, commit)
        if not is_signed_by(self.platform.signatures, key, self.repo, commit, changes):
            return SignatureVerdict.INVALID
        copies = self._commits_by_signature.get(signature.signature, set()) - {commit.id}
        # whoever copies a signed commit pushes it later: the original is contained in every copy
        if all(commit.id in self._ancestors(copy) for copy in copies):
            return SignatureVerdict.VALID
        return SignatureVerdict.COPIED

    def is_proved(self, commit: Commit) -> bool:
        """Say whether a commit's trailers can be trusted."""
        return self.verdict(commit) is SignatureVerdict.VALID

    def requester(self, commit: Commit) -> str:
        """Return the requester of a commit if it is proved, else ""."""
        return commit.requester if self.is_proved(commit) else ""

    @cached_property
    def _commits_by_signature(self) -> Mapping[bytes, set[CommitSha]]:
        commits: dict[bytes, set[CommitSha]] = {}
        for commit in self.history:
            signature = signature_of(commit.message)
            if signature is not None:
                commits.setdefault(signature.signature, set()).add(commit.id)
        return commits

    @cached_property
    def history(self) -> tuple[Commit, ...]:
        """Every commit that the head contains, in the forge's order: newest first."""
        return tuple(whole_history(self.platform.forge, self.repo, self.head))

    def _ancestors(self, commit: CommitSha) -> set[CommitSha]:
        parents = {older.id: older.parents for older in self.history}
        ancestors: set[CommitSha] = set()
        waiting = list(parents.get(commit, ()))
        while waiting:
            ancestor = waiting.pop()
            if ancestor not in ancestors:
                ancestors.add(ancestor)
                waiting += parents.get(ancestor, ())
        return ancestors


_FINDINGS_MAX = 20


@dataclass(frozen=True, slots=True)
class CheckedOrder:
    """An order with what its files are judged by."""

    entry: OrderEntry
    kit: Kit
    definitions: Definitions
    xr: Manifest | None
    """Its own XR as it lives: the API server judges steps from there."""

    @classmethod
    def of(
        cls, entry: OrderEntry, pack: Pack, kit_name: str, xr: Manifest | None
    ) -> CheckedOrder | None:
        """Return the order; None if the pack no longer has its kit."""
        if kit_name not in pack.kit_names:
            return None
        sources = definition_sources(PurePosixPath(), pack.files)
        definitions = Definitions.of(sources, definition_path(kit_name))
        return cls(entry, pack.kit(kit_name), definitions, xr)


def check_commit(forge: Forge, order: CheckedOrder, commit: CommitSha) -> CommitCheck:
    """
    Check the files of one commit of an order.

    Raises:
        NotFoundError: No such commit. RemoteError: the forge.
    """
    repo = order.entry.repository

    def read(path: PurePosixPath) -> bytes | None:
        revision = forge.read(repo, path, commit)
        return revision.data if revision else None

    def old_xr(manifest: Manifest) -> Manifest | None:
        live_name = metadata(order.xr or {}).get("name")
        is_same = repository.is_xr(manifest) and live_name == metadata(manifest).get("name")
        return order.xr if is_same else None

    paths = sorted(forge.tree(repo, commit))
    repository = OrderRepository(order.entry.order, order.kit, paths, read, PurePosixPath())
    outcome = check_repository(repository, order.definitions, old_xr)

    findings = sorted(outcome.findings, key=weight)
    return CommitCheck(commit, tuple(findings[:_FINDINGS_MAX]))


def explained_by_files(
    forge: Forge, order: CheckedOrder, application: Manifest | None, state: OrderState
) -> tuple[OrderState, CommitCheck | None]:
    """
    Return the state with the faults of its commit's own files as the reason, and the check.

    While Argo CD retries an older commit, that one is the reason. Without a fault in the files, the
    cluster's words stay.
    """
    if state.head is None:
        return state, None
    try:
        check = check_commit(forge, order, state.head)
        if check.errors or state.ready or state.phase in ("Ending", "Ended"):
            return with_faults(state, check), check
        applied = CommitSha(pinned(application or {}))
        if applied and applied != state.head:
            older = check_commit(forge, order, applied)
            if older.errors:
                reason = f"{older.summary}, in commit {short(applied)}"
                return replace(state, reason=f"{reason}; {short(state.head)} has to wait"), check
    except OrderkitError:
        return state, None  # a report about the cluster is better than none
    return state, check


def refuse_unproved(platform: Platform, entry: OrderEntry, head: CommitSha) -> None:
    """
    Refuse what was pushed by hand to an order that needs approval: whose approval would count?

    Raises:
        RefusedError: The platform signs its commits, and one up to `head` is not proved.
    """
    judge = CommitJudge(platform, entry.repository, head)
    if not judge.keys:
        return
    for commit in judge.history:
        if not judge.is_proved(commit):
            raise RefusedError(
                f"{entry.repository}: nothing proves who wrote {short(commit.id)}, and"
                f" {entry.order} needs approval by somebody else",
                hint="order it with 'orderkit order' or in the portal, under a name that is free",
            )
