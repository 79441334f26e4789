"""Orders on the embedded platform, through the command line, as a person uses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import Command
from roguery import deliver_main

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, ObjectKey, dig
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.serve_platform import Running

OPERATION = "Orderkit-Operation:"


def sheet(team: str) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")


def data_of(platform: Running, team: str) -> object:
    return dig(platform.platform.cluster.get(sheet(team)) or {}, "data")


def test_an_order_becomes_ready_with_everything_composed(
    orderkit: Command, platform: Running, team: str
) -> None:
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2", "--json")

    assert (done.code, done.json["phase"], done.json["created"]) == (0, "Ready", True)
    assert done.json["schema"] == "orderkit.order/v1"
    assert data_of(platform, team) == {"stage": "stage2", "team": team}


def test_the_same_order_again_says_it_exists_and_writes_nothing(
    orderkit: Command, platform: Running, team: str
) -> None:
    first = orderkit("order", "garage", f"team_name={team}", "stage=stage1", "--json")
    ledger = platform.platform.forge.head(platform.platform.ledger)

    again = orderkit("order", "garage", f"team_name={team}", "stage=stage1", "--json")

    assert (again.code, again.json["created"]) == (0, False)
    assert again.json["commit"] == first.json["commit"]
    assert platform.platform.forge.head(platform.platform.ledger) == ledger


def test_every_commit_carries_operation_and_requester(
    orderkit: Command, platform: Running, team: str
) -> None:
    done = orderkit(
        "order", "garage", f"team_name={team}", "stage=stage1", "--requester", "user:default/eve"
    )

    assert done.code == 0
    for repo in (RepoId(team, f"garage-{team}"), platform.platform.ledger):
        newest = platform.platform.forge.commits(repo, limit=1)[0]
        assert OPERATION in newest.message
        assert "user:default/eve" in newest.message


@pytest.mark.parametrize("name", ["yes", "null", "off", "true"])
def test_a_team_named_like_a_yaml_word_stays_text_all_the_way(
    orderkit: Command, platform: Running, name: str
) -> None:
    assert orderkit("team", "add", name).code == 0

    done = orderkit("order", "garage", f"team_name={name}", "stage=stage3")

    assert done.code == 0
    assert data_of(platform, name) == {"stage": "stage3", "team": name}


def test_a_pushed_change_arrives_and_status_names_its_commit(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    commit = push(platform, team, tmp_path, lambda text: text.replace("stage2", "stage3"))

    status = until(
        SystemClock(),
        lambda: orderkit("status", f"garage-{team}", "--json").json,
        lambda found: found["ready"],
        timeout_s=90,
        goal="delivery of the push",
    )
    assert (status["head"], status["revision"]) == (commit, commit)
    assert data_of(platform, team) == {"stage": "stage3", "team": team}


def test_a_malformed_manifest_reddens_its_own_order_only(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    other = f"{team}-other"
    orderkit("team", "add", other)
    for name in (team, other):
        assert orderkit("order", "garage", f"team_name={name}", "stage=stage2").code == 0

    push(platform, team, tmp_path, lambda text: text + "  broken: [\n")

    failing = until(
        SystemClock(),
        lambda: orderkit("status", f"garage-{team}", "--json").json,
        lambda found: found["phase"] == "Failing",
        timeout_s=90,
        goal="the order turning red",
    )
    assert "xgarage.yaml" in failing["reason"]
    assert orderkit("status", f"garage-{other}", "--json").json["phase"] == "Ready"
    assert data_of(platform, team) == {"stage": "stage2", "team": team}


def test_a_deleted_part_comes_back(orderkit: Command, platform: Running, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    cluster = platform.platform.cluster
    old = dig(cluster.get(sheet(team)) or {}, "metadata", "uid")

    cluster.delete(sheet(team))

    until(
        SystemClock(),
        lambda: dig(cluster.get(sheet(team)) or {}, "metadata", "uid"),
        lambda uid: uid not in (None, old),
        timeout_s=90,
        goal="the ConfigMap coming back",
    )


def test_trace_shows_the_tree(orderkit: Command, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    tree = until(
        SystemClock(),
        lambda: orderkit("trace", f"garage-{team}", "--json").json["tree"],
        lambda seen: seen["ready"] == "True",
        timeout_s=120,
        goal="the Application being as healthy as the order, which is ready before",
    )

    assert (tree["kind"], tree["synced"], tree["ready"]) == ("Application", "True", "True")
    (xr,) = tree["children"]
    assert (xr["kind"], xr["synced"], xr["ready"]) == ("XGarage", "True", "True")
    assert {child["kind"] for child in xr["children"]} == {"Namespace", "ConfigMap"}


def test_an_ended_order_leaves_nothing_but_its_tombstone(
    orderkit: Command, platform: Running, team: str
) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    done = orderkit("destroy", "--yes", f"garage-{team}", "--json")

    assert (done.code, done.json["repository"]) == (0, "archive")
    gone = {(entry["kind"], entry["name"]) for entry in done.json["gone"]}
    assert gone == {
        ("XGarage", f"garage-{team}"),
        ("Namespace", f"garage-{team}"),
        ("ConfigMap", "spec-sheet"),
    }
    cluster = platform.platform.cluster
    assert cluster.get(sheet(team)) is None
    assert cluster.get(ObjectKey(NAMESPACE, f"garage-{team}")) is None
    assert orderkit("status", f"garage-{team}").code == 1
    assert "tombstone" in orderkit("status", f"garage-{team}").err
    assert platform.platform.catalog.entity(f"component:default/garage-{team}") is None


def test_ending_twice_is_ending_once(orderkit: Command, platform: Running, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    assert orderkit("destroy", "--yes", f"garage-{team}").code == 0
    ledger = platform.platform.forge.head(platform.platform.ledger)

    again = orderkit("destroy", "--yes", f"garage-{team}")

    assert (again.code, "ended already" in again.out) == (0, True)
    assert platform.platform.forge.head(platform.platform.ledger) == ledger


def test_an_archived_order_keeps_its_name_until_its_repository_is_deleted(
    orderkit: Command, team: str
) -> None:
    order = ("order", "garage", f"team_name={team}", "stage=stage2")
    assert orderkit(*order).code == 0
    assert orderkit("destroy", "--yes", f"garage-{team}").code == 0

    refused = orderkit(*order)
    assert (refused.code, "--delete-repository" in refused.err) == (3, True)

    assert orderkit("destroy", "--yes", f"garage-{team}", "--delete-repository").code == 0
    assert orderkit(*order).code == 0


def test_a_failing_order_can_be_ended(
    orderkit: Command, platform: Running, team: str, tmp_path: Path
) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    push(platform, team, tmp_path, lambda text: text.replace("stage2", "stage9"))

    done = orderkit("destroy", "--yes", f"garage-{team}", "--timeout", "180")

    assert done.code == 0, done.err
    assert platform.platform.cluster.get(sheet(team)) is None


def push(platform: Running, team: str, folder: Path, edit: object) -> str:
    """Edit the XR in a clone with the real git and push it; return the commit."""
    from orderkit_standins.demo.narration import git

    clone = folder / "clone"
    url = f"{platform.platform.forge.base_url}/{team}/garage-{team}.git"
    git(platform, folder, "clone", "--quiet", url, str(clone))
    xr = clone / "manifests" / "xgarage.yaml"
    assert callable(edit)
    xr.write_text(edit(xr.read_text()))
    git(platform, clone, "commit", "--quiet", "--all", "--message", "by hand")
    git(platform, clone, "push", "--quiet", "origin", "main")
    deliver_main(platform.platform, RepoId(team, f"garage-{team}"))
    return git(platform, clone, "rev-parse", "HEAD")


def test_a_push_without_rights_is_refused(orderkit: Command, platform: Running, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    url = platform.settings.forge.url.replace("://", "://viewer:viewer@")

    done = subprocess.run(
        ["git", "push", "--quiet", f"{url}/{team}/garage-{team}.git", "HEAD:refs/heads/evil"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "403" in done.stderr
