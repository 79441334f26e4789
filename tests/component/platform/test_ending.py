"""The end of an order while the world goes on around it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from commands import Command
from pusher import Pusher
from rivals import Rival
from roguery import deliver_main, unprotect

from compositions.composed import COMPOSITE_LABEL
from ground.names import MAIN, OrderId, RepoId, TeamName
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey
from ground.shapes import changed
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import token
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.order import end_record, ledger
from orderkit.core.order.end_record import DEPENDS_ON, PROTECTED, Phase
from orderkit.flows.end.destroying import destroy, is_orphaned, left_in_the_cluster
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.end.remaining_objects import Absence
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot, published_pack, read_text
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import LINK, FileChange, Operation
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

XR = PurePosixPath("manifests/xgarage.yaml")
KEEP = PurePosixPath("manifests/.gitkeep")
EVE = "user:default/eve"


def test_what_is_assembled_while_the_end_mark_travels_is_seen_to_go_too(
    orderkit: Command, platform: Running, team: str
) -> None:
    """Somebody pushes the XR after the end looked at what there is and before it empties."""
    xr = register_without_manifests(orderkit, platform, team)
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")

    def push_late(step: str, _: str) -> None:
        if step != "marked":
            return
        write(platform, RepoId(team, f"garage-{team}"), {XR: xr})
        until(
            SystemClock(),
            lambda: platform.platform.cluster.get(sheet),
            lambda found: found is not None,
            timeout_s=90,
            goal="the late assembly",
        )

    ended = destroy(platform.platform, EndRequest(f"garage-{team}", EVE), on_step=push_late)

    assert sheet in ended.record.objects
    assert platform.platform.cluster.get(sheet) is None


def register_without_manifests(orderkit: Command, platform: Running, team: str) -> bytes:
    """Enter an order that holds no XR yet; return the XR that belongs there."""
    donor = f"{team}-donor"
    assert orderkit("team", "add", donor).code == 0
    assert orderkit("order", "garage", f"team_name={donor}", "stage=stage2").code == 0
    forge, source = platform.platform.forge, RepoId(donor, f"garage-{donor}")
    head = forge.head(source)
    assert head is not None
    found = {path: forge.read(source, path, head) for path in forge.tree(source, head)}
    files = {
        path: each.data.replace(donor.encode(), team.encode())
        for path, each in found.items()
        if each
    }
    xr = files.pop(XR)
    repo = RepoId(team, f"garage-{team}")
    forge.ensure_repo(repo, description="")
    write(platform, repo, {**files, KEEP: b""})
    register(
        platform.platform, Registration(OrderId(f"garage-{team}"), "garage", TeamName(team), EVE)
    )
    return xr


def write(platform: Running, repo: RepoId, files: dict[PurePosixPath, bytes]) -> None:
    changes = [FileChange(path, data, None) for path, data in files.items()]
    platform.platform.forge.write(
        repo, changes, Operation(f"by-hand-{repo}-{len(files)}", EVE, "by hand")
    )
    deliver_main(platform.platform, repo)


def test_a_protected_order_is_not_ended_until_git_lifts_it(
    orderkit: Command, platform: Running, team: str
) -> None:
    order = placed(orderkit, team)
    annotate(platform, team, PROTECTED, "audited until May")

    refused = orderkit("destroy", "--yes", order)

    assert refused.code == 4
    assert f"{order} is protected and cannot end: audited until May" in refused.err
    assert f"remove the annotation {PROTECTED}" in refused.err
    delivered(orderkit, order)

    annotate(platform, team, PROTECTED, "False")
    assert orderkit("destroy", "--yes", order).code == 0


def test_an_end_that_somebody_else_finishes_is_over_for_both(
    orderkit: Command, platform: Running, team: str
) -> None:
    order, steps = placed(orderkit, team), []

    def on_step(step: Phase, _: str) -> None:
        steps.append(step)
        if step == "unregistering":
            assert orderkit("destroy", "--yes", order).code == 0

    ended = destroy(platform.platform, EndRequest(order, EVE), on_step=on_step)

    assert (ended.changed, steps[-1]) == (False, "unregistering")
    paths = ledger_snapshot(platform.platform).blobs
    assert ledger.ending_order(paths, order) is None
    (tombstone,) = ledger.tombstones(paths, order)
    text = read_text(platform.platform.forge, platform.platform.ledger, tombstone, MAIN)
    assert ended.record == end_record.parse(text or "", name=str(tombstone))


@pytest.mark.parametrize(("port", "method"), [("cluster", "get"), ("forge", "write")])
def test_an_end_that_somebody_else_finishes_before_its_mark_does_not_begin_again(
    orderkit: Command, platform: Running, team: str, port: str, method: str
) -> None:
    order = placed(orderkit, team)
    rival: Any = Rival(
        getattr(platform.platform, port), method, lambda: orderkit("destroy", "--yes", order)
    )
    met: Any = replace(platform.platform, **{port: rival})

    ended = destroy(met, EndRequest(order, EVE), on_step=lambda *_: None)

    assert (rival.has_acted, ended.changed) == (True, False)
    paths = ledger_snapshot(platform.platform).blobs
    assert len(ledger.tombstones(paths, order)) == 1
    assert ledger.ending_order(paths, order) is None
    assert ledger.living_order(paths, order) is None


def test_an_end_leaves_the_repository_of_an_order_that_was_placed_since(
    orderkit: Command, platform: Running, team: str
) -> None:
    order = placed(orderkit, team)

    def on_step(step: Phase, _: str) -> None:
        if step == "unregistering":
            assert orderkit("destroy", "--yes", order, "--delete-repository").code == 0
            assert placed(orderkit, team) == order

    request = EndRequest(order, EVE, repository="delete")
    ended = destroy(platform.platform, request, on_step=on_step)

    assert not ended.changed
    assert platform.platform.forge.repo(RepoId(team, order)) is not None
    assert ledger.living_order(ledger_snapshot(platform.platform).blobs, order) is not None


def test_an_order_that_another_one_needs_is_not_ended_before_it(
    orderkit: Command, platform: Running, team: str
) -> None:
    needed, user = placed(orderkit, team), f"{team}-user"
    assert orderkit("team", "add", user).code == 0
    using = placed(orderkit, user)
    annotate(platform, user, DEPENDS_ON, f"something-else, {needed}")
    delivered(orderkit, using)

    refused = orderkit("destroy", "--yes", needed)

    assert refused.code == 4
    assert f"{needed} is needed by {using} (its annotation {DEPENDS_ON})" in refused.err
    assert orderkit("destroy", "--yes", using).code == 0
    assert orderkit("destroy", "--yes", needed).code == 0


def test_what_a_finalizer_holds_is_told_and_the_same_command_goes_on_later(
    orderkit: Command, platform: Running, team: str
) -> None:
    order, cluster = placed(orderkit, team), platform.platform.cluster
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")
    hold(platform, sheet, ["example.org/backup"])

    stuck = until(
        SystemClock(),
        lambda: orderkit("destroy", "--yes", order, "--timeout", "3"),
        lambda done: "its deletion waits for example.org/backup" in done.err,
        timeout_s=90,
        goal="the end coming to what is held",
    )

    assert stuck.code == 5
    assert cluster.get(sheet) is not None
    hold(platform, sheet, [])
    assert orderkit("destroy", "--yes", order).code == 0
    assert cluster.get(sheet) is None


def test_what_was_composed_unseen_is_found_by_its_label(
    orderkit: Command, platform: Running, team: str
) -> None:
    order, cluster = placed(orderkit, team), platform.platform.cluster
    composed = (KindRef("v1", "ConfigMap"),)
    kit = changed(published_pack(platform.platform).kit("garage"), composes=composed)
    xr = ObjectKey(kit.kind, order)
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")
    other = ObjectKey(CONFIG_MAP, "somebody-elses", f"garage-{team}")
    strange = {"labels": {COMPOSITE_LABEL: order}, "name": other.name, "namespace": other.namespace}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": strange}, owner="test")

    keys = [xr, ObjectKey(NAMESPACE, f"garage-{team}")]
    left = Absence(platform.platform, OrderId(order), keys, kit).remaining()

    assert sheet in {each.key for each in left}
    assert other not in {each.key for each in left}, "no part of this order composed it"


def placed(orderkit: Command, team: str) -> str:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


def delivered(orderkit: Command, order: str) -> None:
    until(
        SystemClock(),
        lambda: orderkit("status", order, "--check").code,
        lambda code: code == 0,
        timeout_s=90,
        goal=f"delivery of {order}",
    )


def annotate(platform: Running, team: str, name: str, value: str) -> None:
    """Put an annotation on the order's XR, in Git."""
    repo = RepoId(team, f"garage-{team}")
    found = platform.platform.forge.read(repo, XR, "main")
    assert found is not None
    xr = yaml.safe_load(found.data)
    xr["metadata"].setdefault("annotations", {})[name] = value
    change = FileChange(XR, yaml11.dump(xr).encode(), found.sha)
    operation = Operation(f"annotate-{found.sha}", EVE, "by hand")
    platform.platform.forge.write(repo, [change], operation)
    deliver_main(platform.platform, repo)


def hold(platform: Running, key: ObjectKey, finalizers: list[str]) -> None:
    """Let an object's deletion wait, as a controller of another product would."""
    patch = {"metadata": {"finalizers": finalizers}}
    platform.platform.cluster.patch(key, patch, owner="backup")


class _CutError(Exception):
    """The end stops here."""


def test_an_end_that_begins_before_argo_cd_made_the_application_knows_its_kit(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0
    order = OrderId(f"garage-{team}")

    def cut(_step: Phase, _done: str) -> None:
        raise _CutError

    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as empty:
        for crd in argocd_crds():
            empty.apply(crd, owner="test")
        early = replace(platform.platform, cluster=empty)
        with pytest.raises(_CutError):
            destroy(early, EndRequest(order, EVE), on_step=cut)

    path = ledger.OrderEntry(TeamName(team), order).end_path
    found = platform.platform.forge.read(platform.platform.ledger, path, "main")
    assert found is not None
    assert end_record.parse(found.text, name=str(path)).kit == "garage"
    assert orderkit("destroy", "--yes", order).code == 0


def pusher_of(platform: Running, repo: RepoId, folder: Path) -> Pusher:
    """Open an order's ``main``, and clone its repository as somebody who may push."""
    unprotect(platform.platform, repo)
    url = f"{platform.platform.forge.base_url}/{repo}.git"
    return Pusher.cloned(folder, url, "orderkit", token(platform.settings.forge))


@pytest.mark.parametrize("what", ["a link that leaves", "submodules", "a link called .gitkeep"])
def test_pushed_links_and_submodules_do_not_hold_up_an_end(
    orderkit: Command, platform: Running, team: str, tmp_path: Path, what: str
) -> None:
    """Argo CD reads no commit that has a link out of the repository, or modules it cannot fetch."""
    order = placed(orderkit, team)
    forge, repo = platform.platform.forge, RepoId(team, order)
    pusher = pusher_of(platform, repo, tmp_path)
    link = {"a link that leaves": "away", "a link called .gitkeep": "manifests/.gitkeep"}.get(what)
    if link:
        (pusher.clone / link).symlink_to("/etc/passwd")
    else:
        (pusher.clone / ".gitmodules").write_text('[submodule "a"]\n\tpath = a\n\turl = ../a.git\n')
    pusher.git("add", "--all")
    pusher.git("commit", "--quiet", "--message", what)
    pusher.push()

    ended = orderkit("destroy", "--yes", order, "--archive-repository")

    assert ended.code == 0, ended.err
    head = forge.head(repo)
    assert head is not None
    special, tree = forge.special_files(repo, head), forge.tree(repo, head)
    assert [path for path, file in special.items() if file.mode == LINK] == []
    assert PurePosixPath(".gitmodules") not in tree
    assert [path for path in tree if path.is_relative_to("manifests")] == [KEEP]


def test_a_commit_that_the_forge_cannot_show_is_told_and_does_not_hold_up_an_end(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    """Gitea 1.27 answers nothing when it is to show such a commit; others show another text."""
    order = placed(orderkit, team)
    pusher = pusher_of(platform, RepoId(team, order), tmp_path)
    tree, head = (pusher.git("rev-parse", of).strip() for of in ("HEAD^{tree}", "HEAD"))
    lines = (
        f"tree {tree}\nparent {head}\n".encode(),
        b"author A\xe9 <a@x> 1700000000 +0000\ncommitter B <b@x> 1700000000 +0000\n\nodd\n",
    )
    (pusher.clone / "odd").write_bytes(b"".join(lines))
    odd = pusher.git("hash-object", "-tcommit", "-w", "--literally", "odd").strip()
    pusher.git("reset", "--quiet", "--hard", odd)
    pusher.push()

    shown = orderkit("status", order)
    repaired = orderkit("repair", order)
    ended = orderkit("destroy", "--yes", order)

    told = "the forge cannot show a commit of main: its author or message is not UTF-8"
    assert ended.code == 0, ended.err
    if not isinstance(platform.platform.forge, GiteaForge):
        assert (shown.code, told in shown.out) == (0, False), shown.err
        return
    assert (shown.code, repaired.code) == (0, 1), shown.err + repaired.err
    assert told in shown.out
    assert told in repaired.out
    assert "what to do  push a main without that commit" in repaired.out


def test_an_end_is_not_begun_without_an_answer(orderkit: Command, team: str) -> None:
    """A script has no terminal to ask on; what would go and stay is shown nevertheless."""
    order = f"garage-{team}"
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0

    refused = orderkit("destroy", order)
    in_json = orderkit("destroy", order, "--json")
    mistyped = orderkit("destroy", order, "--confirm", "garage-other")
    taking = orderkit("destroy", "--yes", order, "--take", "bucket")

    assert (refused.code, in_json.code, mistyped.code, taking.code) == (4, 4, 2, 2)
    assert "kit garage has none" in taking.err
    assert f"orderkit destroy {order} --yes" in refused.err
    assert f"  goes   XGarage.blog.opsbogus.dev {order}" in refused.err
    assert f"  goes   ConfigMap garage-{team}/spec-sheet" in refused.err
    assert f"  stays  its repository {team}/{order}, archived" in refused.err
    assert orderkit("status", order, "--json").json["phase"] == "Ready"
    deleting = orderkit("destroy", order, "--delete-repository", "--yes")
    assert deleting.code == 0
    assert f"  goes   its repository {team}/{order}, with its history" in deleting.err
    assert orderkit("destroy", order).code == 0, "it has ended already"


def test_a_terminal_is_asked(orderkit: Command, team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    order = f"garage-{team}"
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    refused = orderkit("destroy", order)
    assert refused.code == 4
    assert f"{order} was not ended" in refused.err
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert orderkit("destroy", order).code == 0


def test_what_the_cluster_keeps_of_an_order_is_told(platform: Running, team: str) -> None:
    """Claims of a StatefulSet, and what a provider may not delete."""
    cluster, home = platform.platform.cluster, f"left-{team}"
    modes = {"accessModes": ["ReadWriteOnce"]}
    template = {"metadata": {"name": "data"}, "spec": modes}
    meta = {"name": "db", "namespace": home}
    labels = {"matchLabels": {"app": "db"}}
    pod = {"metadata": {"labels": labels["matchLabels"]}, "spec": {"containers": []}}
    spec = {"serviceName": "db", "selector": labels, "template": pod}
    kept = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta}
    claim = {"name": "data-db-0", "namespace": home}
    size = {"resources": {"requests": {"storage": "1Gi"}}, **modes}
    for manifest in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}},
        {**kept, "spec": {**spec, "volumeClaimTemplates": [template]}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": size},
    ):
        cluster.create(manifest, owner="test")
    keys = [ObjectKey(Kind("apps", "v1", "StatefulSet"), "db", home)]

    told = list(left_in_the_cluster(platform.platform.cluster, keys))

    assert told == [f"PersistentVolumeClaim {home}/data-db-0: StatefulSet db made it"]
    space = ObjectKey(Kind("", "v1", "Namespace"), home)
    assert list(left_in_the_cluster(platform.platform.cluster, [space, *keys])) == []


def test_an_order_whose_repository_is_gone_is_protected_by_its_living_xr(
    orderkit: Command, platform: Running, team: str
) -> None:
    order, cluster = placed(orderkit, team), platform.platform.cluster
    xr = ObjectKey(published_pack(platform.platform).kit("garage").kind, order)
    protect = {"metadata": {"annotations": {PROTECTED: "audited"}}}
    cluster.patch(xr, protect, owner="admin")
    platform.platform.forge.delete_repo(RepoId(team, order))

    refused = orderkit("destroy", "--yes", order)
    cluster.patch(xr, {"metadata": {"annotations": {PROTECTED: None}}}, owner="admin")
    ended = orderkit("destroy", "--yes", order)

    assert refused.code == 4
    assert f"{order} is protected and cannot end: audited" in refused.err
    assert ended.code == 0, ended.err


def test_a_repository_that_somebody_broke_and_archived_is_opened_for_the_end(
    orderkit: Command, platform: Running, team: str
) -> None:
    """It is archived again then. Argo CD cannot read its manifests either."""
    order, forge = placed(orderkit, team), platform.platform.forge
    write(platform, RepoId(team, order), {PurePosixPath("manifests/broken.yaml"): b"{"})
    forge.archive(RepoId(team, order))

    assert orderkit("destroy", "--yes", order).code == 0

    found = forge.repo(RepoId(team, order))
    assert found is not None
    assert found.archived


def test_a_repository_that_somebody_deletes_at_the_last_moment_is_told_as_deleted(
    orderkit: Command, platform: Running, team: str
) -> None:
    order = placed(orderkit, team)

    def on_step(step: Phase, _: str) -> None:
        if step == "unregistering":
            platform.platform.forge.delete_repo(RepoId(team, order))

    ended = destroy(platform.platform, EndRequest(order, EVE), on_step=on_step)

    assert ended.record.repository == "delete"


SHEET = {"text": "its spec sheet", "name": "sheet", "unless": {"stage": "stage1"}, "ask": "Too?"}


@pytest.fixture
def surviving(platform: Running) -> Iterator[None]:
    """Let the garage's kit say for a while that something outlives its orders."""
    forge, pack = platform.platform.forge, platform.platform.pack_repo
    path = PurePosixPath("templates/garage/kit.yaml")

    def publish(data: bytes) -> bytes:
        seen = forge.read(pack, path, MAIN)
        assert seen is not None
        operation = Operation(f"kit-{seen.sha}", EVE, "another end")
        forge.write(pack, [FileChange(path, data, seen.sha)], operation)
        return seen.data

    before = forge.read(pack, path, MAIN)
    assert before is not None
    kit = yaml.safe_load(before.data)
    kit["spec"]["end"] = {"survives": [SHEET]}
    publish(yaml11.dump(kit).encode())
    yield
    publish(before.data)


@pytest.mark.usefixtures("surviving")
def test_only_what_the_kit_offers_is_taken_along_and_only_from_the_beginning(
    orderkit: Command, platform: Running, team: str
) -> None:
    order = placed(orderkit, team)

    def cut(_step: Phase, _done: str) -> None:
        raise _CutError

    unknown = orderkit("destroy", "--yes", order, "--take", "bucket")
    assert unknown.code == 2
    assert "is not a resource that an end can take along" in unknown.err
    assert "it has: sheet" in unknown.err
    assert ledger.ending_order(ledger_snapshot(platform.platform).blobs, order) is None
    with pytest.raises(_CutError):
        destroy(platform.platform, EndRequest(order, EVE), on_step=cut)

    late = orderkit("destroy", "--yes", order, "--take", "sheet")
    ended = orderkit("destroy", "--yes", order, "--take", "bucket")

    assert late.code == 4
    assert f"{order} is already ending and will not remove 'sheet'" in late.err
    assert "its spec sheet stays, remove it yourself" in late.err
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("spec", "is_kept"),
    [
        ({"deletionPolicy": "Orphan"}, True),
        ({"managementPolicies": ["Observe"]}, True),
        ({"managementPolicies": ["Create", "Observe", "Update"]}, True),
        ({"managementPolicies": ["*"], "deletionPolicy": "Orphan"}, True),
        ({"managementPolicies": ["*"]}, False),
        ({"managementPolicies": ["Observe", "Delete", "Create"]}, False),
        ({}, False),
    ],
)
def test_what_a_provider_may_not_delete_stays(spec: dict[str, Any], *, is_kept: bool) -> None:
    assert is_orphaned({"spec": spec}) is is_kept
