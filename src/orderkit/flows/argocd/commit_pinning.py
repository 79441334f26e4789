"""
Let Argo CD deliver a commit of a protected order, and find Applications that are less safe.

A protected order is delivered at a commit, not at whatever is called ``main``: Argo CD takes any
branch, tag or other ref whose short name is ``targetRevision``, and whoever may push to a
repository may push most of them. So the Application of an order whose ``main`` is protected names a
commit, in the ledger. Each write to ``main`` is followed by one to the ledger (`deliver`); until
then the commit is not delivered, and ``orderkit status`` says so.

`unpinned_applications` and `unsafe_applications` find what earlier releases wrote less safely. They
only read. Without ``source.directory.include`` Argo CD looks at the files: a Chart.yaml, a
kustomization.yaml or a plugin's discovery decides, and the tool runs with the credential of the
repository. What Orderkit writes is pinned (`core.order.ledger_applications.MANIFESTS_ONLY`); what
an earlier release wrote is not. It also pruned, and took an order's XR along when it was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress

from ground.argocd.delivery_obstacles import Obstacle
from ground.argocd.health_lua import LAYER_LABEL
from ground.errors import ConflictError, IncompleteError, MovedError, RefusedError, RemoteError
from ground.names import MAIN, CommitSha
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    annotations_of,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.added_documents import own_document
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.refreshing import Ancestry, nudge, refresh
from orderkit.flows.forge_protection import needs_protection, orders_in_need
from orderkit.flows.platform import Platform, RepositorySnapshot
from orderkit.flows.repeating import in_rounds
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import FileChange, FileRevision, Forge, Operation, Written
from orderkit.ports.urgency import pushed
from yamlfiles import yaml11
from yamlfiles.format_versions import refuse_newer
from yamlfiles.manifests import parse_manifests

_OURS = (ledger.ORDER_LABEL, ledger.TEAM_LABEL, LAYER_LABEL)


def unpinned_applications(platform: Platform, teams: Collection[str] = ()) -> list[Manifest]:
    """
    Return the Applications whose tool a file in Git may choose, by name.

    Looked at are Orderkit's own and all that deliver a repository of one of these teams.
    """
    folders = tuple(f"{platform.forge.base_url}/{team}/" for team in teams)
    return [
        application
        for application in _applications(platform.cluster)
        if not ledger_applications.is_pinned(application)
        and (_is_ours(application) or _repository(application).startswith(folders))
    ]


def unsafe_applications(cluster: Cluster) -> list[Manifest]:
    """Return Orderkit's own Applications that a push or a lost file makes delete an order."""
    return [
        application
        for application in _applications(cluster)
        if _is_ours(application) and not ledger_applications.is_safe(application)
    ]


def refuse_lost_tools(
    cluster: Cluster, settings: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """
    Refuse settings that switch off a tool which renders somebody else's Application now.

    Args:
        settings: The entries of ``argocd-cm`` as they will be.
        before: As they are.

    Raises:
        RefusedError: Names the first such Application and the way out.
    """
    lost = [
        tool
        for tool in ("helm", "jsonnet", "kustomize")
        if settings.get(f"{tool}.enable") == "false" != before.get(f"{tool}.enable")
    ]
    # without its tool, Argo CD reads the folder as plain manifests, and prunes what is not there
    for application in _applications(cluster) if lost else ():
        tool = _tool(application)
        if tool in lost and not _is_ours(application):
            raise RefusedError(
                f"Application '{metadata(application)['name']}' is rendered by {tool}, which the "
                "pack's settings of Argo CD switch off: its objects could be pruned",
                hint=f"keep it with spec.argocd.tools: [{tool}] in platform.yaml; orders are "
                "pinned to plain manifests in any case",
            )


def _applications(cluster: Cluster) -> list[Manifest]:
    items = cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    return sorted(items, key=lambda application: str(metadata(application)["name"]))


def _is_ours(application: Manifest) -> bool:
    return not labels_of(application).keys().isdisjoint(_OURS)


def _repository(application: Manifest) -> str:
    return str(dig(application, "spec", "source", "repoURL", default=""))


def _tool(application: Manifest) -> str:
    """Return the tool that renders an Application now, in lower case."""
    if dig(application, "spec", "source", "directory", "jsonnet"):
        return "jsonnet"
    return str(dig(application, "status", "sourceType", default="")).lower()


def commit_to_pin(
    forge: Forge,
    entry: OrderEntry,
    kit: Kit,
    before: CommitSha | None = None,
    head: Callable[[], CommitSha | None] | None = None,
) -> CommitSha | None:
    """
    Return the commit that an order's Application is to name; None: it follows the branch.

    Protect the branch first.

    Args:
        before: The commit that the Application names now.
        head: Returns the head of the branch, if that was judged already.
    """
    # an order that was pinned stays so, like the protection of main, whatever its kit says later
    if not (before or needs_protection(kit)):
        return None
    return (head() if head else forge.head(entry.repository)) or before


def pinned_commit(platform: Platform, entry: OrderEntry, ref: str = MAIN) -> CommitSha | None:
    """Return the commit that the ledger has for an order; None: the order follows the branch."""
    return ledger.delivered_commit(application_at(platform, entry, ref))


def application_at(platform: Platform, entry: OrderEntry, ref: str = MAIN) -> Manifest | None:
    """
    Return an order's Application as the ledger has it; None if it has none.

    Raises:
        ManifestError: It is not YAML of manifests.
    """
    return application_of(platform.forge.read(platform.ledger, entry.application_path, ref))


def following_orders(platform: Platform, ledger_files: RepositorySnapshot) -> list[OrderEntry]:
    """Return the orders that follow their branch although their kit wants it to be protected."""
    followers = {order for order, commit in _commits_in_cluster(platform.cluster) if commit is None}
    if followers.isdisjoint(entry.order for entry in ledger.entries(ledger_files.blobs)):
        return []
    entries = (entry for entry, _ in orders_in_need(platform, ledger_files))
    return [entry for entry in entries if entry.order in followers]


def undelivered_orders(platform: Platform, ledger_files: RepositorySnapshot) -> list[OrderEntry]:
    """Return the orders whose ``main`` holds what nobody delivered yet."""
    pinned = {order: commit for order, commit in _commits_in_cluster(platform.cluster) if commit}
    return [
        entry
        for entry in ledger.entries(ledger_files.blobs)
        if entry.order in pinned
        and entry.end_path not in ledger_files.blobs
        and undelivered(platform, entry, head_of_main(platform.forge, entry))
    ]


def head_of_main(forge: Forge, entry: OrderEntry) -> CommitSha | None:
    """
    Return the head of an order's ``main``; None if its repository is gone or has another name.

    ``flows.order.order_damage`` says where to.
    """
    # whoever renames one order must not hide the others
    with suppress(MovedError):
        return forge.head(entry.repository)
    return None


def _commits_in_cluster(cluster: Cluster) -> Iterator[tuple[str, CommitSha | None]]:
    """Yield the orders that the cluster has, with the commits that their Applications name."""
    for application in cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items:
        if order := labels_of(application).get(ledger.ORDER_LABEL):
            yield order, ledger.delivered_commit(application)


def undelivered(platform: Platform, entry: OrderEntry, head: CommitSha | None) -> Obstacle | None:
    """Say that ``main``, whose head is `head`, holds what nobody delivered; None if not so."""
    application = application_of(_read(platform, entry))
    pinned = ledger.delivered_commit(application)
    if application is None or pinned is None or head is None or head == pinned:
        return None
    kit = ledger.kit_of(application)
    return Obstacle(
        f"{MAIN} is at {short(head)}, and the ledger has {short(pinned)} delivered: someone wrote"
        f" to {MAIN} and bypassed Orderkit, or a command was interrupted",
        f"see 'orderkit history {entry.order}'; to deliver what is on {MAIN}:"
        f" orderkit register {entry.order} --kit {kit} --team {entry.team}",
    )


def deliver(
    platform: Platform,
    entry: OrderEntry,
    written: Written | CommitSha,
    requester: str,
    proof: str = "",
    *,
    ancestry: Ancestry | None = None,
) -> None:
    """
    Make sure that Argo CD delivers a commit of ``main``, or a later one, and looks now. Idempotent.

    Args:
        ancestry: Of the order's repository, if it was asked already.

    Raises:
        IncompleteError: The commit is on ``main``, and the ledger could not be written.
    """
    own = written if isinstance(written, Written) else Written(written, changed=False)
    commit, ancestry = own.commit, ancestry or Ancestry(platform.forge, entry.repository, own)
    try:
        is_pinned_now = _pin(platform, entry, commit, (requester, proof), ancestry)
    except (ConflictError, RemoteError) as error:
        raise IncompleteError(
            f"{entry.order}: {short(commit)} is on {MAIN} and not delivered yet: {error}",
            hint=f"repeat the command; 'orderkit status {entry.order}' shows another way",
        ) from error
    # tried only: Argo CD polls too
    with suppress(RemoteError):
        if is_pinned_now:
            refresh(platform.cluster, ledger.team_application(entry.team))
        nudge(platform.cluster, entry.order, commit)


def _pin(
    platform: Platform,
    entry: OrderEntry,
    commit: CommitSha,
    by: tuple[str, str],
    ancestry: Ancestry,
) -> bool:
    """Write the commit into the ledger; False if that has it already, or names no commit."""

    def attempt() -> bool:
        file = _read(platform, entry)
        application = application_of(file)
        before = ledger.delivered_commit(application)
        if file is None or application is None or before is None:
            return False  # it follows the branch
        if ancestry.contains(before, commit):
            return False
        application["spec"]["source"]["targetRevision"] = commit
        change = FileChange(entry.application_path, yaml11.dump(application).encode(), file.sha)
        operation = Operation(
            f"deliver-{entry.order}-{commit[:12]}-after-{file.sha[:8]}",
            by[0],
            f"{entry.order}: {short(commit)}",
            by[1],
        )
        with pushed():  # so a change of a protected order costs one request that creates content
            platform.forge.write(platform.ledger, [change], operation)
        return True

    return in_rounds(attempt)


def _read(platform: Platform, entry: OrderEntry) -> FileRevision | None:
    return platform.forge.read(platform.ledger, entry.application_path, "main")


def application_of(file: FileRevision | None) -> Manifest | None:
    """
    Return the Application in an order's file of the ledger; None without a file.

    Raises:
        ManifestError: It is not YAML of manifests.
        RefusedError: A newer Orderkit wrote it.
    """
    return documents_of(file)[0]


def documents_of(file: FileRevision | None) -> tuple[Manifest | None, tuple[Manifest, ...]]:
    """
    Return the Application in an order's file of the ledger, and the other documents there.

    Raises:
        ManifestError: It is not YAML of manifests.
        RefusedError: A newer Orderkit wrote it.
    """
    if file is None:
        return None, ()
    documents = parse_manifests(str(file.path), file.data)
    own = own_document(file.path, documents)
    if own is not None:
        refuse_newer(annotations_of(own).get(ledger.FORMAT_ANNOTATION), str(file.path))
    return own, tuple(document for document in documents if document is not own)
