"""Which function runs here is decided by its package; a name alone is believed, and told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest

from compositions.function_processes import FunctionProcess, development_processes, processes_of
from compositions.function_twins import choose
from compositions.function_twins.choice import TWINS, package_name
from compositions.python_functions import functions_here, packages_of
from compositions.station import Resource, State, StationRequest
from ground.errors import InvalidInputError

PT = "function-patch-and-transform"


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("xpkg.example.org/crossplane-contrib/function-a:v0.1.0", "function-a"),
        ("registry.example.org:5000/function-a@sha256:00", "function-a"),
        ("example.org/x/y/function-a:v1@sha256:00", "function-a"),
        ("function-a", "function-a"),
        ("", ""),
    ],
)
def test_what_a_package_is_says_the_last_part_of_its_path(package: str, name: str) -> None:
    assert package_name(package) == name


def test_a_function_is_what_its_package_is_whatever_it_is_called() -> None:
    packages = {"patches": f"example.org/contrib/{PT}:v0.10.8", PT: "example.org/other:v1.0.0"}
    found = choose(packages, ["patches", PT])

    assert dict(found.functions) == {"patches": TWINS[PT].station}
    assert not found.notes


@pytest.mark.parametrize(
    ("packages", "note"),
    [
        ({}, f"{PT} is taken for what its name says: its package is not known"),
        ({PT: f"example.org/{PT}:v0.9.2"}, f"{PT} is v0.9.2 and is played by what 0.10 does"),
        ({PT: f"example.org/{PT}:v0.10.1"}, ""),
        ({PT: f"example.org/{PT}@sha256:00"}, ""),
    ],
    ids=["by its name", "another release", "the release that was read", "no release"],
)
def test_what_is_not_certain_is_noted(packages: Mapping[str, str], note: str) -> None:
    assert dict(choose(packages, [PT]).notes) == ({PT: note} if note else {})


def test_the_packs_own_function_is_known_by_its_package_too() -> None:
    packages = {"ours": "registry.example.org/orderkit/function-orderkit:v0.1.0"}
    found = functions_here({}, packages, ["ours", "function-kcl"])

    assert list(found.functions) == ["ours"]
    answer = found.functions["ours"](StationRequest(State(Resource({}))))
    assert "with a name" in answer.results[0].message


def test_packages_are_read_from_what_the_pack_delivers() -> None:
    text = b"""\
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: f}
spec: {package: example.org/f:v1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"""
    files = {
        PurePosixPath("gitops/functions/all.yaml"): text,
        PurePosixPath("gitops/apis/f.yaml"): text.replace(b"name: f", b"name: g"),
    }
    assert packages_of(files) == {"f": "example.org/f:v1"}


def test_functions_under_development_say_where_they_run() -> None:
    def function(name: str, **marks: str) -> dict[str, Any]:
        annotations = {f"render.crossplane.io/{key}": text for key, text in marks.items()}
        return {"metadata": {"name": name, "annotations": annotations}}

    target = {"runtime-development-target": "127.0.0.1:19443"}
    found = development_processes(
        [
            function("a", runtime="Development", **target),
            function("b", runtime="Development"),
            function("c", runtime="Docker", **target),
            function("d"),
        ]
    )
    wanted = [FunctionProcess("a", "127.0.0.1:19443"), FunctionProcess("b", "localhost:9443")]
    assert list(found) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "function-a", "=h:1", "function-a=", "function-a=host", "F=h:1", "a=h:1x", "a=h h:1"],
)
def test_what_names_no_process_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="NAME=HOST:PORT"):
        processes_of([text])


def test_a_process_is_named_with_its_address() -> None:
    wanted = FunctionProcess("function-a", "[::1]:9443", is_asked=True)
    assert processes_of(["function-a=[::1]:9443"]) == (wanted,)
