"""
Cases for functions that are not ours, and the answers of the real ones.

A case is a request in YAML. A file of cases holds whole requests (``requests``) and short ones
(``values``): an XR with one value, a template with one patch, the transforms under test.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from compositions.station import Ready, Resource, Selector, State, StationRequest, StationResponse
from ground.objects.values import copied

CASES = Path(__file__).parents[1] / "conformance" / "functions"


@dataclass(frozen=True)
class FunctionCase:
    """One request, and what is particular about its answer."""

    reason: str
    given: Mapping[str, Any]
    opaque: str = ""
    """The twin refuses with this text in its reason."""
    crash: bool = False
    """The real function crashes on it, so it is not asked."""
    loose: bool = False
    """The texts of results are not compared: they are about malformed JSON."""

    def request(self) -> StationRequest:
        given = copied(dict(self.given))
        return StationRequest(
            State(_resource(given.get("observed", {})), _resources(given.get("existing"))),
            State(_resource(given.get("desired", {})), _resources(given.get("wanted"))),
            context=given.get("context", {}),
            input=given.get("input", {}),
            required={name: tuple(found) for name, found in given.get("required", {}).items()},
        )


def _resource(given: Mapping[str, Any]) -> Resource:
    details = {name: text.encode() for name, text in given.get("details", {}).items()}
    return Resource(given.get("resource", {}), Ready[given.get("ready", "UNSPECIFIED")], details)


def _resources(given: Mapping[str, Any] | None) -> dict[str, Resource]:
    return {name: _resource(each) for name, each in (given or {}).items()}


def cases_of(function: str) -> list[FunctionCase]:
    """Return every case of a function, in the file's order."""
    data = yaml.safe_load((CASES / f"{function}.yaml").read_text(encoding="utf-8"))
    return [*_whole(data), *_short(data)]


def _case(entry: dict[str, Any], given: Mapping[str, Any]) -> FunctionCase:
    own = {key: entry[key] for key in _OWN if key in entry}
    return FunctionCase(given=given, **own)


_OWN = {"reason", "opaque", "loose", "crash"}


def _whole(data: Mapping[str, Any]) -> Iterator[FunctionCase]:
    for entry in data.get("requests", ()):
        given = {key: part for key, part in entry.items() if key not in _OWN}
        given.setdefault("observed", {"resource": data["xr"]})
        if "spec" in given:
            given["input"] = {**data["header"], "spec": given.pop("spec")}
        else:
            given["input"] = {**data["header"], **given.get("input", {})}
        yield _case(entry, given)


def _short(data: Mapping[str, Any]) -> Iterator[FunctionCase]:
    for entry in data.get("values", ()):
        xr = {**data["xr"], "spec": {"value": entry.get("value")}}
        patch = {
            "fromFieldPath": "spec.value",
            "toFieldPath": entry.get("to", "data.out"),
            "transforms": entry.get("transforms", []),
        }
        if "policy" in entry:
            patch["policy"] = {"toFieldPath": entry["policy"]}
        base = {"apiVersion": "v1", "kind": "Thing", "data": entry.get("base", {})}
        template = {"name": "thing", "base": base, "patches": [patch]}
        yield _case(
            entry,
            {
                "observed": {"resource": xr},
                "input": {**data["header"], "resources": [template]},
            },
        )


def answer_of(response: StationResponse) -> dict[str, Any]:
    """Return an answer as data that JSON can hold, in one order."""
    found: dict[str, Any] = copied(
        {
            "composite": _shown(response.desired.composite),
            "resources": {
                name: _shown(each) for name, each in sorted(response.desired.resources.items())
            },
            "context": response.context,
            "results": [[each.severity.name, each.message] for each in response.results],
            "requirements": {
                name: _selector(each) for name, each in sorted(response.requirements.items())
            },
            "ttl": response.ttl_s,
        }
    )
    return found


def _shown(resource: Resource) -> dict[str, Any]:
    details = {
        name: base64.b64encode(data).decode()
        for name, data in sorted(resource.connection_details.items())
    }
    return {"resource": resource.resource, "ready": resource.ready.name, "details": details}


def _selector(selector: Selector) -> dict[str, Any]:
    return {
        "apiVersion": selector.api_version,
        "kind": selector.kind,
        "name": selector.name,
        "labels": dict(selector.labels),
        "namespace": selector.namespace,
    }
