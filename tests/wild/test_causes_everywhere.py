"""
What people do to an order's repository: every view has one sentence and one remedy, which works.

``validate`` and the commit's own status are compared in ``test_faulty_pushes``.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
import requests
import yaml
from commands import Command
from faultypushes import FILE, PUSHES
from pusher import Pusher
from roguery import place

from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import Manifest
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.cli.main import run
from orderkit.core.order.order_view import OrderQuery
from orderkit.flows.argocd.refreshing import application_key, nudge
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.order.order_report import status
from orderkit.flows.order.order_watch import read_orders
from orderkit.flows.platform import get_object
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import Operation
from orderkit_standins.serve_platform import Running

WAIT_S = 20.0


def eventually(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


CASES = {push.reason: push for push in PUSHES}


@dataclass(frozen=True)
class Desk:
    """An order of its own team, and a clone of its repository by somebody who may push."""

    running: Running
    order: str
    repo: RepoId
    pusher: Pusher
    good: str

    @property
    def clone(self) -> Path:
        return self.pusher.clone

    def push(self, message: str, *options: str) -> None:
        commit = CommitSha(self.pusher.commit(message, {}))
        self.pusher.git("push", "-q", *options, "origin", "HEAD:main")
        nudge(self.running.platform.cluster, self.order, commit)

    def phase(self) -> str:
        state = status(self.running.platform, self.order).state
        return state.phase if state.head == state.revision else "Delivering"


@pytest.fixture
def desk(platform: Running, tmp_path: Path, new_name: Callable[[], str]) -> Desk:
    team = new_name()
    add_team(platform.platform, TeamName(team), requester="user:default/test")
    entry = place(platform.platform, "garage", team)
    file = platform.embedded.state.folder / "platform.yaml"
    assert run(["platform", "webhook", "--team", team, "--platform", str(file)]) == 0
    forge = platform.settings.forge
    url = f"{forge.url}/{entry.repository}.git"
    pusher = Pusher.cloned(tmp_path, url, "orderkit", token(forge))
    head = pusher.git("rev-parse", "HEAD")
    return Desk(platform, entry.order, entry.repository, pusher, head)


@dataclass(frozen=True)
class Views:
    """What each command says of an order."""

    status: str
    listed: str
    doctor: str
    repair: str
    change: str


def listed(desk: Desk, orderkit: Command) -> str:
    rows = orderkit("list", "--json").json["orders"]
    (row,) = (row for row in rows if row["order"] == desk.order)
    return f"{row['phase']} {row['reason']} {row['advice']}"


def views(desk: Desk, orderkit: Command) -> Views:
    order = desk.order
    found = [f for f in orderkit("doctor", "--json").json["findings"] if f["what"] == "orders"]
    changed = orderkit("change", order, "stage=stage2", "--dry-run")
    return Views(
        orderkit("status", order).out,
        listed(desk, orderkit),
        f"{found[0]['detail']} {found[0]['advice']}",
        orderkit("repair", order, "--dry-run").out,
        changed.out + changed.err,
    )


def _link(desk: Desk) -> None:
    """Do what the hint says: commit the file itself."""
    (desk.clone / FILE).unlink()
    (desk.clone / "xgarage.yaml").rename(desk.clone / FILE)


def _folder(desk: Desk) -> None:
    """Type the commands that the hint has."""
    report = status(desk.running.platform, desk.order)
    commands = report.state.advice.partition(": ")[2].partition(";")[0]
    subprocess.run(commands, shell=True, check=True, cwd=desk.clone, timeout=60)  # noqa: S602 - as a person types them


def _pointer(desk: Desk) -> None:
    desk.pusher.git("checkout", desk.good, "--", FILE)


def _submodule(desk: Desk) -> None:
    desk.pusher.git("rm", "-qf", ".gitmodules", "manifests/shared")


def _second(desk: Desk) -> None:
    desk.pusher.git("rm", "-qf", "manifests/second.yaml")


def _moved(desk: Desk) -> None:
    """Type the command that the hint has."""
    report = status(desk.running.platform, desk.order)
    words = shlex.split(report.state.advice.partition("git ")[2].partition(";")[0])
    desk.pusher.git(*words)


def _deleted(desk: Desk) -> None:
    desk.pusher.git("checkout", desk.good, "--", FILE)


@pytest.mark.parametrize(
    ("reason", "follow"),
    [
        ("a symbolic link", _link),
        ("a pointer of Git LFS", _pointer),
        ("a folder that is a symbolic link", _folder),
        ("a submodule", _submodule),
        ("a second XR", _second),
        ("a file moved into a folder", _moved),
        ("a deleted file", _deleted),
    ],
)
def test_a_fault_of_the_files_has_one_sentence_and_a_remedy_that_works(
    desk: Desk, orderkit: Command, reason: str, follow: Callable[[Desk], None]
) -> None:
    push = CASES[reason]
    eventually(lambda: desk.phase() == "Ready")
    push.change(desk.clone)
    desk.push(reason)
    phase = "Attention" if push.passes_argocd else "Failing"
    eventually(lambda: push.says[0] in status(desk.running.platform, desk.order).state.reason)
    eventually(lambda: push.remedy in listed(desk, orderkit))  # the service was told

    seen = views(desk, orderkit)
    for name in ("status", "listed", "doctor", "repair", "change"):
        text = getattr(seen, name)
        assert push.says[0] in text, (name, text)
        assert push.remedy in text, (name, text)
    assert seen.listed.startswith(phase)

    follow(desk)
    desk.push("follow the hint")

    eventually(lambda: desk.phase() == "Ready")
    assert orderkit("repair", desk.order).out == f"{desk.order}: nothing to repair\n"


def test_a_branch_that_was_renamed_has_one_sentence_and_repair_works(
    desk: Desk, orderkit: Command
) -> None:
    """The default branch is another one, and main is gone."""
    eventually(lambda: desk.phase() == "Ready")
    forge = desk.running.platform.forge
    forge.ensure_branch(desk.repo, "trunk", CommitSha(desk.good))
    forge.set_default_branch(desk.repo, "trunk")
    other = "not main: clones and web forms edit a branch that is not delivered"

    seen = views(desk, orderkit)
    for text in (seen.status, seen.doctor, seen.repair, seen.change):
        assert f"the default branch of {desk.repo} is 'trunk', {other}" in text, text
    assert f"orderkit repair {desk.order}" in seen.change

    desk.pusher.git("push", "-q", "origin", ":main")

    seen = views(desk, orderkit)
    gone = f"{desk.repo} has no branch main any more; {desk.good[:8]} was delivered last"
    for text in (seen.status, seen.doctor, seen.repair, seen.change):
        assert gone in text, text
    assert f"orderkit repair {desk.order}" in seen.change

    assert orderkit("repair", desk.order).code == 0
    eventually(lambda: desk.phase() == "Ready")
    assert orderkit("repair", desk.order).out == f"{desk.order}: nothing to repair\n"
    assert "trunk" not in orderkit("status", desk.order).out


@pytest.mark.parametrize("unrelated", [False, True], ids=["moved back", "unrelated"])
def test_a_history_that_was_replaced_has_one_sentence_and_repair_works(
    desk: Desk, orderkit: Command, *, unrelated: bool
) -> None:
    eventually(lambda: desk.phase() == "Ready")
    xr = desk.clone / FILE
    (desk.clone / "NOTES.md").write_text("bought in 1986\n")
    xr.write_text(xr.read_text().replace("stage1", "stage2"))
    desk.push("tune it, and keep notes")
    lost = desk.pusher.git("rev-parse", "HEAD")
    eventually(lambda: desk.phase() == "Ready")
    if unrelated:
        desk.pusher.git("checkout", "-q", "--orphan", "fresh")
    else:
        desk.pusher.git("reset", "-q", "--hard", desk.good)
    desk.pusher.git("rm", "-qf", "--ignore-unmatch", "NOTES.md")
    xr.write_text(xr.read_text().replace("stage2", "stage1"))
    (desk.clone / "OTHER.md").write_text("sold\n")
    desk.push("begin again", "--force")
    eventually(lambda: desk.phase() == "Ready")

    seen = views(desk, orderkit)
    sentence = f"by a forced push, and {lost[:8]}, which was delivered before, is not part of it"
    for text in (seen.status, seen.doctor, seen.repair):
        assert sentence in text, text

    repaired = orderkit("repair", desk.order)

    assert f"brings {lost[:8]} back" in repaired.out
    again = orderkit("repair", desk.order)
    assert f"brings {lost[:8]} back" in again.out, "it may be repeated"
    (pull,) = desk.running.platform.forge.pulls(desk.repo)
    found = desk.running.platform.forge.pull(desk.repo, pull.number)
    assert found is not None
    merging = Operation(f"merge-{pull.number}-{desk.order}", "user:default/boss", "bring it back")
    merge_unreviewed(desk.running.platform, desk.repo, found, merging)

    eventually(lambda: desk.phase() == "Ready")
    restored = desk.running.platform.forge.read(desk.repo, PurePosixPath("NOTES.md"), "main")
    assert restored is not None
    assert orderkit("repair", desk.order).out == f"{desk.order}: nothing to repair\n"


def _pushed_ledger(desk: Desk, folder: Path, change: Callable[[Path], None]) -> None:
    """Change the ledger as somebody with rights on it does, past Orderkit."""
    folder.mkdir()
    platform, forge = desk.running.platform, desk.running.settings.forge
    url = f"{forge.url}/{platform.ledger}.git"
    pusher = Pusher.cloned(folder, url, "orderkit", token(forge))
    change(pusher.clone)
    commit = CommitSha(pusher.commit("tidy up", {}))
    pusher.git("push", "-q", "origin", "HEAD:main")
    nudge(platform.cluster, f"team-{desk.repo.owner}", commit)


def test_an_entry_that_was_moved_to_another_team_has_one_sentence_and_a_remedy_that_works(
    desk: Desk, orderkit: Command, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    """To remove it, as a copy is removed, would take the order out of the ledger."""
    other, team, order = new_name(), desk.repo.owner, desk.order
    add_team(desk.running.platform, TeamName(other), requester="user:default/test")
    moved, back = f"apps/{other}/{order}.yaml", f"apps/{team}/{order}.yaml"
    eventually(lambda: desk.phase() == "Ready")
    _pushed_ledger(desk, tmp_path / "one", lambda ledger: _renamed(ledger, back, moved))
    command = f"git mv {moved} {back}"
    eventually(lambda: command in listed(desk, orderkit))

    seen = views(desk, orderkit)
    for name in ("status", "listed", "doctor", "repair"):
        text = getattr(seen, name)
        assert command in text, (name, text)
        assert "git rm" not in text, (name, text)
    assert f"orderkit status {order}" in seen.change, "that team has no such repository"

    _pushed_ledger(desk, tmp_path / "two", lambda ledger: _renamed(ledger, moved, back))
    eventually(lambda: listed(desk, orderkit).startswith("Ready"))
    assert orderkit("repair", order).out == f"{order}: nothing to repair\n"


def _renamed(ledger: Path, old: str, new: str) -> None:
    (ledger / old).rename(ledger / new)


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        (("automated:", "automatic:"), "spec.syncPolicy.automated is off, so Argo CD delivers"),
        (
            ("prune: false", "prune: true"),
            "spec.syncPolicy.automated.prune is on, so Argo CD deletes",
        ),
        (("selfHeal: true", "selfHeal: false"), "spec.syncPolicy.automated.selfHeal is off"),
    ],
)
def test_an_entry_that_steers_argocd_has_one_sentence_and_repair_works(
    desk: Desk, orderkit: Command, tmp_path: Path, edited: tuple[str, str], says: str
) -> None:
    (old, new), path = edited, f"apps/{desk.repo.owner}/{desk.order}.yaml"

    def edit(ledger: Path) -> None:
        text = (ledger / path).read_text()
        assert old in text
        (ledger / path).write_text(text.replace(old, new))

    eventually(lambda: desk.phase() == "Ready")
    _pushed_ledger(desk, tmp_path / "one", edit)
    eventually(lambda: says in listed(desk, orderkit))

    seen = views(desk, orderkit)
    for name in ("status", "listed", "doctor", "repair", "change"):
        assert says in getattr(seen, name), (name, getattr(seen, name))
    assert orderkit("repair", desk.order).code == 0

    eventually(lambda: listed(desk, orderkit).startswith("Ready"))
    assert orderkit("repair", desk.order).out == f"{desk.order}: nothing to repair\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{0}<<<<<<< HEAD\n", "an unresolved merge: the line begins with '<<<<<<<'"),
        ("# nothing\n", "has no Application"),
        ("no: manifest: at all\n", "mapping values are not allowed"),
    ],
)
def test_an_entry_that_argocd_cannot_read_is_in_lists_as_in_status(
    desk: Desk, orderkit: Command, tmp_path: Path, text: str, says: str
) -> None:
    path = f"apps/{desk.repo.owner}/{desk.order}.yaml"

    def edit(ledger: Path) -> None:
        (ledger / path).write_text(text.format((ledger / path).read_text()))

    eventually(lambda: desk.phase() == "Ready")
    _pushed_ledger(desk, tmp_path / "one", edit)
    eventually(lambda: says in _served(desk))

    seen = views(desk, orderkit)
    for name in ("status", "listed", "doctor", "repair"):
        assert says in getattr(seen, name), (name, getattr(seen, name))
        assert getattr(seen, name).count(says) == 1, getattr(seen, name)
    assert seen.listed.startswith("Failing")
    assert f"orderkit repair {desk.order}" in seen.listed
    assert orderkit("repair", desk.order).code == 0

    eventually(lambda: listed(desk, orderkit).startswith("Ready"))
    eventually(lambda: _served(desk) == "")


ANOTHER = """\
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: http://127.0.0.1:9/mallory/own.git, targetRevision: main, path: .}}
  destination: {{server: "https://kubernetes.default.svc", namespace: argocd}}
"""
SPACE = "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


@pytest.mark.parametrize("is_first", [False, True], ids=["after", "before"])
def test_a_second_application_in_an_entry_has_one_sentence_and_repair_takes_it_back(
    desk: Desk, orderkit: Command, tmp_path: Path, *, is_first: bool
) -> None:
    path, other = f"apps/{desk.repo.owner}/{desk.order}.yaml", f"{desk.order}-own"
    key = application_key(OrderId(other))
    whole = _with_document(desk, tmp_path, ANOTHER.format(name=other), is_first=is_first)
    says = f"{path} was edited: it has another document, Application {other}"
    eventually(lambda: says in listed(desk, orderkit))

    eventually(lambda: says in _served(desk))
    seen = views(desk, orderkit)
    for name in ("status", "listed", "doctor", "repair", "change"):
        assert says in getattr(seen, name), (name, getattr(seen, name))
    read = read_orders(desk.running.platform, OrderQuery(text=desk.order), {})
    assert [says in row["reason"] for row in read] == [True], read
    assert orderkit("repair", desk.order).code == 0

    eventually(lambda: listed(desk, orderkit).startswith("Ready"))
    eventually(lambda: _served(desk) == "")
    assert orderkit("repair", desk.order).out == f"{desk.order}: nothing to repair\n"
    assert _entry(desk) == whole
    eventually(lambda: get_object(desk.running.platform.cluster, key) is None)


def test_a_document_whose_removal_deletes_more_is_left_to_a_person(
    desk: Desk, orderkit: Command, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    path, space = f"apps/{desk.repo.owner}/{desk.order}.yaml", new_name()
    before = _with_document(desk, tmp_path, SPACE.format(name=space))
    eventually(lambda: f"it has another document, Namespace {space}" in listed(desk, orderkit))

    repaired = orderkit("repair", desk.order)

    told = f"take Namespace {space} out of {path}, then commit and push the ledger: Argo CD deletes"
    assert repaired.code == 1
    for text in (repaired.out, listed(desk, orderkit), orderkit("status", desk.order).out):
        assert told in text, text
    assert [document["kind"] for document in _entry(desk)] == ["Application", "Namespace"]
    assert _entry(desk)[0] == before[0]


def _served(desk: Desk) -> str:
    """Return the reason that the service's live model shows, as the console does."""
    service = desk.running.settings.service
    answer = requests.get(
        f"{service.url}/v1/orders?text={desk.order}",
        headers={SECRET_HEADER: token(service)},
        timeout=30,
    )
    (row,) = answer.json()["orders"]
    return str(row["reason"])


def _with_document(
    desk: Desk, folder: Path, document: str, *, is_first: bool = False
) -> list[Manifest]:
    """Add a document to the order's file of the ledger; return what it had before."""
    eventually(lambda: desk.phase() == "Ready")
    before = _entry(desk)

    def edit(ledger: Path) -> None:
        file = ledger / f"apps/{desk.repo.owner}/{desk.order}.yaml"
        parts = (document, f"---\n{file.read_text()}")
        file.write_text("".join(parts if is_first else reversed(parts)))

    _pushed_ledger(desk, folder / "one", edit)
    return before


def _entry(desk: Desk) -> list[Manifest]:
    platform, path = desk.running.platform, f"apps/{desk.repo.owner}/{desk.order}.yaml"
    file = platform.forge.read(platform.ledger, PurePosixPath(path), "main")
    assert file is not None
    return list(yaml.safe_load_all(file.text))
