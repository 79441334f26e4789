"""What an upgrade moves, told from manifests."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from orderkit.core.platform.delivery_tree import moves
from yamlfiles.manifests import ManifestError

PATH = PurePosixPath("gitops/x.yaml")


def pinned(kind: str, spec: str, name: str = "it") -> dict[PurePosixPath, bytes]:
    text = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    return {PATH: text.encode()}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            pinned("Provider", "{package: 'r.example.org:5000/p:v1'}"),
            pinned("Provider", "{package: 'r.example.org:5000/p:v2'}"),
            ["Provider it v1 → v2"],
        ),
        (
            pinned("Function", "{package: 'r.example.org/p:v1'}"),
            pinned("Function", "{package: 'r.example.org/p@sha256:abc'}"),
            ["Function it v1 → sha256:abc"],
        ),
        (
            pinned("Application", "{source: {chart: crossplane, targetRevision: 2.3.4}}"),
            pinned("Application", "{source: {chart: crossplane, targetRevision: 2.4.0}}"),
            ["Application it 2.3.4 → 2.4.0"],
        ),
        ({}, pinned("Configuration", "{package: 'r/p:v1'}"), ["Configuration it v1 is new"]),
        (pinned("Function", "{package: 'r/p:v1'}"), {}, ["Function it v1 goes"]),
        (
            pinned("Application", "{source: {path: gitops, targetRevision: main}}"),
            pinned("Application", "{source: {path: gitops, targetRevision: other}}"),
            [],
        ),
        (pinned("ConfigMap", "{package: 'r/p:v1'}"), {}, []),
    ],
)
def test_only_pins_that_differ_are_told(
    before: dict[PurePosixPath, bytes], after: dict[PurePosixPath, bytes], told: list[str]
) -> None:
    assert [str(move) for move in moves(before, after)] == told


def test_a_broken_file_is_named() -> None:
    with pytest.raises(ManifestError, match=r"gitops/x\.yaml"):
        moves({}, {PATH: b"kind: ["})
