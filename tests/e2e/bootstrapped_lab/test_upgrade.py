"""``orderkit platform upgrade`` on a real Gitea, a real API server and a real Argo CD."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Command, Done, as_process
from labplatform import LabPlatform
from packcopies import UNRUNNABLE, ExtraLayer, copied_pack

from ground.argocd.delivery_obstacles import pinned
from ground.objects.kube_objects import CONFIG_MAP, FUNCTION, Manifest, ObjectKey, dig
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock

WITHIN_S = 180.0
Upgrade = Callable[..., Done]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the reference pack, as the platform has it at first."""
    return copied_pack(tmp_path_factory.mktemp("pack"))


@pytest.fixture(scope="module")
def orderkit(lab: LabPlatform, pack: Path) -> Command:
    """Run commands on the lab with `pack` bootstrapped on it."""
    command = as_process(lab.file)
    done = command("bootstrap", "--no-probe", "--pack", str(pack))
    assert done.code == 0, done.out + done.err
    return command


@pytest.fixture
def upgrade(orderkit: Command, pack: Path) -> Upgrade:
    return lambda *flags: orderkit("platform", "upgrade", "--json", "--pack", str(pack), *flags)


@pytest.fixture
def extra(pack: Path) -> Iterator[ExtraLayer]:
    layer = ExtraLayer(pack)
    yield layer
    layer.take_away()


def await_(look: Callable[[], Manifest | None], done: Callable[[Manifest], object]) -> Manifest:
    return until(
        SystemClock(),
        lambda: look() or {},
        lambda found: bool(done(found)),
        timeout_s=WITHIN_S,
        goal="what the platform is to come to",
    )


def test_a_version_moves_first_and_forms_come_last(
    lab: LabPlatform, pack: Path, upgrade: Upgrade
) -> None:
    text = (pack / "pack.yaml").read_text()
    old, new = "function-auto-ready: v0.7.0", "function-auto-ready: v0.8.0"
    assert old in text
    (pack / "pack.yaml").write_text(text.replace(old, new))

    assert upgrade("--plan").json["waves"]
    done = upgrade()

    assert (done.code, list(done.json["commits"])) == (0, ["functions", "portal"]), done.err
    live = lab.cluster.get(ObjectKey(FUNCTION, "function-auto-ready"))
    assert str(dig(live, "spec", "package")).endswith(":v0.8.0")
    assert upgrade().json["commits"] == {}


def test_a_layer_comes_and_goes_with_what_it_delivers(
    lab: LabPlatform, upgrade: Upgrade, extra: ExtraLayer
) -> None:
    extra.add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n")
    came = upgrade()
    delivered = lab.cluster.get(ObjectKey(CONFIG_MAP, "extra", "default"))
    extra.take_away()
    went = upgrade()

    assert (came.code, went.code) == (0, 0), came.err + went.err
    assert delivered
    await_(lambda: lab.cluster.get(application_key("extra")), lambda found: not found)


def test_a_layer_that_root_still_waits_for_can_be_taken_away(
    lab: LabPlatform, upgrade: Upgrade, extra: ExtraLayer
) -> None:
    extra.add(UNRUNNABLE)
    stopped = upgrade("--timeout", "15")
    waiting = await_(
        lambda: lab.cluster.get(application_key("root")),
        lambda root: "argoproj.io/Application/extra" in str(dig(root, "status", "operationState")),
    )
    extra.take_away()
    went = upgrade("--timeout", "120")

    assert stopped.code == 5, stopped.out + stopped.err
    assert pinned(waiting), "its operation keeps the commit it began with"
    assert went.code == 0, went.out + went.err
    await_(lambda: lab.cluster.get(application_key("extra")), lambda found: not found)
