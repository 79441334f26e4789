"""The agents' second day each way there is: by command, by form and service, by form and Job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import container
import pytest
from commands import Command, in_process
from jobroom import Portal, furnish, runner_of

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey, dig
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from whisperops.demo.kagent import DEPLOYMENT, Operators
from yamlfiles.manifests import parse_manifests

PACK = Path(__file__).parents[2] / "packs" / "agents"
TEAM = "ae86"
VALUES = {"BASE_DOMAIN": "apps.example.org", "PROJECT_ID": "lab-123"}
AGENT = Kind("whisperops.io", "v1alpha1", "XDatasetAgent")
BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
AWKWARD = (
    'He said "no": it\'s fine\nline two \\n # : - $$ $(HOME)\n'
    "${{ values.x }} {{ y }} \U0001f3ce\ufe0f"
)
SOON_S = 180.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The whole pack with twins of what it needs, two datasets, and a room for Jobs."""
    folder = tmp_path_factory.mktemp("ways")
    request = EmbeddedRunRequest(folder / "state", PACK, Ports(0, 0, 0, 0), (TEAM,), values=VALUES)
    with running(request, on_step=lambda *_: None) as found:
        cluster = found.platform.cluster
        operators = Operators(cluster)
        operators.start()
        for name in ("houses", "songs"):
            cluster.apply(dataset(name), owner="test")
            cluster.apply(dataset(name), owner="test", status=True)
        furnish(found)
        yield found
        operators.stop()


def dataset(name: str) -> Manifest:
    return {
        "apiVersion": "whisperops.io/v1alpha1",
        "kind": "XDataset",
        "metadata": {"name": name},
        "spec": {"gcsPath": f"gs://data/{name}.csv", "displayName": name, "sizeBytes": 10},
        "status": {"ready": True},
    }


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


@dataclass
class Way:
    """Sends what a form of a kit would; gives whether it was done, and what was said."""

    name: str
    site: Running
    orderkit: Command
    portal: Portal

    def send(self, form: str, order: str, **values: Any) -> tuple[bool, str]:
        if self.name == "command":
            done = self.orderkit(*_as_command(form, order, values))
            return done.code == 0, done.err
        if form.endswith("/end"):
            told = {"order_ref": f"component:default/{order}", **values}
        else:
            head = str(self.site.platform.forge.head(RepoId(TEAM, order)))
            told = {"order_id": order, "base_commit": head, **values}
        told = {k: v if isinstance(v, str) else json.dumps(v) for k, v in told.items()}
        path = PACK / "day2" / f"{form}.yaml"
        entered = [f"{key}={value}" for key, value in told.items()]
        if self.name == "job":
            attempt = self.portal.send(path, *entered)
            return attempt.code == 0, attempt.output
        done = self.orderkit("run", str(path), *(p for each in entered for p in ("-p", each)))
        return done.code == 0, done.err


def _as_command(form: str, order: str, values: dict[str, Any]) -> list[str]:
    if form.endswith("/end"):
        taken = [k.removeprefix("take_") for k, v in values.items() if k.startswith("take_") and v]
        return ["destroy", "--yes", order, *(f"--take={name}" for name in taken)]
    told = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]
    return ["change", order, *told, "--no-wait"]


@pytest.fixture(params=["command", "portal", "job"])
def way(request: pytest.FixtureRequest, site: Running, orderkit: Command, tmp_path: Path) -> Way:
    why = container.reason_not_possible()
    if request.param == "job" and why:
        pytest.skip(f"no containers here: {why}")
    runner = runner_of(site, tmp_path / "jobs")
    portal = Portal(site, orderkit, runner, tmp_path / "forms", VALUES)
    portal.ignore_others()
    return Way(request.param, site, orderkit, portal)


def seen(look: Callable[[], Any], wanted: object, what: str) -> None:
    until(SystemClock(), look, lambda found: found == wanted, timeout_s=SOON_S, goal=what)


def spec_in_git(site: Running, order: str) -> dict[str, Any]:
    path = PurePosixPath("manifests/xdatasetagent.yaml")
    found = site.platform.forge.read(RepoId(TEAM, order), path, "main")
    assert found is not None
    (xr,) = parse_manifests("xr", found.data)
    spec: dict[str, Any] = xr["spec"]
    return spec


def test_a_platform_of_the_whole_pack_is_as_the_pack_says(orderkit: Command) -> None:
    """In the end: a team's project is delivered some time after the ledger has it."""
    done = until(
        SystemClock(),
        lambda: orderkit("platform", "check", "--pack", str(PACK), "--json"),
        lambda seen: seen.code == 0,
        timeout_s=SOON_S,
        goal="a check that finds nothing",
        why_not=lambda seen: seen.out,
    )

    found = {finding["what"]: finding["verdict"] for finding in done.json["findings"]}
    assert found["layer apis"] == found["layer controllers"] == "ok"


def test_an_agent_changes_and_ends_with_its_bucket(site: Running, way: Way) -> None:
    agent = f"{way.name}-bot"
    order, home, cluster = f"datasetagent-{agent}", f"agent-{agent}", site.platform.cluster
    placed = way.orderkit(
        "order", "datasetagent", f"agent_name={agent}", 'dataset={"name": "houses"}',
        "budget_usd=5", "description=Answers.", f"owner={TEAM}",
    )  # fmt: skip
    assert placed.code == 0, placed.err

    def change(name: str, **values: Any) -> None:
        done, told = way.send(f"datasetagent/{name}", order, **values)
        assert done, told

    change("budget", budget_usd=20)
    assert spec_in_git(site, order)["budgetUsd"] == 20
    change("budget", budget_usd=2.5)
    again, told = way.send("datasetagent/dataset", order, dataset={"name": "houses"})
    assert not again
    assert "datasetRef.name is already houses" in told
    change("dataset", dataset={"name": "songs"})
    change("description", description=AWKWARD)
    change("enforcement", enforcement="monitor-only")

    found = spec_in_git(site, order)
    assert (found["budgetUsd"], found["datasetRef"]) == (2.5, {"name": "songs"})
    assert (found["description"], found["enforcement"]) == (AWKWARD, "monitor-only")
    prompts, budget = ObjectKey(CONFIG_MAP, "prompts", home), ObjectKey(BUDGET, agent, home)
    seen(lambda: dig(cluster.get(prompts) or {}, "data", "description"), AWKWARD, "the prompts")
    seen(lambda: dig(cluster.get(budget) or {}, "spec", "enforcement"), "monitor-only", "it")

    done, told = way.send("datasetagent/end", order, confirm=order, take_bucket=True)

    assert done, told
    assert cluster.get(ObjectKey(AGENT, agent)) is None
    seen(lambda: cluster.get(ObjectKey(NAMESPACE, home)), None, "the end of the namespace")
    seen(lambda: [e for e in cluster.list(EXTERNAL).items if agent in str(e)], [], "the cloud")


def test_a_budget_that_ends_first_hands_its_paused_agent_back(site: Running, way: Way) -> None:
    """The agent was made by hand: its Deployments stay, and run again before the budget goes."""
    agent = f"own-{way.name}"
    home, cluster = f"agent-{agent}", site.platform.cluster
    given = way.orderkit("team", "change", TEAM, "--namespace", home)
    assert given.code == 0, given.err
    for made in by_hand(home, agent):
        cluster.apply(made, owner="person")
    placed = way.orderkit(
        "order", "agentbudget", f"agent_name={agent}", "budget_usd=5", f"owner={TEAM}", "--no-wait"
    )
    assert placed.code == 0, placed.err
    switched = [ObjectKey(DEPLOYMENT, name, home) for name in ("planner", "worker")]

    def replicas() -> list[Any]:
        return [dig(cluster.get(key) or {}, "spec", "replicas") for key in switched]

    seen(replicas, [0, 0], "the pause")

    order = f"agentbudget-{agent}"
    done, told = way.send("agentbudget/end", order, confirm=order)

    assert done, told
    assert replicas() == [1, 1]
    assert cluster.get(ObjectKey(BUDGET, agent, home)) is None


def by_hand(home: str, agent: str) -> Iterator[Manifest]:
    """Yield an agent that no order made: its namespace, what it spent, its Deployments."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}
    spent = {"spentUsd": "7.00", "measured": "true", "windowStart": "2026-11-01T00:00:00Z"}
    meta = {"name": f"spend-{agent}", "namespace": home}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": spent}
    for name in ("planner", "worker"):
        labels = {"app": name}
        container = {"name": "agent", "image": "example.org/agent:1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        place = {"name": name, "namespace": home}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": place, "spec": spec}
