"""The function's package files say what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from compositions.python_functions import STATION_FUNCTION
from compositions.station import INPUT
from kubeschema.structural import problems

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "function/package"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_the_package_has_the_name_compositions_use() -> None:
    assert read(PACKAGE / "crossplane.yaml")["metadata"]["name"] == STATION_FUNCTION


def test_the_schema_of_the_input_is_that_of_the_input_the_server_reads() -> None:
    (path,) = (PACKAGE / "input").iterdir()
    spec = read(path)["spec"]
    (version,) = spec["versions"]

    assert (spec["group"], version["name"], spec["names"]["kind"]) == (
        INPUT.group,
        INPUT.version,
        INPUT.kind,
    )
    schema = version["schema"]["openAPIV3Schema"]
    used = read(ROOT / "gitops/apis/garage/composition.yaml")["spec"]["pipeline"][0]["input"]
    assert problems(schema, used) == []
