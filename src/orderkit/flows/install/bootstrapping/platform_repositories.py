"""
The platform's two repositories: the pack as rendered for it, and the ledger.

A commit of the pack names the platform it was rendered for, so that two platforms on one forge
do not publish over each other.

`move_ledger` moves the ledger to another repository, and `refuse_ledger_change` refuses to leave it
behind. Argo CD removes what a repository no longer lists. So if platform.yaml names another ledger
and that is empty, every team's Applications are pruned, and their XRs with them. A move copies the
files before the Application of the ledger is switched. The old repository is archived first, so
that nobody enters an order there meanwhile; it keeps the history.

`AccessStep` lets Argo CD get at the repositories: with credentials where they are private, and the
forge's authority. The credential of platform.yaml is for the organisations of pack and ledger only;
every team has one of its own (``flows.team.connections``). The one for the whole forge that release
0.2.0 wrote becomes the former after every team has the latter. The authority stands in
``argocd-tls-certs-cm`` under the forge's host name without port, as Argo CD looks it up. Other
entries of that ConfigMap are left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from ground.errors import NotFoundError, RefusedError
from ground.names import CommitSha, Files, RepoId, TeamName, blob_sha
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
)
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import ledger, order_state
from orderkit.core.platform import idpbuilder
from orderkit.flows.argocd.refreshing import OWNER, application_key
from orderkit.flows.forge_protection import refuse_foreign_access
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.order.agreements import approver_problems
from orderkit.flows.order.commit_judging import KEYS_PATH, keys_file, published_keys
from orderkit.flows.platform import Platform, RepositorySnapshot, get_object, snapshot, write_ledger
from orderkit.flows.team.connections import (
    SECRET,
    credential_secret,
    ensure_read_credential,
    lacking,
    organisation_url,
)
from orderkit.flows.team.teams import LEDGER_APPLICATION
from orderkit.ports.forge import FileChange, Operation, Written
from orderkit.ports.signatures import PublicKey

_BEGUN = {PurePosixPath("README.md"), PurePosixPath("teams/.gitkeep")}
"""What a ledger that was just begun holds."""


def delivered_ledger(platform: Platform) -> RepoId | None:
    """Return the repository that Argo CD delivers as the ledger now, or None."""
    application = get_object(platform.cluster, application_key(LEDGER_APPLICATION))
    url = str(dig(application or {}, "spec", "source", "repoURL", default=""))
    path = urlsplit(url).path.removesuffix(".git")
    prefix = f"{urlsplit(platform.forge.base_url).path}/"
    return RepoId.parse(path.removeprefix(prefix if path.startswith(prefix) else "/"))


def ledger_left_behind(platform: Platform) -> RepoId | None:
    """Return the ledger whose teams and orders platform.yaml would leave behind, or None."""
    old = delivered_ledger(platform)
    if old is None or old == platform.ledger:
        return None
    before, after = snapshot(platform.forge, old), snapshot(platform.forge, platform.ledger)
    if before is None:
        return None
    listed = {path for path in before.blobs if path.parts[0] in ("apps", "data", "teams")}
    return old if listed - {*(after.blobs if after else ())} - _BEGUN else None


def refuse_ledger_change(platform: Platform) -> None:
    """
    Refuse to deliver another ledger than before, unless its files were copied.

    Raises:
        RefusedError: Argo CD would delete teams and orders.
    """
    old = ledger_left_behind(platform)
    if old is None:
        return
    files = snapshot(platform.forge, old)
    orders = list(ledger.entries(files.blobs)) if files else []
    raise RefusedError(
        f"platform.yaml: spec.ledgerRepository is {platform.ledger}, but {old} lists this"
        f" platform's teams and {len(orders)} orders: Argo CD would delete them",
        hint=f"write {old} again, or move it: orderkit bootstrap --move-ledger",
    )


def refuse_lost_ledger(platform: Platform) -> None:
    """
    Refuse to begin a ledger beside a cluster that delivers one which the forge lost.

    Raises:
        RefusedError: Argo CD would remove every team of the lost ledger.
    """
    if delivered_ledger(platform) != platform.ledger:
        return
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    orders = [a for a in applications if labels_of(a).get(ledger.ORDER_LABEL)]
    if orders:
        raise RefusedError(
            f"{platform.ledger} is missing on the forge, but the cluster delivers {len(orders)}"
            " orders from it: an empty one would remove their teams",
            hint="bring it back: orderkit restore DIR (docs/disaster.md)",
        )


def move_ledger(platform: Platform, old: RepoId, *, requester: str) -> Written:
    """
    Copy the old ledger's files to the new one in one commit. Idempotent, resumable.

    The new repository exists. Team files name the ledger's address; it is rewritten.

    Raises:
        RefusedError: The new repository holds something else, or somebody else may write to it.
    """
    new, forge = platform.ledger, platform.forge
    refuse_foreign_access(platform, new)
    # first, so that nobody enters an order there meanwhile
    forge.archive(old)
    before, after = snapshot(platform.forge, old), snapshot(platform.forge, new)
    if before is None:
        raise RefusedError(f"{old} is empty: there is nothing to move")
    blobs = after.blobs if after else {}
    if others := sorted({*blobs} - {*before.blobs} - _BEGUN):
        raise RefusedError(
            f"{new} holds other files already, such as {others[0]}",
            hint="name a new or empty repository as spec.ledgerRepository",
        )
    changes = []
    for path in sorted(before.blobs):
        revision = forge.read(old, path, before.commit)
        data = revision.data if revision else b""
        if path.parts[0] == "teams":
            data = data.replace(f"/{old}.git".encode(), f"/{new}.git".encode())
        changes.append(FileChange(path, data, blobs.get(path)))
    why = Operation(f"ledger-moved-{before.commit[:12]}", requester, f"ledger moved from {old}")
    return forge.write(new, changes, why)


PLATFORM_TRAILER = "Orderkit-Platform"
"""In a commit of the pack: the platform it was rendered for."""
_SEARCHED = 50
"""How many commits of the pack are searched for that trailer."""
_PACK_FILE = PurePosixPath("pack.yaml")
_LEDGER_README = """# Ledger

Who may order (`teams/`), what is ordered (`apps/<team>/`), what ended (`data/`), whose signatures
of commits count (`signing-keys.yaml`).
Written by Orderkit, delivered by Argo CD, read by everybody.
"""


@dataclass(frozen=True, slots=True)
class PackDifference:
    """What publishing would do to the pack's repository; None as `seen`: there is none."""

    published: RepositorySnapshot | None
    changed: tuple[PurePosixPath, ...]
    removed: tuple[PurePosixPath, ...]


def pack_difference(site: BootstrapContext) -> PackDifference:
    """
    Compare the pack's repository with the pack as rendered.

    Raises:
        InvalidInputError: The pack is broken.
    """
    files = site.files
    published = snapshot(site.platform.forge, site.platform.pack_repo)
    blobs = published.blobs if published else {}
    changed = [path for path in sorted(files) if blobs.get(path) != blob_sha(files[path])]
    return PackDifference(
        published, tuple(changed), tuple(p for p in sorted(blobs) if p not in files)
    )


@dataclass(frozen=True, slots=True)
class PackStep:
    """The pack's repository holds exactly what was rendered."""

    site: BootstrapContext
    name: str = "pack"

    def look(self) -> Look:
        difference, repo = pack_difference(self.site), self.site.platform.pack_repo
        _refuse_foreign(self.site.platform, repo, is_new=difference.published is None)
        if difference.published is None:
            return Look(StepVerdict.CREATE, f"{repo} with {len(self.site.files)} files")
        if not difference.changed and not difference.removed:
            return Look(
                StepVerdict.DONE, f"{repo} at {order_state.short(difference.published.commit)}"
            )
        self._check_ours(difference)
        summary = f"{len(difference.changed)} files written, {len(difference.removed)} removed"
        return Look(StepVerdict.CHANGE, f"{repo}: {summary}")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before, platform = self.look(), self.site.platform
        if before.verdict is StepVerdict.DONE:
            return before
        repo, files = platform.pack_repo, self.site.files
        _ensure_repository(
            platform, repo, "The platform's pack: kits, forms, delivery tree", self.site
        )
        published = snapshot(platform.forge, repo)
        old = published.blobs if published else {}
        changes = [FileChange(path, files[path], old.get(path)) for path in sorted(files)]
        changes += [FileChange(path, None, old[path]) for path in sorted(old) if path not in files]
        commit = platform.forge.write(repo, changes, self._operation(published)).commit
        summary = f"{len(files)} files at {order_state.short(commit)} in {repo}"
        return Look(before.verdict, summary + unknown_approvers(platform, files))

    def _operation(self, published: RepositorySnapshot | None) -> Operation:
        files, request = self.site.files, self.site.wanted
        digest = hashlib.sha256(b"".join(bytes(p) + files[p] for p in sorted(files))).hexdigest()
        return Operation(
            f"pack-{digest[:20]}-on-{published.commit[:8] if published else 'nothing'}",
            request.requester,
            f"pack at {request.values.pack_commit[:8]}",
            notes=((PLATFORM_TRAILER, self.site.platform.name),),
        )

    def _check_ours(self, difference: PackDifference) -> None:
        """Refuse to publish over another pack or another platform's."""
        if self.site.wanted.replace_pack or difference.published is None:
            return
        platform = self.site.platform
        repo, hint = platform.pack_repo, "name another spec.packRepository, or --replace-pack"
        replacement = pack_replacement(platform, difference.published.commit, self.site.files)
        if replacement.is_other:
            raise replacement.refusal(hint=hint)
        owner = published_for(platform)
        if owner not in {"", platform.name}:
            raise RefusedError(f"{repo} holds the pack of platform '{owner}'", hint=hint)


@dataclass(frozen=True, slots=True)
class PackReplacement:
    """The pack that a platform publishes, and the one that would replace it."""

    repository: RepoId
    theirs: str
    """Its name; empty: the published files are no pack."""
    ours: str
    lost_kits: tuple[str, ...]
    """Kits that only the published one has."""

    @property
    def is_other(self) -> bool:
        """Whether it is another pack, not the same one as it was before."""
        return self.theirs != self.ours

    def refusal(self, *, hint: str, without: str = "") -> RefusedError:
        """Return the error that refuses it; `without` names the option that would allow it."""
        if not self.theirs:
            return RefusedError(f"{self.repository} holds files that are no pack", hint=hint)
        kits = f" with {', '.join(self.lost_kits)}" if self.lost_kits else ""
        how = f"without {without}, " if without else ""
        return RefusedError(
            f"{self.repository} holds pack '{self.theirs}'{kits}; {how}pack '{self.ours}' would"
            " replace it",
            hint=hint,
        )


def pack_replacement(platform: Platform, published: CommitSha, files: Files) -> PackReplacement:
    """
    Compare a pack with the one that the platform publishes at a commit.

    Raises:
        InvalidInputError: Either is broken.
    """
    repo, ours = platform.pack_repo, read_pack(files)
    data = platform.forge.read(repo, _PACK_FILE, published)
    if data is None:
        return PackReplacement(repo, "", ours.name, ())
    theirs = read_pack({_PACK_FILE: data.data})
    lost = sorted({*theirs.kit_names} - {*ours.kit_names})
    return PackReplacement(repo, theirs.name, ours.name, tuple(lost))


def unknown_approvers(platform: Platform, files: Files) -> str:
    """Return, to be appended, whom kits of a pack ask to agree and who is nobody on the forge."""
    with suppress(NotFoundError):  # a first bootstrap: 'orderkit doctor' says it when all is there
        problems = approver_problems(platform, read_pack(files).kits())
        return "".join(f"; {problem} ({advice})" for problem, advice in problems)
    return ""


def published_for(platform: Platform) -> str:
    """Return the platform that the newest commit of ours was rendered for; "" if none says."""
    history = platform.forge.commits(platform.pack_repo, limit=_SEARCHED)
    platforms = (commit.trailers.get(PLATFORM_TRAILER, "") for commit in history)
    return next(filter(None, platforms), "")


@dataclass(frozen=True, slots=True)
class LedgerStep:
    """The ledger has its first commit, and the public half of this machine's signing key."""

    site: BootstrapContext
    name: str = "ledger"

    def look(self) -> Look:
        repo = self.site.platform.ledger
        head = self.site.platform.forge.head(repo)
        _refuse_foreign(self.site.platform, repo, is_new=head is None)
        if not self.site.wanted.move_ledger:
            refuse_ledger_change(self.site.platform)
        elif (old := ledger_left_behind(self.site.platform)) is not None:
            return Look(StepVerdict.CHANGE, f"{old} moves to {repo}, and is archived")
        if head is None:
            refuse_lost_ledger(self.site.platform)
            return Look(StepVerdict.CREATE, str(repo))
        if key := self._unpublished_key():
            return Look(StepVerdict.CHANGE, f"{repo}: public signing key {key.id}")
        return Look(StepVerdict.DONE, f"{repo} at {order_state.short(head)}")

    def _unpublished_key(self) -> PublicKey | None:
        platform = self.site.platform
        key = platform.signatures.public_key
        return key if key and key.id not in published_keys(platform) else None

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        platform, before = self.site.platform, self.look()
        if before.verdict is StepVerdict.DONE:
            return before
        repo, requester = platform.ledger, self.site.wanted.requester
        old = ledger_left_behind(platform)
        if old is not None or before.verdict is StepVerdict.CREATE:
            _ensure_repository(platform, repo, "Teams and orders of this platform", self.site)
        if old is not None:
            move_ledger(platform, old, requester=requester)
        elif before.verdict is StepVerdict.CREATE:
            first = {"README.md": _LEDGER_README, "teams/.gitkeep": ""}
            changes = [FileChange(PurePosixPath(p), t.encode(), None) for p, t in first.items()]
            platform.forge.write(repo, changes, Operation("ledger", requester, "ledger begun"))
        if key := self._unpublished_key():
            keys = {**published_keys(platform), key.id: key}
            summary = f"signing key {key.id} published"
            write_ledger(
                platform,
                {KEYS_PATH: keys_file(keys.values())},
                Operation(f"signing-key-{key.id}", requester, summary),
            )
        return before


def _ensure_repository(
    platform: Platform, repo: RepoId, description: str, site: BootstrapContext
) -> None:
    """Make organisation and repository; a user may own one that is there already."""
    if platform.forge.repo(repo) is None:
        if repo.owner == idpbuilder.ADMIN:
            raise RefusedError(
                f"{repo} is missing: idpbuilder makes it from the package",
                hint="'orderkit platform render --target idpbuilder' writes the package; "
                "run 'idpbuilder create -p' with it",
            )
        platform.forge.ensure_org(repo.owner)
        private = bool(site.wanted.access.entries)
        platform.forge.ensure_repo(repo, description=description, private=private)
        _refuse_foreign(platform, repo, is_new=True)


def _refuse_foreign(platform: Platform, repo: RepoId, *, is_new: bool) -> None:
    """Refuse a repository, or its organisation, that somebody else owns or may write to."""
    way_out = "orderkit bootstrap --adopt {holders}, or spec.forge.adopted in platform.yaml"
    targets: list[str | RepoId] = [repo]
    if platform.forge.has_org(repo.owner):
        targets.insert(0, repo.owner)
    for target in targets:
        refuse_foreign_access(platform, target, is_new=is_new, way_out=way_out)


SECRET_NAME = "orderkit-forge"  # noqa: S105 - an object's name
_CERTIFICATES = "argocd-tls-certs-cm"


@dataclass(frozen=True, slots=True)
class AccessStep:
    """Argo CD can read what it shall deliver."""

    site: BootstrapContext
    name: str = "repositories"

    def look(self) -> Look:
        manifests = self._manifests()
        if not manifests:
            return Look(StepVerdict.DONE, "public, with a trusted certificate authority")
        names = ", ".join(f"{m['kind']} {m['metadata']['name']}" for m in manifests)
        if teams := lacking(self.site.platform, self._teams()):
            return Look(StepVerdict.CHANGE, f"credentials of {', '.join(teams)}, {names}")
        live = [
            get_object(self.site.platform.cluster, ObjectKey.of(manifest)) for manifest in manifests
        ]
        if all(
            live_object and holds(live_object, _stored(m))
            for live_object, m in zip(live, manifests, strict=True)
        ):
            return Look(StepVerdict.DONE, names)
        return Look(StepVerdict.CREATE if None in live else StepVerdict.CHANGE, names)

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict is not StepVerdict.DONE:
            for team in self._teams():
                ensure_read_credential(self.site.platform, team)
            for manifest in self._manifests():
                self.site.platform.cluster.apply(manifest, owner=OWNER)
        return before

    def _teams(self) -> Sequence[TeamName]:
        """Return the teams that orders may be delivered of."""
        files = snapshot(self.site.platform.forge, self.site.platform.ledger)
        return list(ledger.teams(files.blobs)) if files else []

    def _manifests(self) -> Sequence[Manifest]:
        access, platform = self.site.wanted.access, self.site.platform
        manifests = []
        if access.entries:
            owners = dict.fromkeys((platform.pack_repo.owner, platform.ledger.owner))
            for owner, name in zip(owners, (SECRET_NAME, f"{SECRET_NAME}-ledger"), strict=False):
                data = {
                    "type": "git",
                    "url": organisation_url(platform.forge, owner),
                    **access.entries,
                }
                key = ObjectKey(SECRET, name, ARGOCD_NAMESPACE)
                manifests.append(credential_secret(key, data))
        if access.ca_pem:
            host = urlsplit(platform.forge.base_url).hostname or ""
            manifests.append(_certificates({host: access.ca_pem}))
        return manifests


def _certificates(data: dict[str, str]) -> Manifest:
    labels = {"app.kubernetes.io/name": _CERTIFICATES, "app.kubernetes.io/part-of": "argocd"}
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": _CERTIFICATES, "namespace": ARGOCD_NAMESPACE, "labels": labels},
        "data": data,
    }


def _stored(manifest: Manifest) -> Manifest:
    """Return what must be found again of an object that was applied."""
    labels = dig(manifest, "metadata", "labels", default={})
    return {"metadata": {"labels": labels}, "data": manifest["data"]}
