"""
Tell Argo CD to read Git now, end what blocks a commit, and say what blocks a delivery.

`refresh` makes Argo CD read Git now instead of at its next poll; `nudge` also ends an operation
that blocks a commit. The annotation ``argocd.argoproj.io/refresh: normal`` re-resolves the revision
without cache; the controller removes it when done (read from source, observed on Argo CD 3.2.11).

`Ancestry` says how two commits of a repository are related. While a flow waits for a commit, other
people commit too: a later commit that contains it counts as well. A history that somebody replaced
has nothing in common with the one before.

`obstacle` says what blocks the delivery of an Application, down to the object it waits for. The
Application only names that object; it is read here, and if it is an Application itself, what blocks
that one is followed. `obstacle` writes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ground.argocd.delivery_obstacles import (
    TERMINATE,
    Obstacle,
    automated,
    obstacle_of,
    pinned,
    sync_request,
)
from ground.errors import ConflictError, NotFoundError, TooManyCommitsError
from ground.names import CommitSha, RepoId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    condition,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order import ledger, order_state
from orderkit.core.order.ledger import TEAM_LABEL, delivered_commit, team_application
from orderkit.core.order.order_state import OrderState
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge, Written


class Ancestry:
    """Ancestry of one repository's commits; asks the forge each question once."""

    def __init__(self, forge: Forge, repository: RepoId, written: Written | None = None) -> None:
        self._forge, self._repository = forge, repository
        self._known: dict[tuple[str, str], bool | None] = {}
        if written and written.parent:
            self._known[written.commit, written.parent] = True

    def contains(self, revision: str, commit: str) -> bool:
        """
        Say whether `revision` is `commit` or has it among its ancestors.

        A revision that is not a commit of the repository (Argo CD shows a branch's name where it
        could not read it) contains nothing.
        """
        if revision == commit:
            return True
        if len(revision) != len(commit):
            return False
        # Gitea lists no commits between unrelated histories, whichever comes first
        return self.has_more(commit, revision) is False and bool(self.has_more(revision, commit))

    def are_unrelated(self, one: str, other: str) -> bool:
        """
        Say whether two commits that the repository has share no history.

        Gitea shows no commits between those, in neither direction; GitHub finds nothing to compare.
        """
        return one != other and not (self.has_more(one, other) or self.has_more(other, one))

    def has_more(self, commit: str, than: str) -> bool | None:
        """Say whether a commit has ancestors that another lacks; None: nothing can be compared."""
        pair = commit, than
        if pair not in self._known:
            self._known[pair] = self._ask(commit, than)
        return self._known[pair]

    def _ask(self, commit: str, than: str) -> bool | None:
        try:
            return bool(self._forge.compare(self._repository, than, commit))
        except TooManyCommitsError:
            # so there are some
            return True
        except NotFoundError:
            return None


REFRESH = "argocd.argoproj.io/refresh"
OWNER = "orderkit"
"""Field manager of what flows write into the cluster."""
_RETRY = ("spec", "syncPolicy", "retry")
_GRACE_S = 2.0
"""How long an operation on another commit may run while nothing fails."""
_AGAIN_S = 5.0


def application_key(name: str) -> ObjectKey:
    """Return where an Application lives."""
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


def refresh(cluster: Cluster, application: str) -> bool:
    """Ask for a refresh. Idempotent. False if the Application does not exist (yet)."""
    return _annotate(cluster, application, "normal")


def _annotate(cluster: Cluster, application: str, request: str | None) -> bool:
    patch = {"metadata": {"annotations": {REFRESH: request}}}
    try:
        cluster.patch(application_key(application), patch, owner=OWNER)
    except NotFoundError:
        return False
    return True


def knows_retry_refresh(cluster: Cluster) -> bool:
    """
    Say whether Argo CD lets a retry take the newest commit (``retry.refresh``, since 3.2).

    An older one drops the field, and the Application of the team would differ from Git for ever.
    Costs one request.
    """
    document = cluster.openapi(APPLICATION.group, APPLICATION.version) or {}
    schemas = dig(document, "components", "schemas", default={})
    retries = (
        dig(schema, "properties", *(part for step in _RETRY for part in (step, "properties")))
        for name, schema in schemas.items()
        if name.endswith(f".{APPLICATION.kind}")
    )
    return any("refresh" in (retry or {}) for retry in retries)


def nudge(cluster: Cluster, application: str, commit: str) -> None:
    """
    Ask for a refresh after a write, and end an operation that retries an older commit.

    Idempotent.
    """
    manifest = get_object(cluster, application_key(application))
    if manifest is None:
        return
    # a first attempt at an older commit is left to finish
    if dig(manifest, "status", "operationState", "retryCount", default=0):
        end_older_operation(cluster, manifest, commit)
    refresh(cluster, application)


def end_older_operation(cluster: Cluster, application: Manifest, commit: str) -> bool:
    """
    End a running operation that pins another commit than `commit`. Idempotent.

    Only auto-sync's own operations are ended, and only the one that was read: an operation that
    somebody started by hand, or that started since, is left alone.
    """
    state = dig(application, "status", "operationState", default={})
    # one that retries a bad commit, or waits in a wave, keeps newer ones from being applied; ended,
    # the newest is through in 0.5 s (observed on Argo CD 3.2.11)
    if state.get("phase") != "Running" or pinned(application) in ("", commit):
        return False
    if not automated(application):
        return False
    return _patched_as_read(cluster, application, TERMINATE)


def prune_what_was_skipped(cluster: Cluster, application: Manifest) -> bool:
    """
    Start a sync where the last one left what an Application may prune by now. Idempotent.

    True if a sync was started.
    """
    state = dig(application, "status", "operationState", default={})
    results = dig(state, "syncResult", "resources", default=()) or ()
    # begun before the end of an order let it prune, an operation keeps its options; with
    # ``retry.refresh`` its retry takes the emptied commit, and skips every object
    skipped = any(result.get("status") == "PruneSkipped" for result in results)
    may_prune = dig(application, "spec", "syncPolicy", "automated", "prune", default=False)
    pruned = dig(state, "operation", "sync", "prune", default=False)  # all but what is to be kept
    if pruned or not (skipped and may_prune) or state.get("phase") != "Succeeded":
        return False
    if "operation" in application or dig(application, "status", "sync", "status") != "OutOfSync":
        return False
    # without self-heal Argo CD syncs no commit twice (read from its source, 3.2: autoSync)
    return _patched_as_read(cluster, application, sync_request(application))


def _patched_as_read(cluster: Cluster, application: Manifest, patch: Manifest) -> bool:
    """Patch an Application unless it changed since it was read: then the next look decides."""
    # the server refuses the patch if another operation began since
    version_read = {"resourceVersion": metadata(application).get("resourceVersion")}
    try:
        cluster.patch(ObjectKey.of(application), {"metadata": version_read, **patch}, owner=OWNER)
    except (ConflictError, NotFoundError):
        return False
    return True


class RepeatedRefresh:
    """
    Requests a refresh again every few seconds while a caller keeps looking.

    A request can be lost in two ways (read from Argo CD's source, 3.2; both observed on 3.2.11).
    After comparing, the controller removes the annotation, even if it was set meanwhile for a
    commit that it has not seen. And when it has written a status, it overwrites its cache with its
    own write, even if the annotation arrived there in between: then the annotation stays, unseen,
    until something else about the Application changes. So it is taken away before it is set.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._asked_s = clock.monotonic_s()

    def is_due(self) -> bool:
        """Say whether the last request is a few seconds ago."""
        return self._clock.monotonic_s() - self._asked_s > _AGAIN_S

    def look(self, application: str) -> None:
        """Request a refresh, unless that was done just now."""
        if self.is_due():
            self._asked_s = self._clock.monotonic_s()
            _annotate(self._cluster, application, None)
            refresh(self._cluster, application)


class StuckOperationEnder:
    """
    Makes an Application take up a commit, one look at a time.

    While Argo CD has not seen the commit, a refresh is requested every few seconds: otherwise a
    repository that it could not read stays unread for minutes (observed). An operation on an
    older commit is ended, at once if it is retrying, else after a short grace period. One that
    applies the commit, or a later one that contains it, is left alone. What one of them skipped
    is pruned, once the Application may prune.
    """

    def __init__(
        self,
        platform: Platform,
        repository: RepoId,
        commit: CommitSha,
        *,
        may_be_later: bool = True,
    ) -> None:
        """
        Begin to urge.

        Args:
            may_be_later: False at an order's end. A retry with ``retry.refresh`` takes the newest
                commit of the branch that the Application followed when the operation began,
                whatever it names by now (observed on Argo CD 3.6.1). So a push after the last
                commit would be tried again and again.
        """
        self._platform, self._commit, self._may_be_later = platform, commit, may_be_later
        self._ancestry = Ancestry(platform.forge, repository)
        self._began_s = platform.clock.monotonic_s()
        self._refresh = RepeatedRefresh(platform.cluster, platform.clock)

    def reached(self, revision: str) -> bool:
        """Say whether a revision is the commit, or a later one that contains it and may be."""
        if not self._may_be_later:
            return revision == self._commit
        return self._ancestry.contains(revision, self._commit)

    def has_compared(self, application: Manifest) -> bool:
        """Say whether Argo CD has compared the commit, or a later one, with the cluster."""
        sync = dig(application, "status", "sync", default={})
        return sync.get("status") != "Unknown" and self.reached(str(sync.get("revision") or ""))

    def look(self, application: Manifest) -> None:
        """Request a refresh or end an older operation, as this state requires."""
        now_s = self._platform.clock.monotonic_s()
        # a repository that Argo CD could not read stays unread for minutes otherwise (observed)
        if not self.has_compared(application):
            self._refresh.look(self._to_refresh(application))
        else:
            prune_what_was_skipped(self._platform.cluster, application)
        applied = pinned(application)
        if not applied or self.reached(applied):
            return
        retries = dig(application, "status", "operationState", "retryCount", default=0)
        if retries or now_s - self._began_s > _GRACE_S:
            end_older_operation(self._platform.cluster, application, self._commit)

    def _to_refresh(self, application: Manifest) -> str:
        """Name the Application, or its team's if only that one can bring the commit's id."""
        team, pinned_to = labels_of(application).get(TEAM_LABEL), delivered_commit(application)
        if team and pinned_to and not self.reached(pinned_to):
            return team_application(TeamName(team))
        return str(metadata(application)["name"])


_DEEPEST = 5
"""Bound on nested Applications, in case two wait for each other."""


def obstacle(cluster: Cluster, application: Manifest, commit: str | None = None) -> Obstacle | None:
    """
    Say why an Application is not delivered at `commit`; None when it is.

    Reads each object once that is waited for.
    """
    return _obstacle(cluster, application, commit, _DEEPEST)


def explained(
    cluster: Cluster, application: Manifest | None, state: OrderState, team: TeamName
) -> OrderState:
    """Return an order's state with the reason why its Application, or the team's, waits."""
    if application is not None:
        if state.phase not in ("Delivering", "Failing"):
            return state
        found = obstacle(cluster, application, state.head)
        return replace(state, reason=found.reason, advice=found.advice) if found else state
    if state.phase != "Written":
        return state
    parent = get_object(cluster, application_key(ledger.team_application(team)))
    found = obstacle(cluster, parent) if parent else None
    if parent is None or found is None:
        return state
    reason = f"{state.reason}; {ledger.team_application(team)}: {found.reason}"
    return replace(state, reason=reason, advice=found.advice)


def _obstacle(
    cluster: Cluster, application: Manifest, commit: str | None, deeper: int
) -> Obstacle | None:
    first = obstacle_of(application, commit)
    if first is None or first.waits_for is None or not deeper:
        return first
    why = _why_unready(cluster, first.waits_for, deeper)
    reason = f"{first.reason}: {why.reason}" if why.reason else first.reason
    return replace(
        first,
        reason=reason,
        advice=why.advice or first.advice,
        failing=first.failing or why.failing,
    )


def _why_unready(cluster: Cluster, key: ObjectKey, deeper: int) -> Obstacle:
    waited = get_object(cluster, key)
    if waited is None:
        return Obstacle("it is not in the cluster")
    if (key.kind.group, key.kind.kind) == (APPLICATION.group, APPLICATION.kind):
        return _obstacle(cluster, waited, None, deeper - 1) or _health(waited)
    if dig(waited, "metadata", "deletionTimestamp"):
        finalizers = ", ".join(dig(waited, "metadata", "finalizers", default=()))
        return Obstacle(
            f"it is being deleted, held by {finalizers}" if finalizers else "it is being deleted"
        )
    if condition(waited, "Synced") or condition(waited, "Ready"):
        problem = order_state.xr_failure(waited)
        return Obstacle(problem or order_state.xr_unready(waited), failing=bool(problem))
    return Obstacle(_first_condition(waited))


def _health(application: Manifest) -> Obstacle:
    health = dig(application, "status", "health", default={})
    words = filter(None, (health.get("status"), health.get("message")))
    return Obstacle(": ".join(map(str, words)))


def _first_condition(waited: Manifest) -> str:
    """Return the first condition that does not hold."""
    for entry in dig(waited, "status", "conditions", default=()) or ():
        if entry.get("status") != "True":
            state = f"{entry.get('type')} is {entry.get('status')}"
            return ": ".join(map(str, filter(None, (state, entry.get("message")))))
    return "" if dig(waited, "status") else "it has no status yet"
