"""The actions of GitHub and GitLab on the faces of the embedded forge; each exchange is judged."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from faultproxy import Decision, Falsehood, Fault, Listed, Plan, open_proxy
from rivals import Rival
from tests.conformance.forge.conftest import Target, embedded_target
from tests.conformance.forge.faces import (
    GITHUB,
    GITLAB,
    GITLAB_GROUP,
    Account,
    Client,
)

from ground.errors import ConflictError, InvalidInputError, OrderkitError, RefusedError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import APP_PROJECT, APPLICATION, ObjectKey
from orderkit.adapters.backstage import BackstageCatalog, BackstagePortal
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.processes.confined_rendering import judge_confined
from orderkit.core.order import order_file
from orderkit.flows.order.template_services import publish, publish_files
from orderkit.flows.template import scaffolder
from orderkit.flows.template.scaffolder import (
    PublishRequest,
    Services,
    TaskOptions,
    TaskResult,
)
from orderkit.ports.forge import EXECUTABLE, FileChange, MergeStyle, Operation
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.forge import EmbeddedForge
from softwaretemplates.render import SkeletonFile
from softwaretemplates.template import parse_template

README, RUN = PurePosixPath("README.md"), PurePosixPath("run.sh")
FILES: dict[str, bytes | SkeletonFile] = {
    "s/README.md": b"hello\n",
    "s/run.sh": SkeletonFile(b"#!/bin/sh\n", EXECUTABLE),
}
LEDGER = RepoId("platform", "ledger")
ORDER = b"""\
apiVersion: orderkit.dev/v1alpha1
kind: Order
metadata: {name: garage-ae86}
spec:
  kit: garage
  team: ae86
  requester: user:default/eve
  ordered: {stage: stage1}
"""
Step = tuple[str, Mapping[str, Any]]


@dataclass
class Side:
    """One face, its client, and a cluster."""

    kind: str
    forge: Client
    embedded: EmbeddedForge
    target: Target
    cluster: EmbeddedCluster
    org: str = ""

    @property
    def host(self) -> str:
        """The forge's host as repoUrl has it on the forge itself."""
        return self.target.url.partition("://")[2].partition("/")[0]

    def url(self, name: str) -> str:
        owner = f"{GITLAB_GROUP}/{self.org}" if self.kind == "gitlab" else self.org
        return f"{self.host}?owner={owner}&repo={name}"

    def repo(self) -> RepoId:
        """Return the name of a new repository."""
        return RepoId(self.org, f"r{secrets.token_hex(4)}")

    def seeded(self, files: Mapping[str, bytes] | None = None) -> RepoId:
        repo = self.repo()
        self.forge.ensure_repo(repo, description="")
        self.write(repo, files or {"a.txt": b"a\n"})
        return repo

    def write(self, repo: RepoId, files: Mapping[str, bytes], branch: str = "main") -> CommitSha:
        changes = [FileChange(PurePosixPath(path), data, None) for path, data in files.items()]
        operation = Operation(f"t-{secrets.token_hex(6)}", "user:default/t", "test")
        return self.forge.write(repo, changes, operation, branch=branch).commit

    @contextmanager
    def through(self, plan: Plan) -> Iterator[Side]:
        """Return the GitHub as a client sees it through a proxy that follows a plan."""
        with (
            open_proxy(self.target.url) as proxy,
            GitHubForge(proxy.url, token=self.target.token) as forge,
        ):
            proxy.plan = plan
            yield replace(self, forge=forge, target=replace(self.target, url=proxy.url))

    def run(
        self,
        *steps: Step,
        task: str = "task-1",
        files: Mapping[str, bytes | SkeletonFile] = FILES,
        **options: Any,
    ) -> TaskResult:
        fetch = ("fetch:plain", {"url": "s"})
        listed = [
            {"id": f"s{at}", "action": action, "input": dict(given)}
            for at, (action, given) in enumerate((fetch, *steps))
        ]
        document = {
            "apiVersion": "scaffolder.backstage.io/v1beta3",
            "kind": "Template",
            "metadata": {"name": "t"},
            "spec": {
                "type": "service",
                "steps": listed,
                "output": {f"s{at}": f"${{{{ steps.s{at}.output }}}}" for at in range(len(listed))},
            },
        }

        def ensure(request: PublishRequest) -> CommitSha:
            is_order = order_file.PATH in request.files
            return (publish if is_order else publish_files)(self.forge, request)

        portal = "http://127.0.0.1:1"
        return scaffolder.run(
            parse_template(yaml.safe_dump(document).encode(), name="template.yaml"),
            {},
            files={PurePosixPath(path): data for path, data in files.items()},
            services=Services(
                self.forge,
                BackstageCatalog(portal, token="t"),
                self.cluster,
                BackstagePortal(portal, token="t", proxies={}),
                ensure,
                judge_confined,
                frozenset({LEDGER}),
            ),
            user=scaffolder.User("user:default/tester"),
            task_id=task,
            on_step=lambda _: None,
            options=TaskOptions(**options),
        )


@pytest.fixture(scope="module")
def side(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Side]:
    folder = tmp_path_factory.mktemp(request.param)
    face = {"github": GITHUB, "gitlab": GITLAB}[request.param]
    cluster = EmbeddedCluster(folder / "cluster.sqlite")
    for crd in argocd_crds():
        cluster.apply(crd, owner="test")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
    cluster.apply(namespace, owner="test")
    with embedded_target(folder / "forge", face) as (embedded, target):
        client = face.client(target, Account(token=target.token), None)  # type: ignore[arg-type]
        with client as forge:
            made = Side(request.param, forge, embedded, target, cluster)
            made.org = f"o{secrets.token_hex(3)}"
            forge.ensure_org(made.org)
            yield made
    cluster.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on both faces, unless it asks for one of them."""
    if "side" in metafunc.fixturenames:
        named = [kind for kind in ("github", "gitlab") if kind in metafunc.fixturenames]
        kinds = named or ["github", "gitlab"]
        metafunc.parametrize("side", kinds, indirect=True, scope="module")


@pytest.fixture
def github(side: Side) -> Side:
    """Ask for an action of GitHub."""
    return side


@pytest.fixture
def gitlab(side: Side) -> Side:
    """Ask for an action of GitLab."""
    return side


def test_a_repository_is_published_once_with_its_modes(side: Side) -> None:
    repo = side.repo()
    step = (f"publish:{side.kind}", {"repoUrl": side.url(repo.name), "sourcePath": "."})

    first, again = side.run(step), side.run(step)

    (commit,) = side.forge.commits(repo)
    assert first.outputs == {**again.outputs, "s1": {**again.outputs["s1"], **_created(first)}}
    assert commit.id == first.outputs["s1"]["commitHash"]
    assert commit.requester == "user:default/tester"
    assert side.forge.special_files(repo, commit.id)[RUN].mode == EXECUTABLE
    found = side.forge.repo(repo)
    assert found is not None
    assert found.private
    page = side.forge.capabilities.pages.folder(found.web_url, "main").rstrip("/")
    assert first.outputs["s1"]["repoContentsUrl"] == page


def _created(result: TaskResult) -> dict[str, Any]:
    return {key: value for key, value in result.outputs["s1"].items() if key == "created"}


def test_the_first_branch_is_the_one_that_the_template_names(side: Side) -> None:
    repo = side.repo()
    step = (f"publish:{side.kind}", {"repoUrl": side.url(repo.name), "defaultBranch": "master"})

    first, again = side.run(step), side.run(step)

    found = side.forge.repo(repo)
    assert found is not None
    assert found.default_branch == "master"
    assert side.forge.head(repo) is None
    assert len(side.forge.commits(repo, ref="master")) == 1
    assert first.outputs["s1"]["commitHash"] == again.outputs["s1"]["commitHash"]
    assert first.outputs["s1"]["repoContentsUrl"].endswith("/blob/master")


def test_files_of_many_megabytes_are_published(side: Side) -> None:
    """What the embedded forge keeps on disk while it receives it."""
    repo, data = side.repo(), secrets.token_bytes(5 * 1024 * 1024)
    step = (f"publish:{side.kind}", {"repoUrl": side.url(repo.name), "sourcePath": "."})

    done = side.run(step, files={"s/large.bin": data})

    found = side.forge.read(repo, PurePosixPath("large.bin"), done.outputs["s1"]["commitHash"])
    assert found is not None
    assert found.data == data


def test_other_files_for_the_same_repository_are_a_conflict(side: Side) -> None:
    repo = side.seeded()

    with pytest.raises(ConflictError, match="was not made from these files"):
        side.run((f"publish:{side.kind}", {"repoUrl": side.url(repo.name)}))


def test_a_project_that_exists_can_be_skipped(gitlab: Side) -> None:
    repo = gitlab.seeded()
    given = {"repoUrl": gitlab.url(repo.name), "skipExisting": True}

    done = gitlab.run(("publish:gitlab", given))

    found = gitlab.forge.repo(repo)
    assert found is not None
    assert done.outputs["s1"] == {
        "remoteUrl": found.web_url,
        "repoContentsUrl": f"{found.web_url}/-/blob/main",
        "projectId": found.number,
        "created": False,
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"repoUrl": "elsewhere.example?owner=a&repo=b"}, "repoUrl"),
        ({"token": "secret-of-somebody"}, "token"),
        ({"sourcePath": "nowhere"}, "sourcePath"),
        ({"nobodyKnowsThis": 1}, "nobodyKnowsThis"),
    ],
)
def test_what_cannot_be_published_is_refused_by_its_field(
    side: Side, given: Mapping[str, Any], field: str
) -> None:
    repo = side.repo()

    with pytest.raises(InvalidInputError) as refused:
        side.run((f"publish:{side.kind}", {"repoUrl": side.url(repo.name), **given}))

    assert field in str(refused.value)
    assert "secret-of-somebody" not in str(refused.value)
    assert side.forge.repo(repo) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"repoUrl": "HOST?owner=elsewhere/team&repo=b"}, "is outside of this platform's group"),
        ({"sourcePath": False}, "sourcePath: False would make an empty project"),
    ],
)
def test_what_gitlab_alone_can_be_asked_for_is_refused(
    gitlab: Side, given: Mapping[str, Any], message: str
) -> None:
    repo = gitlab.repo()
    wanted = {"repoUrl": gitlab.url(repo.name), **given}
    wanted["repoUrl"] = wanted["repoUrl"].replace("HOST", gitlab.host)

    with pytest.raises(InvalidInputError, match=message):
        gitlab.run(("publish:gitlab", wanted))

    assert gitlab.forge.repo(repo) is None


def test_the_action_of_another_forge_is_refused(side: Side) -> None:
    other, title = ("gitlab", "GitHub") if side.kind == "github" else ("github", "GitLab")

    with pytest.raises(RefusedError, match=f"this platform's forge is {title}"):
        side.run((f"publish:{other}", {"repoUrl": side.url("x")}))


def test_inputs_that_older_templates_carry_are_named_and_ignored(side: Side) -> None:
    given = {"repoUrl": side.url(side.repo().name), "allowedHosts": ["github.com"]}

    done = side.run((f"publish:{side.kind}", given))

    assert any("allowedHosts: is no input of publish" in line for line in done.log)


def test_the_branch_is_protected_as_backstage_protects_it(github: Side) -> None:
    repo = github.repo()
    given = {
        "repoUrl": github.url(repo.name),
        "requiredApprovingReviewCount": 2,
        "requiredStatusCheckContexts": ["build"],
    }

    for _ in range(2):
        github.run(("publish:github", given))

    with pytest.raises(OrderkitError):
        github.write(repo, {"pushed.txt": b"x"})
    open_repo = github.repo()
    unprotected = {"repoUrl": github.url(open_repo.name), "protectDefaultBranch": False}
    github.run(("publish:github", unprotected))
    github.write(open_repo, {"pushed.txt": b"x"})


def test_what_changes_nothing_here_is_said(side: Side) -> None:
    given = {"repoVisibility": "internal", "topics": ["shop"]}

    done = side.run((f"publish:{side.kind}", {"repoUrl": side.url(side.repo().name), **given}))

    assert "not used: topics" in done.log
    assert "repoVisibility: internal is made private" in done.log


def test_a_plan_that_protects_no_branch_is_told_and_the_files_are_published(github: Side) -> None:
    """The answer is a free plan's, about a private repository."""
    message = b'{"message": "Upgrade to GitHub Pro or make this repository public"}'
    free_plan = Decision(Fault.REFUSE_BEFORE, Falsehood(403, message))
    plan = Listed([free_plan], lambda _, path: path.endswith("/branches/main/protection"))
    repo = github.repo()

    with github.through(plan) as limited:
        given = {"repoUrl": limited.url(repo.name)}
        done = limited.run(("publish:github", given))

    assert done.outputs["s1"]["commitHash"] == github.forge.head(repo)
    (line,) = (line for line in done.log if line.startswith("main is not protected: "))
    assert "Upgrade to GitHub Pro" in line


PULL: dict[str, dict[str, Any]] = {
    "github": {"action": "publish:github:pull-request", "url": "remoteUrl"},
    "gitlab": {"action": "publish:gitlab:merge-request", "url": "mergeRequestUrl"},
}


def _proposal(side: Side, repo: RepoId, **given: Any) -> Step:
    common = {"branchName": "change", "title": "Add it", "description": "Please"}
    action: str = PULL[side.kind]["action"]
    return action, {"repoUrl": side.url(repo.name), **common, **given}


def test_files_are_proposed_once_and_not_again_after_the_merge(side: Side) -> None:
    repo = side.seeded()
    step = _proposal(side, repo, targetPath="sub", sourcePath=".")

    first, again = side.run(step), side.run(step)

    (pull,) = side.forge.pulls(repo)
    assert first.outputs == again.outputs
    assert first.outputs["s1"][PULL[side.kind]["url"]] == pull.web_url
    assert first.outputs["s1"]["targetBranchName"] == "main"
    assert (pull.title, pull.body.strip(), pull.requester) == (
        "Add it", "Please", "user:default/tester",
    )  # fmt: skip
    tree = side.forge.tree(repo, pull.head_commit)
    assert {str(path) for path in tree} == {"a.txt", "sub/README.md", "sub/run.sh"}
    special = side.forge.special_files(repo, pull.head_commit)
    assert special[PurePosixPath("sub/run.sh")].mode == EXECUTABLE
    merging = Operation("merge", "user:default/t", "merge")
    side.forge.merge_pull(
        repo, pull.number, head=pull.head_commit, style=MergeStyle.MERGE, operation=merging
    )
    assert side.run(step).outputs == first.outputs
    assert not list(side.forge.pulls(repo))


def test_a_proposal_that_was_cut_off_after_its_branch_is_finished(side: Side) -> None:
    repo = side.seeded()
    head = side.forge.head(repo)
    assert head is not None
    side.forge.ensure_branch(repo, "change", head)

    side.run(_proposal(side, repo))

    (pull,) = side.forge.pulls(repo)
    assert README in side.forge.tree(repo, pull.head_commit)


def test_a_branch_of_somebody_else_is_a_conflict(side: Side) -> None:
    repo = side.seeded()
    head = side.forge.head(repo)
    assert head is not None
    side.forge.ensure_branch(repo, "change", head)
    side.write(repo, {"theirs.txt": b"t"}, branch="change")

    with pytest.raises(ConflictError, match="the branch change exists and holds other commits"):
        side.run(_proposal(side, repo))

    assert not list(side.forge.pulls(repo))
    if side.kind == "github":
        side.run(_proposal(side, repo, update=True))
        (pull,) = side.forge.pulls(repo)
        assert len(side.forge.compare(repo, "main", "change")) == 2
        assert README in side.forge.tree(repo, pull.head_commit)


def test_nothing_to_propose_is_said_and_makes_no_branch(github: Side) -> None:
    repo = github.seeded({"README.md": b"hello\n", "run.sh": b"#!/bin/sh\n"})

    with pytest.raises(RefusedError, match="main has these files already"):
        github.run(_proposal(github, repo))
    done = github.run(_proposal(github, repo, createWhenEmpty=False))

    assert done.outputs["s1"] == {}
    assert github.forge.head(repo, "change") is None


def test_files_are_deleted_by_a_proposal(github: Side) -> None:
    repo = github.seeded({"old.txt": b"x"})

    github.run(_proposal(github, repo, filesToDelete=["old.txt"]))

    (pull,) = github.forge.pulls(repo)
    assert PurePosixPath("old.txt") not in github.forge.tree(repo, pull.head_commit)


def test_a_proposal_of_no_file_is_refused(gitlab: Side) -> None:
    repo = gitlab.seeded()

    with pytest.raises(InvalidInputError, match="commitAction: 'skip' would propose no file"):
        gitlab.run(_proposal(gitlab, repo, commitAction="skip"))

    assert gitlab.forge.head(repo, "change") is None


def test_a_proposal_to_a_repository_that_is_not_there_is_refused(side: Side) -> None:
    with pytest.raises(InvalidInputError, match="does not exist on the forge, or is hidden"):
        side.run(_proposal(side, side.repo()))


def test_a_file_that_must_be_new_and_is_not_is_a_conflict(gitlab: Side) -> None:
    repo = gitlab.seeded({"README.md": b"theirs\n"})

    with pytest.raises(ConflictError, match=r"README\.md exists already, and commitAction"):
        gitlab.run(_proposal(gitlab, repo, commitAction="create"))

    assert gitlab.forge.head(repo, "change") is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"branchName": "main"}, "branchName"),
        ({"token": "t"}, "token"),
        ({"targetBranchName": "nowhere"}, "targetBranchName"),
    ],
)
def test_what_cannot_be_proposed_is_refused_by_its_field(
    side: Side, given: Mapping[str, Any], field: str
) -> None:
    repo = side.seeded()

    with pytest.raises(InvalidInputError, match=field):
        side.run(_proposal(side, repo, **given))

    assert side.forge.head(repo, "change") is None


def test_orders_and_the_platform_s_own_repositories_are_closed_to_templates(side: Side) -> None:
    order = side.seeded({str(order_file.PATH): b"kind: x\n"})
    side.forge.ensure_org(LEDGER.owner)

    shouted = RepoId(LEDGER.owner.upper(), LEDGER.name.title())  # forges ignore case
    for repo, rule in (
        (order, "is an order's repository"),
        (LEDGER, "of the platform itself"),
        (shouted, "of the platform itself"),
    ):
        action, given = _proposal(side, repo)
        url = side.url(repo.name).replace(side.org, repo.owner)
        with pytest.raises(InvalidInputError, match=rule):
            side.run((action, {**given, "repoUrl": url}))


@pytest.mark.parametrize("given", [{}, {"defaultBranch": "trunk"}], ids=["main", "another branch"])
@pytest.mark.parametrize(
    "holds", [{}, {"s/.orderkit/order.yaml": ORDER}], ids=["files", "an order"]
)
def test_nothing_is_published_into_an_order_or_the_platform_s_own_repositories(
    side: Side, given: Mapping[str, Any], holds: Mapping[str, bytes]
) -> None:
    order = side.seeded({str(order_file.PATH): ORDER.replace(b"stage1", b"stage2")})
    side.forge.ensure_org(LEDGER.owner)
    side.forge.ensure_repo(LEDGER, description="")

    for repo, rule in (
        (order, "was not made from these|with other values|defaultBranch"),
        (LEDGER, "of the platform itself|defaultBranch"),
    ):
        before = side.forge.head(repo)
        url = side.url(repo.name).replace(side.org, repo.owner)
        step = (f"publish:{side.kind}", {"repoUrl": url, "sourcePath": ".", **given})
        with pytest.raises(OrderkitError, match=rule):
            side.run(step, files={**FILES, **holds})

        assert [side.forge.head(repo, name) for name in ("main", "trunk")] == [before, None]


def test_a_webhook_is_added_once_and_only_to_what_the_task_published(github: Side) -> None:
    repo = github.repo()
    publish = ("publish:github", {"repoUrl": github.url(repo.name), "protectDefaultBranch": False})
    given = {
        "repoUrl": github.url(repo.name),
        "webhookUrl": "http://127.0.0.1:9/hook",
        "contentType": "json",
        "webhookSecret": "s3cret-of-the-hook",
    }
    hook = ("github:webhook", given)

    for _ in range(2):
        github.run(publish, hook)

    hooks = [grant for grant in github.forge.foreign_access(repo) if "webhook" in grant.holder]
    assert [grant.holder for grant in hooks] == ["webhook:http://127.0.0.1:9/hook"]
    with pytest.raises(InvalidInputError, match="an earlier step of this task published"):
        github.run(hook)
    for name, value in (("contentType", "form"), ("insecureSsl", True), ("active", False)):
        with pytest.raises(InvalidInputError, match=name):
            github.run(publish, ("github:webhook", {**given, name: value}))


WORKFLOW = b"on:\n  workflow_dispatch:\n    inputs:\n      stage: {}\n"


def _workflow(github: Side) -> tuple[RepoId, Step]:
    repo = github.seeded({".github/workflows/go.yml": WORKFLOW})
    given = {
        "repoUrl": github.url(repo.name),
        "workflowId": "go.yml",
        "branchOrTagName": "main",
        "workflowInputs": {"stage": "blue"},
        "returnWorkflowRunDetails": True,
    }
    return repo, ("github:actions:dispatch", given)


def test_a_workflow_is_started_once_a_task(github: Side) -> None:
    repo, step = _workflow(github)
    runs = github.embedded.github.workflows.runs
    before = len(runs)

    first, again = github.run(step), github.run(step)
    github.run(step, task="task-2")

    assert first.outputs == again.outputs
    assert first.outputs["s1"]["workflowRunHtmlUrl"].startswith(f"{github.target.url}/{repo}/")
    assert [run.inputs for run in runs[before:]] == [{"stage": "blue"}] * 2


def test_a_workflow_whose_start_was_cut_off_is_not_started_twice(github: Side) -> None:
    """The status says that it was asked for, and the runs that it began."""
    repo, step = _workflow(github)
    runs = github.embedded.github.workflows.runs
    before = len(runs)
    github.run(step)
    head = github.forge.head(repo)
    assert head is not None
    (status,) = github.forge.statuses(repo, head)
    pending = type(status)(status.context, "pending", status.description)
    github.forge.set_status(repo, head, pending)

    github.run(step)
    assert len(runs) == before + 1
    del runs[before:]
    github.forge.set_status(repo, head, pending)
    github.run(step)
    assert len(runs) == before + 1


def test_a_run_that_github_shows_later_is_waited_for(github: Side) -> None:
    none_yet = Falsehood(200, b'{"total_count": 0, "workflow_runs": []}')
    plan = Listed([Decision(Fault.REFUSE_BEFORE, none_yet)], lambda _, path: "/runs" in path)

    with github.through(plan) as late:
        repo, step = _workflow(late)
        done = late.run(step)

    assert not plan.decisions
    shown = done.outputs["s1"]["workflowRunHtmlUrl"]
    assert shown.startswith(f"{github.target.url}/{repo}/")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workflowId": "none.yml"}, "has no workflow none.yml"),
        ({"branchOrTagName": "nowhere"}, "nowhere"),
        ({"workflowInputs": {"other": "x"}}, "Unexpected inputs"),
    ],
)
def test_a_workflow_that_cannot_start_is_refused(
    github: Side, given: Mapping[str, Any], message: str
) -> None:
    _, (action, known) = _workflow(github)
    before = len(github.embedded.github.workflows.runs)

    with pytest.raises(OrderkitError, match=message):
        github.run((action, {**known, **given}))

    assert len(github.embedded.github.workflows.runs) == before


def _resources(name: str, **given: str) -> Step:
    common = {
        "appName": name,
        "argoInstance": "main",
        "namespace": "shop",
        "repoUrl": "https://forge.example/a/b",
        "path": "deploy",
    }
    return "argocd:create-resources", {**common, **given}


def test_project_and_application_are_made_once_and_never_replaced(github: Side) -> None:
    cluster = github.cluster
    keys = [ObjectKey(kind, "cart", "argocd") for kind in (APP_PROJECT, APPLICATION)]

    github.run(_resources("cart"))
    first = [cluster.get(key) for key in keys]
    github.run(_resources("cart"))

    assert [cluster.get(key) for key in keys] == first
    project, application = first
    assert project is not None
    assert application is not None
    assert project["spec"]["sourceRepos"] == ["https://forge.example/a/b"]
    assert application["spec"]["project"] == "cart"
    assert application["metadata"]["labels"] == {"backstage-name": "cart"}
    for given in ({"namespace": "other"}, {"path": "x", "projectName": "cart"}):
        with pytest.raises(ConflictError, match="exists in argocd and says something else"):
            github.run(_resources("cart", **given))
    assert [cluster.get(key) for key in keys] == first


def test_of_two_who_make_the_same_application_at_once_both_have_it(github: Side) -> None:
    rival: Any = Rival(github.cluster, "create", lambda: github.run(_resources("both")))

    replace(github, cluster=rival).run(_resources("both"))

    assert rival.has_acted
    assert github.cluster.get(ObjectKey(APPLICATION, "both", "argocd")) is not None


def test_of_two_who_make_different_projects_at_once_the_first_wins(github: Side) -> None:
    theirs = _resources("race", namespace="theirs")
    rival: Any = Rival(github.cluster, "create", lambda: github.run(theirs))

    with pytest.raises(ConflictError, match="AppProject race exists in argocd and says something"):
        replace(github, cluster=rival).run(_resources("race"))

    project = github.cluster.get(ObjectKey(APP_PROJECT, "race", "argocd"))
    assert project is not None
    assert project["spec"]["destinations"][0]["namespace"] == "theirs"


def test_an_application_in_argo_cd_s_own_namespace_is_refused(github: Side) -> None:
    with pytest.raises(InvalidInputError, match="is Argo CD's own"):
        github.run(_resources("evil", namespace="argocd"))

    assert github.cluster.get(ObjectKey(APP_PROJECT, "evil", "argocd")) is None
