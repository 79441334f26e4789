"""
function-go-templating as a process: what it asks for under two names is answered under both.

Its answer was recorded (release 0.12.2). Where FUNCTION_GO_TEMPLATING names a running one
(HOST:PORT, plain text: ``function-go-templating --insecure --address 127.0.0.1:9443``), plans call
it: one kit over files, and one order from a snapshot.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import pytest
import yaml
from functionanswers import address_of
from google.protobuf.json_format import MessageToDict, ParseDict
from packcopies import copied_pack

from compositions.function_processes import FunctionProcess
from compositions.station import OpaqueError, Resource, Selector, State, StationRequest
from orderkit.adapters.functions.remote_function import (
    RemoteFunction,
    old_names,
    request_message,
    response_of,
)
from orderkit.cli.main import run

FUNCTION = "function-go-templating"
RECORDED = Path(__file__).with_name(f"{FUNCTION}.json")
TEMPLATE = """
apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1
kind: ExtraResources
requirements:
  lane: {apiVersion: v1, kind: Namespace, matchName: lane}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: out
  namespace: lane
  annotations: {gotemplating.fn.crossplane.io/composition-resource-name: out}
data:
  stage: "{{ .observed.composite.resource.spec.stage }}"
  lane: '{{ with .extraResources }}{{ range .lane.items }}{{ .resource.kind }}{{ end }}{{ end }}'
"""
INPUT = {
    "apiVersion": "gotemplating.fn.crossplane.io/v1beta1",
    "kind": "GoTemplate",
    "source": "Inline",
    "inline": {"template": TEMPLATE},
}
LANE: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lane"}}
XR: dict[str, Any] = {
    "apiVersion": "blog.opsbogus.dev/v1alpha1",
    "kind": "XGarage",
    "metadata": {"name": "garage-a"},
    "spec": {"teamName": "a", "stage": "stage1"},
}
REQUEST = StationRequest(State(Resource(XR)), input=INPUT)


def recorded() -> Any:
    found = json.loads(RECORDED.read_text(encoding="utf-8"))
    return ParseDict(found["answer"], fnv1.RunFunctionResponse())


def address() -> str:
    found = address_of(FUNCTION)
    if not found:
        pytest.skip(f"no {FUNCTION} runs: FUNCTION_GO_TEMPLATING names none")
    return found


def test_one_request_under_two_names_is_one_requirement() -> None:
    answer = recorded()

    assert list(answer.requirements.extra_resources) == ["lane"]
    assert old_names(answer) == {"lane"}
    assert response_of(answer).requirements == {"lane": Selector("v1", "Namespace", "lane")}


def test_both_names_get_the_objects_as_from_crossplane() -> None:
    request = StationRequest(REQUEST.observed, input=INPUT, required={"lane": (LANE,)})

    message = request_message(request, {"lane"})

    assert message.extra_resources["lane"] == message.required_resources["lane"]
    assert not request_message(request).extra_resources


def test_the_old_name_alone_is_a_requirement_as_in_crossplane() -> None:
    answer = recorded()
    del answer.requirements.resources["lane"]
    answer.requirements.extra_resources["more"].kind = "Namespace"

    assert old_names(answer) == {"lane", "more"}
    assert response_of(answer).requirements == {
        "lane": Selector("v1", "Namespace", "lane"),
        "more": Selector("", "Namespace"),
    }


def test_two_objects_under_one_name_stay_refused() -> None:
    answer = recorded()
    answer.requirements.extra_resources["lane"].match_name = "other"

    with pytest.raises(OpaqueError, match="different objects as extra and as required lane"):
        response_of(answer)


def test_the_real_one_answers_as_recorded() -> None:
    remote = RemoteFunction(FunctionProcess(FUNCTION, address()))
    answer = remote._call(request_message(REQUEST), timeout=20)  # noqa: SLF001 - the wire's own words
    remote.close()

    found = MessageToDict(answer, preserving_proto_field_name=True)
    del found["meta"]["tag"]
    assert found == json.loads(RECORDED.read_text(encoding="utf-8"))["answer"]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A garage that go-templating composes, committed; and its XRs, with a fact."""
    folder = copied_pack(tmp_path / "pack")
    composition = folder / "gitops/apis/garage/composition.yaml"
    found = yaml.safe_load(composition.read_text())
    step = {"step": "template", "functionRef": {"name": FUNCTION}, "input": INPUT}
    found["spec"]["pipeline"] = [step]
    composition.write_text(yaml.safe_dump(found, sort_keys=False))
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "before")):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(folder), *identity, *command], check=True)
    composition.write_text(composition.read_text().replace("stage: ", "grade: "))
    (tmp_path / "xrs").mkdir()
    lane = {**LANE, "metadata": {"name": "lane", "labels": {"lane": "left"}}}
    (tmp_path / "xrs" / "all.yaml").write_text(yaml.safe_dump_all([XR, lane]))
    return folder


def test_a_kit_is_planned_by_the_real_one(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--pack", str(pack), "--xrs", str(pack.parent / "xrs"))
    opaque = run(["plan", "--kit", "garage", *where])
    without = capsys.readouterr().out

    called = ("--function", f"{FUNCTION}={address()}", "--json")
    code = run(["plan", "--kit", "garage", *where, *called])

    plan = json.loads(capsys.readouterr().out)["fleet"]["orders"][0]["plan"]
    assert opaque == 0
    assert "what it adds, changes or drops is not in this plan" in without
    assert code == 10, plan
    assert [(r["path"], r["action"]) for r in plan["resources"]] == [("out", "changed")]


def test_a_snapshot_is_planned_by_the_real_one(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = pack.parent / "plan.json"
    snapshot.write_text(
        json.dumps(
            {
                "apiVersion": "orderkit.dev/v1alpha1", "kind": "PlanSnapshot", "format": 1,
                "pack": "", "clustered": False, "schemas": {}, "asked": [], "listed": [],
                "served": [], "objects": [],
                "orders": [{"order": "garage-a", "team": "a", "kit": "garage", "xr": XR}],
            }
        )
    )  # fmt: skip
    arguments = ["plan", "garage-a", "stage=stage2", "--snapshot", str(snapshot)]

    run([*arguments, "--pack", str(pack), "--function", f"{FUNCTION}={address()}", "--json"])

    plan = json.loads(capsys.readouterr().out)["plan"]
    assert not any(fault["code"] == "pipeline" for fault in plan["faults"])
    assert not any("is not in this plan" in text for text in plan["unknowns"])
    assert [r["path"] for r in plan["resources"]] == ["out"]
