"""A laboratory: a real embedded cluster with the assembly running on it, and stations to order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from compositions.python_functions import python_functions
from compositions.station import Station, StationRequest, StationResponse
from ground.objects.kube_objects import (
    COMPOSITION,
    EVENT,
    FUNCTION,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from orderkit.adapters.folders.station_process import load_stations
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds

PACK = Path(__file__).parents[5]
APP = Kind("lab.example.org", "v1", "App")
WIDGET = Kind("lab.example.org", "v1", "Widget")
OWNER = "lab"
Say = Callable[[StationRequest, StationResponse], None]
T = TypeVar("T")


def xrd(kind: Kind, plural: str, *, scope: str = "Cluster", **spec: Any) -> Manifest:
    number, text = {"type": "integer"}, {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": number, "region": text},
            },
            "status": {"type": "object", "properties": {"note": text, "count": number}},
        },
    }
    version = {
        "name": kind.version,
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "scope": scope,
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": plural},
            "versions": [version],
            **spec,
        },
    }


def composition(name: str, kind: Kind, *functions: str, **meta: Any) -> Manifest:
    steps = [
        {"step": f"step{index}", "functionRef": {"name": function}}
        for index, function in enumerate(functions or ("function-lab", "function-auto-ready"))
    ]
    return {
        "apiVersion": COMPOSITION.api_version,
        "kind": COMPOSITION.kind,
        "metadata": {"name": name, **meta},
        "spec": {
            "compositeTypeRef": {"apiVersion": kind.api_version, "kind": kind.kind},
            "pipeline": steps,
        },
    }


def function_object(name: str) -> Manifest:
    return {
        "apiVersion": FUNCTION.api_version,
        "kind": FUNCTION.kind,
        "metadata": {"name": name},
        "spec": {"package": f"registry.example.org/lab/{name}:v1.0.0"},
    }


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}


def config_map(name: str, home: str = "team-a", **data: str) -> Manifest:
    meta = {"name": name, "namespace": home}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def widget_crd() -> Manifest:
    colour = {"type": "string", "enum": ["red", "green"]}
    spec = {"type": "object", "properties": {"colour": colour, "weight": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.lab.example.org"},
        "spec": {
            "group": "lab.example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [version],
        },
    }


class Lab:
    """One cluster, one assembly at a time, and a function that does what a test says."""

    xrd = staticmethod(xrd)
    composition = staticmethod(composition)
    config_map = staticmethod(config_map)
    namespace = staticmethod(namespace)
    function_object = staticmethod(function_object)

    def __init__(self, path: Path) -> None:
        self.cluster = EmbeddedCluster(path)
        self.says: dict[str, Say] = {}
        self.calls: list[str] = []
        self.functions: dict[str, Station] = {
            **python_functions(load_stations(PACK)),
            "function-lab": self._function,
        }
        self._assembly: EmbeddedCrossplane | None = None

    def _function(self, request: StationRequest) -> StationResponse:
        """Do what the test registered for this XR's name."""
        name = request.xr["metadata"]["name"]
        self.calls.append(name)
        response = StationResponse.to(request, ttl_s=0)
        self.says[name](request, response)
        return response

    def furnish(self) -> None:
        """Bring what tests find: Crossplane's CRDs, kind App, its Composition, a namespace."""
        self.apply(*crossplane_crds(), namespace("team-a"), widget_crd())
        self.apply(*(function_object(name) for name in self.functions))
        self.apply(composition("apps", APP))
        self.apply(xrd(APP, "apps", defaultCompositionRef={"name": "apps"}))

    def start(self, cluster: Cluster | None = None) -> None:
        self._assembly = EmbeddedCrossplane(cluster or self.cluster, self.functions)
        self._assembly.start()

    def stop(self) -> None:
        if self._assembly is not None:
            self._assembly.stop()
            self._assembly = None

    def close(self) -> None:
        self.stop()
        self.cluster.close()

    def apply(self, *manifests: Manifest) -> Manifest:
        for manifest in manifests:
            applied = self.cluster.apply(manifest, owner=OWNER)
        return applied

    def deliver(self, path: str) -> None:
        """Apply a file of the pack, baked."""
        text = (PACK / path).read_text().replace("__ORDERKIT_REGISTRY__", "registry.example.org")
        self.apply(*yaml.safe_load_all(text))

    def wait(self, what: str, look: Callable[[], T], *, timeout_s: float = 90) -> T:
        """Look until the answer is true; fail with the last answer."""
        deadline = time.monotonic() + timeout_s
        while not (found := look()):
            if time.monotonic() > deadline:
                pytest.fail(f"waited {timeout_s} s for: {what}; last: {found!r}")
            time.sleep(0.002)
        return found

    def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        return self.cluster.get(ObjectKey(kind, name, namespace))

    def app(self, name: str, say: Say, **spec: Any) -> Manifest:
        """Order an App that the station `say` assembles."""
        self.says[name] = say
        return self.apply(
            {
                "apiVersion": APP.api_version,
                "kind": APP.kind,
                "metadata": {"name": name},
                "spec": {"size": 1, **spec},
            }
        )

    def status(self, name: str, type_: str, *, kind: Kind = APP, namespace: str = "") -> str:
        """Return ``True``, ``False`` (with message) or nothing; never of another generation."""
        xr = self.get(kind, name, namespace)
        found = condition(xr, type_) if xr else None
        if not xr or not found:
            return ""
        if (
            found.get("observedGeneration", metadata(xr)["generation"])
            != metadata(xr)["generation"]
        ):
            return ""
        return f"{found['status']} {found.get('message') or found['reason']}"

    def wait_status(self, name: str, type_: str, start: str, **where: Any) -> str:
        def look() -> str:
            text = self.status(name, type_, **where)
            return text if text.startswith(start) else ""

        return self.wait(f"{name} {type_} {start}", look)

    def wait_ready(self, name: str, **where: Any) -> Manifest:
        """Wait for Synced and Ready at the present generation; return the XR."""
        self.wait_status(name, "Synced", "True", **where)
        self.wait_status(name, "Ready", "True", **where)
        found = self.get(where.get("kind", APP), name, where.get("namespace", ""))
        assert found is not None
        return found

    def events(self, name: str, type_: str = "") -> list[str]:
        return [
            event["message"]
            for event in self.cluster.list(EVENT).items
            if dig(event, "involvedObject", "name") == name and type_ in ("", event["type"])
        ]

    def wait_event(self, name: str, text: str) -> None:
        self.wait(
            f"event {text!r} on {name}", lambda: any(text in told for told in self.events(name))
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One laboratory per module: tests use names of their own."""
    made = Lab(tmp_path_factory.mktemp("lab") / "cluster.sqlite")
    made.furnish()
    made.start()
    made.wait("kind App", lambda: made.cluster.serves(APP))
    yield made
    made.close()
