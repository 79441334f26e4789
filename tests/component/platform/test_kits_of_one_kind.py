"""Two published kits that define one kind, as a push to the pack can leave it, and a third kit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from commands import Command, in_process

from ground.errors import RefusedError
from ground.names import OrderId, RepoId, TeamName
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.composing.planner import plan_new
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import check_may_order
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from yamlfiles.manifests import parse_manifests

XRD = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xthings.dup.example.org}
spec:
  scope: Cluster
  group: dup.example.org
  names: {kind: XThing, plural: xthings}
  versions:
    - name: v1alpha1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [team]
              properties:
                team: {type: string, pattern: '^[a-z][a-z0-9-]{1,28}[a-z0-9]$'}
"""
DIFFERS = 10


def publish_past_orderkit(platform: Platform) -> None:
    """Push kits `a` and `b` of one kind to the pack; Orderkit itself would refuse them."""
    path = PurePosixPath("pack.yaml")
    pack = platform.forge.read(platform.pack_repo, path, "main")
    assert pack is not None
    before, listed, after = pack.data.partition(b"  kits:\n")
    assert listed
    kits = FileChange(path, before + listed + b"    - a\n    - b\n" + after, pack.sha)
    definitions = [
        FileChange(PurePosixPath(f"gitops/apis/{kit}/definition.yaml"), XRD.encode(), None)
        for kit in ("a", "b")
    ]
    platform.forge.write(
        platform.pack_repo, [kits, *definitions], Operation("twice", "user:default/x", "twice")
    )


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("twice") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as platform:
        publish_past_orderkit(platform.platform)
        yield platform


@pytest.fixture
def orderkit(started: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(started.embedded.state.folder / "platform.yaml", capsys)


def test_an_order_of_a_third_kit_lives_from_order_to_end(orderkit: Command) -> None:
    for arguments in (
        ("order", "garage", "team_name=ae86", "stage=stage2"),
        ("order", "garage", "team_name=ae86", "stage=stage2"),
        ("status", "garage-ae86"),
        ("list",),
        ("plan", "garage-ae86", "stage=stage3"),
        ("change", "garage-ae86", "stage=stage3"),
        ("trace", "garage-ae86"),
        ("destroy", "--yes", "garage-ae86"),
    ):
        done = orderkit(*arguments)
        assert done.code == (DIFFERS if arguments[0] == "plan" else 0), (arguments, done.err)


def test_doctor_names_both_kits(orderkit: Command) -> None:
    done = orderkit("doctor")

    assert "kit 'b' would be refused" in done.out
    assert "'XThing.dup.example.org' is defined by kit a already" in done.out


@pytest.mark.parametrize(("kit", "other"), [("a", "b"), ("b", "a")])
def test_new_orders_of_the_two_are_refused_before_anything_is_written(
    started: Running, kit: str, other: str
) -> None:
    platform, entry = started.platform, OrderEntry(TeamName("ae86"), OrderId(f"{kit}-one"))

    with pytest.raises(RefusedError, match=f"kit {other} defines XThing.dup.example.org") as error:
        check_may_order(platform, entry, kit, ledger_snapshot(platform))

    assert "remove one of these kits" in error.value.hint


def test_no_command_chooses_one_of_the_two(
    started: Running, orderkit: Command, tmp_path: Path
) -> None:
    xr = tmp_path / "thing.yaml"
    xr.write_text(
        "apiVersion: dup.example.org/v1alpha1\nkind: XThing\n"
        "metadata: {name: one}\nspec: {team: ae86}\n"
    )
    repo = RepoId("ae86", "by-hand")
    started.platform.forge.ensure_repo(repo, description="")
    manifest = FileChange(PurePosixPath("manifests/thing.yaml"), xr.read_bytes(), None)
    started.platform.forge.write(repo, [manifest], Operation("hand", "user:default/x", "by hand"))
    kits = {kit.name: kit for kit in published_pack(started.platform).kits()}

    for done in (
        orderkit("order", "--file", str(xr)),
        orderkit("adopt", str(repo), "--team", "ae86"),
    ):
        assert done.code == 4, done.out + done.err
        assert "defines XThing.dup.example.org" in done.err
        assert "remove one of these kits" in done.err
    (thing,) = parse_manifests("thing.yaml", xr.read_bytes())
    with pytest.raises(RefusedError, match=r"defines XThing\.dup\.example\.org"):
        plan_new(started.platform, kits["b"], thing)
