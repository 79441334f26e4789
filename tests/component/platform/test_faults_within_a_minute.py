"""Six things that go wrong with an order: each view says which, in the words of what failed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from commands import Command, in_process
from quickpack import quick_pack

from ground.names import OrderId, TeamName
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.cli.main import run
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_view import OrderQuery
from orderkit.flows.argocd.refreshing import nudge
from orderkit.flows.order.order_watch import read_orders
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PACK = Path(__file__).parents[3] / "packs" / "workspaces"
TEAM, WITHIN_S = TeamName("ae86"), 60.0
KIT = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {{name: x{name}s.example.org}}
spec:
  group: example.org
  names: {{kind: X{kind}, plural: x{name}s}}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [purpose]
              properties:
                purpose: {{type: string, maxLength: 40}}
                fails: {{type: string, default: none}}
                config: {{type: string, default: aws}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {{name: x{name}s}}
spec:
  compositeTypeRef: {{apiVersion: example.org/v1, kind: X{kind}}}
  mode: Pipeline
  pipeline:
    - step: make
      functionRef: {{name: function-patch-and-transform}}
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        resources:
          - name: group
            base:
              apiVersion: ec2.aws.m.upbound.io/v1beta1
              kind: SecurityGroup
              spec:
                providerConfigRef: {{kind: ClusterProviderConfig}}
                forProvider: {{region: eu-central-1}}
            patches:
              - {{fromFieldPath: spec.purpose, toFieldPath: spec.forProvider.description}}
              - {{fromFieldPath: spec.config, toFieldPath: spec.providerConfigRef.name}}
              - fromFieldPath: spec.fails
                toFieldPath: metadata.annotations[embedded.orderkit.dev/fail]
    - step: ready
      functionRef: {{name: function-auto-ready}}
    {more}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {{name: function-patch-and-transform}}
spec: {{package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform:v0.9.0}}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {{name: function-auto-ready}}
spec: {{package: xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.5.0}}
"""

ELSEWHERE = """- step: elsewhere
      functionRef: {name: function-kcl}
      input: {apiVersion: krm.kcl.dev/v1alpha1, kind: KCLInput}
"""
KCL = """---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-kcl}
spec: {package: registry.example.org/x/function-kcl:v0.1.0}
"""


@dataclass(frozen=True)
class Fault:
    """What goes wrong: how it is ordered, what then happens to it, and what is said."""

    name: str
    sentence: str
    values: tuple[str, ...] = ()
    kit: str = "thing"
    change: str = ""
    pushed: str = ""


FAULTS = [
    Fault("quota", "create failed: QuotaExceeded: the quota of the account", ("fails=quota",)),
    Fault("notfound", "needs does not exist in the cloud", ("fails=notfound",)),
    Fault("config", 'ClusterProviderConfig.aws.m.upbound.io "nobody" not found',
          ("config=nobody",)),
    Fault("function", 'cannot run Function "function-kcl": it does not run here', kit="odd"),
    Fault("immutable", 'argument "description" from "well" to "other"', change="purpose=other"),
    Fault("refused", "may not be more than 40 bytes", pushed="w" * 50),
]  # fmt: skip


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("faults")
    pack = quick_pack(PACK, folder / "pack")
    for name, more, packages in (("thing", "", ""), ("odd", ELSEWHERE, KCL)):
        file = folder / f"{name}.yaml"
        file.write_text(KIT.format(name=name, kind=name.capitalize(), more=more) + packages)
        assert run(["kit", "import", str(file), "--name", name, "--pack", str(pack)]) == 0
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), (TEAM,))
    with running(request, on_step=lambda *_: None) as platform:
        yield platform


@pytest.fixture
def orderkit(started: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(started.embedded.state.folder / "platform.yaml", capsys)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_order_is_failing_everywhere_within_a_minute(
    started: Running, orderkit: Command, fault: Fault
) -> None:
    order = f"{fault.kit}-{fault.name}"
    words = (f"name={fault.name}", f"team={TEAM}", "purpose=well", *fault.values)
    placed = orderkit("order", fault.kit, *words, "--no-wait")
    assert placed.code in (0, 5), placed.err
    if fault.change or fault.pushed:
        assert orderkit("wait", order, "--timeout", "2m").code == 0
    if fault.change:
        assert orderkit("change", order, fault.change, "--direct", "--no-wait").code == 0
    if fault.pushed:
        push(started.platform, OrderEntry(TEAM, OrderId(order)), "well", fault.pushed)
    begun_s = time.monotonic()

    while missing := [name for name, said in views(started, orderkit, order)
                      if fault.sentence not in said or "Failing" not in said]:  # fmt: skip
        assert time.monotonic() - begun_s < WITHIN_S, (missing, [*views(started, orderkit, order)])
        time.sleep(1)


def views(started: Running, orderkit: Command, order: str) -> Iterator[tuple[str, str]]:
    """Yield what each view says: the phase and why."""
    service = started.settings.service

    def answer(path: str) -> Any:
        headers = {SECRET_HEADER: token(service)}
        return requests.get(f"{service.url}/v1/orders{path}", headers=headers, timeout=30).json()

    read = read_orders(started.platform, OrderQuery(text=order), {})
    for name, row in (
        ("list of the service", answer(f"?text={order}")["orders"][0]),
        ("console", answer(f"/{order}/view")),
        ("list without the service", read[0]),
        ("status", orderkit("status", order, "--json").json),
    ):
        yield name, f"{row['phase']}: {row['reason']}"


def push(platform: Platform, entry: OrderEntry, old: str, new: str) -> None:
    """Write a value into the XR's file as a person does who may push."""
    head = platform.forge.head(entry.repository)
    assert head is not None
    paths = platform.forge.tree(entry.repository, head)
    (path,) = (path for path in paths if path.parts[0] == "manifests")
    file = platform.forge.read(entry.repository, path, "main")
    assert file is not None
    change = FileChange(path, file.text.replace(old, new).encode(), file.sha)
    operation = Operation(f"push-{entry.order}", "user:default/test", "too long")
    written = platform.forge.write(entry.repository, [change], operation)
    nudge(platform.cluster, entry.order, written.commit)
