"""One person orders an agent over a bucket's dataset, changes and ends it in a real browser."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from browsing import browse
from commands import Command
from lab.daemons import Daemon
from lab.realbackstage import Backstage
from published import Up

from ground.objects.kube_objects import (
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
)
from orderkit.cli.connecting import token

PROFILE = "agents"
TEAM, AGENT = "ae86", "housing-bot"
ORDER, HOME = f"datasetagent-{AGENT}", f"agent-{AGENT}"
DESCRIPTION = 'Says "hello": it\'s ${{ money }} \U0001f3e1'
XR = ObjectKey(Kind("whisperops.io", "v1alpha1", "XDatasetAgent"), AGENT)
DEPLOYMENT = Kind("apps", "v1", "Deployment")
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
PARTS = 22
READY_S = 180.0


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with a dataset that is ready and one that is not."""
    found = tmp_path_factory.mktemp("bucket")
    (found / "Spotify Tracks.csv").write_text("a,b\n1,2\n")
    (found / "Nothing Yet.csv").touch()
    return found


@pytest.fixture(scope="module")
def playing(
    up: Up, backstage: Backstage, portal_file: Path, bucket: Path
) -> Iterator[Callable[[str], Manifest | None]]:
    """What a cluster would run beside the platform. Gives a way to ask the portal's catalog."""
    command = [
        sys.executable, "-m", "whisperops", "play", "--platform", str(portal_file),
        "--bucket", str(bucket), "--register",
    ]  # fmt: skip
    headers = {"Authorization": f"Bearer {token(up.settings.portal)}"}

    def entity(name: str) -> Manifest | None:
        address = f"{backstage.url}/api/catalog/entities/by-name/resource/default/{name}"
        answer = requests.get(address, headers=headers, timeout=60)
        return answer.json() if answer.ok else None

    with Daemon("play", command, log=up.state / "play.log") as daemon:
        daemon.wait_until(lambda: entity("spotify-tracks") is not None, timeout_s=READY_S)
        yield entity


@pytest.fixture(scope="module")
def seen(
    playing: object, backstage: Backstage, bucket: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """What the browser showed while the agent was ordered."""
    assert playing
    return browse(
        "agents",
        backstage,
        tmp_path_factory.mktemp("chromium"),
        agent=AGENT,
        team=TEAM,
        bucket=str(bucket),
        file="California_Housing.csv",
        dataset="California Housing",
        description=DESCRIPTION,
    )


@pytest.fixture(scope="module")
def ready(seen: Any, orderkit: Command) -> Any:
    """The order's status once all its parts are ready."""
    assert seen["task"]
    end = time.monotonic() + READY_S
    while not (found := orderkit("status", ORDER, "--json").json)["ready"]:
        assert time.monotonic() < end, found
        time.sleep(0.5)
    return found


def test_a_file_in_the_bucket_is_offered_soon(seen: Any) -> None:
    """Within a minute where nothing else goes on; each look draws a whole page."""
    assert not any("California Housing" in each for each in seen["before"])
    assert any("California Housing" in each for each in seen["after"])
    assert seen["offeredAfterS"] < 180


def test_a_dataset_that_is_not_ready_is_not_offered(
    seen: Any, playing: Callable[[str], Manifest | None]
) -> None:
    assert playing("nothing-yet") is not None, "the portal knows it"
    assert any("Spotify Tracks" in each for each in seen["before"])
    assert not any("Nothing" in each for each in (*seen["before"], *seen["after"]))


def test_nobody_sees_the_platforms_values(seen: Any) -> None:
    assert "apps.example.org" not in seen["form"] + seen["review"]
    assert "whisperops-lab" not in seen["form"] + seen["review"]


def test_the_agent_has_its_22_parts_and_the_exact_description(ready: Any, up: Up) -> None:
    assert ready["ready"]
    xr = up.platform.cluster.get(XR)
    assert xr is not None
    parts = map(ObjectKey.from_json, dig(xr, "spec", "crossplane", "resourceRefs"))
    found = {key: up.platform.cluster.get(key) for key in parts}

    assert len(found) == PARTS
    assert all(found.values())
    assert dig(condition(xr, "Ready") or {}, "status") == "True"
    prompts = up.platform.cluster.get(ObjectKey(CONFIG_MAP, "prompts", HOME))
    assert dig(prompts or {}, "data", "description") == DESCRIPTION


@pytest.fixture(scope="module")
def changed(ready: Any, backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser showed on the agent's second day."""
    assert ready
    return browse(
        "agentsday2",
        backstage,
        tmp_path_factory.mktemp("chromium"),
        order=ORDER,
        other="Spotify Tracks",
        unready="nothing-yet",
    )


def test_the_forms_open_with_what_git_holds(changed: Any) -> None:
    assert changed["budget"] == "5"
    assert re.fullmatch(r"not known|[0-9.]+", changed["spent"]), "in US dollars"
    assert changed["dataset"] == "resource:default/california-housing"


def test_the_budget_is_raised(changed: Any) -> None:
    assert "budgetUsd 5 → 20" in changed["raised"]


def test_a_swap_to_itself_is_refused_in_words(changed: Any) -> None:
    assert "is already california-housing: nothing would change" in changed["itself"]


def test_a_swap_to_what_is_not_ready_is_refused_in_words(changed: Any) -> None:
    assert "not ready" in changed["unready"]


def test_the_dataset_is_swapped(changed: Any) -> None:
    assert "california-housing → spotify-tracks" in changed["swapped"]


def test_the_agent_ends_and_nothing_but_its_bucket_is_left(changed: Any, up: Up) -> None:
    assert "Delete the agent's bucket too" in changed["end"]
    assert changed["takesBucket"] is False
    assert "XDatasetAgent" in changed["ended"]
    assert "The agent's bucket, with all it holds" in changed["ended"]
    cluster, end = up.platform.cluster, time.monotonic() + READY_S
    while len(left := cluster.list(EXTERNAL).items) > 1 or cluster.get(ObjectKey(NAMESPACE, HOME)):
        assert time.monotonic() < end, left
        time.sleep(0.5)
    assert cluster.get(XR) is None
    assert [each["spec"]["kind"] for each in left] == ["Bucket"]


def test_the_browser_asks_nobody_else(seen: Any, changed: Any) -> None:
    assert seen["foreign"] + changed["foreign"] == []
