"""Plans that call functions as processes of their own: our stations behind real gRPC."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bays import Bay
from commands import Command
from functionwire import FunctionServer

from compositions.function_processes import FunctionAddress
from orderkit.adapters.folders.pack_folder import reference_pack


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("function") / "log"
    with FunctionServer(log, "--pack", str(reference_pack()), "--insecure") as server:
        yield server.address


def test_a_process_plans_what_this_process_plans(
    orderkit: Command, quiet_bay: Bay, address: str
) -> None:
    change = ("plan", quiet_bay.order, "stage=stage2", "--json")
    here = orderkit(*change)
    there = orderkit(*change, "--function", f"function-orderkit={address}")

    assert here.code == there.code == 10
    assert there.json == here.json
    assert not here.json["plan"]["unknowns"]


def test_a_process_that_is_not_there_makes_its_step_opaque(
    orderkit: Command, quiet_bay: Bay
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{unused.getsockname()[1]}"
        change = ("plan", quiet_bay.order, "stage=stage2", "--json")
        done = orderkit(*change, "--function", f"function-orderkit={gone}")

    plan = done.json["plan"]
    assert done.code == 10, "the field changes, whatever comes of it"
    assert not plan["resources"]
    assert plan["kept"], "what exists is not claimed to go"
    assert plan["ready"] is None
    assert any(gone in told and "does not answer" in told for told in plan["unknowns"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("function-kcl=127.0.0.1:1", "is not called by any step"),
        ("function-orderkit", "is not a NAME=HOST:PORT"),
    ],
)
def test_a_function_that_cannot_be_meant_is_refused(
    orderkit: Command, quiet_bay: Bay, text: str, told: str
) -> None:
    done = orderkit("plan", quiet_bay.order, "stage=stage2", "--function", text)
    assert done.code == 2
    assert told in done.err


def test_scenarios_of_a_kit_run_through_a_process(address: str) -> None:
    command = [sys.executable, "-m", "orderkit", "kit", "test", "garage", "--json"]
    options = ["--pack", str(reference_pack()), "--function", f"function-orderkit={address}"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["passed"] > 1


def test_scenarios_fail_in_words_where_the_process_is_gone() -> None:
    command = [sys.executable, "-m", "orderkit", "kit", "test", "garage"]
    options = ["--pack", str(reference_pack()), "--function", "function-orderkit=127.0.0.1:1"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "the process at 127.0.0.1:1 does not answer" in done.stdout + done.stderr


def test_platform_yaml_names_processes_for_plans(tmp_path: Path) -> None:
    from orderkit.core.platform.settings import parse

    endpoint = "{url: http://127.0.0.1:1, tokenFile: t}"
    text = f"""\
apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {{name: p}}
spec:
  forge: {endpoint}
  portal: {endpoint}
  service: {endpoint}
  cluster: {{kubeconfig: k}}
  plans:
    functions:
      function-kcl: {{address: "127.0.0.1:9443", certificates: tls, timeoutSeconds: 5}}
"""
    found = parse(text, folder=tmp_path)
    again = parse(found.to_yaml(), folder=Path("/"))

    wanted = FunctionAddress("127.0.0.1:9443", tmp_path / "tls", 5.0)
    assert found.plans.functions == again.plans.functions == {"function-kcl": wanted}
