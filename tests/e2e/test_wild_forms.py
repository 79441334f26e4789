"""The form of an imported XRD with 258 values, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import browse
from lab.realbackstage import Backstage
from published import Up
from wildforms import RARE, RARE_TEXT, fleet_parameters

PROFILE = "corpus"
TEAM = "ae86"


@pytest.fixture(scope="module")
def seen(backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser showed on the way."""
    profile = tmp_path_factory.mktemp("chromium")
    return browse("largeform", backstage, profile, template="fleet", team=TEAM, text=RARE_TEXT)


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

    spec = fleet_parameters(up, TEAM, "fleet-web")

    assert {name: spec.pop(name) for name in ("tls", "quota")} == RARE
    assert spec.pop("compute") == {"setting00": "fast"}
    assert {"region": "eu", "vmCount": 3, "osImage": "debian-13"}.items() <= spec.items()
