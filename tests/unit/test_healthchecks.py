"""Argo CD's settings of a pack: one health check per kind, added without touching the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from orderkit.adapters.packfolder import read_folder, reference_pack
from orderkit.core.errors import InvalidInputError
from orderkit.core.healthchecks import SETTINGS, with_kind, without_kinds
from orderkit.core.objects import Kind

OURS = read_folder(reference_pack())[SETTINGS]
GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
BUCKET = Kind("demo.example.org", "v1", "Bucket")


def test_the_reference_packs_own_entry_is_what_would_be_added() -> None:
    assert with_kind(without_kinds(OURS), GARAGE) == OURS


def test_a_kind_is_added_at_the_end_and_nothing_else_changes() -> None:
    added = with_kind(OURS, BUCKET)

    assert added.startswith(OURS)
    keys = list(yaml.safe_load(added)["data"])
    assert keys[-1] == "resource.customizations.health.demo.example.org_Bucket"
    entries = yaml.safe_load(added)["data"]
    assert entries[keys[-1]] == entries[keys[-2]]


def test_a_kind_that_is_there_is_not_added_again() -> None:
    assert with_kind(OURS, GARAGE) == OURS


@dataclass(frozen=True)
class Awkward:
    reason: str
    data: bytes


AWKWARD = [
    Awkward("another key follows data", OURS + b"immutable: false\n"),
    Awkward("data is written in one line", b"kind: ConfigMap\napiVersion: v1\ndata: {a: b}\n"),
    Awkward("two ConfigMaps", OURS + b"---\n" + OURS),
    Awkward("no ConfigMap", b"kind: Secret\napiVersion: v1\n"),
]


@pytest.mark.parametrize("case", AWKWARD, ids=lambda case: case.reason)
def test_a_file_that_cannot_take_an_entry_is_refused(case: Awkward) -> None:
    with pytest.raises(Exception, match=r"argocd-cm\.yaml") as caught:
        with_kind(case.data, BUCKET)
    assert type(caught.value).__module__.startswith("orderkit.core")


def test_settings_without_the_marking_line_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="one key per kind"):
        without_kinds(b"data: {}\n")
