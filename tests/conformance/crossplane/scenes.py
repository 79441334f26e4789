"""
The scenes: lives of orders of all kits, from the first order to the end.

Each has objects of its own, so that several are played at once on one cluster. What a person or the
outside world does is plain: deliver an XR, delete it, write a record of the registry or of the
spend meter. Importing this registers them.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.crossplane.playing import Play, gone, says, scene, settled, shows

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey
from whisperops.demo.kagent import AGENT as AGENT_KIND
from whisperops.records import XDATASET

GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
AGENT = Kind("whisperops.io", "v1alpha1", "XDatasetAgent")
BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
WINDOW = "2026-11-01T00:00:00Z"


def made(kind: Kind, name: str, namespace: str = "", **parts: Any) -> Manifest:
    """Return an object."""
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **parts}


def dataset(name: str, *, bucket: str = "whisperops-datasets", ready: bool = True) -> Manifest:
    """Return a record of the registry."""
    spec = {
        "gcsPath": f"gs://{bucket}/{name}.csv",
        "displayName": name.replace("-", " ").title(),
        "sizeBytes": 1_992_294,
    }
    return made(XDATASET, name, spec=spec, status={"ready": ready})


def spend(agent: str, dollars: str, *, measured: bool = True) -> Manifest:
    """Return what the spend meter keeps of an agent."""
    data = {
        "spentUsd": dollars,
        "windowStart": WINDOW,
        "measured": str(measured).lower(),
        "model": "gemini-2.5-flash",
        "reason": "" if measured else "Prometheus answers HTML",
    }
    return made(CONFIG_MAP, f"spend-{agent}", f"agent-{agent}", data=data)


def agent(name: str, **spec: Any) -> Manifest:
    """Return an order of an agent."""
    common = {
        "agentName": name,
        "datasetRef": {"name": f"houses-{name}"},
        "budgetUsd": 5,
        "description": "Answers questions about houses.",
        "owner": "ae86",
        "baseDomain": "34.61.7.12.sslip.io:8443",
        "projectId": "whisperops-lab",
    }
    return made(AGENT, name, spec={**common, **spec})


def budget(name: str, **spec: Any) -> Manifest:
    """Return an order of a budget alone."""
    common = {"agentName": name, "budgetUsd": 5, "owner": "ae86"}
    return made(BUDGET, name, f"agent-{name}", spec={**common, **spec})


def _missing(name: str) -> ObjectKey:
    return ObjectKey(XDATASET, name)


@scene
def a_garage_lives(play: Play) -> None:
    """A garage is ordered, tuned and ended."""
    car = ObjectKey(GARAGE, "garage-eg6")
    play.roots = (car,)
    order = made(GARAGE, car.name, spec={"teamName": "eg6", "stage": "stage1"})
    play.apply(order)
    play.step("ordered", car, settled(), shows(stage="stage1"))
    play.apply({**order, "spec": {"teamName": "eg6", "stage": "stage3"}})
    play.step("another stage", car, settled(), shows(stage="stage3"))
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", "garage-eg6")
    play.core.cluster.patch(sheet, {"data": {"stage": "none"}}, owner="somebody")
    play.step("a part edited by hand", car, settled())
    play.delete(car)
    play.step("ended", car, gone)


@scene
def a_budget_pauses(play: Play) -> None:
    """A budget alone: never measured, all is spent, raised, only watched, unmeasured, ended."""
    name = "meter"
    key = ObjectKey(BUDGET, name, f"agent-{name}")
    play.roots = (key,)
    play.apply(made(NAMESPACE, key.namespace))
    play.apply(budget(name))
    play.step("no agent, no record", key, settled("False"), shows(cause="agent-unreachable"))
    for each in ("planner", "worker"):
        play.apply(made(AGENT_KIND, each, key.namespace, spec={}))
    play.step("the agent is there", key, settled(), shows(cause="unknown", applied=True))
    play.apply(spend(name, "1.46"))
    play.poke()
    play.step("something is spent", key, settled(), shows(spentUsd=1.46))
    play.apply(spend(name, "5.00"))
    play.poke()
    play.step("all is spent", key, settled(), shows(paused=True, applied=True))
    play.apply(budget(name, budgetUsd=10))
    play.step("raised", key, settled(), shows(paused=False, applied=True))
    play.apply(spend(name, "12.345678"))
    play.poke()
    play.step("spent again", key, settled(), shows(paused=True, applied=True))
    play.apply(budget(name, budgetUsd=10, enforcement="monitor-only"))
    play.step("only watched", key, settled(), shows(paused=False, applied=True))
    play.apply(spend(name, "12.345678", measured=False))
    play.poke()
    play.step("nothing is measured", key, settled(), says("Measured", "False"))
    play.delete(ObjectKey(CONFIG_MAP, f"spend-{name}", key.namespace))
    play.poke()
    play.step("the record is gone", key, settled(), says("Measured", "False", "NoRecord"))
    play.apply(budget(name, budgetUsd=10, targets=[{"name": "planner", "replicas": 2}]))
    play.step("another target", key, settled(), shows(applied=True))
    play.delete(key)
    play.step("ended", key, gone)


@scene
def an_agent_lives(play: Play) -> None:
    """An agent is ordered before its dataset is there, lives, spends all, is raised, ends."""
    name = "bot"
    key, inner = ObjectKey(AGENT, name), ObjectKey(BUDGET, name, f"agent-{name}")
    houses = f"houses-{name}"
    play.roots = (key,)
    play.apply(agent(name))
    play.step("its dataset is not there", key, says("Synced", "False", houses))
    play.apply(dataset(houses, ready=False))
    play.poke()
    play.step("its dataset is not ready", key, says("Synced", "False", "not ready"))
    play.apply(dataset(houses))
    play.poke()
    play.step("its dataset is ready", key, settled())
    play.apply(spend(name, "5.02"))
    _wake(play, inner)
    play.step("all is spent", inner, settled(), shows(paused=True, applied=True), root=settled())
    play.apply(agent(name, budgetUsd=12.5))
    paid = shows(paused=False, applied=True, budget="12.50")
    play.step("raised", inner, settled(), paid, root=settled())
    play.apply(spend(name, "13"))
    _wake(play, inner)
    play.step("spent again", inner, settled(), shows(paused=True, applied=True), root=settled())
    play.apply(agent(name, budgetUsd=12.5, enforcement="monitor-only"))
    play.step("only watched", inner, settled(), shows(paused=False, applied=True), root=settled())
    told = "Says \"hé\": ''\n\n${{ parameters.x }} {{ y }} 🏎\ttab"
    play.apply(agent(name, budgetUsd=12.5, enforcement="monitor-only", description=told))
    play.step("another description", key, settled())
    play.delete(key)
    play.step("ended", key, gone)


@scene
def an_agent_loses_its_dataset(play: Play) -> None:
    """The CSV of a living agent goes and comes back; it is swapped, also to a missing one."""
    name = "lost"
    key = ObjectKey(AGENT, name)
    houses, trains, music = (f"{each}-{name}" for each in ("houses", "trains", "music"))
    play.roots = (key,)
    play.apply(dataset(houses), dataset(trains, bucket="whisperops-trains"))
    play.apply(agent(name, bucketOnEnd="delete", windowStart=WINDOW))
    play.step("ordered", key, settled())
    play.delete(_missing(houses))
    play.poke()
    play.step("its dataset is gone", key, settled("False"), says("DatasetFound", "False"))
    play.apply(agent(name, bucketOnEnd="keep", windowStart=WINDOW))
    play.step("changed without a dataset", key, settled("False"))
    play.apply(dataset(houses))
    play.poke()
    play.step("its dataset is back", key, settled(), says("DatasetFound", "True"))
    play.apply(agent(name, datasetRef={"name": trains}))
    play.step("swapped", key, settled(), shows(dataset__name=trains))
    play.apply(agent(name, datasetRef={"name": music}))
    play.step("swapped to one that is not there", key, settled("False"))
    play.apply(agent(name, datasetRef={"name": trains}))
    play.step("swapped back", key, settled())
    play.delete(key)
    play.step("ended", key, gone)


def _wake(play: Play, key: ObjectKey) -> None:
    note = {"metadata": {"annotations": {"scene.example.org/woken": str(len(play.accounts))}}}
    play.core.cluster.patch(key, note, owner="poke")
