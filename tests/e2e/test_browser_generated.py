"""A generated form in a real browser: pickers, a question that depends on another, a list."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from browsing import browse
from corpuspack import DOMAIN
from lab.realbackstage import Backstage
from portalworld import SYSTEM
from published import Up

from ground.names import RepoId
from yamlfiles.manifests import parse_manifests

PROFILE = "corpus"
TEAM = "ae86"


@pytest.fixture(scope="module")
def seen(backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser showed on the way."""
    profile = tmp_path_factory.mktemp("chromium")
    return browse("filling", backstage, profile, template="workspace", team=TEAM, system=SYSTEM)


def test_a_wrong_name_is_explained_in_the_kit_s_own_words(seen: Any) -> None:
    assert "must begin with a letter: a-z, 0-9 and '-'" in seen["messages"][0]


def test_a_question_comes_up_only_with_the_answer_that_asks_for_it(seen: Any) -> None:
    assert not seen["before"]
    assert seen["after"]


def test_nobody_sees_the_platform_s_value(seen: Any) -> None:
    shown = "".join((*seen["pages"], *seen["messages"], seen["review"]))

    assert "Domain" not in seen["pages"][0].splitlines()
    assert DOMAIN not in shown
    assert "__ORDERKIT" not in shown


def test_the_xr_holds_what_was_entered_and_the_platform_s_value(seen: Any, up: Up) -> None:
    assert "workspace-churn-model" in seen["task"]
    repo = RepoId(TEAM, "workspace-churn-model")
    head = up.platform.forge.head(repo)
    assert head is not None

    file = up.platform.forge.read(repo, PurePosixPath("manifests/workspace.yaml"), head)

    assert file is not None
    (xr,) = parse_manifests("workspace.yaml", file.data)
    assert xr["metadata"]["name"] == "workspace-churn-model"
    assert xr["spec"] == {
        "name": "churn-model",
        "owner": f"group:default/{TEAM}",
        "component": f"system:default/{SYSTEM}",
        "domain": DOMAIN,
        "accelerator": True,
        "acceleratorModel": "l4",
        "diskGib": 25,
        "packages": ["polars", "scikit-learn"],
    }
