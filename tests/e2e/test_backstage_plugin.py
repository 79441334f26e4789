"""
Orderkit's packages in a real Backstage: the scaffolder's actions, and the catalog's provider.

The packed tarballs are unpacked into the backend. Its scaffolder orders, changes and ends with
``orderkit:order``, ``orderkit:change`` and ``orderkit:end``; the catalog follows without a
registered location.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from commands import Command
from lab.realbackstage import GUEST, Backstage, serving
from ordered import TEMPLATE, Ordered
from portalworld import World
from published import Up, read_kit
from scaffolderapi import Scaffolder, Task

from ground.names import RepoId

PROFILE = "plugin"
FOLLOWED_S = 120.0
SECONDS = 20.0


def _entity_when(
    scaffolder: Scaffolder, ref: str, is_shown: Callable[[Any], bool], *, within_s: float = SECONDS
) -> Any:
    """Return the catalog's answer about an entity once it is as it should be; None: not there."""
    end = time.monotonic() + within_s
    while True:
        answer = scaffolder.entity(ref)
        entity = answer.body if answer.status == 200 else None
        if is_shown(entity):
            return entity
        assert time.monotonic() < end, f"{ref} after {within_s:g} s: {answer.body}"
        time.sleep(0.2)


def _phase(entity: Any) -> str:
    return str(entity["metadata"]["annotations"]["orderkit.dev/phase"]) if entity else ""


def _subjects(up: Up, repo: RepoId, word: str) -> list[str]:
    return [c.message for c in up.platform.forge.commits(repo) if word in c.message]


def _change(scaffolder: Scaffolder, up: Up, order: Ordered, form: str, **values: str) -> Task:
    base = up.platform.forge.head(order.repository)
    values = {"order_id": order.name, "base_commit": str(base), **values}
    return scaffolder.run(f"garage.{form}", values, timeout_s=FOLLOWED_S)


@pytest.fixture(scope="module")
def ordered(scaffolder: Scaffolder, new_team: Callable[[], str], up: Up) -> Ordered:
    team = new_team()
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage2"})
    return Ordered(team, kit, scaffolder.run(TEMPLATE, kit.values, timeout_s=FOLLOWED_S))


def test_an_order_is_followed_until_it_is_ready(ordered: Ordered, orderkit: Command) -> None:
    assert ordered.task.status == "completed", ordered.task.log
    assert f"{ordered.name} is ordered." in ordered.task.log
    assert f"{ordered.name} is Ready." in ordered.task.log
    assert orderkit("status", ordered.name, "--json").json["ready"]


def test_its_outputs_lead_to_repository_and_entity(ordered: Ordered, up: Up) -> None:
    repository, entity = ordered.task.output["links"]
    assert repository["url"] == f"{up.settings.forge.url}/{ordered.repository}.git"
    assert entity["entityRef"] == f"component:default/{ordered.name}"


def test_who_ordered_is_proved_by_backstages_signature(
    ordered: Ordered, up: Up, backstage: Backstage
) -> None:
    (message,) = _subjects(up, ordered.repository, ordered.name)
    assert f"Orderkit-Requester: {GUEST}\n" in message
    assert f"Orderkit-Requester-Proof: signed by {backstage.url}" in message


def test_the_catalog_shows_it_ready_without_a_location(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    ref = f"component/default/{ordered.name}"
    entity = _entity_when(scaffolder, ref, lambda entity: _phase(entity) == "Ready")

    assert entity["spec"]["owner"] == f"group:default/{ordered.team}"
    assert entity["spec"]["system"] == "orderkit"
    assert entity["metadata"]["annotations"]["orderkit.dev/order"] == ordered.name
    titles = [link["title"] for link in entity["metadata"]["links"]]
    assert titles[:2] == ["Repository", "Console"]
    assert {"Change stage", "Change paint", "End the Stage Kit"} <= set(titles)
    relations = {(relation["type"], relation["targetRef"]) for relation in entity["relations"]}
    assert ("dependsOn", "resource:default/kit-garage") in relations
    assert ("partOf", "system:default/orderkit") in relations
    assert not [loc for loc in up.platform.catalog.locations() if ordered.name in loc.target]


def test_its_kit_is_an_entity_with_its_orders(ordered: Ordered, scaffolder: Scaffolder) -> None:
    target = f"component:default/{ordered.name}"
    _entity_when(
        scaffolder,
        "resource/default/kit-garage",
        lambda kit: kit and target in [relation["targetRef"] for relation in kit["relations"]],
    )


def test_the_same_order_again_succeeds_and_writes_nothing(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    repos = (ordered.repository, up.platform.ledger)
    before = [up.platform.forge.head(repo) for repo in repos]

    again = scaffolder.run(TEMPLATE, ordered.kit.values, timeout_s=FOLLOWED_S)

    assert again.status == "completed", again.log
    assert f"{ordered.name} was ordered already." in again.log
    assert [up.platform.forge.head(repo) for repo in repos] == before


def test_a_refusal_is_the_tasks_own_error(ordered: Ordered, scaffolder: Scaffolder) -> None:
    other = scaffolder.run(TEMPLATE, {**ordered.kit.values, "stage": "stage3"})

    assert other.status == "failed"
    assert other.error.startswith(f"{ordered.name} was ordered by {GUEST} with other values")
    assert "stage was 'stage2', asked for 'stage3'" in other.error
    assert "    at " not in other.log, "a stack of ours in the log"


def test_a_refusal_says_the_way_out(up: Up, scaffolder: Scaffolder, orderkit: Command) -> None:
    """A team that may not order leaves nothing behind; then it may, and the task is retried."""
    team = "late-crew"
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage1"})

    failed = scaffolder.run(TEMPLATE, kit.values)

    assert failed.status == "failed"
    assert f"orderkit team add {team}" in failed.error.lower()
    assert orderkit("team", "add", team).code == 0
    again = scaffolder.retry(failed.id, timeout_s=FOLLOWED_S)
    assert again.status == "completed", again.log


def test_a_change_is_followed_until_it_is_ready(
    ordered: Ordered, up: Up, scaffolder: Scaffolder, orderkit: Command
) -> None:
    done = _change(scaffolder, up, ordered, "stage", stage="stage3")

    assert done.status == "completed", done.log
    assert "stage" in done.output["text"][0]["content"]
    assert "/commit/" in done.output["links"][0]["url"]
    status = orderkit("status", ordered.name, "--json").json
    assert status["ready"]
    assert status["delivered"] == up.platform.forge.head(ordered.repository)


def test_a_change_to_review_ends_with_its_pull_request(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    done = _change(scaffolder, up, ordered, "paint", colour="red")

    assert done.status == "completed", done.log
    assert done.output["links"][0]["url"].endswith("/pulls/1")


def test_a_conflict_is_the_tasks_own_error(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    first = up.platform.forge.commits(ordered.repository)[-1].id

    done = _change(scaffolder, up, ordered, "stage", stage="stage1", base_commit=str(first))

    assert done.status == "failed"
    assert "stage" in done.error
    assert "stage3" in done.error
    assert "    at " not in done.log


def test_dry_runs_plan_and_write_nothing(
    ordered: Ordered, up: Up, scaffolder: Scaffolder, new_team: Callable[[], str]
) -> None:
    team = new_team()
    before = up.platform.forge.head(up.platform.ledger)
    steps: dict[str, tuple[str, dict[str, Any]]] = {
        "order": (
            "orderkit:order",
            {"kit": "garage", "values": {"team_name": team, "stage": "stage1"}},
        ),
        "change": ("orderkit:change", {"order": ordered.name, "values": {"stage": "stage1"}}),
        "end": ("orderkit:end", {"order": ordered.name, "confirm": ordered.name}),
    }
    head = up.platform.forge.head(ordered.repository)

    done = scaffolder.dry_run(_template(steps), {}, {})

    assert f"garage-{team}" in done.output["order"]
    assert "Nothing is written. The plan:" in done.log
    assert f"{ordered.name} would end; nothing is written." in done.log
    assert up.platform.forge.head(up.platform.ledger) == before
    assert up.platform.forge.head(ordered.repository) == head
    assert up.platform.forge.repo(RepoId(team, f"garage-{team}")) is None


def _template(steps: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    listed = [
        {"id": name, "name": name, "action": action, "input": inputs}
        for name, (action, inputs) in steps.items()
    ]
    return {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "theirs", "namespace": "default"},
        "spec": {
            "owner": "group:default/platform",
            "type": "service",
            "parameters": [],
            "steps": listed,
            "output": {"order": "${{ steps.order.output.order }}"},
        },
    }


def test_the_published_forms_use_the_actions(up: Up) -> None:
    forge, pack = up.platform.forge, up.platform.pack_repo
    paths = {
        "templates/garage/template.yaml": "orderkit:order",
        "day2/garage/stage.yaml": "orderkit:change",
        "day2/garage/end.yaml": "orderkit:end",
    }
    for path, action in paths.items():
        file = forge.read(pack, PurePosixPath(path), "main")
        assert file is not None
        steps = yaml.safe_load(file.data)["spec"]["steps"]
        writing = [step for step in steps if step["input"].get("method") != "GET"]
        assert [step["action"] for step in writing] == [action]


def test_a_failing_order_fails_its_task_with_the_reason_and_a_cancelled_one_says_what_is_written(
    up: Up, scaffolder: Scaffolder, new_team: Callable[[], str]
) -> None:
    """The station refuses 99 bays without a lift, which no form can know."""
    team = new_team()
    values = {"team_name": team, "stage": "stage2", "pit": {"bays": 99}}
    kit = read_kit(up, "garage", values)
    task = scaffolder.start(TEMPLATE, kit.values).body["id"]
    _until(lambda: "99 bays need a lift" in scaffolder.log(task))
    scaffolder.cancel(task)
    assert scaffolder.wait(task).status in {"cancelled", "failed"}
    _until(lambda: f"Cancelled while waiting: garage-{team} is written" in scaffolder.log(task))

    again = scaffolder.run(TEMPLATE, kit.values, timeout_s=FOLLOWED_S)

    assert again.status == "failed"
    assert f"garage-{team} was ordered already." in again.log
    assert again.error.startswith(f"garage-{team} is written, but fails: ")
    assert "99 bays need a lift" in again.error
    ref = f"component/default/garage-{team}"
    _entity_when(scaffolder, ref, lambda entity: _phase(entity) == "Failing")


def test_an_ended_order_leaves_the_catalog(ordered: Ordered, scaffolder: Scaffolder) -> None:
    order = {"order_ref": f"component:default/{ordered.name}"}
    wrong = scaffolder.run("garage.end", {**order, "confirm": "garage-other"})
    assert wrong.status == "failed"
    assert wrong.error.startswith("confirm: 'garage-other' is not the order's id")

    values = {**order, "confirm": ordered.name, "change_reason": "the race is over"}
    done = scaffolder.run("garage.end", values, timeout_s=FOLLOWED_S)

    assert done.status == "completed", done.log
    assert "has ended" in done.output["text"][0]["content"]
    ref = f"component/default/{ordered.name}"
    _entity_when(scaffolder, ref, lambda entity: entity is None)
    again = scaffolder.run("garage.end", values, timeout_s=FOLLOWED_S)
    assert again.status == "completed", again.log


def test_a_killed_backstage_finishes_the_same_order(
    world: World, up: Up, scaffolder: Scaffolder, new_team: Callable[[], str]
) -> None:
    """The step runs twice: once until it is killed after the write, once in the next process."""
    team = new_team()
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage2"})
    repository = RepoId(team, f"garage-{team}")
    task = scaffolder.start(TEMPLATE, kit.values).body["id"]
    _until(lambda: up.platform.forge.head(repository) is not None)

    world.backstage.daemon.kill()
    with serving(world.wanted) as again:
        recovered = Scaffolder(again.url)
        done = recovered.wait(task, timeout_s=FOLLOWED_S)
        recovered.close()

    assert done.status == "completed", done.log
    assert f"garage-{team} is Ready." in done.log
    assert len(up.platform.forge.commits(repository)) == 1
    assert len(_subjects(up, up.platform.ledger, f"garage-{team}")) == 1


def _until(is_done: Callable[[], bool], *, within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.02)
