"""``each``, ``if``, scopes and outputs, and what is judged before anything runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from templates import log, step, template

from ground.errors import InvalidInputError, OrderkitError
from ground.names import RepoId
from orderkit.flows.template.scaffolder import Environment
from softwaretemplates.render import RenderError

FORM = {"properties": {"n": {"type": "integer"}, "list": {"type": "array"}}}
BROKEN_RENAME = step("fail", "fs:rename", files=[{"from": "no", "to": "x"}])


def states(world: Any) -> dict[str, str]:
    return {event.step: event.state for event in world.events}


def listing(path: str, **more: Any) -> dict[str, Any]:
    return {**step("dirs", "fs:readdir", paths=[path]), **more}


def test_outputs_of_each_become_lists(world: Any) -> None:
    files = {"s/a/one": b"1", "s/b/two": b"2"}
    steps = template(
        step("fetch", "fetch:plain", url="s"),
        listing("${{ each.value }}", each=["a", "b"]),
        output={"names": "${{ steps.dirs.output.files }}"},
    )

    found = world.run(steps, {}, files).outputs["names"]

    assert [[entry["name"] for entry in one] for one in found] == [["one"], ["two"]]


def test_if_is_judged_for_each_item(world: Any) -> None:
    said = world.run(
        template(
            log("a", "${{ each.key }}", each=[1, 2, 3], **{"if": "${{ each.value !== 2 }}"}),
            log("b", "${{ each.key }}", each=[1], **{"if": ""}),
            log("c", "never", each=[1], **{"if": False}),
        ),
        {},
    ).log

    assert said == ("0", "2", "0")
    assert states(world) == {"a": "done", "b": "done", "c": "skipped"}


def test_each_over_a_map_goes_in_the_order_of_javascript(world: Any) -> None:
    items = {"b": 1, "10": 2, "2": 3}

    assert world.run(template(log("a", "${{ each.key }}", each=items)), {}).log == ("2", "10", "b")


def test_inputs_of_every_round_are_checked_before_the_first_runs(world: Any) -> None:
    one = step("a", "debug:log", message="${{ each.value }}")

    with pytest.raises(InvalidInputError, match=r"steps\.a\.input\.message \(each\.key 1\)"):
        world.run(template({**one, "each": ["text", 7]}), {})

    assert states(world) == {"a": "failed"}


@pytest.mark.parametrize(
    ("each", "reason"),
    [("${{ parameters.absent }}", "undefined"), ("text", "text"), ("${{ 3 }}", "a number")],
)
def test_each_over_nothing_that_can_be_counted_is_an_error(
    world: Any, each: str, reason: str
) -> None:
    with pytest.raises(InvalidInputError, match="neither a list nor a map"):
        world.run(template(log("a", each=each)), {}), reason


def test_after_a_failure_each_runs_only_if_it_asks_for_it(world: Any) -> None:
    steps = template(
        BROKEN_RENAME,
        log("plain", each=[1]),
        log("asks", each=[1, 2], **{"if": "${{ always() }}"}),
        log("no", each=[1], **{"if": "${{ true }}"}),
        log("fails", each=[1], **{"if": "${{ always() and 1 | parseRepoUrl }}"}),
    )

    with pytest.raises(OrderkitError, match="is not in the workspace"):
        world.run(steps, {})

    skipped = dict.fromkeys(("plain", "no", "fails"), "skipped")
    assert states(world) == {"fail": "failed", "asks": "done", **skipped}


def test_the_first_failure_is_the_tasks(world: Any) -> None:
    later = step("later", "fs:rename", files=[{"from": "other", "to": "x"}])

    with pytest.raises(InvalidInputError, match="'no'"):
        world.run(template(BROKEN_RENAME, {**later, "if": "${{ failure() }}"}), {})

    assert states(world) == {"fail": "failed", "later": "failed"}


def test_templates_see_task_user_and_environment(world: Any) -> None:
    message = "${{ context.task.id }} ${{ user.ref }} ${{ environment.parameters.region }}"

    said = world.run(
        template(log("a", message)), {}, environment=Environment({"region": "north"})
    ).log

    assert said == ("task-1 user:default/tester north",)


USER = """\
apiVersion: backstage.io/v1alpha1
kind: User
metadata: {name: tester}
spec: {profile: {displayName: Tess Ter}, memberOf: []}
"""


def test_the_users_entity_comes_from_the_catalog(world: Any) -> None:
    people = RepoId("platform", "people")
    world.forge.ensure_org(people.owner)
    world.forge.ensure_repo(people, description="")
    world.push(people, {"catalog-info.yaml": USER})
    world.catalog.register(world.url(people))

    said = world.run(template(log("a", "${{ user.entity.spec.profile.displayName }}")), {}).log

    assert said == ("Tess Ter",)


def test_a_user_the_catalog_does_not_know_has_no_entity(world: Any) -> None:
    message = "${{ user.entity.metadata.name | default('nobody') }}"

    assert world.run(template(log("a", message)), {}).log == ("nobody",)


class Early(NamedTuple):
    reason: str
    steps: tuple[dict[str, Any], ...]
    output: dict[str, Any]
    place: str
    hint: str


EARLY = [
    Early(
        "a filter nobody has", (log("a", "${{ 1 | nope }}"),), {}, "steps.a.input.message", "pass"
    ),
    Early("a broken if", (log("a", **{"if": "${{ ( }}"}),), {}, "steps.a.if", "run the step"),
    Early("a broken each", (log("a", each="${{ ( }}"),), {}, "steps.a.each", "pass the text on"),
    Early("a broken output", (), {"x": ["${{ ( }}"]}, r"output\.x\[0\]", "pass the text on"),
    Early("a broken if of a link", (), {"links": [{"if": "${{ ( }}"}]}, r"output\.links", "pass"),
]


@pytest.mark.parametrize("case", EARLY, ids=lambda case: case.reason)
def test_a_broken_expression_stops_the_task_before_anything_runs(world: Any, case: Early) -> None:
    steps = template(log("first"), *case.steps, output=case.output)

    with pytest.raises(RenderError, match=case.place) as refused:
        world.run(steps, {})

    assert case.hint in refused.value.hint
    assert "Backstage would" in refused.value.hint
    assert world.events == []


def test_an_expression_that_fails_while_running_says_what_backstage_would_do(world: Any) -> None:
    with pytest.raises(RenderError, match=r"steps\.a\.input\.message") as refused:
        world.run(template(log("a", "${{ parameters.absent | trim }}")), {})

    assert "Backstage would pass the text on" in refused.value.hint


def test_outputs_keep_what_the_portal_shows(world: Any) -> None:
    output = {
        "links": [
            {"title": "entity", "entityRef": "component:default/x", "if": "${{ [1] }}"},
            {"title": "gone", "url": "u", "if": "${{ [] }}"},
            {"title": "no target", "url": "${{ steps.absent.output.url }}"},
        ],
        "text": [{"title": "t", "content": "# ${{ parameters.n }}"}, {"markdown": "m", "if": True}],
        "free": {"n": "${{ parameters.n }}"},
    }

    done = world.run(template(output=output, parameters=FORM), {"n": 3})

    assert done.outputs == {
        "links": [{"title": "entity", "entityRef": "component:default/x"}, {"title": "no target"}],
        "text": [{"title": "t", "content": "# 3"}, {"markdown": "m"}],
        "free": {"n": 3},
    }
