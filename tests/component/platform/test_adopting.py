"""What was there before Orderkit becomes an order, and its XR is not touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from commands import Command

from ground.names import RepoId
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.core.order import order_file
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
XR_FILE = PurePosixPath("manifests/bay.yaml")
HAND = "user:default/hand"


def xr_text(team: str, stage: str = "stage2", name: str = "") -> str:
    return (
        "# ours since 2024\n"
        f"apiVersion: {XGARAGE.api_version}\nkind: XGarage\n"
        f"metadata: {{name: {name or f'garage-{team}'}}}\n"
        f"spec:\n  stage: {stage}   # loud\n  teamName: {team}\n"
    )


def by_hand(platform: Running, repo: RepoId, files: dict[str, str]) -> None:
    """Make a repository as somebody without Orderkit does."""
    forge = platform.platform.forge
    forge.ensure_repo(repo, description="")
    changes = [FileChange(PurePosixPath(p), t.encode(), None) for p, t in files.items()]
    forge.write(repo, changes, Operation(f"by-hand-{repo.name}", HAND, "by hand"))


def ready(orderkit: Command, order: str) -> None:
    until(
        SystemClock(),
        lambda: orderkit("status", order, "--check").code,
        lambda code: code == 0,
        timeout_s=90,
        goal=f"{order} being Ready",
    )


def test_a_repository_made_by_hand_becomes_an_order(
    orderkit: Command, platform: Running, team: str
) -> None:
    repo, forge = RepoId(team, f"garage-{team}"), platform.platform.forge
    by_hand(platform, repo, {str(XR_FILE): xr_text(team), "README.md": "# Our bay\n"})

    adopted = orderkit("adopt", str(repo), "--requester", "user:default/eve", "--json")

    assert adopted.code == 0, adopted.err
    told = json.loads(adopted.out)
    assert told["written"] == [".orderkit/order.yaml", "catalog-info.yaml"]
    ready(orderkit, f"garage-{team}")
    kept = {path: forge.read(repo, path, "main") for path in (XR_FILE, PurePosixPath("README.md"))}
    texts = {path: found.text for path, found in kept.items() if found}
    assert texts == {XR_FILE: xr_text(team), PurePosixPath("README.md"): "# Our bay\n"}
    record = forge.read(repo, order_file.PATH, "main")
    assert record is not None
    found = order_file.parse(record.data, name="record")
    assert (found.kit, found.requester) == ("garage", "user:default/eve")
    assert found.ordered == {"teamName": team, "stage": "stage2"}
    assert platform.platform.catalog.entity(f"component:default/garage-{team}") is not None
    assert orderkit("change", f"garage-{team}", "stage=stage3", "--direct").code in {0, 4}


def test_adopting_again_changes_nothing(orderkit: Command, platform: Running, team: str) -> None:
    repo = RepoId(team, f"garage-{team}")
    by_hand(platform, repo, {str(XR_FILE): xr_text(team)})
    assert orderkit("adopt", str(repo)).code == 0
    head = platform.platform.forge.head(repo)

    again = orderkit("adopt", str(repo), "--json")

    told = json.loads(again.out)
    assert (again.code, told["changed"], told["written"]) == (0, False, [])
    assert platform.platform.forge.head(repo) == head


def test_of_several_those_that_can_be_are_adopted_and_the_others_named(
    orderkit: Command, platform: Running, team: str
) -> None:
    """They are background work: people's requests to a forge with limits pass."""
    assert orderkit("team", "add", f"{team}-b").code == 0
    repos = [RepoId(name, f"garage-{name}") for name in (team, f"{team}-b")]
    for repo in repos:
        by_hand(platform, repo, {str(XR_FILE): xr_text(repo.owner)})

    done = orderkit("adopt", str(repos[0]), "nobody/nothing", "XGarage/none", str(repos[1]))
    as_json = orderkit("adopt", *map(str, repos), "--json")

    assert [f"{repo.name} is an order now" in done.out for repo in repos] == [True, True]
    assert done.code == 1
    assert "- nobody/nothing: nobody/nothing: no such repository, or it is empty" in done.err
    assert "- XGarage/none: " in done.err
    assert (as_json.code, "--json is for one repository" in as_json.err) == (2, True)
    for repo in repos:
        ready(orderkit, repo.name)


def test_a_dry_run_writes_nothing(orderkit: Command, platform: Running, team: str) -> None:
    repo = RepoId(team, f"garage-{team}")
    by_hand(platform, repo, {str(XR_FILE): xr_text(team)})
    head = platform.platform.forge.head(repo)

    tried = orderkit("adopt", str(repo), "--dry-run")

    assert tried.code == 0
    assert "would add  .orderkit/order.yaml" in tried.out
    assert platform.platform.forge.head(repo) == head
    assert orderkit("status", f"garage-{team}").code == 1


def living_xr(team: str, **more: Any) -> Manifest:
    """Return an XR as Argo CD applies it."""
    name = f"garage-{team}"
    tracker = f"{name}:blog.opsbogus.dev/XGarage:argocd/{name}"
    meta = {"name": name, "annotations": {"argocd.argoproj.io/tracking-id": tracker}, **more}
    spec = {"teamName": team, "stage": "stage1"}
    return {"apiVersion": XGARAGE.api_version, "kind": "XGarage", "metadata": meta, "spec": spec}


def test_a_living_xr_becomes_an_order_and_stays_the_same_object(
    orderkit: Command, platform: Running, team: str
) -> None:
    cluster, key = platform.platform.cluster, ObjectKey(XGARAGE, f"garage-{team}")
    made = cluster.create(living_xr(team), owner="kubectl")

    adopted = orderkit("adopt", f"xgarage/garage-{team}", "--json")

    assert adopted.code == 0, adopted.err
    assert "manifests/xgarage.yaml" in json.loads(adopted.out)["written"]
    ready(orderkit, f"garage-{team}")
    living = cluster.get(key)
    assert living is not None
    assert metadata(living)["uid"] == metadata(made)["uid"]
    assert living["spec"]["stage"] == "stage1"
    again = json.loads(orderkit("adopt", f"XGarage/garage-{team}", "--json").out)
    assert (again["changed"], again["written"]) == (False, [])


@pytest.mark.parametrize(
    ("files", "code", "says", "reason"),
    [
        (
            {"manifests/x.yaml": "CONFIG", "values.yaml": "a: 1"},
            1,
            "no file below manifests/",
            "no XR",
        ),
        ({"bay.yaml": "XR"}, 4, "git mv bay.yaml manifests/", "not where Argo CD looks"),
        ({"manifests/a.yaml": "XR", "manifests/b.yaml": "XR"}, 4, "holds 2 XRs", "two orders"),
        ({"manifests/a.yaml": "STAGE9"}, 2, "stage9", "a value that the form refuses"),
        ({"manifests/a.yaml": "OTHER"}, 2, "is not the order's id", "another name"),
        ({"manifests/a.yaml": "{"}, 1, "manifests/a.yaml", "unreadable"),
    ],
)
def test_what_is_no_order_is_refused_and_stays_as_it_is(
    orderkit: Command,
    platform: Running,
    team: str,
    *,
    files: dict[str, str],
    code: int,
    says: str,
    reason: str,
) -> None:
    texts = {
        "XR": xr_text(team),
        "STAGE9": xr_text(team, stage="stage9"),
        "CONFIG": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
        "OTHER": xr_text(team, name="bay-1"),
    }
    repo = RepoId(team, f"garage-{team}")
    by_hand(platform, repo, {path: texts.get(text, text) for path, text in files.items()})
    head = platform.platform.forge.head(repo)

    refused = orderkit("adopt", str(repo))

    assert (refused.code, says in refused.err) == (code, True), f"{reason}: {refused.err}"
    assert platform.platform.forge.head(repo) == head


def test_a_repository_of_another_name_is_refused(
    orderkit: Command, platform: Running, team: str
) -> None:
    repo = RepoId(team, "bay")
    by_hand(platform, repo, {str(XR_FILE): xr_text(team)})

    refused = orderkit("adopt", str(repo))

    assert refused.code == 2
    assert f"is not the repository of this order, which is {team}/garage-{team}" in refused.err


@pytest.mark.parametrize(
    ("subject", "code", "says"),
    [
        ("garage", 2, "names neither a repository nor a live XR"),
        ("nobody/nothing", 1, "no such repository"),
        ("XGarage/nothing", 1, "is not in the cluster"),
    ],
)
def test_what_is_not_there_is_told(orderkit: Command, subject: str, code: int, says: str) -> None:
    refused = orderkit("adopt", subject)

    assert (refused.code, says in refused.err) == (code, True), refused.err


@pytest.fixture
def undelivered(platform: Running, team: str) -> Iterator[Manifest]:
    """A live XR that no order delivers; a finalizer keeps it while it is being deleted."""
    cluster, key = platform.platform.cluster, ObjectKey(XGARAGE, f"garage-{team}")
    yield cluster.create(living_xr(team, finalizers=["orderkit.dev/test"]), owner="kubectl")
    cluster.patch(key, {"metadata": {"finalizers": None}}, owner="kubectl")


def test_an_xr_that_is_being_deleted_becomes_no_order(
    orderkit: Command, platform: Running, undelivered: Manifest
) -> None:
    name = metadata(undelivered)["name"]
    platform.platform.cluster.delete(ObjectKey(XGARAGE, name))

    refused = orderkit("adopt", f"xgarage/{name}")

    assert (refused.code, "is being deleted" in refused.err) == (4, True), refused.err
    assert f"no order '{name}'" in orderkit("status", name).err


def test_a_repository_of_that_name_that_is_no_order_is_left_alone(
    orderkit: Command, platform: Running, team: str, undelivered: Manifest
) -> None:
    repo = RepoId(team, f"garage-{team}")
    by_hand(platform, repo, {"README.md": "# ours\n"})
    head = platform.platform.forge.head(repo)

    refused = orderkit("adopt", f"xgarage/{metadata(undelivered)['name']}")

    assert (refused.code, f"orderkit adopt {repo}" in refused.err) == (4, True), refused.err
    assert platform.platform.forge.head(repo) == head
