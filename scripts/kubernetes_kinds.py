"""
Write what Kubernetes itself serves, from the OpenAPI documents of the lab's API server.

    scripts/kubernetes_kinds.py

Names, scope and structure of every stable kind that can be created, without descriptions. Run it
after the lab's Kubernetes was raised; a test of `make e2e` compares the file with the server.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lab.realkube import serving  # noqa: E402

from kubeschema.known.builtin_kinds import FILE  # noqa: E402 - the path comes first

_TAG = "x-kubernetes-group-version-kind"
_TOLD = {"description", _TAG, "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"}
_EMPTY: tuple[Any, ...] = ("", 0, {}, None)
"""Defaults that the document gives every required field."""
_VERBS = {"create", "delete", "list", "patch"}
_PREFIX = "io.k8s."


def recorded(get: Callable[[str], Mapping[str, Any]]) -> str:
    """Return the file's text; `get` reads a path of the server as JSON."""
    kinds: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for path in sorted(get("/openapi/v3")["paths"]):
        if not re.fullmatch(r"api/v1|apis/[^/]+/v[0-9]+", path):
            continue
        document = get(f"/openapi/v3/{path}")["components"]["schemas"]
        resources = get(f"/{path}")
        kinds.update(_kinds(resources, document))
        schemas.update({_name(name): _compact(schema) for name, schema in document.items()})
    used = sorted(_reachable([kind["schema"] for kind in kinds.values()], schemas))
    parts = {
        "kinds": {key: kinds[key] for key in sorted(kinds)},
        "schemas": {name: schemas[name] for name in used},
    }
    release = get("/version")["gitVersion"].lstrip("v").rpartition(".")[0]
    sections = ",\n".join(
        f'"{section}":{{\n'
        + ",\n".join(f'"{key}":{_text(value)}' for key, value in entries.items())
        + "\n}"
        for section, entries in parts.items()
    )
    return f'{{"release":"{release}",\n{sections}}}\n'


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _name(reference: str) -> str:
    return reference.rpartition("/")[2].removeprefix(_PREFIX)


def _kinds(resources: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    group, _, version = resources["groupVersion"].rpartition("/")
    names = {
        (tag["group"], tag["version"], tag["kind"]): _name(name)
        for name, schema in document.items()
        for tag in schema.get(_TAG, ())
    }
    served = {resource["name"] for resource in resources["resources"]}
    for resource in resources["resources"]:
        if "/" in resource["name"] or not set(resource["verbs"]) >= _VERBS:
            continue
        kind = {
            "plural": resource["name"],
            "namespaced": resource["namespaced"],
            "shortNames": resource.get("shortNames", []),
            "categories": resource.get("categories", []),
            "status": f"{resource['name']}/status" in served,
            "schema": names[group, version, resource["kind"]],
        }
        yield f"{resources['groupVersion']} {resource['kind']}", kind


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    compact: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _TOLD or (key == "default" and value in _EMPTY):
            continue
        if key == "$ref":
            compact[key] = _name(value)
        elif key == "allOf":
            compact.update(_compact(value[0]))
        elif key == "properties":
            compact[key] = {name: _compact(field) for name, field in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            compact[key] = _compact(value)
        else:
            compact[key] = value
    return compact


def _reachable(names: list[str], schemas: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += _references(schemas[name])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from _references(part)


def server(kubeconfig: Path) -> Callable[[str], Mapping[str, Any]]:
    """Return what reads a path of a server."""

    def get(path: str) -> Mapping[str, Any]:
        command = ["kubectl", "--kubeconfig", str(kubeconfig), "get", "--raw", path]
        answer = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603  ours
        content: Mapping[str, Any] = json.loads(answer)
        return content

    return get


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as kube:
        FILE.write_text(recorded(server(kube.kubeconfig)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
