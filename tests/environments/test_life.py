"""Environments on the embedded platform: ordered, filled, changed, failing, expired and ended."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from commands import Command, in_process
from portalsides import eventually
from reviewedchanges import Members, new_members, reviewed
from s3server import PYTHON, SDK, S3Server

from ground.names import RepoId, TeamName
from ground.objects.kube_objects import Kind, Manifest
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import Ports
from orderkit_standins.providers.cloud_twin import EXTERNAL
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PACK = Path(__file__).parents[2] / "packs" / "environments"
VALUES = {"BUCKET_PREFIX": "acme-mfe", "PROJECT_ID": "acme-lab"}
IMAGE = '{"image": "registry.example.org/payments:1.5.0"}'
BUCKET = Kind("s3.aws.m.upbound.io", "v1beta1", "Bucket")
POLICY = Kind("s3.aws.m.upbound.io", "v1beta1", "BucketPolicy")
SECRET = Kind("", "v1", "Secret")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
INSTANCE = Kind("rds.aws.m.upbound.io", "v1beta1", "Instance")
TEAM = TeamName("ae86")
NAME = "crossplane.io/external-name"
BOTH = {"checkout", "shop"}
WAIT = ("--timeout", "200s")
ENVIRONMENT = """\
apiVersion: platform.acme.com/v1alpha1
kind: UnifiedEnvironment
metadata: {name: feature-x}
spec:
  environment: feature-x
  squad: ae86
  backend: {image: 'registry.example.org/payments:1.5.0'}
  frontends: [shop]
"""
BUILD = """\
#!/bin/sh
mkdir -p "$1/assets"
echo "document.title = 'shop'" >"$1/assets/index-BtZ3kq1F.js"
echo "<script src=/assets/index-BtZ3kq1F.js></script>" >"$1/index.html"
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the pack with team ae86; its providers are twins."""
    state = tmp_path_factory.mktemp("environments") / "state"
    request = EmbeddedRunRequest(state, PACK, Ports(0, 0, 0, 0), (TEAM,), values=VALUES)
    with running(request, on_step=lambda *_: None) as site:
        yield site


@pytest.fixture(scope="module")
def members(platform: Running) -> Members:
    return new_members(platform, TEAM)


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


def objects(platform: Running, kind: Kind, namespace: str | None = None) -> list[Manifest]:
    return [*platform.platform.cluster.list(kind, namespace=namespace).items]


def secrets_of(platform: Running, namespace: str) -> dict[str, dict[str, str]]:
    """Return the values of a namespace's Secrets, by name."""
    return {
        manifest["metadata"]["name"]: {
            key: base64.b64decode(value).decode() for key, value in manifest.get("data", {}).items()
        }
        for manifest in objects(platform, SECRET, namespace)
    }


def outputs_of(orderkit: Command, order: str, *options: str) -> dict[str, Any]:
    done = orderkit("outputs", order, "--json", *options)
    assert done.code == 0, done.err
    outputs: dict[str, Any] = done.json["outputs"]
    return outputs


def in_the_cloud(platform: Running, name: str) -> dict[str, dict[str, Any]]:
    """Return what exists in the twins' clouds for an order: fields, by kind and external name."""
    specs = [external["spec"] for external in objects(platform, EXTERNAL)]
    return {
        f"{spec['kind']} {spec['externalName']}": spec["forProvider"]
        for spec in specs
        if name in json.dumps(spec)
    }


def make_buckets(platform: Running, s3: S3Server, namespace: str) -> None:
    """Make what the twin only says it made: the buckets, with the policies of the order."""
    for bucket in objects(platform, BUCKET, namespace):
        name = bucket["metadata"]["annotations"][NAME]
        requests.put(f"{s3.url}/{name}", timeout=30).raise_for_status()
        for policy in objects(platform, POLICY, namespace):
            spec = policy["spec"]["forProvider"]
            if json.loads(spec["policy"])["Statement"][0]["Resource"] == f"arn:aws:s3:::{name}/*":
                url = f"{s3.url}/{name}?policy"
                requests.put(url, spec["policy"], timeout=30).raise_for_status()


def test_the_five_minute_workflow_ends_with_a_page_in_the_bucket(
    platform: Running, s3: S3Server, tmp_path: Path
) -> None:
    """Order, wait, outputs, build and sync, as the script of the pack's documentation does it."""
    (tmp_path / "env.yaml").write_text(ENVIRONMENT)
    (tmp_path / "build.sh").write_text(BUILD)
    file = platform.embedded.state.folder / "platform.yaml"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "orderkit").write_text(f'#!/bin/sh\nexec {sys.executable} -m orderkit "$@"\n')
    (tools / "python").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    env = {
        **os.environ,
        **SDK,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ORDERKIT_PLATFORM": str(file),
        "AWS_ENDPOINT_URL_S3": s3.url,
        "BUILD": f"sh {tmp_path}/build.sh {tmp_path}/dist",
    }
    script = [str(PACK / "docs" / "five-minutes.sh"), "env.yaml", "dist"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=600
        )

    first = run()
    assert first.returncode == 1  # the twin made no bucket of moto's
    assert "NoSuchBucket" in first.stderr, first.stderr
    make_buckets(platform, s3, "feature-x-environment")
    done = run()

    assert done.returncode == 0, done.stderr
    assert "the page is in acme-mfe-feature-x-shop" in done.stdout
    page = s3.get("acme-mfe-feature-x-shop", "index.html")
    assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-cache")
    script_path = page.text.split("src=/")[1].split(">")[0]
    assert "shop" in s3.get("acme-mfe-feature-x-shop", script_path).text


def test_an_environment_gives_outputs_and_its_password_only_when_asked(
    platform: Running, orderkit: Command
) -> None:
    outputs = outputs_of(orderkit, "unifiedenvironment-feature-x")
    secrets = secrets_of(platform, "feature-x-environment")
    password = secrets["db-connection-details"]["PGPASSWORD"]

    assert outputs == {
        "bucketName": "acme-mfe-feature-x-shop",
        "databaseSecret": "db-connection-details",
        "backendUrl": "http://backend.feature-x-environment.svc",
        "namespace": "feature-x-environment",
    }
    assert len(password) == 32
    revealed = outputs_of(orderkit, "unifiedenvironment-feature-x", "--secrets")
    assert revealed["databasePassword"] == password
    shown = orderkit("status", "unifiedenvironment-feature-x").out
    assert "database.feature-x-environment.svc" in shown
    assert password not in shown


def test_every_allowed_change_is_made_and_keeps_the_password(
    platform: Running, orderkit: Command
) -> None:
    namespace = "feature-x-environment"
    before = secrets_of(platform, namespace)
    changes = (
        ("backend.image=registry.example.org/payments:1.6.0",),
        ("backend.replicas=3",),
        ("backend.port=8080", "backend.healthPath=/ready"),
        ('frontends=["shop", "checkout"]',),
    )
    for change in changes:
        done = orderkit("change", "unifiedenvironment-feature-x", *change, *WAIT)
        assert done.code == 0, (change, done.err)

    (backend,) = objects(platform, Kind("apps", "v1", "Deployment"), namespace)
    container = backend["spec"]["template"]["spec"]["containers"][0]
    assert (backend["spec"]["replicas"], container["image"]) == (
        3,
        "registry.example.org/payments:1.6.0",
    )
    assert container["ports"][0]["containerPort"] == 8080
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    buckets = {m["metadata"]["annotations"][NAME] for m in objects(platform, BUCKET, namespace)}
    assert buckets == {"acme-mfe-feature-x-shop", "acme-mfe-feature-x-checkout"}
    assert secrets_of(platform, namespace) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("database.service=rds", "never"),
        ("squad=rx7", "names the order or its team"),
        ("stage=staging", "never"),
    ],
)
def test_what_would_lose_data_or_its_owner_never_changes(
    orderkit: Command, change: str, why: str
) -> None:
    done = orderkit("change", "unifiedenvironment-feature-x", change)

    assert done.code in {1, 4}
    assert why in done.err


def test_a_larger_database_is_reviewed_and_never_becomes_smaller(
    platform: Running, orderkit: Command, members: Members
) -> None:
    order = "unifiedenvironment-feature-x"
    planned = orderkit("plan", order, "database.size=medium")
    refused = orderkit("change", order, "database.size=medium", "--direct")

    assert planned.code == 10, planned.err
    assert "PersistentVolumeClaim" in planned.out
    assert refused.code != 0

    reviewed(orderkit, platform.platform, members, RepoId(TEAM, order), "database.size=medium")
    (claim,) = objects(platform, CLAIM, "feature-x-environment")
    assert claim["spec"]["resources"]["requests"]["storage"] == "50Gi"
    (stateful_set,) = objects(platform, STATEFUL_SET, "feature-x-environment")
    (postgres,) = stateful_set["spec"]["template"]["spec"]["containers"]
    assert postgres["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}
    smaller = orderkit("change", order, "database.size=small")
    assert "may only grow" in smaller.err


def test_a_frontend_that_is_removed_takes_its_bucket_along(
    platform: Running, orderkit: Command
) -> None:
    order, namespace = "unifiedenvironment-feature-x", "feature-x-environment"

    def left(kind: Kind) -> set[str]:
        names = (m["metadata"]["annotations"][NAME] for m in objects(platform, kind, namespace))
        return {name.removeprefix("acme-mfe-feature-x-") for name in names}

    def files() -> list[str]:
        return [name for name in in_the_cloud(platform, "feature-x") if "checkout" in name]

    added = orderkit("change", order, 'frontends=["checkout", "shop"]', *WAIT)
    assert added.code in {0, 10}, added.err
    assert (left(BUCKET), left(POLICY), len(files())) == (BOTH, BOTH, 5)

    removal = ("change", order, 'frontends=["shop"]')
    refused = orderkit(*removal)
    assert refused.code == 4
    assert "bucket-checkout is deleted: its data is lost" in refused.err
    assert len(files()) == 5
    done = orderkit(*removal, "--accept-loss", *WAIT)
    assert done.code == 0, done.err
    eventually(lambda: (left(BUCKET), left(POLICY), files()) == ({"shop"}, {"shop"}, []))
    assert "Bucket acme-mfe-feature-x-shop" in in_the_cloud(platform, "feature-x")


def test_an_environment_with_rds_grows_and_ends_with_nothing_left(
    platform: Running, orderkit: Command, members: Members
) -> None:
    values = ("environment=pay", "squad=ae86", "stage=staging", f"backend={IMAGE}")
    database = 'database={"service": "rds", "size": "small"}'
    done = orderkit("order", "unifiedenvironment", *values, database, *WAIT)
    assert done.code == 0, done.err
    (database_instance,) = objects(platform, INSTANCE, "pay-environment")
    address = database_instance["status"]["atProvider"]["address"]

    assert database_instance["spec"]["forProvider"]["multiAz"] is True
    secret = secrets_of(platform, "pay-environment")["db-connection-details"]
    assert secret["DATABASE_URL"].endswith(f"@{address}:5432/app")
    (backend,) = objects(platform, Kind("apps", "v1", "Deployment"), "pay-environment")
    variables = backend["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "PGHOST", "value": address} in variables

    confirm = "unifiedenvironment-pay"
    reviewed(orderkit, platform.platform, members, RepoId(TEAM, confirm), "database.size=large")
    (larger,) = objects(platform, INSTANCE, "pay-environment")
    cloud = in_the_cloud(platform, "pay-environment")
    (rds,) = (fields for name, fields in cloud.items() if name.startswith("Instance "))
    for fields in (larger["spec"]["forProvider"], rds):
        assert (fields["instanceClass"], fields["allocatedStorage"]) == ("db.m7g.large", 200)
    assert secrets_of(platform, "pay-environment")["db-connection-details"] == secret

    ended = orderkit("destroy", confirm, "--confirm", confirm, "--timeout", "300s")
    assert ended.code == 0, ended.err
    assert in_the_cloud(platform, "pay") == {}
    assert orderkit("wait", confirm, "--for", "gone", *WAIT).code == 0


def test_a_review_app_has_endpoints_and_expires(platform: Running, orderkit: Command) -> None:
    values = ("name=review", "team=ae86", "nodeSize=small", "leaseDuration=8h")
    done = orderkit("order", "appenvironment", *values, *WAIT)
    assert done.code == 0, done.err
    outputs = outputs_of(orderkit, "appenvironment-review")
    assert outputs["gkeEndpoint"] == "203.0.113.20"
    assert outputs["dbEndpoint"] == "203.0.113.40"
    assert outputs["bucketUrl"].startswith("gs://acme-lab-review-")
    secrets = secrets_of(platform, "team-ae86")
    assert secrets["appenvironment-review-connection"].keys() == {
        "kubeconfig",
        "db_password",
        "DATABASE_URL",
    }

    changed = orderkit("change", "appenvironment-review", "parameters.storageGB=20", *WAIT)
    assert changed.code == 0, changed.err
    # Ready may still be of the part as it was: Crossplane looks again when its provider has
    eventually(
        lambda: cloud_of(platform, "review")["DatabaseInstance"]["settings"]["diskSize"] == 20
    )
    smaller = orderkit("change", "appenvironment-review", "parameters.storageGB=10")
    assert "may only grow" in smaller.err

    assert swept(platform, hours=6.5) == ["warn"]
    assert swept(platform, hours=8.4) == ["warn"]
    assert swept(platform, hours=10) == ["end"]
    assert orderkit("wait", "appenvironment-review", "--for", "gone", *WAIT).code == 0
    assert in_the_cloud(platform, "review") == {}


def cloud_of(platform: Running, name: str) -> dict[str, dict[str, Any]]:
    """Return the fields of what an order has in the cloud, by kind."""
    return {key.split()[0]: fields for key, fields in in_the_cloud(platform, name).items()}


def test_a_larger_environment_that_is_kept_outlives_its_order(
    platform: Running, orderkit: Command, members: Members
) -> None:
    order = "appenvironment-kept"
    done = orderkit("order", "appenvironment", "name=kept", "team=ae86", "nodeSize=small", *WAIT)
    assert done.code == 0, done.err
    assert cloud_of(platform, "kept")["NodePool"]["nodeConfig"]["machineType"] == "e2-small"

    done = orderkit("change", order, "parameters.nodeSize=large", *WAIT)
    assert done.code == 0, done.err
    cloud = cloud_of(platform, "kept")
    assert cloud["NodePool"]["nodeConfig"]["machineType"] == "e2-standard-4"
    assert cloud["NodePool"]["nodeCount"] == 3
    database = cloud["DatabaseInstance"]["settings"]
    assert (database["tier"], database["backupConfiguration"]["enabled"]) == (
        "db-custom-2-7680",
        True,
    )
    assert cloud["Bucket"]["forceDestroy"] is True

    orphan = "parameters.deletionPolicy=Orphan"
    reviewed(orderkit, platform.platform, members, RepoId(TEAM, order), orphan)
    before = in_the_cloud(platform, "kept")
    assert cloud_of(platform, "kept")["Bucket"]["forceDestroy"] is False
    ended = orderkit("destroy", order, "--confirm", order, "--timeout", "300s")
    assert ended.code == 0, ended.err
    assert in_the_cloud(platform, "kept") == before
    assert len(before) == 6


def swept(platform: Running, *, hours: float) -> list[str]:
    """Sweep the leases as if it were later; return what was done about the review app."""

    class Later(SystemClock):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(hours=hours)

    later = replace(platform.platform, clock=Later(), other_clock=lambda: None)
    orders = sweep(later, SweepRequest(dry_run=False)).orders
    return [order.action for order in orders if order.order == "appenvironment-review"]
