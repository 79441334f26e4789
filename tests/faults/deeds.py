"""
What the forge port can do, as named deeds: how each is prepared, done, and counted.

A deed is made by a client that is disturbed or killed. Counting looks at the forge past the
port: how often is it there, 0, 1 or (never right) more. Run as a process by the tests that kill:
``tests.faults.deeds.main`` in the zygote, with the specification as JSON.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import requests
from tests.conformance.forge.faces import Client
from tests.faults import history

from ground.names import BlobSha, CommitSha, RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.ports.forge import (
    CommitStatus,
    FileChange,
    Forge,
    MergeStyle,
    Operation,
    PullDraft,
    TeamRight,
    Webhook,
)

GROUP = "acme/platform"
"""The group of the GitLab face."""
BRANCH = "change"
HOOK = "http://127.0.0.1:9/hook"
_numbers = itertools.count(1)


def client_of(face: str, url: str, token: str, read_timeout_s: float = READ_TIMEOUT_S) -> Client:
    """Return a client that speaks the dialect of a face; ``real`` is a real Gitea."""
    if face == "github":
        return GitHubForge(url, token=token, read_timeout_s=read_timeout_s)
    if face == "gitlab":
        return GitLabForge(url, token=token, group=GROUP, read_timeout_s=read_timeout_s)
    real = face == "real"
    return GiteaForge(url, token=token, allow_http=real, read_timeout_s=read_timeout_s)


@dataclass(frozen=True, slots=True)
class Spec:
    """One deed: what, where, under which operation id."""

    deed: str
    org: str
    name: str
    operation: str
    seen: str = ""
    """Blob id of the file ``a`` on the branch that is written to."""
    commit: str = ""
    """Head of the branch in question."""
    number: int = 0
    """Of the pull request."""
    branch: str = "main"

    @property
    def repo(self) -> RepoId:
        return RepoId(self.org, self.name)

    @property
    def why(self) -> Operation:
        return Operation(self.operation, "user:default/me", f"Do {self.deed}")


@dataclass(frozen=True)
class Look:
    """How deeds are counted: the API past our client, and the repository's own files."""

    url: str
    token: str
    repository: Callable[[RepoId], Path]

    def api(self, path: str) -> Any:
        """Return what a GET answers; None if it is not there."""
        answer = requests.get(
            f"{self.url}/api/v1{path}",
            headers={"Authorization": f"token {self.token}"},
            timeout=90,
        )
        if answer.status_code == 404:
            return None
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def of(self, spec: Spec, path: str) -> Any:
        """Return what a GET below a deed's repository answers."""
        return self.api(f"/repos/{spec.repo}{path}")


@dataclass(frozen=True)
class Deed:
    """
    A thing that the port does.

    `only_once`: the forge itself refuses a second time, also if the first request is carried
    out late. Otherwise a double can come, and the next call removes it.
    """

    do: Callable[[Forge, Spec], object]
    count: Callable[[Look, Spec], int]
    needs: str = ""
    """``branch``: a branch with a commit; ``pull``: that, and an open pull request."""
    only_once: bool = True


# --- doing


def _six(spec: Spec) -> list[FileChange]:
    made = [FileChange(PurePosixPath(f"n{n}"), spec.operation.encode(), None) for n in range(5)]
    return [*_one(spec), *made]


def _one(spec: Spec) -> list[FileChange]:
    return [FileChange(PurePosixPath("a"), spec.operation.encode(), BlobSha(spec.seen))]


def _write(forge: Forge, spec: Spec) -> object:
    return forge.write(spec.repo, _one(spec), spec.why, branch=spec.branch)


def _write_six(forge: Forge, spec: Spec) -> object:
    return forge.write(spec.repo, _six(spec), spec.why, branch=spec.branch)


def _open(forge: Forge, spec: Spec) -> object:
    draft = PullDraft("A change", "Its plan", spec.branch)
    return forge.open_pull(spec.repo, draft, spec.why)


def _update(forge: Forge, spec: Spec) -> object:
    return forge.update_pull(spec.repo, spec.number, spec.why, title="Another", body="New")


def _merge(forge: Forge, spec: Spec, style: MergeStyle = MergeStyle.MERGE) -> object:
    head = CommitSha(spec.commit)
    return forge.merge_pull(spec.repo, spec.number, head=head, style=style, operation=spec.why)


def _squash(forge: Forge, spec: Spec) -> object:
    return _merge(forge, spec, MergeStyle.SQUASH)


def _comment(forge: Forge, spec: Spec) -> None:
    forge.comment(spec.repo, spec.number, f"Said {spec.operation}", marker="plan")


def _status(spec: Spec) -> CommitStatus:
    return CommitStatus("orderkit/plan", "success", spec.operation, "http://127.0.0.1/plan")


def _access(forge: Forge, spec: Spec) -> None:
    forge.ensure_access(
        spec.org, f"t-{spec.name}", right=TeamRight.WRITE, members=[], repositories=[spec.name]
    )


def _webhook(forge: Forge, spec: Spec) -> None:
    forge.ensure_webhook(spec.repo, Webhook(HOOK, ("push",), "secret-of-the-hook"))


# --- counting


def _commits(look: Look, spec: Spec) -> int:
    """Count the commits of the operation on its branch; each must have done what was asked."""
    found = history.steps(look.repository(spec.repo), spec.branch)
    ours = [step for step in found if spec.operation in step.operations]
    for step in ours:
        assert step.changed["a"] == (spec.seen, history.blob(spec.operation))
    return len(ours)


def _pulls(look: Look, spec: Spec) -> int:
    """Count the pull requests from the branch, whatever their state, that are as asked."""
    found = look.of(spec, "/pulls?state=all&limit=50")
    mine = [each for each in found if each["head"]["ref"] == spec.branch]
    right = [
        each
        for each in mine
        if f"orderkit-operation: {spec.operation} " in each["body"] and each["title"] == "A change"
    ]
    return len(mine) if right else 0


def _updated(look: Look, spec: Spec) -> int:
    found = look.of(spec, f"/pulls/{spec.number}")
    same = found["title"] == "Another"
    return int(same and f"orderkit-operation: {spec.operation} " in found["body"])


def _merged(look: Look, spec: Spec) -> int:
    """Count how often main has the branch's content by a merge of this operation."""
    found = look.of(spec, f"/pulls/{spec.number}")
    steps = history.steps(look.repository(spec.repo))
    ours = [step for step in steps if spec.operation in step.operations]
    assert bool(found["merged"]) == bool(ours), "the forge and git agree"
    return len(ours)


def _comments(look: Look, spec: Spec) -> int:
    found = look.of(spec, f"/issues/{spec.number}/comments")
    ours = [each["body"] for each in found if "<!-- orderkit-comment: plan -->" in each["body"]]
    return len(ours) if any(f"Said {spec.operation}\n" in body for body in ours) else 0


def _statuses(look: Look, spec: Spec) -> int:
    found = look.of(spec, f"/commits/{spec.commit}/status")["statuses"] or []
    newest = {each["context"]: each for each in sorted(found, key=lambda each: each["id"])}
    said = newest.get("orderkit/plan", {"description": ""})
    return int(said["description"] == spec.operation)


def _hooks(look: Look, spec: Spec) -> int:
    found = look.of(spec, "/hooks?limit=50")
    return sum(each["config"]["url"] == HOOK and each["active"] for each in found)


def _teams(look: Look, spec: Spec) -> int:
    found = look.api(f"/orgs/{spec.org}/teams?limit=50")
    mine = [each for each in found if each["name"] == f"t-{spec.name}"]
    for team in mine:
        repos = look.api(f"/teams/{team['id']}/repos") or []
        if [each["name"] for each in repos] != [spec.name] or team["permission"] == "read":
            return 0
    return len(mine)


def _branches(look: Look, spec: Spec) -> int:
    found = look.of(spec, "/git/refs/heads/made") or []
    return sum(
        (each["ref"], each["object"]["sha"]) == ("refs/heads/made", spec.commit) for each in found
    )


DEEDS: Mapping[str, Deed] = {
    "organisation": Deed(
        lambda forge, spec: forge.ensure_org(f"o-{spec.name}"),
        lambda look, spec: int(look.api(f"/orgs/o-{spec.name}") is not None),
    ),
    "repository": Deed(
        lambda forge, spec: forge.ensure_repo(RepoId(spec.org, f"new-{spec.name}"), description=""),
        lambda look, spec: int(look.api(f"/repos/{spec.org}/new-{spec.name}") is not None),
    ),
    "write": Deed(_write, _commits),
    "write six": Deed(_write_six, _commits),
    "branch": Deed(
        lambda forge, spec: forge.ensure_branch(spec.repo, "made", CommitSha(spec.commit)),
        _branches,
    ),
    "delete branch": Deed(
        lambda forge, spec: forge.delete_branch(spec.repo, BRANCH),
        lambda look, spec: int(look.of(spec, f"/branches/{BRANCH}") is None),
        needs="branch",
    ),
    "open pull": Deed(_open, _pulls, needs="branch"),
    "update pull": Deed(_update, _updated, needs="pull"),
    "close pull": Deed(
        lambda forge, spec: forge.close_pull(spec.repo, spec.number),
        lambda look, spec: int(look.of(spec, f"/pulls/{spec.number}")["state"] == "closed"),
        needs="pull",
    ),
    "merge": Deed(_merge, _merged, needs="pull"),
    "squash": Deed(_squash, _merged, needs="pull"),
    "comment": Deed(_comment, _comments, needs="pull", only_once=False),
    "status": Deed(
        lambda forge, spec: forge.set_status(spec.repo, CommitSha(spec.commit), _status(spec)),
        _statuses,
    ),
    "webhook": Deed(_webhook, _hooks, only_once=False),
    "access": Deed(_access, _teams),
    "archive": Deed(
        lambda forge, spec: forge.archive(spec.repo),
        lambda look, spec: int(look.of(spec, "")["archived"]),
    ),
    "delete repository": Deed(
        lambda forge, spec: forge.delete_repo(spec.repo),
        lambda look, spec: int(look.of(spec, "") is None),
    ),
}


def prepared(forge: Forge, org: str, deed: str) -> Spec:
    """Make a repository in which a deed can be done, undisturbed; return the deed."""
    number = next(_numbers)
    spec = Spec(deed, org, f"deed{number}", f"deed-{number}")
    forge.ensure_repo(spec.repo, description="")
    first = FileChange(PurePosixPath("a"), b"0", None)
    begun = forge.write(spec.repo, [first], replace(spec, operation="begin").why)
    spec = replace(spec, seen=history.blob("0"), commit=begun.commit)
    needs = DEEDS[deed].needs
    if not needs:
        return spec
    forge.ensure_branch(spec.repo, BRANCH, begun.commit)
    work = replace(spec, operation="work", branch=BRANCH)
    made = forge.write(spec.repo, _one(work), work.why, branch=BRANCH)
    spec = replace(spec, branch=BRANCH, commit=made.commit)
    if needs == "pull":
        pull = forge.open_pull(spec.repo, PullDraft("A change", "", BRANCH), work.why)
        spec = replace(spec, number=pull.number)
        while not pull.mergeable:  # checked from a queue; the tests count requests
            time.sleep(0.01)
            pull = forge.pull(spec.repo, spec.number) or pull
    return spec


def do(forge: Forge, spec: Spec) -> object:
    """Do a deed."""
    return DEEDS[spec.deed].do(forge, spec)


def count(look: Look, spec: Spec) -> int:
    """Return how often a deed is done."""
    return DEEDS[spec.deed].count(look, spec)


def argument(url: str, token: str, spec: Spec, face: str = "embedded") -> str:
    """Return what `main` takes."""
    return json.dumps({"url": url, "token": token, "spec": asdict(spec), "face": face})


def main(arguments: list[str]) -> int:
    """Do one deed as a process of its own."""
    task = json.loads(arguments[0])
    with client_of(task["face"], task["url"], task["token"]) as forge:
        do(forge, Spec(**task["spec"]))
    return 0
