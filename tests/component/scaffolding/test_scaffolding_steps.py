"""Steps mean what they mean in Backstage, and fail loudly where Backstage swallows errors."""

from __future__ import annotations

from typing import Any, Protocol

import pytest
import yaml

from ground.errors import InvalidInputError, OrderkitError
from orderkit.flows.template.scaffolder import StepEvent, TaskResult
from softwaretemplates.render import RenderError


class World(Protocol):
    """What these tests use of the fixture."""

    events: list[StepEvent]

    def run(
        self, template: str, parameters: dict[str, Any], files: dict[str, bytes] | None = None
    ) -> TaskResult: ...


def template(*steps: dict[str, Any], **spec: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "scaffolder.backstage.io/v1beta3",
            "kind": "Template",
            "metadata": {"name": "t"},
            "spec": {"type": "service", "steps": list(steps), **spec},
        }
    )


def log(step: str, message: str = "ran", **more: Any) -> dict[str, Any]:
    return {"id": step, "action": "debug:log", "input": {"message": message}, **more}


FORM = {"properties": {"n": {"type": "integer"}, "list": {"type": "array"}}}
FAIL = {"id": "fail", "action": "fs:rename", "input": {"files": [{"from": "no", "to": "x"}]}}


def states(world: World) -> dict[str, str]:
    return {event.step: event.state for event in world.events}


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        (False, "skipped"),
        (True, "done"),
        ("${{ parameters.list }}", "skipped"),
        ("${{ parameters.n === 3 }}", "done"),
        ("${{ parameters.absent }}", "skipped"),
        ("${{ {} }}", "done"),
        ("false", "done"),
        ("", "skipped"),
        ("${{ failure() }}", "skipped"),
        ("${{ always() }}", "done"),
    ],
)
def test_if(world: World, condition: object, state: str) -> None:
    step = {**log("a"), "if": condition}

    world.run(template(step, parameters=FORM), {"n": 3, "list": []})

    assert states(world) == {"a": state}


@pytest.mark.parametrize("condition", ["${{ 1 | nope }}", "${{ parameters.list | parseRepoUrl }}"])
def test_a_broken_if_fails_and_says_what_backstage_would_do(world: World, condition: str) -> None:
    with pytest.raises(RenderError) as refused:
        world.run(template(log("a", **{"if": condition}), parameters=FORM), {"list": []})

    assert "Backstage would run the step" in refused.value.hint
    assert "steps.a.if" in str(refused.value)


def test_an_if_that_fails_after_a_failure_runs_nothing_more(world: World) -> None:
    broken = "${{ parameters.list | parseRepoUrl }}"
    steps = template(FAIL, log("next", **{"if": broken}), parameters=FORM)

    with pytest.raises(OrderkitError, match="is not in the workspace"):
        world.run(steps, {"list": []})

    assert states(world)["fail"] == "failed"


def test_an_output_that_cannot_be_rendered_says_what_backstage_would_do(world: World) -> None:
    steps = template(
        log("a"), output={"n": "${{ parameters.list | parseRepoUrl }}"}, parameters=FORM
    )

    with pytest.raises(RenderError) as refused:
        world.run(steps, {"list": []})

    assert "Backstage would" in refused.value.hint
    assert states(world) == {"a": "done"}


def test_each_runs_once_per_item(world: World) -> None:
    steps = template(
        log("a", "${{ each.key }}=${{ each.value }}", each="${{ parameters.list }}"),
        parameters=FORM,
    )

    assert world.run(steps, {"list": ["x", "y"]}).log == ("0=x", "1=y")


def test_each_over_a_map_and_over_nothing(world: World) -> None:
    steps = template(log("a", "${{ each.key }}", each={"k": 1}), log("b", each=[]))

    assert world.run(steps, {}).log == ("k",)
    assert states(world)["b"] == "skipped"


def test_each_over_a_scalar_is_an_error(world: World) -> None:
    with pytest.raises(InvalidInputError, match="neither a list nor a map"):
        world.run(template(log("a", each="${{ 3 }}")), {})


def test_after_a_failure_only_steps_that_ask_for_it_run(world: World) -> None:
    steps = template(
        FAIL,
        log("next"),
        log("wanted", **{"if": "${{ true }}"}),
        log("always", **{"if": "${{ always() }}"}),
        log("failure", **{"if": "${{ failure() }}"}),
    )

    with pytest.raises(OrderkitError, match="is not in the workspace"):
        world.run(steps, {})

    assert states(world) == {
        "fail": "failed",
        "next": "skipped",
        "wanted": "skipped",
        "always": "done",
        "failure": "done",
    }


def test_outputs_leave_out_what_their_if_refuses(world: World) -> None:
    output = {
        "links": [
            {"title": "a", "url": "u", "if": "${{ parameters.n }}"},
            {"title": "b", "url": "u", "if": "${{ parameters.absent }}"},
        ],
        "text": [{"content": "${{ parameters.n }}"}],
    }

    done = world.run(template(output=output, parameters=FORM), {"n": 3})

    assert done.outputs == {"links": [{"title": "a", "url": "u"}], "text": [{"content": 3}]}


def test_an_unknown_action_names_the_known_before_anything_runs(world: World) -> None:
    unknown = {"id": "x", "action": "fetch:templat", "input": {}}

    with pytest.raises(InvalidInputError) as refused:
        world.run(template(log("a"), unknown), {})

    assert "fetch:template" in refused.value.hint
    assert world.events == []


def test_an_unknown_input_names_the_known(world: World) -> None:
    with pytest.raises(InvalidInputError, match=r"steps\.a\.input.*copyVerbatim") as refused:
        world.run(
            template(
                {
                    "id": "a",
                    "action": "fetch:template",
                    "input": {"url": "./s", "copyVerbatim": []},
                }
            ),
            {},
        )

    assert "copyWithoutTemplating" in refused.value.hint


def test_a_parameter_is_checked_before_anything_runs(world: World) -> None:
    with pytest.raises(InvalidInputError, match="n: 'x' is not an integer"):
        world.run(template(log("a"), parameters=FORM), {"n": "x"})

    assert world.events == []


def test_files_are_fetched_renamed_and_deleted(world: World) -> None:
    steps = template(
        {
            "id": "plain",
            "action": "fetch:plain",
            "input": {"url": "./plain", "targetPath": "./out"},
        },
        {
            "id": "rendered",
            "action": "fetch:template",
            "input": {"url": "skeleton", "values": {"x": "${{ parameters.n }}"}},
        },
        {
            "id": "move",
            "action": "fs:rename",
            "input": {"files": [{"from": "out", "to": "moved"}]},
        },
        {"id": "drop", "action": "fs:delete", "input": {"files": ["*.tmp"]}},
        {
            "id": "show",
            "action": "debug:log",
            "input": {"message": "x", "listWorkspace": "with-contents"},
        },
        parameters=FORM,
    )
    files = {"plain/a": b"${{ kept }}", "skeleton/n": b"${{ values.x }}", "skeleton/b.tmp": b""}

    said = world.run(steps, {"n": 7}, files).log

    assert "Workspace: moved/a, n" in said
    assert "moved/a\n${{ kept }}" in said
    assert "n\n7" in said


@pytest.mark.parametrize("url", ["../skeleton", "/etc", "./none", "https://elsewhere.example/x"])
def test_a_folder_elsewhere_is_refused(world: World, url: str) -> None:
    step = {"id": "a", "action": "fetch:plain", "input": {"url": url}}

    with pytest.raises(InvalidInputError):
        world.run(template(step), {}, {"skeleton/a": b""})


def test_an_earlier_file_wins_unless_replace(world: World) -> None:
    def fetch(step: str, folder: str, **more: Any) -> dict[str, Any]:
        return {"id": step, "action": "fetch:template", "input": {"url": folder, **more}}

    show = {"id": "s", "action": "debug:log", "input": {"listWorkspace": "with-contents"}}
    files = {"one/f": b"1", "two/f": b"2"}

    kept = world.run(template(fetch("a", "one"), fetch("b", "two"), show), {}, files)
    replaced = world.run(
        template(fetch("a", "one"), fetch("b", "two", replace=True), show), {}, files
    )

    assert (kept.log[-1], replaced.log[-1]) == ("f\n1", "f\n2")
