"""A small sound kit, as files and a station, to break in one place at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from compositions.station import Station, StationRequest, StationResponse
from ground.errors import OrderkitError
from orderkit.core.kit.checked_kits import checked_kit
from orderkit_workshop.check import KitUnderCheck, PackFacts
from orderkit_workshop.generate.kit_files import projected

EXAMPLES = """\
  examples:
    - name: usual
      values: {team: alpha, size: small}
"""
KIT = """\
apiVersion: orderkit.dev/v1alpha1
kind: Kit
metadata:
  name: lab
spec:
  title: Laboratory
  nameFrom: team
  teamFrom: team
  changes:
    - name: resize
      fields: [size]
      direction: step
  examples:
    - name: usual
      values: {team: alpha, size: small}
  composes:
    - {apiVersion: v1, kind: Namespace}
    - {apiVersion: v1, kind: ConfigMap}
"""
DEFINITION = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xlabs.lab.example.org
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
spec:
  scope: Cluster
  group: lab.example.org
  names:
    kind: XLab
    plural: xlabs
  enforcedCompositionRef:
    name: lab-default
  versions:
    - name: v1alpha1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          description: A laboratory for one team.
          properties:
            spec:
              type: object
              required: [team, size]
              properties:
                team:
                  type: string
                  description: Who works there.
                  pattern: '^[a-z][a-z0-9-]{2,28}$'
                size:
                  type: string
                  description: How many benches.
                  enum: [small, medium, large]
            status:
              type: object
              properties:
                namespace:
                  type: string
"""
COMPOSITION = """\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: lab-default
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
spec:
  compositeTypeRef:
    apiVersion: lab.example.org/v1alpha1
    kind: XLab
  mode: Pipeline
  pipeline:
    - step: lab
      functionRef:
        name: function-orderkit
      input:
        apiVersion: stations.orderkit.dev/v1alpha1
        kind: Station
        name: lab
    - step: ready
      functionRef:
        name: function-auto-ready
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: crossplane-compose-lab-more
  labels:
    rbac.crossplane.io/aggregate-to-crossplane: "true"
rules:
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [get, list, watch, create, update, patch, delete]
"""
DIGEST = "0" * 64
FUNCTIONS = f"""\
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-orderkit
spec:
  package: registry.example.org/orderkit/function-orderkit:v0.1.0@sha256:{DIGEST}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-auto-ready
spec:
  package: registry.example.org/crossplane-contrib/function-auto-ready:v0.7.0@sha256:{DIGEST}
"""
STATION = """\
from orderkit.stations import StationRequest, StationResponse


def station(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    bay = f"lab-{request.xr['spec']['team']}"
    response.want("bay", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bay}})
    if request.observed_resource("bay") is not None:
        sheet = {"apiVersion": "v1", "kind": "ConfigMap"}
        sheet["metadata"] = {"name": "sheet", "namespace": bay}
        sheet["data"] = {"size": request.xr["spec"]["size"]}
        response.want("sheet", sheet)
    response.merge_status({"namespace": bay})
    return response
"""
PACK = """\
apiVersion: orderkit.dev/v1alpha1
kind: Pack
metadata:
  name: lab
spec:
  kits: [lab]
"""
TEXTS = {
    "pack.yaml": PACK,
    "templates/lab/kit.yaml": KIT,
    "gitops/apis/lab/definition.yaml": DEFINITION,
    "gitops/apis/lab/composition.yaml": COMPOSITION,
    "gitops/functions/functions.yaml": FUNCTIONS,
    "stations/lab/station.py": STATION,
}


def station(request: StationRequest) -> StationResponse:
    """Assemble a laboratory; the same as the text STATION."""
    response = StationResponse.to(request)
    bay = f"lab-{request.xr['spec']['team']}"
    response.want("bay", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bay}})
    if request.observed_resource("bay") is not None:
        sheet = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "sheet", "namespace": bay},
            "data": {"size": request.xr["spec"]["size"]},
        }
        response.want("sheet", sheet)
    response.merge_status({"namespace": bay})
    return response


def texts_with(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the kit's own files with some replaced, added or (None) left out."""
    merged = {**TEXTS, **changes}
    return {path: text for path, text in merged.items() if text is not None}


def generated(texts: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    """Return files and, where the kit can be read, what is generated from them."""
    files = {PurePosixPath(path): text.encode() for path, text in texts.items()}
    try:
        return {**projected(checked_kit("lab", files)), **files}
    except OrderkitError:
        return files


def subject(
    changes: Mapping[str, str | None] | None = None, stations: Mapping[str, Station] | None = None
) -> KitUnderCheck:
    """Return the kit under check."""
    files = generated(texts_with(changes or {}))
    return KitUnderCheck("lab", PackFacts(files, stations or {"lab": station}))
