"""
What somebody with rights on forge, ledger or cluster does to a living order, past Orderkit.

``tests/wild`` plays it on the embedded platform, ``tests/e2e`` on a real Gitea and Argo CD.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

import yaml
from forgeusers import ForgeUser
from pusher import Pusher
from roguery import unprotect

from ground.errors import NotFoundError
from ground.names import RepoId
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
)
from orderkit.core.order.ledger import OrderEntry, team_path
from orderkit.flows.argocd.refreshing import refresh
from orderkit.flows.order import order_damage
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.repeating import until

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
FILE = PurePosixPath("manifests", "xgarage.yaml")
RECORD = PurePosixPath(".orderkit", "order.yaml")
BY_NOBODY = "(as the commit claims: it is not signed)"


@dataclass(frozen=True)
class Victim:
    """A living order, and a person's ways past Orderkit."""

    platform: Platform
    admin: ForgeUser
    entry: OrderEntry
    folder: Path
    within_s: float = 30.0

    @property
    def repo_path(self) -> str:
        return f"/repos/{self.entry.repository}"

    def clone(self, repo: RepoId | None = None, name: str = "order") -> Pusher:
        """Clone a repository, the order's if none is named, anew."""
        url = f"{self.platform.forge.base_url}/{repo or self.entry.repository}.git"
        folder = self.folder / f"{name}-{secrets.token_hex(3)}"
        folder.mkdir()
        pusher = Pusher.cloned(folder, url, self.admin.login, self.admin.password)
        pusher.git("config", "user.name", "Mallory")
        pusher.git("config", "user.email", "mallory@example.org")
        return pusher

    def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        return get_object(self.platform.cluster, ObjectKey(kind, name, namespace))

    def xr_uid(self) -> str:
        return str(dig(self.get(XGARAGE, self.entry.order) or {}, "metadata", "uid", default=""))

    def is_well(self) -> bool:
        """Say whether it is as an order is that nobody did anything to."""
        try:
            state = order_damage.status(self.platform, self.entry.order).state
        except NotFoundError:
            return False
        main = self.admin.api("GET", self.repo_path)["default_branch"] == "main"
        # after a failed one Argo CD heals nothing before it looks at Git again
        last = dig(self.application(), "status", "operationState", "phase")
        return state.ready and not state.reason and main and last == "Succeeded"

    def grow_old(self) -> None:
        """Wait until the XR is so old that a difference of clocks explains nothing."""
        created = dig(self.get(XGARAGE, self.entry.order) or {}, "metadata", "creationTimestamp")
        age = self.platform.clock.now() - datetime.fromisoformat(str(created))
        self.platform.clock.sleep(max(0.0, 5.0 - age.total_seconds()))

    def application(self) -> Manifest:
        return self.get(APPLICATION, self.entry.order, ARGOCD_NAMESPACE) or {}

    def remove_from_ledger(self, *paths: PurePosixPath) -> None:
        """Remove files of the ledger in one commit, as somebody without a key does."""
        pusher = self.clone(self.platform.ledger, "ledger")
        for path in paths:
            (pusher.clone / path).unlink()
        pusher.commit("clean up", {})
        pusher.git("push", "--quiet", "origin", "main")
        refresh(self.platform.cluster, "ledger")
        refresh(self.platform.cluster, f"team-{self.entry.team}")

    def push(self, path: PurePosixPath, change: Callable[[str], str | None]) -> str:
        """Commit a changed or removed file through git, as Mallory."""
        pusher = self.clone()
        file = pusher.clone / path
        text = change(file.read_text())
        if text is None:
            file.unlink()
        commit = pusher.commit("something", {} if text is None else {str(path): text})
        pusher.git("push", "--quiet", "origin", "main")
        refresh(self.platform.cluster, self.entry.order)
        return commit

    def until(self, done: Callable[[OrderReport], bool], goal: str) -> OrderReport:
        return until(
            self.platform.clock,
            lambda: order_damage.status(self.platform, self.entry.order),
            done,
            timeout_s=self.within_s,
            goal=goal,
            why_not=lambda report: f"{report.state}",
        )


@dataclass
class Victims:
    """Orders for tests that may go on where the one before left off."""

    make: Callable[[], Victim]
    """Places an order to which nobody has done anything."""
    last: Victim | None = None

    def next(self) -> Victim:
        """Return the order that the test before left well, or else another."""
        if self.last and self.last.is_well():
            unprotect(self.last.platform, self.last.entry.repository)  # repairs protect it again
        else:
            self.last = self.make()
        return self.last


# --- what somebody does


def remove_ledger_file(victim: Victim) -> None:
    victim.remove_from_ledger(victim.entry.application_path)


def remove_team(victim: Victim) -> None:
    victim.remove_from_ledger(victim.entry.application_path, team_path(victim.entry.team))


def delete_repository(victim: Victim) -> None:
    victim.admin.api("DELETE", victim.repo_path)
    refresh(victim.platform.cluster, victim.entry.order)


def rename_repository(victim: Victim) -> None:
    victim.admin.api("PATCH", victim.repo_path, {"name": f"{victim.entry.order}-old"})


def archive_repository(victim: Victim) -> None:
    victim.admin.api("PATCH", victim.repo_path, {"archived": True})


def delete_main(victim: Victim) -> None:
    victim.admin.api("POST", f"{victim.repo_path}/branches", {"new_branch_name": "other"})
    victim.admin.api("PATCH", victim.repo_path, {"default_branch": "other"})
    victim.admin.api("DELETE", f"{victim.repo_path}/branches/main")
    refresh(victim.platform.cluster, victim.entry.order)


def leave_main(victim: Victim) -> None:
    victim.admin.api("POST", f"{victim.repo_path}/branches", {"new_branch_name": "trunk"})
    victim.admin.api("PATCH", victim.repo_path, {"default_branch": "trunk"})


def rename_main(victim: Victim) -> None:
    victim.admin.api("PATCH", f"{victim.repo_path}/branches/main", {"name": "trunk"})
    refresh(victim.platform.cluster, victim.entry.order)


def edit_record(victim: Victim) -> None:
    victim.push(RECORD, lambda text: text.replace("kit: garage", "kit: palace"))


def delete_record(victim: Victim) -> None:
    victim.push(RECORD, lambda _: None)


def break_record(victim: Victim) -> None:
    victim.push(RECORD, lambda text: f"{text}\n\tnot YAML: [")


def edit_entry(victim: Victim, **fields: object) -> None:
    """Edit fields of the order's entry in the ledger; dots are ``__``, None leaves a field out."""

    def edit(text: str) -> str:
        application = yaml.safe_load(text)
        for name, value in fields.items():
            *parents, field = name.split("__")
            place = application["spec"]
            for parent in parents:
                place = place[parent]
            place[field] = value
        return yaml.safe_dump(application)

    write_entry(victim, edit)


def write_entry(
    victim: Victim, edit: Callable[[str], str], path: PurePosixPath | None = None
) -> None:
    """Write what `edit` makes of the order's entry in the ledger, there or at `path`."""
    pusher = victim.clone(victim.platform.ledger, "ledger")
    text = (pusher.clone / victim.entry.application_path).read_text()
    pusher.commit("tidy up", {str(path or victim.entry.application_path): edit(text)})
    pusher.git("push", "--quiet", "origin", "main")
    refresh(victim.platform.cluster, "ledger")
    refresh(victim.platform.cluster, f"team-{victim.entry.team}")


def leave_project(victim: Victim) -> None:
    edit_entry(victim, project="default")


def deliver_elsewhere(victim: Victim) -> None:
    edit_entry(
        victim,
        source__path="other",
        source__targetRevision="mine",
        destination__namespace="kube-system",
    )


def deliver_from_others(victim: Victim) -> None:
    edit_entry(victim, source__repoURL=f"{victim.platform.forge.base_url}/mallory/own.git")


def break_entry(victim: Victim) -> None:
    write_entry(victim, lambda text: f"{text}<<<<<<< HEAD\n")


def empty_entry(victim: Victim) -> None:
    write_entry(victim, lambda _: "# nothing\n")


def use_sources(victim: Victim) -> None:
    edit_entry(victim, sources=[{"repoURL": "http://127.0.0.1:9/mallory/own.git", "path": "."}])


@dataclass(frozen=True)
class Mischief:
    """What somebody does, how ``status`` explains it, and what ``repair`` says it did."""

    reason: str
    act: Callable[[Victim], None]
    says: str
    repaired: str

    def words(self, text: str, victim: Victim) -> str:
        entry = victim.entry
        return text.format(
            order=entry.order, team=entry.team, repo=entry.repository, file=entry.application_path
        )


MENDED = [  # in this order: main cannot be found again in a repository that was made again
    Mischief(
        "branch main is deleted",
        delete_main,
        "{repo} has no branch main any more; ",
        "main is at ",
    ),
    Mischief(
        "the ledger file is deleted",
        remove_ledger_file,
        "platform/ledger has no {file} any more: removed in ",
        "{file} is put back",
    ),
    Mischief(
        "the team and its folder leave the ledger",
        remove_team,
        "team {team} is not in the ledger any more: removed in ",
        "team {team} is put back into the ledger",
    ),
    Mischief(
        "the entry in the ledger names another project",
        leave_project,
        "{file} was edited: spec.project is 'default', not {team} (the order left its team's"
        " AppProject) (in ",
        "{file} delivers the order again",
    ),
    Mischief(
        "the entry in the ledger delivers a branch and folder elsewhere",
        deliver_elsewhere,
        "{file} was edited: spec.source.path is 'other', not manifests; spec.source.targetRevision"
        " is 'mine', not main; spec.destination.namespace is 'kube-system', not team-{team} (in ",
        "{file} delivers the order again",
    ),
    Mischief(
        "the entry in the ledger names somebody else's repository",
        deliver_from_others,
        "{file} was edited: spec.source.repoURL is '",
        "{file} delivers the order again",
    ),
    Mischief(
        "the entry in the ledger is an unresolved merge",
        break_entry,
        "an unresolved merge: the line begins with '<<<<<<<' (in ",
        "{file} is put back",
    ),
    Mischief(
        "the entry in the ledger has sources",
        use_sources,
        "{file} was edited: spec.sources is [{{'path': '.', 'repoURL': 'http://127.0.0.1:9/mallory",
        "{file} delivers the order again",
    ),
    Mischief(
        "the repository is renamed",
        rename_repository,
        "the repository {repo} was renamed to {repo}-old",
        "it has the name {order} again",
    ),
    Mischief(
        "the repository is archived",
        archive_repository,
        "the repository {repo} is archived: nobody can change it",
        "it can be changed again",
    ),
    Mischief(
        "the record is edited",
        edit_record,
        "{repo}/.orderkit/order.yaml was changed: spec.kit was 'garage' and is 'palace' (in ",
        ".orderkit/order.yaml is as Orderkit wrote it",
    ),
    Mischief(
        "the record is deleted",
        delete_record,
        "{repo}/.orderkit/order.yaml is gone (in ",
        ".orderkit/order.yaml is as Orderkit wrote it",
    ),
    Mischief(
        "the record is not YAML any more",
        break_record,
        "{repo}/.orderkit/order.yaml cannot be read: ",
        ".orderkit/order.yaml is as Orderkit wrote it",
    ),
    Mischief(
        "branch main is renamed",
        rename_main,
        "the default branch of {repo} is 'trunk', not main: clones and web forms edit a branch"
        " that is not delivered",
        "main is the default branch again",
    ),
    Mischief(
        "the repository is deleted",
        delete_repository,
        "the repository {repo} does not exist any more, or we may not read it; Git does not record"
        " who deleted it",
        "{repo} is made again from the XR in the cluster (",
    ),
    Mischief(
        "the entry in the ledger is empty",
        empty_entry,
        "{file} has no Application (in ",
        "{file} is put back",
    ),
]
NAMED = ("ledger file", "team", "record", "entry")
"""Where Git knows who did it."""
