"""
Pipelines for the engine, and what a real Crossplane's engine made of them.

The only function is `scripted`: it does what its step's input says, so one case is data for both
engines. The real one was asked through ``crossplane internal render`` by hand:

    CROSSPLANE_CORE=/path/to/core python tests/support/enginecases.py v2.3.4

which starts the function on the loopback and writes the answers beside the cases.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.struct_pb2 import DESCRIPTOR as STRUCT

from compositions.composed import (
    RESOURCE_NAME_ANNOTATION,
    Composed,
    World,
    preview_uid,
    root_labelled,
    steps_of,
)
from compositions.pipeline import compose
from compositions.simulation import lookup_in
from compositions.station import Ready, Result, Severity, StationRequest, StationResponse
from ground.objects.kube_objects import (
    RECONCILE_SUCCESS,
    RESPONSIVE,
    Manifest,
    annotations_of,
    is_namespaced,
    metadata,
    reconcile_error,
)
from ground.objects.values import copied
from orderkit.adapters.functions.function_messages import answered

FOLDER = Path(__file__).parents[1] / "conformance" / "functions"
FUNCTION = "function-script"
HEADER = {"apiVersion": "lab.example.org/v1", "kind": "Script"}
_FOREIGN_EVENTS = ("SelectComposition",)
_UNREADY, _FAILED = "is not yet ready", "cannot compose resources: "
"""Events that whoever applies a round writes, not the round itself."""


class Scripted:
    """A function that does what its input says, and counts its calls by step."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    def __call__(self, request: StationRequest) -> StationResponse:
        script = request.input
        name = str(script.get("name", ""))
        self.calls[name] = self.calls.get(name, 0) + 1
        response = StationResponse.to(request, ttl_s=float(script.get("ttl", 60)))
        if script.get("forget"):
            response = StationResponse(ttl_s=60)
        self._require(script, request, response)
        self._want(script, request, response)
        self._tell(script, response)
        response.context.update(script.get("context", {}))
        return response

    def _require(
        self, script: Mapping[str, Any], request: StationRequest, response: StationResponse
    ) -> None:
        wanted = dict(script.get("require", {}))
        if script.get("restless"):
            wanted = {"r": {"name": f"n{self.calls[str(script.get('name', ''))]}"}}
        if script.get("forgetful") and request.required:
            wanted = {}
        for key, selector in wanted.items():
            after = selector.get("after")
            if after is None or request.required.get(after):
                response.require(
                    key,
                    "v1",
                    "ConfigMap",
                    match_name=selector.get("name", ""),
                    match_labels=selector.get("labels"),
                    namespace=selector.get("namespace", "default"),
                )

    def _want(
        self, script: Mapping[str, Any], request: StationRequest, response: StationResponse
    ) -> None:
        for key, given in script.get("want", {}).items():
            response.want(key, given["resource"], ready=Ready[given.get("ready", "UNSPECIFIED")])
        for key in script.get("drop", ()):
            response.desired.resources.pop(key, None)
        if "status" in script:
            response.merge_status(script["status"])
        if script.get("show"):
            response.merge_status({script["show"]: _seen(request)})
        response.desired.composite.ready = Ready[script.get("ready", "UNSPECIFIED")]

    def _tell(self, script: Mapping[str, Any], response: StationResponse) -> None:
        for severity, message, *reason in script.get("results", ()):
            response.results.append(Result(Severity[severity], message, *reason))
        for type_, status, reason, *message in script.get("conditions", ()):
            response.add_condition(type_, status, reason, *message)


def _seen(request: StationRequest) -> dict[str, Any]:
    return {
        "required": {
            key: [metadata(each).get("name") for each in found]
            for key, found in request.required.items()
        },
        "observed": sorted(request.observed.resources),
        "desired": sorted(request.desired.resources),
        "context": request.context,
    }


@dataclass(frozen=True)
class EngineCase:
    """One round of a pipeline."""

    reason: str
    xr: Manifest
    steps: tuple[Mapping[str, Any], ...]
    observed: tuple[Manifest, ...] = ()
    required: tuple[Manifest, ...] = ()
    saves_calls: bool = False
    """We call the function less often, as Crossplane does from 2.4 on."""
    keeps_uncontrolled: bool = False
    """We let go of what nobody controls, as Crossplane does from 2.4 on."""

    @property
    def composition(self) -> Manifest:
        kind = {"apiVersion": self.xr["apiVersion"], "kind": self.xr["kind"]}
        pipeline = [
            {
                "step": str(number),
                "functionRef": {"name": FUNCTION},
                "input": {**HEADER, "name": str(number), **{k: v for k, v in step.items()
                                                             if k != "requirements"}},
                **({"requirements": step["requirements"]} if "requirements" in step else {}),
            }
            for number, step in enumerate(self.steps)
        ]  # fmt: skip
        return {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": "lab"},
            "spec": {"compositeTypeRef": kind, "mode": "Pipeline", "pipeline": pipeline},
        }


def engine_cases() -> list[EngineCase]:
    """Return every case, in the file's order."""
    data = yaml.safe_load((FOLDER / "engine.yaml").read_text(encoding="utf-8"))
    return [
        EngineCase(
            entry["reason"],
            entry.get("xr", data["xr"]),
            tuple(entry["steps"]),
            tuple(entry.get("observed", ())),
            tuple(entry.get("required", ())),
            entry.get("saves_calls", False),
            entry.get("keeps_uncontrolled", False),
        )
        for entry in data["cases"]
    ]


def recorded_rounds() -> dict[str, Any]:
    """Return what the real engine made of the cases, by their reasons."""
    found: dict[str, Any] = json.loads((FOLDER / "engine.json").read_text("utf-8"))["answers"]
    return found


def our_round(case: EngineCase) -> dict[str, Any]:
    """Run a case here and return it in the words of the recorded ones."""
    script = Scripted()
    xr = root_labelled(copied(dict(case.xr)))
    xr["metadata"].setdefault("uid", preview_uid(xr))
    observed = {annotations_of(each)[RESOURCE_NAME_ANNOTATION]: each for each in case.observed}
    fetch = lookup_in([*case.required, *case.observed])
    world = World({FUNCTION: script}, observed, lookup=fetch, scope_of=is_namespaced)
    found = compose(xr, steps_of(case.composition["spec"]), world)
    return {
        "error": found.error,
        "resources": {name: part.manifest for name, part in sorted(found.resources.items())},
        "deleted": sorted(found.deletions),
        "references": list(found.references),
        "status": found.status,
        "conditions": _conditions_here(found, (case.xr.get("status") or {}).get("conditions", ())),
        "events": [[each.type, each.reason, each.message] for each in found.events],
        "calls": script.calls,
    }


def _conditions_here(found: Composed, present: Sequence[Mapping[str, str]]) -> list[list[str]]:
    said = (*found.conditions, RECONCILE_SUCCESS, found.ready_condition)
    if found.error:
        failed = reconcile_error(f"cannot compose resources: {found.error}")
        said = (*found.conditions, failed)
    told = {each["type"]: [each["type"], each["status"], each["reason"], ""] for each in present}
    for each in (RESPONSIVE, *said):
        told[each.type] = [each.type, each.status, each.reason, each.message]
    return sorted(told.values())


def real_round(case: EngineCase, core: str, address: str, script: Scripted) -> dict[str, Any]:
    """Ask a real engine."""
    asked, answer = _messages()
    given = {
        "compositeResource": case.xr,
        "composition": case.composition,
        "functions": [{"name": FUNCTION, "address": address}],
        "observedResources": list(case.observed),
        "requiredResources": list(case.required),
    }
    script.calls.clear()
    data = json_format.ParseDict({"composite": given}, asked()).SerializeToString()
    command = [core, "internal", "render"]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=240)
    message = json_format.MessageToDict(
        answer.FromString(done.stdout), preserving_proto_field_name=True
    )
    return _told(message.get("composite", {}), done.stderr.decode(), dict(script.calls))


def _told(found: Mapping[str, Any], errors: str, calls: dict[str, int]) -> dict[str, Any]:
    xr: Manifest = copied(found.get("composite_resource", {}))
    status = xr.get("status") or {}
    events = [[e["type"], e["reason"], e["message"]] for e in found.get("events", ())]
    told = sorted(
        [c["type"], c["status"], c["reason"], c.get("message", "")]
        for c in status.pop("conditions", ())
    )
    return {
        "error": errors.strip().partition(_FAILED)[2],
        "resources": {
            annotations_of(each)[RESOURCE_NAME_ANNOTATION]: copied(each)
            for each in found.get("composed_resources", ())
        },
        "deleted": sorted(
            annotations_of(each)[RESOURCE_NAME_ANNOTATION]
            for each in found.get("deleted_resources", ())
        ),
        "references": ((xr.get("spec") or {}).get("crossplane") or {}).get("resourceRefs", []),
        "status": status,
        "conditions": told,
        "events": [
            event
            for event in events
            if event[1] not in _FOREIGN_EVENTS
            and not event[2].endswith(_UNREADY)
            and not event[2].startswith(_FAILED)
        ],
        "calls": calls,
    }


_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_TEXT = descriptor_pb2.FieldDescriptorProto.TYPE_STRING


def _messages() -> tuple[Any, Any]:
    """Return the engine's request and answer, as far as they are needed."""
    struct = ".google.protobuf.Struct"
    wanted = {
        "Fn": {"name": (1, "", False), "address": (2, "", False)},
        "Event": {"type": (1, "", False), "reason": (2, "", False), "message": (3, "", False)},
        "In": {
            "composite_resource": (1, struct, False),
            "composition": (2, struct, False),
            "functions": (3, ".r.Fn", True),
            "observed_resources": (4, struct, True),
            "required_resources": (5, struct, True),
        },
        "Out": {
            "composite_resource": (1, struct, False),
            "composed_resources": (2, struct, True),
            "deleted_resources": (3, struct, True),
            "events": (4, ".r.Event", True),
        },
        "Req": {"composite": (2, ".r.In", False)},
        "Rsp": {"composite": (2, ".r.Out", False)},
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="r.proto", package="r", syntax="proto3", dependency=["google/protobuf/struct.proto"]
    )
    for name, fields in wanted.items():
        made = file.message_type.add(name=name)
        for key, (number, kind, many) in fields.items():
            entry = made.field.add(name=key, number=number, label=3 if many else 1)
            entry.type = _MESSAGE if kind else _TEXT
            if kind:
                entry.type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(STRUCT.serialized_pb)
    pool.Add(file)
    made_of = message_factory.GetMessageClass
    request, response = (made_of(pool.FindMessageTypeByName(f"r.{n}")) for n in ("Req", "Rsp"))
    return request, response


def record(release: str) -> None:
    """Ask the engine at ``CROSSPLANE_CORE`` every case and write what it made of them."""
    script = Scripted()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(lambda data, _: answered(script, data))
    service = "apiextensions.fn.proto.v1.FunctionRunnerService"
    handlers = grpc.method_handlers_generic_handler(service, {"RunFunction": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    core = os.environ["CROSSPLANE_CORE"]
    rows = []
    for case in engine_cases():
        found = real_round(case, core, f"127.0.0.1:{port}", script)
        rows.append(f"{json.dumps(case.reason)}: {json.dumps(found)}")
    server.stop(0)
    head = f'{{"engine": "crossplane", "release": "{release}", "answers": {{\n'
    (FOLDER / "engine.json").write_text(head + ",\n".join(rows) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
