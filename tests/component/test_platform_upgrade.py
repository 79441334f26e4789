"""``orderkit platform upgrade``: a commit per layer, each ready before the next is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Done
from packcopies import UNRUNNABLE, ExtraLayer, copied_pack

from ground.argocd.delivery_obstacles import pinned
from ground.objects.kube_objects import CONFIG_MAP, FUNCTION, ObjectKey, dig
from orderkit.cli.main import run
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

Orderkit = Callable[..., Done]
LIVE_S = 120.0
READY = ":__ORDERKIT_VERSION_FUNCTION_AUTO_READY__"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upgrade")


@pytest.fixture(scope="module")
def pack(place: Path) -> Path:
    """A copy of the reference pack, as the platform got it at first."""
    return copied_pack(place / "pack")


@pytest.fixture(scope="module")
def platform(place: Path, pack: Path) -> Iterator[Running]:
    request = EmbeddedRunRequest(place / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def extra(pack: Path) -> Iterator[ExtraLayer]:
    layer = ExtraLayer(pack)
    yield layer
    layer.take_away()


@pytest.fixture
def orderkit(platform: Running, pack: Path, capsys: pytest.CaptureFixture[str]) -> Orderkit:
    settings = platform.embedded.state.folder / "platform.yaml"

    def command(verb: str, *flags: str) -> Done:
        capsys.readouterr()
        where = ("--pack", str(pack), "--platform", str(settings))
        code = run(["platform", verb, *where, *flags])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def messages(platform: Running) -> list[str]:
    """First lines of the pack repository's commits, newest first."""
    found = platform.platform.forge.commits(platform.platform.pack_repo)
    return [commit.message.splitlines()[0] for commit in found]


def test_without_a_pack_no_other_pack_is_replaced(
    platform: Running, pack: Path, orderkit: Orderkit, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default is the reference pack, so a platform with another pack needs ``--pack``."""
    file = pack / "pack.yaml"
    before, head = file.read_text(), platform.platform.forge.head(platform.platform.pack_repo)
    where = ("--platform", str(platform.embedded.state.folder / "platform.yaml"))
    swap(file, "name: reference", "name: ours")
    assert orderkit("upgrade").code == 0
    moved = platform.platform.forge.head(platform.platform.pack_repo)

    refused = [run(["platform", "upgrade", *where, *flags]) for flags in ((), ("--plan",))]
    told = capsys.readouterr().err

    assert refused == [4, 4]
    assert "holds pack 'ours'; without --pack, pack 'reference' would replace it" in told
    assert "orderkit platform upgrade --pack DIR" in told
    assert platform.platform.forge.head(platform.platform.pack_repo) == moved != head
    file.write_text(before)
    assert orderkit("upgrade").code == 0
    assert run(["platform", "upgrade", "--plan", *where]) == 0


def test_a_kit_that_is_published_later_appears_in_the_live_model(
    orderkit: Orderkit, platform: Running, pack: Path
) -> None:
    model = OrderModel(platform.platform)
    model.start()
    try:
        model.wait_complete(LIVE_S)
        fields = ("--field", "size:integer:default=1", "--no-input")
        assert run(["kit", "new", "disk", "--pack", str(pack), *fields]) == 0
        done = orderkit("upgrade", "--json")
        assert done.code == 0, done.err
        add_team(platform.platform, "later", requester="user:default/test")
        values = {"name": "one", "team": "later"}
        run_task(platform.platform, TaskRequest("disk", values, Requester("user:default/eve")))

        row = until(
            SystemClock(),
            lambda: model.row("disk-one"),
            lambda live: live is not None and live.row.phase not in ("Written", "Delivering"),
            timeout_s=LIVE_S,
            goal="the XR of the new kit in the live model",
        )
    finally:
        model.close()
    assert row is not None
    assert (row.row.kit, row.row.team) == ("disk", "later")
    assert b'"kind":"XDisk"' in row.data


def test_a_platform_that_is_as_it_should_be_is_left_alone(
    orderkit: Orderkit, platform: Running
) -> None:
    before = messages(platform)

    assert orderkit("render", "--diff").code == 0
    assert "nothing to do" in orderkit("upgrade", "--plan").out
    assert orderkit("upgrade").out == "nothing to do: every layer is up to date and ready\n"
    assert messages(platform) == before


def test_each_layer_gets_its_own_commit_and_forms_come_last(
    orderkit: Orderkit, platform: Running, pack: Path
) -> None:
    before = messages(platform)
    swap(pack / "pack.yaml", "function-auto-ready: v0.7.0", "function-auto-ready: v0.8.0")
    swap(pack / "gitops/apis/garage/definition.yaml", "A tuning garage", "A garage")

    shown = orderkit("render", "--diff")
    plan = orderkit("upgrade", "--plan", "--json")
    assert messages(platform) == before, "nothing is written yet"
    done = orderkit("upgrade", "--json")

    assert shown.code == 10
    assert "+          description: A garage for one team." in shown.out
    waves = {wave["name"]: wave for wave in plan.json["waves"]}
    assert list(waves) == ["functions", "apis", "portal"]
    move = {"kind": "Function", "name": "function-auto-ready"}
    assert waves["functions"]["moves"] == [{**move, "before": "v0.7.0", "after": "v0.8.0"}]
    assert waves["apis"]["files"] == {"gitops/apis/garage/definition.yaml": "changed"}
    assert "pack.yaml" in waves["portal"]["files"]
    assert (done.code, list(done.json["commits"])) == (0, ["functions", "apis", "portal"])
    written = messages(platform)[: len(messages(platform)) - len(before)]
    assert [line.partition(":")[0] for line in written] == ["portal", "apis", "functions"]
    assert "function-auto-ready v0.7.0 → v0.8.0" in written[-1]
    live = platform.platform.cluster.get(ObjectKey(FUNCTION, "function-auto-ready"))
    assert str(dig(live, "spec", "package")).endswith(":v0.8.0")
    apis = platform.platform.cluster.get(application_key("apis"))
    assert dig(apis, "status", "operationState", "syncResult", "revision") in (
        done.json["commits"]["apis"],
        done.json["commits"]["portal"],
    )
    assert orderkit("upgrade").out.startswith("nothing to do")


def test_a_layer_that_never_gets_ready_stops_it_and_the_same_command_goes_on(
    orderkit: Orderkit, platform: Running, pack: Path
) -> None:
    foreign = pack / "gitops/functions/more.yaml"
    foreign.write_text(
        "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-moon}\n"
        "spec: {package: registry.example.org/x/provider-moon:v1.0.0}\n"
    )
    swap(pack / "gitops/apis/garage/definition.yaml", "A garage", "A fine garage")
    before = len(messages(platform))

    stopped = until(
        SystemClock(),
        lambda: orderkit("upgrade", "--timeout", "1"),
        lambda done: "provider-moon" in done.err,
        timeout_s=90,
        goal="the reason why the layer is not healthy",
    )
    again = orderkit("upgrade", "--timeout", "1")

    assert (stopped.code, again.code) == (5, 5)
    assert "stopped at layer functions" in stopped.err
    assert "repeat the command" in stopped.err
    assert len(messages(platform)) == before + 1, "nothing after the layer, nothing twice"

    foreign.unlink()
    done = orderkit("upgrade", "--json")

    assert (done.code, list(done.json["commits"])) == (0, ["functions", "apis", "portal"])


def await_gone(platform: Platform, application: str) -> None:
    until(
        platform.clock,
        lambda: platform.cluster.get(application_key(application)),
        lambda found: found is None,
        timeout_s=90,
        goal="the Application going",
    )


def test_a_layer_that_root_still_waits_for_can_be_taken_away(
    orderkit: Orderkit, platform: Running, extra: ExtraLayer
) -> None:
    extra.add(UNRUNNABLE)
    stopped = orderkit("upgrade", "--timeout", "5")
    waiting = until(
        SystemClock(),
        lambda: platform.platform.cluster.get(application_key("root")) or {},
        lambda root: "argoproj.io/Application/extra" in str(dig(root, "status", "operationState")),
        timeout_s=90,
        goal="root waiting for the layer",
    )
    extra.take_away()
    went = orderkit("upgrade", "--json")

    assert stopped.code == 5
    assert pinned(waiting), "its operation keeps the commit it began with"
    assert (went.code, list(went.json["commits"])) == (0, ["extra"])
    await_gone(platform.platform, "extra")


def test_a_layer_comes_and_goes_with_what_it_delivers(
    orderkit: Orderkit, platform: Running, extra: ExtraLayer
) -> None:
    extra.add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n")

    came = orderkit("upgrade", "--json")
    delivered = platform.platform.cluster.get(ObjectKey(CONFIG_MAP, "extra", "default"))
    extra.take_away()
    went = orderkit("upgrade", "--json")

    assert (came.code, list(came.json["commits"])) == (0, ["extra", "portal"])
    assert delivered
    assert (went.code, list(went.json["commits"])) == (0, ["extra", "portal"])
    await_gone(platform.platform, "extra")
    kept = platform.platform.cluster.get(ObjectKey(CONFIG_MAP, "extra", "default"))
    assert kept, "a layer without its Application leaves what it delivered"


def test_a_broken_manifest_is_told_before_anything_is_written(
    orderkit: Orderkit, platform: Running, pack: Path
) -> None:
    before = messages(platform)
    broken = pack / "gitops/functions/broken.yaml"
    broken.write_text("kind: [\n")

    refused = orderkit("upgrade")
    broken.unlink()

    assert refused.code in (1, 2)
    assert "broken.yaml" in refused.err
    assert messages(platform) == before


def test_without_a_root_it_stops_and_a_bootstrap_makes_it_again(
    orderkit: Orderkit, platform: Running
) -> None:
    before, root = messages(platform), application_key("root")
    platform.platform.cluster.patch(root, {"metadata": {"finalizers": None}}, owner="somebody")
    platform.platform.cluster.delete(root)

    stopped = orderkit("upgrade")

    assert stopped.code == 5
    assert "root does not exist" in stopped.err
    assert "orderkit bootstrap" in stopped.err
    assert messages(platform) == before
