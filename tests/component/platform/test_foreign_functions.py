"""A kit whose function runs nowhere here, beside one that works: only its own orders fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command, in_process

from ground.objects.kube_objects import Kind, ObjectKey, condition
from orderkit.cli.main import run
from orderkit_standins.commands.up import welcome
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

KIT = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xqueues.example.org
spec:
  group: example.org
  names: {kind: XQueue, plural: xqueues}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [depth]
              properties:
                depth: {type: integer, minimum: 1}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: xqueues
spec:
  compositeTypeRef: {apiVersion: example.org/v1alpha1, kind: XQueue}
  mode: Pipeline
  pipeline:
    - step: make
      functionRef: {name: function-kcl}
      input: {apiVersion: krm.kcl.dev/v1alpha1, kind: KCLInput}
    - step: ready
      functionRef: {name: function-auto-ready}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-kcl
spec: {package: registry.example.org/x/function-kcl:v0.1.0}
"""
WHY = 'cannot run Function "function-kcl": it does not run here; '
ORDER = ("order", "queue", "name=first", "team=ae86", "depth=1")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "mine"
    (folder.parent / "kit.yaml").write_text(KIT)
    assert run(["init", str(folder), "--no-git"]) == 0
    add = ("--pack", str(folder))
    assert run(["kit", "new", "bucket", "--no-input", *add]) == 0
    assert run(["kit", "import", str(folder.parent / "kit.yaml"), "--name", "queue", *add]) == 0
    return folder


@pytest.fixture(scope="module")
def started(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("foreign") / "state"
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as platform:
        yield platform


@pytest.fixture
def orderkit(started: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(started.embedded.state.folder / "platform.yaml", capsys)


def test_the_platform_starts_and_names_kit_and_function(started: Running, pack: Path) -> None:
    said = welcome(started, pack)

    assert "\n  queue: function-kcl\n" in said
    assert "orderkit order bucket " in said


def test_an_order_of_that_kit_fails_at_once_and_says_for_which_function(orderkit: Command) -> None:
    planned = orderkit(*ORDER, "--plan")
    ordered = orderkit(*ORDER, "--timeout", "1h")
    status = orderkit("status", "queue-first", "--json")
    changed = orderkit("change", "queue-first", "depth=2", "--timeout", "1h")
    waited = orderkit("wait", "queue-first", "--timeout", "1h")
    ended = orderkit("destroy", "queue-first", "--yes")

    assert (planned.code, ordered.code) == (4, 5)
    for said in (planned.out, ordered.err, changed.err, waited.err):
        assert WHY in said
    assert status.json["phase"] == "Failing"
    assert ended.code == 0, ended.err


def test_the_order_says_so_in_its_own_condition(started: Running, orderkit: Command) -> None:
    ordered = orderkit("order", "queue", "name=second", "team=ae86", "depth=1")
    assert ordered.code == 5, ordered.err

    kind = Kind("example.org", "v1alpha1", "XQueue")
    order = started.platform.cluster.get(ObjectKey(kind, "queue-second", "team-ae86"))

    synced = condition(order or {}, "Synced") or {}
    assert (synced["status"], synced["reason"]) == ("False", "ReconcileError")
    assert WHY in synced["message"]


def test_an_order_of_another_kit_does_not_wait_for_it(orderkit: Command) -> None:
    orderkit("order", "queue", "name=third", "team=ae86", "depth=1", "--no-wait")

    assert orderkit("order", "bucket", "name=one", "team=ae86").code == 0


def test_kit_check_says_which_function_does_not_run(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["kit", "check", "queue", "--pack", str(pack)])

    assert "step 'make' calls function-kcl, which does not run here" in capsys.readouterr().out
