"""``orderkit demo --json``: stdout carries one object, which lists the stages that were proved."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("forge", ["gitea", "github", "gitlab"])
def test_the_demo_prints_one_object_with_its_stages(forge: str) -> None:
    command = [sys.executable, "-m", "orderkit", "demo", "--json", "--forge", forge]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "orderkit.demo/v1"
    names = [stage["name"] for stage in report["stages"]]
    assert names[-1] == "end"
    assert {
        "order",
        "change",
        "conflict",
        "refused",
        "planned",
        "merged",
        "repair",
        "approval",
    } <= set(names)
    assert all(stage["proved"] and stage["seconds"] >= 0 for stage in report["stages"])
    assert sum(stage["seconds"] for stage in report["stages"]) <= report["seconds"]
    assert report["state"] is None, "nothing is kept without --keep"
