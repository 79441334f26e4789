"""A platform whose platform.yaml names no portal and no service, from its bootstrap to an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from answering import says, server
from commands import Command
from platformsettings import settings_with

from ground.shapes import changed
from orderkit.core.platform.settings import PlatformSettings

from .conftest import Bare


@pytest.fixture
def alone(site: Bare) -> Path:
    """Write a platform.yaml with forge and cluster only."""
    settings = settings_with(site.settings)
    path = site.folder / "alone.yaml"
    bare = PlatformSettings(
        name=settings.name,
        forge=settings.forge,
        cluster=settings.cluster,
        teams=settings.teams,
        target=settings.target,
    )
    path.write_text(bare.to_yaml())
    assert "portal:" not in path.read_text()
    assert "service:" not in path.read_text()
    return path


def test_orders_need_neither_and_what_does_says_so(
    site: Bare, orderkit: Command, alone: Path
) -> None:
    made = orderkit("bootstrap", "--json", platform_file=alone)
    assert made.code == 0, made.err
    told = {step["step"]: step for step in made.json["steps"]}
    assert told["portal"]["verdict"] == "left out"
    assert "platform.yaml has no spec.portal" in told["portal"]["detail"]
    assert "no spec.service" in told["webhooks"]["detail"]

    ordered = orderkit("order", "garage", "team_name=ae86", "stage=stage1", platform_file=alone)
    assert ordered.code == 0, ordered.err
    assert site.platform.catalog.locations() == []
    found = orderkit("doctor", "--json", platform_file=alone).json["findings"]
    assert {
        finding["what"]: finding["detail"]
        for finding in found
        if finding["what"] in {"portal", "service"}
    } == {
        "portal": "platform.yaml has no spec.portal",
        "service": "platform.yaml has no spec.service",
    }
    assert orderkit("list", platform_file=alone).out.count("Ready") == 1
    assert orderkit("destroy", "garage-ae86", "--yes", platform_file=alone).code == 0
    for command in (("console",), ("serve", "--port", "0"), ("platform", "webhook")):
        done = orderkit(*command, platform_file=alone)
        assert (done.code, done.err.splitlines()[0]) == (
            1,
            "error: platform.yaml has no spec.service, and this needs it",
        )


def test_a_plan_on_a_forge_that_is_none_says_so_and_tells_of_no_step_that_needs_it(
    site: Bare, orderkit: Command
) -> None:
    with server(says(200, b"<html>Sign in</html>")) as url:
        foreign = site.written("foreign", forge=changed(site.settings.forge, url=url))
        planned = orderkit("bootstrap", "--plan", "--json", platform_file=foreign)
        checked = orderkit("platform", "check", "--json", platform_file=foreign)

    assert [step["step"] for step in planned.json["steps"]] == ["forge", "cluster"]
    assert [step["verdict"] for step in planned.json["steps"]] == ["fails", "already so"]
    assert planned.code == checked.code == 1
    failing = [row["what"] for row in checked.json["findings"] if row["verdict"] == "fail"]
    assert failing == ["forge"]
