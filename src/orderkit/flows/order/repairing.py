"""
Undo what was done to an order past Orderkit, as far as that is safe.

Safe is what brings back something that Orderkit wrote or Argo CD delivered, and deletes nothing:
the team's and the order's files in the ledger and where the latter delivers from and to, the name
of the repository, the repository itself (from the XR in the cluster), its branch ``main``, the
record, a sync of Argo CD that is stuck.
Commits that a forced push removed come back through a pull request, so that the kit's rules apply.
Each step looks first, so a repetition continues.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ground.argocd.delivery_obstacles import TERMINATE, kubectl_patch, pinned, sync_request
from ground.errors import (
    AccessError,
    ConflictError,
    IncompleteError,
    NotFoundError,
    RefusedError,
)
from ground.names import MAIN, CommitSha, OrderId, RepoId, TeamName, check_requester
from ground.objects.kube_objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.core.order import ledger, ledger_applications, order_file
from orderkit.core.order.added_documents import kept, removal_by_hand
from orderkit.core.order.damage import ENTRY_FIELDS, Damage, DamageKind, is_confirmed
from orderkit.core.order.lease import read_record, time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.commit_pinning import (
    application_at,
    commit_to_pin,
    deliver,
    documents_of,
)
from orderkit.flows.argocd.refreshing import (
    OWNER,
    Ancestry,
    application_key,
    knows_retry_refresh,
    refresh,
)
from orderkit.flows.order import order_report
from orderkit.flows.order.adopting import AdoptRequest, adopt
from orderkit.flows.order.expiry_note import note_expiry
from orderkit.flows.order.ledger_records import was_taken_back
from orderkit.flows.order.order_damage import DamagedOrder, look, unlisted_entry
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.order.repository_damage import (
    NEWEST,
    good_record,
    restoring_branch,
)
from orderkit.flows.platform import (
    Platform,
    get_object,
    ledger_snapshot,
    published_kit,
    published_pack,
    write_ledger,
)
from orderkit.flows.repeating import in_rounds, until
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation, PullDraft
from orderkit.ports.requesters import Requester
from yamlfiles import yaml11
from yamlfiles.manifests import ManifestError

_PROJECT_S, _SOURCE_S = 60.0, 30.0
_ROUNDS = len(DamageKind)
"""Bound on repairs: what hides behind one damage (a lost file behind a new name) comes next."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What to repair, for whom."""

    order: str
    requester: str
    proof: str = ""
    """What proves the requester; empty: a claim."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One damage, what was (or would be) done about it, and what is left for a person."""

    what: str
    done: str
    remains: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the stable shape of ``--json``."""
        return {"what": self.what, "done": self.done, "remains": self.remains}


@dataclass(frozen=True, slots=True)
class Repaired:
    """The steps, in order; none if nothing was damaged."""

    entry: OrderEntry
    steps: tuple[RepairStep, ...]
    reason: str = ""
    """Why the order fails or needs a look, if it does, although nothing can be restored."""
    advice: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left for a person to do."""
        return not any(step.remains for step in self.steps)

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """Return the stable shape of ``--json``."""
        return {
            "order": self.entry.order,
            "team": self.entry.team,
            "dryRun": dry_run,
            "whole": self.is_whole,
            "steps": [step.to_json() for step in self.steps],
        }


def repair(platform: Platform, request: RepairRequest) -> Repaired:
    """
    Repair an order. Idempotent, resumable; deletes nothing.

    Raises:
        NotFoundError: Ledger, its history and Argo CD know no such order, or it has ended.
        RefusedError: It is ending.
        AccessError: We may not write where that would be needed.
        IncompleteError: Argo CD does not make the team's AppProject again in time: repeat it.
    """
    check_requester(request.requester)
    entry = _entry(platform, request.order)
    steps: dict[str, RepairStep] = {}
    for _ in range(_ROUNDS):
        report = order_report.report_of(platform, entry, ending=False)
        damaged = look(platform, report)
        new = [damage for damage in damaged.damages if _name(damage) not in steps]
        if not new:
            break
        for damage in new:
            mending = _Mending(platform, request, damaged, report)
            steps[_name(damage)] = mending.step(damage)
        if request.dry_run:
            break
    if not request.dry_run:
        refresh(platform.cluster, ledger.team_application(entry.team))
        _await_own_source(platform, entry)
        refresh(platform.cluster, entry.order)
    state = report.state
    is_told = state.phase == "Failing" or (report.check and report.check.errors)
    left = (state.reason, state.advice) if is_told else ("", "")
    return Repaired(entry, tuple(steps.values()), *left)


def _await_own_source(platform: Platform, entry: OrderEntry) -> None:
    """Wait, not for ever, until Argo CD has taken back what was written beside the source."""
    with suppress(IncompleteError):  # 'status' says what keeps it
        until(
            platform.clock,
            lambda: get_object(platform.cluster, application_key(entry.order)),
            # Argo CD compares again when the source is not the one it compared last. It remembers
            # both: without ``sources`` nothing differs, and it would keep their error until its
            # regular look, after three minutes (observed on Argo CD 3.2.11)
            lambda live: not dig(live, "spec", "sources"),
            timeout_s=_SOURCE_S,
            goal="Argo CD taking the ledger",
        )


def _name(damage: Damage) -> str:
    return f"{damage.kind}: {damage.what}"


def _entry(platform: Platform, order: str) -> OrderEntry:
    """Find an order in the ledger, else at Argo CD, else in the ledger's history."""
    paths = ledger_snapshot(platform).blobs
    if ledger.ending_order(paths, order):
        raise RefusedError(f"{order} is ending", hint=f"finish that: orderkit destroy {order}")
    living = ledger.living_order(paths, order) or unlisted_entry(platform.cluster, order)
    if living:
        return living
    if not ledger.tombstones(paths, order):
        for path in sorted(path for path in paths if path.parts[0] == "apps"):
            entry = OrderEntry(TeamName(path.parts[1]), OrderId(order))
            if path != ledger.apps_keep_path(entry.team):
                continue
            newest = platform.forge.commits(platform.ledger, path=entry.application_path, limit=1)
            if newest and not was_taken_back(newest[0], entry):
                return entry
    return order_report.find(order, paths, is_repairing=True)


class _Mending:
    """Repairs the damages of one order, as they were found."""

    def __init__(
        self,
        platform: Platform,
        request: RepairRequest,
        damaged: DamagedOrder,
        report: OrderReport,
    ) -> None:
        self._platform, self._request = platform, request
        self._entry, self._application = damaged.entry, damaged.application
        self._kit, self._xr, self._head = damaged.kit, report.xr, report.state.head

    def step(self, damage: Damage) -> RepairStep:
        """Repair one damage, or say what a person does about it."""
        if damage.remedy:
            return RepairStep(damage.what, "", damage.remedy)
        acts: dict[DamageKind, Callable[[Damage], RepairStep]] = {
            DamageKind.TEAM: self._team,
            DamageKind.LEDGER: self._file,
            DamageKind.MOVED: self._name,
            DamageKind.DELETED: self._repository,
            DamageKind.ARCHIVED: self._unarchive,
            DamageKind.NO_MAIN: self._main,
            DamageKind.RECORD: self._record,
            DamageKind.REWRITTEN: self._lost_commits,
            DamageKind.STUCK: self._operation_of_argocd,
            DamageKind.LEASE: self._expiry,
            DamageKind.ENTRY: self._fields,
            DamageKind.DEFAULT_BRANCH: self._default_branch,
        }
        return acts[damage.kind](damage)

    @property
    def _writes(self) -> bool:
        return not self._request.dry_run

    @property
    def _repo(self) -> RepoId:
        return self._entry.repository

    def _operation(self, what: str, summary: str) -> Operation:
        return Operation(
            f"repair-{self._entry.order}-{what}",
            self._request.requester,
            f"{self._entry.order}: {summary}",
            self._request.proof,
        )

    def _team(self, damage: Damage) -> RepairStep:
        if self._writes:
            team = self._entry.team
            add_team(self._platform, team, requester=self._request.requester)
            project = ObjectKey(APP_PROJECT, team, ARGOCD_NAMESPACE)
            until(
                self._platform.clock,  # an Application without its project is not looked at again
                lambda: get_object(self._platform.cluster, project),
                lambda live: live is not None,
                timeout_s=_PROJECT_S,
                goal=f"Argo CD making the AppProject of team {team} again",
            )
        return RepairStep(damage.what, f"team {self._entry.team} is put back into the ledger")

    def _file(self, damage: Damage) -> RepairStep:
        kits = published_pack(self._platform).kit_names
        kit = self._kit or ledger.named_kit(self._entry.order, kits)
        if not kit:
            raise NotFoundError(
                f"{self._entry.order}: its kit is not known any more",
                hint=f"restore {self._entry.application_path} from the ledger's history",
            )
        commit = ledger.delivered_commit(self._application)
        if commit is None:
            commit = commit_to_pin(
                self._platform.forge, self._entry, published_kit(self._platform, kit)
            )
        application = ledger_applications.order_application(
            self._entry,
            kit=kit,
            forge_url=self._platform.forge.base_url,
            commit=commit,
            refreshes=knows_retry_refresh(self._platform.cluster),
            recorded=self._application,
        )
        if self._writes:
            write_ledger(
                self._platform,
                {self._entry.application_path: yaml11.dump(application)},
                self._operation("ledger", "put back into the ledger"),
            )
        return RepairStep(damage.what, f"{self._entry.application_path} is put back")

    def _fields(self, damage: Damage) -> RepairStep:
        """Write what `in_entry` judges as Orderkit does; all else stays as people left it."""
        path, forge = self._entry.application_path, self._platform.forge

        def attempt() -> None:
            base = ledger_snapshot(self._platform)
            file = forge.read(self._platform.ledger, path, base.commit)
            application, added = documents_of(file)
            if application is None or removal_by_hand(path, added):
                return  # the next look says so
            right = ledger_applications.order_application(
                self._entry,
                kit="",
                forge_url=self._platform.forge.base_url,
                commit=self._commit_before(application),
            )
            for *parents, field in ENTRY_FIELDS:
                expected = dig(right, "spec", *parents, field)
                place = application.setdefault("spec", {})
                for parent in parents:
                    if not isinstance(place.get(parent), dict):
                        place[parent] = {}
                    place = place[parent]
                place.pop(field, None) if expected is None else place.update({field: expected})
            if is_confirmed(application):  # a proposed order must stay undelivered
                automated = right["spec"]["syncPolicy"]["automated"]
                application["spec"].setdefault("syncPolicy", {})["automated"] = automated
            operation = self._operation("entry", "edited fields put back")
            write_ledger(self._platform, {path: yaml11.dump(application)}, operation, base=base)

        file = forge.read(self._platform.ledger, path, MAIN)
        stay = kept(documents_of(file)[1])
        if self._writes:
            in_rounds(attempt)
        delete = f"kubectl -n {ARGOCD_NAMESPACE} delete application {' '.join(stay)}"
        remains = f"Argo CD keeps what it delivered, so as an admin: {delete}" if stay else ""
        return RepairStep(damage.what, f"{path} delivers the order again", remains)

    def _commit_before(self, application: Manifest) -> CommitSha | None:
        """Return the commit that the ledger named before the edit; None: it followed main."""
        path = self._entry.application_path
        edits = self._platform.forge.commits(self._platform.ledger, path=path, limit=NEWEST)
        before = (self._application_in(edit.id) for edit in edits)
        for known in (application, *filter(None, before)):
            revision = dig(known, "spec", "source", "targetRevision")
            if revision == MAIN or ledger.delivered_commit(known):
                return ledger.delivered_commit(known)
        kit = published_kit(self._platform, self._kit)
        return commit_to_pin(self._platform.forge, self._entry, kit)

    def _application_in(self, ledger_commit: CommitSha) -> Manifest | None:
        """Return the Application of an earlier ledger; None also if it could not be read."""
        with suppress(ManifestError):
            return application_at(self._platform, self._entry, ledger_commit)
        return None

    def _name(self, damage: Damage) -> RepairStep:
        if self._writes:
            moved = RepoId(self._repo.owner, damage.place)
            self._platform.forge.rename_repo(moved, self._repo.name)
        return RepairStep(damage.what, f"it has the name {self._repo.name} again")

    def _repository(self, damage: Damage) -> RepairStep:
        key = self._xr
        if key is None:
            remains = f"end the order: orderkit destroy {self._entry.order}"
            return RepairStep(damage.what, "", f"the cluster has no XR to make it from; {remains}")
        adopted = adopt(
            self._platform,
            AdoptRequest(
                f"{key.kind.kind}/{key.name}",
                self._request.requester,
                key.namespace,
                self._entry.team,
                dry_run=not self._writes,
            ),
        )
        files = ", ".join(map(str, adopted.files_written))
        return RepairStep(
            damage.what,
            f"{self._repo} is made again from the XR in the cluster ({files}); its history is lost",
        )

    def _unarchive(self, damage: Damage) -> RepairStep:
        if self._writes:
            self._platform.forge.archive(self._repo, undo=True)
        return RepairStep(damage.what, "it can be changed again")

    def _main(self, damage: Damage) -> RepairStep:
        if self._writes:
            self._platform.forge.ensure_branch(self._repo, MAIN, CommitSha(damage.place))
        return RepairStep(damage.what, f"main is at {short(damage.place)} again")

    def _default_branch(self, damage: Damage) -> RepairStep:
        if self._writes:
            try:
                self._platform.forge.set_default_branch(self._repo, MAIN)
            except AccessError:
                remains = f"as a forge admin, make {MAIN} the default branch of {self._repo}"
                return RepairStep(damage.what, "", remains)
        done, left = f"{MAIN} is the default branch again", ""
        for pull in list(self._platform.forge.pulls(self._repo, base=damage.place)):
            if self._writes:
                self._platform.forge.retarget_pull(self._repo, pull.number, MAIN)
            done += f"; pull request #{pull.number} goes to it again"
            left = (  # its approvals were for another base
                "'orderkit merge' takes no pull request whose base was changed: close it, and"
                f" propose it again: orderkit change {self._entry.order} FIELD=VALUE --pr"
            )
        return RepairStep(damage.what, done, left)

    def _record(self, damage: Damage) -> RepairStep:
        good = good_record(self._platform, self._entry)
        if good is None:
            remains = f"write {order_file.PATH} again, as docs/adopting.md says"
            return RepairStep(damage.what, "", f"no commit has a record of this order; {remains}")
        data, path = good[0], order_file.PATH
        if self._writes:
            now = self._platform.forge.read(self._repo, path, MAIN)
            operation = self._operation(f"record-on-{short(self._head or '')}", f"{path} put back")
            change = FileChange(path, data, now.sha if now else None)
            written = self._platform.forge.write(self._repo, [change], operation)
            request = self._request
            deliver(self._platform, self._entry, written, request.requester, request.proof)
        return RepairStep(damage.what, f"{path} is as Orderkit wrote it")

    def _lost_commits(self, damage: Damage) -> RepairStep:
        """Propose what a forced push removed: merging applies the kit's rules, closing declines."""
        branch, lost = restoring_branch(damage.place), CommitSha(damage.place)
        done = f"a pull request brings {short(lost)} back"
        if not self._writes:
            return RepairStep(damage.what, done, "merge it, or close it if nobody wants it back")
        operation = self._operation(f"restore-{short(lost)}", f"bring {short(lost)} back")
        head = self._head
        ancestry = Ancestry(self._platform.forge, self._repo)
        if head is not None and ancestry.are_unrelated(lost, head):
            self._platform.forge.ensure_branch(self._repo, branch, head)
            self._write_files_of(lost, branch, operation)
        else:
            self._platform.forge.ensure_branch(self._repo, branch, lost)
        draft = PullDraft(
            head=branch,
            base=MAIN,
            title=operation.summary,
            body=f"{damage.what}.\n\nMerging this brings it back. Closing it leaves main as it is.",
        )
        pull = self._platform.forge.open_pull(self._repo, draft, operation)
        return RepairStep(
            damage.what,
            f"pull request #{pull.number} brings {short(lost)} back",
            f"merge it (orderkit merge {self._entry.order} {pull.number}), or close it if nobody"
            " wants it back",
        )

    def _write_files_of(self, lost: CommitSha, branch: str, operation: Operation) -> None:
        """Give a branch the files of a commit: no forge merges histories with nothing in common."""
        forge, repo = self._platform.forge, self._repo
        tip = forge.head(repo, branch)
        if tip is None:
            return  # somebody deleted it just now: a repetition makes it again
        before, wanted = forge.tree(repo, tip), forge.tree(repo, lost)
        changes = [FileChange(path, None, before[path]) for path in before.keys() - wanted.keys()]
        for path, sha in wanted.items():
            revision = forge.read(repo, path, lost) if before.get(path) != sha else None
            if revision is not None:
                changes.append(FileChange(path, revision.data, before.get(path)))
        if changes:
            forge.write(repo, changes, operation, branch=branch)

    def _expiry(self, damage: Damage) -> RepairStep:
        granted = read_record(application_at(self._platform, self._entry))
        if self._writes and granted:
            requester = Requester(self._request.requester, self._request.proof)
            note_expiry(self._platform, self._entry.order, time_text(granted.expires), requester)
        return RepairStep(damage.what, "its file says what the ledger says")

    def _operation_of_argocd(self, damage: Damage) -> RepairStep:
        """End the operation that blocks a newer commit, or have a commit tried again."""
        application: Manifest = self._application or {}
        applied = short(pinned(application))
        revision = short(str(dig(application, "status", "sync", "revision", default="") or ""))
        if applied:
            what = f"Argo CD still works at {applied}, and {short(self._head or '')} has to wait"
            done, patch = f"its sync of {applied} is ended", TERMINATE
        else:
            what = f"Argo CD gave up on {revision}"
            done, patch = "Argo CD tries it again", sync_request(application)
        if self._writes:
            # the operation that was read: another one may have begun
            version = {"metadata": {"resourceVersion": metadata(application)["resourceVersion"]}}
            try:
                self._platform.cluster.patch(
                    ObjectKey.of(application), {**version, **patch}, owner=OWNER
                )
            except ConflictError:
                done = "it changed meanwhile: repeat the command if it is still stuck"
            except AccessError:
                return RepairStep(what, "", f"as an admin: {kubectl_patch(application, patch)}")
        return RepairStep(damage.what or what, done)
