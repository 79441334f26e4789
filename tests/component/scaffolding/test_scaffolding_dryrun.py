"""A dry run renders, says what would be called, and changes nothing outside."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from templates import log, step, template

from ground.errors import InvalidInputError
from ground.names import RepoId
from softwaretemplates.render import RenderError

PUBLISH = step(
    "publish",
    "publish:gitea",
    repoUrl="${{ parameters.forge }}?owner=o&repo=${{ parameters.name }}",
    description="for ${{ secrets.token }}",
)
FORM = {"properties": {"name": {"type": "string"}, "forge": {"type": "string"}}}
TOKEN = {"token": "dry-canary-value"}


def test_trees_are_rendered_and_calls_are_only_named(world: Any) -> None:
    world.forge.ensure_org("o")
    steps = template(
        step("fetch", "fetch:template", url="s", values={"n": "${{ parameters.name }}"}),
        PUBLISH,
        step("order", "http:backstage:request", method="POST", path="/proxy/orderkit/v1/x"),
        log("say", "${{ steps.publish.output.remoteUrl }}"),
        parameters=FORM,
        output={"url": "${{ steps.publish.output.repoContentsUrl }}"},
    )

    host = world.forge.base_url.partition("://")[2]
    values = {"name": "x", "forge": host}
    done = world.run(steps, values, {"s/f": b"${{ values.n }}"}, dry_run=True, secrets=TOKEN)

    assert done.workspace[PurePosixPath("f")].data == b"x"
    assert [event.state for event in world.events] == ["done", "planned", "planned", "done"]
    assert world.events[1].inputs == ({"repoUrl": f"{host}?owner=o&repo=x", "description": "***"},)
    assert done.steps["publish"] == dict.fromkeys(
        ("remoteUrl", "repoContentsUrl", "commitHash"), "<example>"
    )
    assert done.steps["order"] == {"code": 0, "headers": {}, "body": "<unknown>"}
    assert done.outputs == {"url": "<example>"}
    assert done.log[-1] == "<example>"
    assert world.service.seen == []
    assert world.forge.repo(RepoId("o", "x")) is None


def test_every_round_shows_its_inputs(world: Any) -> None:
    call = step("call", "http:backstage:request", method="GET", path="/x/${{ each.value }}")

    world.run(template({**call, "each": ["a", "b"]}), {}, dry_run=True)

    assert [inputs["path"] for inputs in world.events[0].inputs] == ["/x/a", "/x/b"]


def test_mistakes_are_found_as_in_a_real_run(world: Any) -> None:
    wrong = step("p", "publish:gitea", repoUrl="h?owner=o&repo=r", descripton="typo")
    broken = template(step("a", "fetch:template", url="s", values={}))

    with pytest.raises(InvalidInputError, match=r"steps\.p\.input"):
        world.run(template(wrong), {}, dry_run=True)
    with pytest.raises(RenderError, match=r"f:1"):
        world.run(broken, {}, {"s/f": b"${{ values.absent }}"}, dry_run=True)


def test_examples_of_earlier_steps_do_not_fail_later_ones(world: Any) -> None:
    first = step("one", "http:backstage:request", method="GET", path="/x")
    second = step("two", "catalog:register", catalogInfoUrl="${{ steps.one.output.body.url }}")

    world.run(template(first, second), {}, dry_run=True)

    assert [event.state for event in world.events] == ["planned", "planned"]
