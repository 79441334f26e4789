"""The reference pack with a garage that has a bucket, its own or one that exists in the cloud."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.main import run
from yamlfiles import yaml11

STATION = '''"""The bay, and a bucket: made, or taken over."""

from __future__ import annotations

from orderkit.stations import OBSERVE, StationRequest, StationResponse, managed

from .bay import station as bay


def station(request: StationRequest) -> StationResponse:
    response = bay(request)
    spec = request.xr["spec"]
    taken = spec.get("bucket", "")
    bucket = managed(
        "storage.gcp.m.upbound.io/v1beta1",
        "Bucket",
        {
            "location": "EU",
            "storageClass": spec.get("storageClass", "STANDARD"),
            "labels": {"team": spec["teamName"]},
        },
        external_name=taken,
        policies=OBSERVE if taken and not spec.get("manage") else (),
    )
    if request.observed_resource("namespace"):
        meta = {"name": "bucket", "namespace": f"garage-{spec['teamName']}"}
        bucket["metadata"] = {**bucket.get("metadata", {}), **meta}
        response.want("bucket", bucket)
    return response
'''
FIELDS = {
    "bucket": {"type": "string", "description": "A bucket that exists, to take over."},
    "manage": {"type": "boolean", "description": "Whether to manage it."},
    "storageClass": {"type": "string", "enum": ["STANDARD", "NEARLINE"], "description": "Class."},
}
BUCKETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.storage.gcp.m.upbound.io}
spec:
  group: storage.gcp.m.upbound.io
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                forProvider:
                  type: object
                  properties:
                    location: {type: string}
                    storageClass: {type: string}
                    labels: {type: object, additionalProperties: {type: string}}
"""
PROVIDER = """
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-gcp-storage
  annotations: {embedded.orderkit.dev/twin: gcp, embedded.orderkit.dev/delay: 0.1s}
spec: {package: registry.example.org/acme/provider-gcp-storage:v2.0.0}
"""
CONFIG = """
apiVersion: gcp.m.upbound.io/v1beta1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {projectID: acme}
"""


def takeover_pack(target: Path) -> Path:
    """Copy the reference pack to `target` and give its garage a bucket."""
    source = reference_pack()
    target.mkdir()
    for part in ("templates", "stations", "gitops", "day2", "docs/kits"):
        shutil.copytree(source / part, target / part)
    pack = yaml.safe_load((source / "pack.yaml").read_text())
    pack["spec"]["providers"] = ["gcp"]
    kit_file = target / "templates/garage/kit.yaml"
    kit = yaml.safe_load(kit_file.read_text())
    kit["spec"]["import"] = {"names": {"bucket": "bucket"}, "manage": "manage"}
    kit["spec"]["composes"] += [
        {"apiVersion": "storage.gcp.m.upbound.io/v1beta1", "kind": "Bucket"}
    ]
    definition = target / "gitops/apis/garage/definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"].update(FIELDS)
    files = {
        "pack.yaml": yaml11.dump(pack),
        "templates/garage/kit.yaml": yaml11.dump(kit),
        "gitops/apis/garage/definition.yaml": yaml11.dump(xrd),
        "schemas/storage.gcp.m.upbound.io_buckets.yaml": BUCKETS,
        "gitops/providers/gcp/provider.yaml": PROVIDER,
        "gitops/config/gcp/config.yaml": CONFIG,
    }
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    stations = target / "stations" / "garage"
    (stations / "station.py").rename(stations / "bay.py")
    (stations / "station.py").write_text(STATION)
    assert run(["kit", "generate", "--pack", str(target)]) == 0
    return target
