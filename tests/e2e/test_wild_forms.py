"""The form of an imported XRD with 258 values: in a browser, and with Backstage's own steps."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from browsing import browse
from lab.realbackstage import Backstage
from portalworld import World
from published import Up, read_kit
from scaffolderapi import Scaffolder

from orderkit.core.names import RepoId
from orderkit.core.yaml.manifests import parse_manifests

PROFILE = "imported"
TEAM = "ae86"
TEXT = """\
tls:
  setting00: strict
  advancedMode: {enabled: true, copies: 3}
quota: {setting01: '1.0'}
"""
RARE = {
    "tls": {"setting00": "strict", "advancedMode": {"enabled": True, "copies": 3}},
    "quota": {"setting01": "1.0"},
}


@pytest.fixture(scope="module")
def seen(backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser showed on the way."""
    profile = tmp_path_factory.mktemp("chromium")
    return browse("largeform", backstage, profile, template="fleet", team=TEAM, text=TEXT)


def parameters(up: Up, order: str) -> Any:
    repo = RepoId(TEAM, order)
    head = up.platform.forge.head(repo)
    assert head is not None
    path = PurePosixPath("manifests/xfleet.yaml")
    file = up.platform.forge.read(repo, path, head)
    assert file is not None
    (xr,) = parse_manifests(path.name, file.data)
    return xr["spec"]["parameters"]


def test_the_form_has_three_pages_with_words_that_people_use(seen: Any) -> None:
    first, compute, advanced = seen["pages"]

    assert all(title in first for title in ("Order", "Compute", "Advanced settings", "VM count"))
    assert "Parameters" not in first
    assert "Setting17" in compute
    assert "More settings (YAML)" in advanced
    assert "What they mean" in advanced
    assert "__ORDERKIT" not in "".join(seen["pages"])


def test_the_xr_holds_what_was_entered_and_what_the_text_says(seen: Any, up: Up) -> None:
    assert "fleet-web" in seen["task"]

    spec = parameters(up, "fleet-web")

    assert {name: spec.pop(name) for name in ("tls", "quota")} == RARE
    assert spec.pop("compute") == {"setting00": "fast"}
    assert {"region": "eu", "vmCount": 3, "osImage": "debian-13"}.items() <= spec.items()


def test_backstages_own_steps_write_the_same(imported_natural_world: World) -> None:
    up = imported_natural_world.up
    scaffolder = Scaffolder(imported_natural_world.backstage.url)
    values = {"name": "own", "team": TEAM, "region": "eu", "vmCount": 3, "osImage": "debian-13"}
    kit = read_kit(up, "fleet", {**values, "more_settings": TEXT})

    done = scaffolder.run("fleet", kit.values)

    scaffolder.close()
    assert done.status == "completed", done
    assert parameters(up, "fleet-own") == {
        "region": "eu",
        "vmCount": 3,
        "osImage": "debian-13",
        **RARE,
    }
