"""The history of an order: what each commit did to its fields, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from commands import Command

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.flows.order import order_history
from orderkit.flows.order.live_order import find_living
from orderkit.flows.order.order_history import entry_of
from orderkit.flows.order.order_objects import read_part
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

XR = PurePosixPath("manifests", "xgarage.yaml")

Edit = Callable[..., CommitSha]


@pytest.fixture
def order(orderkit: Command, team: str) -> str:
    """An order at stage1."""
    done = orderkit(
        "order", "garage", f"team_name={team}", "stage=stage1", "--requester=user:a/eve"
    )
    assert done.code == 0, done.err
    return f"garage-{team}"


@pytest.fixture
def write(platform: Running, order: str, team: str) -> Edit:
    """Commit files to the order's repository; None removes one."""
    forge, repo = platform.platform.forge, RepoId(team, order)

    def commit(operation: Operation, **files: str | None) -> CommitSha:
        head = forge.head(repo)
        assert head is not None
        there = forge.tree(repo, head)
        changes = [
            FileChange(path, None if text is None else text.encode(), there.get(path))
            for path, text in ((PurePosixPath(name), text) for name, text in files.items())
        ]
        return forge.write(repo, changes, operation).commit

    return commit


def text_of(platform: Running, order: str, team: str) -> str:
    found = platform.platform.forge.read(RepoId(team, order), XR, "main")
    assert found is not None
    return found.text


def entries(orderkit: Command, order: str) -> list[dict[str, Any]]:
    done = orderkit("history", order, "--json")
    assert done.code == 0, done.err
    assert done.json["schema"] == "orderkit.history/v1"
    found: list[dict[str, Any]] = done.json["entries"]
    return found


def test_the_order_itself_is_the_first_entry(orderkit: Command, order: str, team: str) -> None:
    (first,) = entries(orderkit, order)

    assert (first["ordered"], first["requester"]) == (True, "user:a/eve")
    assert first["fields"] == [
        {"field": "teamName", "from": None, "to": team},
        {"field": "stage", "from": None, "to": "stage1"},
    ]


def test_a_commit_tells_field_requester_reason_and_operation(
    orderkit: Command, platform: Running, order: str, team: str, write: Edit
) -> None:
    text = text_of(platform, order, team).replace("stage1", "stage2")
    notes = (("Orderkit-Change", "stage"), ("Orderkit-Reason", "faster laps"))
    commit = write(
        Operation("op-7", "user:default/bob", "stage", "proof", notes), **{str(XR): text}
    )

    newest = entries(orderkit, order)[0]

    assert newest["commit"] == commit
    assert newest["fields"] == [{"field": "stage", "from": "stage1", "to": "stage2"}]
    assert {key: newest[key] for key in ("requester", "requesterProof", "operation", "change")} == {
        "requester": "user:default/bob",
        "requesterProof": "proof",
        "operation": "op-7",
        "change": "stage",
    }
    assert newest["reason"] == "faster laps"
    told = orderkit("history", order).out
    assert "stage stage1 → stage2" in told
    assert "because faster laps" in told


def test_a_renamed_file_and_an_unreadable_one_are_followed(
    orderkit: Command, platform: Running, order: str, team: str, write: Edit
) -> None:
    text = text_of(platform, order, team)
    by_hand = Operation("x", "user:default/bob", "x")
    new = "manifests/garage.yml"
    write(by_hand, **{str(XR): None, new: text.replace("stage1", "stage2")})
    write(by_hand, **{new: text.replace("spec:", "spec: [")})
    write(by_hand, **{new: text.replace("stage1", "stage3")})

    found = entries(orderkit, order)

    stages = [[(f["from"], f["to"]) for f in e["fields"] if f["field"] == "stage"] for e in found]
    assert stages == [[], [], [("stage1", "stage2")], [(None, "stage1")]]
    assert [e["unreadable"] != "" for e in found] == [True, True, False, False]


def test_the_limit_gives_the_newest(
    orderkit: Command, platform: Running, order: str, team: str, write: Edit
) -> None:
    text = text_of(platform, order, team)
    write(Operation("y", "user:default/bob", "y"), **{str(XR): text.replace("stage1", "stage3")})

    done = orderkit("history", order, "--limit", "1", "--json")

    assert [entry["operation"] for entry in done.json["entries"]] == ["y"]


def test_a_commit_that_touched_no_manifest_did_nothing_to_the_order(
    platform: Running, order: str, write: Edit
) -> None:
    commit = write(Operation(f"readme-{order}", "user:default/eve", "a line"), **{"NEW.md": "new"})
    live = find_living(platform.platform, order)
    (found,) = platform.platform.forge.commits(live.repository, ref=commit, limit=1)

    with pytest.raises(NotFoundError, match=f"{commit[:8]} did not touch what {order} is"):
        entry_of(platform.platform, live, found)


def test_an_order_has_no_part_that_is_none_of_its_objects(platform: Running, order: str) -> None:
    with pytest.raises(NotFoundError, match=f"{order} has no such part now"):
        read_part(platform.platform, order, lambda key: key.name == "somebody-elses")


def test_an_unknown_order_names_the_nearest(orderkit: Command, order: str) -> None:
    done = orderkit("history", f"{order}x")

    assert done.code == 1
    assert f"did you mean '{order}'?" in done.err


def test_a_history_of_more_commits_than_are_read_at_once_is_told_whole(
    platform: Running, order: str, team: str, write: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_history, "_PAGE", 3)
    text = text_of(platform, order, team)
    made = [
        write(Operation(f"note-{n}", "user:a/eve", f"note {n}"), **{str(XR): f"{text}# {n}\n"})
        for n in range(8)
    ]

    found = order_history.history(platform.platform, order, limit=100)

    assert [entry.commit.id for entry in found][:-1] == made[::-1]
    assert found[-1].first
