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


UNSEEN = (
    step("ask", "other:action", x="y"),
    step(
        "fetch", "fetch:template", url="${{ steps.ask.output.url }}", targetPath="./docs", values={}
    ),
)
"""Steps that a dry run does not run: what the first does is unknown, and so is the second's URL."""


@pytest.mark.parametrize(
    ("action", "inputs"),
    [
        ("fs:rename", {"files": [{"from": "docs/a.md", "to": "b.md"}]}),
        ("fs:rename", {"files": [{"from": "docs", "to": "pages"}]}),
        ("fs:rename", {"files": [{"from": "${{ steps.ask.output.x }}/a", "to": "b"}]}),
        ("fs:delete", {"files": ["docs/a.md"]}),
        ("fs:readdir", {"paths": ["docs"]}),
        ("fs:readdir", {"paths": ["."]}),
        ("fs:rename", {"files": [{"from": "of/the/other.action", "to": "b.md"}]}),
    ],
)
def test_files_of_a_step_that_is_not_run_are_planned_on(
    world: Any, action: str, inputs: dict[str, Any]
) -> None:
    world.run(template(*UNSEEN, step("on", action, **inputs)), {}, dry_run=True)

    assert [event.state for event in world.events] == ["unknown"] * 3


def test_what_is_planned_on_may_be_moved_on(world: Any) -> None:
    move = step("a", "fs:rename", files=[{"from": "docs/a.md", "to": "pages/a.md"}])
    on = step("b", "fs:rename", files=[{"from": "pages/a.md", "to": "a.md"}])

    world.run(template(*UNSEEN, move, on), {}, dry_run=True)

    assert [event.state for event in world.events] == ["unknown"] * 4


def test_a_file_that_is_there_is_moved_although_others_are_unknown(world: Any) -> None:
    wrote = step("w", "catalog:write", entity={"kind": "Component"}, filePath="docs/c.yaml")
    move = step("m", "fs:rename", files=[{"from": "docs/c.yaml", "to": "c.yaml"}])

    done = world.run(template(*UNSEEN, wrote, move), {}, dry_run=True)

    assert [event.state for event in world.events] == ["unknown", "unknown", "done", "done"]
    assert list(done.workspace) == [PurePosixPath("c.yaml")]


def test_a_file_that_no_step_may_have_put_there_is_missing(world: Any) -> None:
    fetch = step("fetch", "fetch:template", url="${{ user.x }}", targetPath="docs", values={})
    wrong = step("m", "fs:rename", files=[{"from": "other/a.md", "to": "b.md"}])

    with pytest.raises(InvalidInputError, match="is not in the workspace"):
        world.run(template({**fetch, "if": False}, wrong), {}, dry_run=True)
    with pytest.raises(InvalidInputError, match="is not in the workspace"):
        world.run(template(wrong), {}, dry_run=True)
