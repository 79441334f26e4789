"""Argo CD's settings of a pack: a check per kind of its kits, and the pack's own keys."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml

from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.generate.health_checks import EXCLUSIONS, OWN, SETTINGS, settings

OURS = read_folder(reference_pack())
KITS = read_pack(OURS).kits()
GARAGE = "resource.customizations.health.blog.opsbogus.dev_XGarage"


def data(own: dict[str, bytes] | None = None) -> dict[str, str]:
    files = {OWN / name: text for name, text in (own or {}).items()}
    found: dict[str, str] = yaml.safe_load(settings(files, KITS)[SETTINGS])["data"]
    return found


def test_each_kind_of_a_kit_has_a_check_and_a_pack_without_kits_has_none() -> None:
    assert GARAGE in data()
    assert GARAGE not in yaml.safe_load(settings({}, ())[SETTINGS])["data"]


def test_the_settings_of_the_reference_pack_are_what_is_generated() -> None:
    assert settings(OURS, KITS)[SETTINGS] == OURS[SETTINGS]


def test_a_key_of_the_packs_own_is_added_or_replaces_ours() -> None:
    found = data(
        {
            "resource.customizations.health.example.org_Bucket.lua": b"return {}\n",
            "timeout.reconciliation": b"60s",
            "resource.exclusions.yaml": b"[]\n",
            "README.md": b"what these are",
        }
    )

    assert found["resource.customizations.health.example.org_Bucket"] == "return {}\n"
    assert found["timeout.reconciliation"] == "60s"
    assert found["resource.exclusions"] == "[]\n"
    assert len(found) == len(data()) + 2


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"key": b"a", "key.lua": b"b"}, "another file"),
        ({"key": b"\xff"}, "UTF-8"),
        ({"key": b" \n"}, "empty"),
    ],
)
def test_an_own_key_that_cannot_be_is_refused_by_its_file(own: dict[str, bytes], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        data(own)
    assert "gitops/argocd/own/key" in str(caught.value)


def test_an_application_is_tracked_by_annotation_and_usages_are_not_watched() -> None:
    found = data()

    assert found["application.resourceTrackingMethod"] == "annotation"
    excluded = yaml.safe_load(found["resource.exclusions"])
    assert {"apiGroups": ["*"], "kinds": list(EXCLUSIONS[-1][1])} in excluded
    assert yaml.safe_load(found["resource.compareoptions"]) == {"ignoreAggregatedRoles": True}


def test_own_keys_stand_in_a_folder_that_argo_cd_does_not_deliver() -> None:
    app = yaml.safe_load(OURS[PurePosixPath("gitops/apps/argocd-settings.yaml")])

    assert app["spec"]["source"]["path"] == str(SETTINGS.parent)
    assert "recurse" not in app["spec"]["source"]["directory"]
