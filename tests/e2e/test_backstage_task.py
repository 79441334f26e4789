"""
The stage kit's natural steps run by a real task of Backstage's scaffolder.

Its own publish:gitea, its proxy, its catalog, on an embedded platform with the portal profile
``natural``.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from commands import Command
from lab.realbackstage import GUEST, Backstage
from ordered import TEMPLATE, Ordered
from published import Up, read_kit, wanted_repository
from scaffolderapi import Scaffolder

from ground.names import RepoId
from orderkit.flows.order import placing
from orderkit.flows.order.placing import TaskRequest
from orderkit.ports.forge import Forge
from orderkit.ports.requesters import Requester

PROFILE = "natural"
READY_S = 180.0


def _wait_ready(orderkit: Command, order: str) -> dict[str, Any]:
    end = time.monotonic() + READY_S
    while True:
        done = orderkit("status", order, "--json")
        if done.code == 0 and done.json["ready"]:
            return done.json
        assert time.monotonic() < end, f"{order} is not Ready: {done.out} {done.err}"


def _heads(forge: Forge, *repos: RepoId) -> list[str | None]:
    return [forge.head(repo) for repo in repos]


def test_the_task_completes(ordered: Ordered) -> None:
    assert ordered.task.status == "completed", ordered.task.log


def test_its_repository_holds_what_ours_writes(ordered: Ordered, up: Up, tmp_path: Path) -> None:
    """Paths, modes and bytes; a commit's id, author and time are the engine's own."""
    subprocess.run(
        ["git", "clone", "--quiet", ordered.task.output["links"][0]["url"], str(tmp_path)],
        check=True,
        timeout=60,
    )
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-tree", "-r", "-z", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    modes = {
        PurePosixPath(entry.partition("\t")[2]): entry[:6] for entry in listed.split("\0") if entry
    }

    expected = wanted_repository(up, ordered.kit, requester=GUEST).files

    assert modes == dict.fromkeys(expected, "100644")
    assert {path: (tmp_path / path).read_bytes() for path in modes} == dict(expected)


def test_its_outputs_are_those_of_ours(ordered: Ordered, up: Up) -> None:
    """Our interpreter finds the order placed, and says about it what Backstage said."""
    wanted = TaskRequest("garage", {"team_name": ordered.team, "stage": "stage2"}, Requester(GUEST))

    found = placing.order(up.platform, wanted)

    assert not found.created
    assert dict(found.outputs) == dict(ordered.task.output)


def test_it_is_registered_and_becomes_ready(ordered: Ordered, up: Up, orderkit: Command) -> None:
    platform = up.platform
    path = PurePosixPath("apps", ordered.team, f"{ordered.name}.yaml")
    assert platform.forge.read(platform.ledger, path, "main") is not None

    status = _wait_ready(orderkit, ordered.name)

    assert status["team"] == ordered.team


def test_the_registration_is_proved_by_backstages_signature(
    ordered: Ordered, up: Up, backstage: Backstage
) -> None:
    """The step's request carries the scaffolder's token, and in it the person's."""
    messages = [commit.message for commit in up.platform.forge.commits(up.platform.ledger)]
    ours = next(text for text in messages if ordered.name in text)

    assert (
        f"Orderkit-Requester: {GUEST}\nOrderkit-Requester-Proof: signed by {backstage.url}" in ours
    )


def test_backstages_own_catalog_shows_it(ordered: Ordered, scaffolder: Scaffolder) -> None:
    end = time.monotonic() + READY_S
    while (answer := scaffolder.entity(f"component/default/{ordered.name}")).status != 200:
        assert time.monotonic() < end, answer.body
        time.sleep(0.2)
    assert answer.body["spec"]["owner"] == f"group:default/{ordered.team}"


def test_ordering_it_again_by_command_says_that_it_exists(
    ordered: Ordered, up: Up, orderkit: Command
) -> None:
    repos = (ordered.repository, up.platform.ledger)
    before = _heads(up.platform.forge, *repos)

    done = orderkit("order", "garage", f"team_name={ordered.team}", "stage=stage2")

    assert done.code == 0, done.err
    assert "was ordered already with these values" in done.out + done.err
    assert _heads(up.platform.forge, *repos) == before


def test_the_same_task_again_fails_with_backstages_409_and_changes_nothing(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    """Backstage's publish:gitea creates, ours ensures: the one difference in an order."""
    repos = (ordered.repository, up.platform.ledger)
    before = _heads(up.platform.forge, *repos)

    again = scaffolder.run(TEMPLATE, ordered.kit.values)

    assert again.status == "failed"
    assert "Unable to create repository, 409" in again.log
    assert _heads(up.platform.forge, *repos) == before


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("team_name", "No Good", "does not match pattern"),
        ("team_name", "a", "does not match pattern"),
        ("stage", "stage9", "is not one of enum values"),
        ("forge_host", "__ORDERKIT_FORGE_HOST__", "does not match pattern"),
    ],
)
def test_values_a_form_would_refuse_are_refused_from_an_api_caller_too(
    field: str, value: str, reason: str, ordered: Ordered, scaffolder: Scaffolder
) -> None:
    answer = scaffolder.start(TEMPLATE, {**ordered.kit.values, field: value})

    assert answer.status == 400
    assert reason in str(answer.body["errors"])


def test_hidden_values_are_the_forms_to_fill_in(ordered: Ordered, scaffolder: Scaffolder) -> None:
    """The backend applies no defaults; our interpreter applies them as the form does."""
    typed = {"team_name": ordered.team, "stage": "stage2"}

    answer = scaffolder.start(TEMPLATE, typed)

    assert answer.status == 400
    assert 'requires property "forge_host"' in str(answer.body["errors"])


def test_the_commit_is_backstages(ordered: Ordered, up: Up, tmp_path: Path) -> None:
    """Its own author and trailer; who ordered stands in .orderkit/order.yaml, as with ours."""
    url = f"{up.settings.forge.url}/{ordered.repository}.git"
    subprocess.run(["git", "clone", "--quiet", url, str(tmp_path)], check=True, timeout=60)
    shown = subprocess.run(
        ["git", "-C", str(tmp_path), "log", "--format=%an <%ae>%n%B"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert shown.startswith(f"Orderkit <orderkit@example.com>\nOrder {ordered.name}\n")
    assert "Change-Id: I" in shown
    assert f'requester: "{GUEST}"' in (tmp_path / ".orderkit" / "order.yaml").read_text()


def test_what_our_service_refuses_stands_readable_in_the_task_log(
    up: Up, scaffolder: Scaffolder, orderkit: Command
) -> None:
    """A team that has an organisation and may not order; once it may, the order is finished."""
    team = "no-crew"
    up.platform.forge.ensure_org(team)
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage1"})

    task = scaffolder.run(TEMPLATE, kit.values)

    assert task.status == "failed"
    assert "Status code: 404" in task.log
    assert f"orderkit team add {team}" in task.log

    assert orderkit("team", "add", team).code == 0
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1")
    assert done.code == 0, done.err


def test_commands_work_with_the_real_catalog(
    scaffolder: Scaffolder, orderkit: Command, new_team: Callable[[], str], portal_file: Path
) -> None:
    """Order and end with the real Backstage as the platform's portal."""
    team = new_team()
    entity = f"component/default/garage-{team}"
    assignments = (f"team_name={team}", "stage=stage1")
    for _ in range(2):
        done = orderkit("order", "garage", *assignments, platform_file=portal_file)
        assert done.code == 0, done.err
    end = time.monotonic() + READY_S
    while scaffolder.entity(entity).status != 200:
        assert time.monotonic() < end
        time.sleep(0.2)

    done = orderkit("destroy", "--yes", f"garage-{team}", platform_file=portal_file)

    assert done.code == 0, done.err
    assert scaffolder.entity(entity).status == 404
