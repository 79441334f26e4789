"""What of the agents' pack is delivered beside its kits: controllers, and whose a budget is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import click
import pytest
import yaml

from ground.errors import NotFoundError, OrderkitError, RefusedError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from kubeschema.known.managed_behaviour import OPEN
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.platform.baking import SENTINEL
from orderkit.core.platform.delivery_tree import layers_of
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.providers.played_kinds import crd
from whisperops.commands import main, root
from whisperops.demo.processes import DEPLOYMENTS, arguments

PACK = Path(__file__).parents[2] / "packs" / "agents"
CONTROLLERS = PACK / "gitops" / "controllers"
BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
VALUES = {"BASE_DOMAIN": "apps.example.org", "PROJECT_ID": "lab-123"}
TRACKED = {
    "argocd.argoproj.io/tracking-id": "agentbudget-bot:whisperops.io/XAgentBudget:agent-bot/bot"
}


def test_the_controllers_come_last_so_that_no_order_waits_for_them() -> None:
    layers = layers_of(read_folder(PACK))

    assert [layer.name for layer in layers][-3:] == ["apis", "ledger", "controllers"]
    assert layers[-1].delivers(PurePosixPath("gitops/controllers/watcher.yaml"))


@pytest.mark.parametrize("target", list(PlatformTarget))
def test_their_images_are_the_platforms(target: PlatformTarget) -> None:
    installation = Installation(target)
    values = PlatformValues(
        "https://forge.example.org",
        "1" * 40,
        "images.example.org/mirror",
        pack_values=VALUES,
        installation=installation,
    )

    files = render_pack(read_folder(PACK), values)

    delivered = {
        str(path): data for path, data in files.items() if "controllers" in path.parts[1:2]
    }
    assert delivered
    assert not [path for path, data in delivered.items() if SENTINEL.search(data)]
    for name in ("watcher", "meter"):
        image = b"image: images.example.org/mirror/whisperops/controllers:v0.1.0\n"
        assert image in delivered[f"gitops/controllers/{name}.yaml"]


@pytest.fixture
def delivered(cluster: EmbeddedCluster) -> EmbeddedCluster:
    """A cluster to which the layer was applied, and what no pack can know."""
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crossplane-system"}}
    cluster.apply(system, owner="test")
    for file in ("account.yaml", "settings.yaml", "prices.yaml", "watcher.yaml", "meter.yaml"):
        for manifest in yaml.safe_load_all((CONTROLLERS / file).read_text()):
            cluster.apply(manifest, owner="argocd")
    return cluster


def configure(cluster: EmbeddedCluster, **data: str) -> None:
    meta = {"name": "whisperops-controllers", "namespace": "whisperops"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    cluster.apply(made, owner="person")


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_deployment_says_what_its_controller_understands(
    delivered: EmbeddedCluster, name: str
) -> None:
    configure(delivered, bucket="gs://data", catalog="a/b", prometheus="http://mimir")

    command, *options = arguments(delivered, name, platform_file=Path("here.yaml"))

    understood: click.Command = root.commands[command]
    context = understood.make_context(command, [*options])
    known: dict[str, Any] = context.params
    assert known["platform"] == "here.yaml"
    assert known["listen"] == "127.0.0.1:0"
    assert known.get("bucket", "gs://data") == "gs://data"
    assert known.get("prometheus", "http://mimir") == "http://mimir"


def test_what_is_not_configured_is_told(delivered: EmbeddedCluster) -> None:
    configure(delivered, bucket="gs://data")

    with pytest.raises(NotFoundError, match="whisperops-controllers has no key catalog"):
        arguments(delivered, DEPLOYMENTS[0], platform_file=Path("here.yaml"))


def test_another_packs_platform_is_told(cluster: EmbeddedCluster) -> None:
    with pytest.raises(NotFoundError, match="no Deployment whisperops/dataset-watcher"):
        arguments(cluster, DEPLOYMENTS[0], platform_file=Path("here.yaml"))


def test_twins_are_for_embedded_platforms_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would bring CRDs of their own to a cluster that has the real ones."""
    endpoint = {"url": "http://127.0.0.1:9", "tokenFile": "token"}
    spec = {"cluster": {"kubeconfig": "kubeconfig"}, "target": "cluster"}
    spec |= dict.fromkeys(("forge", "portal", "service"), endpoint)
    described = {"apiVersion": "orderkit.dev/v1alpha1", "kind": "Platform", "spec": spec}
    described["metadata"] = {"name": "real"}
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(described))

    code = main(
        ["play", "--platform", str(tmp_path / "platform.yaml"), "--bucket", str(tmp_path / "new")]
    )

    assert code == RefusedError.exit_code
    assert "describes no embedded platform" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.fixture
def guarded(cluster: EmbeddedCluster) -> EmbeddedCluster:
    """A cluster in which a budget that belongs to an agent is nobody else's."""
    cluster.apply(crd(BUDGET, namespaced=True, spec=OPEN), owner="test")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "agent-bot"}}
    cluster.apply(home, owner="test")
    place = (PACK / "gitops" / "apis" / "agentbudget" / "place.yaml").read_text()
    for manifest in yaml.safe_load_all(place):
        cluster.apply(manifest, owner="argocd")
    return cluster


def budget(**meta: Any) -> Manifest:
    return {
        "apiVersion": BUDGET.api_version,
        "kind": BUDGET.kind,
        "metadata": {"name": "bot", "namespace": "agent-bot", **meta},
        "spec": {"agentName": "bot"},
    }


COMPOSED = {
    "ownerReferences": [
        {
            "apiVersion": "whisperops.io/v1alpha1",
            "kind": "XDatasetAgent",
            "name": "bot",
            "uid": "1",
            "controller": True,
        }
    ]
}


def test_an_order_may_not_take_over_the_budget_that_an_agent_composed(
    guarded: EmbeddedCluster,
) -> None:
    guarded.apply(budget(**COMPOSED), owner="crossplane")

    with pytest.raises(OrderkitError, match="this budget is a part of an agent"):
        guarded.apply(budget(annotations=TRACKED), owner="argocd")

    found = guarded.get(ObjectKey(BUDGET, "bot", "agent-bot"))
    assert found is not None
    assert "annotations" not in found["metadata"]


def test_an_order_may_have_a_budget_of_its_own_and_an_agent_its_part(
    guarded: EmbeddedCluster,
) -> None:
    guarded.apply(budget(annotations=TRACKED), owner="argocd")
    other = budget(**COMPOSED)
    other["metadata"]["name"] = "other"

    guarded.apply(other, owner="crossplane")

    assert len(guarded.list(BUDGET).items) == 2
