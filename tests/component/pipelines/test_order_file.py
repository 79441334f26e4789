"""A file with an XR is ordered, found unchanged, changed by the kit's rules, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from commands import Command, Done
from limitedforge import LimitedForge

from ground.errors import TooFastError
from ground.names import OrderId, RepoId, TeamName
from orderkit.core.order import order_file
from orderkit.core.order.ledger import KIT_LABEL, OrderEntry
from orderkit.flows.change.declared_order import (
    ChangeTerms,
    DeclaredFile,
    place_declared,
    place_in_turn,
    read_every,
)
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import (
    AGENT_TRAILER,
    PROOF_TRAILER,
    REQUESTER_TRAILER,
    FileChange,
    Operation,
)
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

XR = {"apiVersion": "blog.opsbogus.dev/v1alpha1", "kind": "XGarage"}
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, team: str) -> Write:
    """Write the XR of an order into a file; None removes a field."""
    file = tmp_path / "env.yaml"

    def written(meta: dict[str, Any] | None = None, /, **fields: Any) -> str:
        spec = {"teamName": team, "stage": "stage1", **fields}
        spec = {name: value for name, value in spec.items() if value is not None}
        manifest = {**XR, **({"metadata": meta} if meta else {}), "spec": spec}
        file.write_text(yaml11.dump(manifest))
        return str(file)

    return written


def heads(platform: Running, team: str) -> tuple[object, object]:
    forge = platform.platform.forge
    return forge.head(platform.platform.ledger), forge.head(RepoId(team, f"garage-{team}"))


def spec_of(platform: Running, team: str) -> Any:
    repo = RepoId(team, f"garage-{team}")
    forge = platform.platform.forge
    revision = forge.read(repo, PurePosixPath("manifests", "xgarage.yaml"), "main")
    assert revision is not None
    return yaml.safe_load(revision.data)["spec"]


def test_a_file_is_ordered_and_the_same_file_again_writes_nothing(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    file = write(pit={"bays": 2, "lift": True}, guests=["eve", "mallory"], note="a: b # c")

    shown = orderkit("order", "--file", file, "--plan")
    first = orderkit("order", "--file", file, "--json")
    assert (shown.code, f"lift-{team}" in shown.out) == (0, True), shown.err
    assert first.code == 0, first.out + first.err
    before = heads(platform, team)
    again = orderkit("order", "--file", file, "--json")
    planned = orderkit("order", "--file", file, "--plan")

    assert (first.json["created"], first.json["phase"]) == (True, "Ready")
    assert spec_of(platform, team) == {
        "teamName": team,
        "stage": "stage1",
        "pit": {"bays": 2, "lift": True},
        "guests": ["eve", "mallory"],
        "note": "a: b # c",
    }
    assert (again.code, again.json["created"]) == (0, False)
    assert (planned.code, "unchanged" in planned.out) == (0, True)
    assert heads(platform, team) == before


def test_other_values_are_shown_and_written_only_on_request(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    assert orderkit("order", "--file", write(note="old", colour=None)).code == 0
    before = heads(platform, team)
    file = write(stage="stage2", note=None)

    differs = orderkit("order", "--file", file)
    as_json = orderkit("order", "--file", file, "--json")
    planned = orderkit("order", "--file", file, "--plan", "--json")

    assert (differs.code, as_json.code, planned.code) == (3, 3, 10)
    assert "stage1" in differs.out.partition("-  stage: ")[2][:9], differs.out
    assert f"garage-{team} has other values than {file}: " in differs.err
    assert f"orderkit order --file {file} --change; or" in differs.err
    typed = orderkit("order", "--file", file, "stage=stage3").err
    assert f"orderkit order --file {file} --change stage=stage3; or" in typed
    assert "stage stage1 → stage2" in as_json.json["error"]["message"]
    assert planned.json["state"] == "planned"
    assert heads(platform, team) == before

    changed = orderkit("order", "--file", file, "--change", "--reason", "faster", "--json")
    again = orderkit("order", "--file", file, "--change", "--json")

    assert changed.code == 0, changed.err
    assert changed.json["change"]["state"] == "committed"
    assert changed.json["commit"] == changed.json["revision"]
    assert spec_of(platform, team) == {"teamName": team, "stage": "stage2"}
    assert (again.code, "change" in again.json, again.json["commit"]) == (
        0, False, changed.json["commit"],
    )  # fmt: skip
    (newest, *_) = orderkit("history", f"garage-{team}", "--json").json["entries"]
    assert newest["reason"] == "faster"


def test_a_change_that_needs_a_review_is_proposed_once(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    assert orderkit("order", "--file", write(colour="red")).code == 0
    file = write(colour="blue")

    proposed = orderkit("order", "--file", file, "--change", "--json")
    again = orderkit("order", "--file", file, "--change")

    assert (proposed.code, proposed.json["change"]["state"]) == (12, "proposed"), proposed.err
    assert (again.code, "/pulls/1" in again.out) == (12, True)
    pulls = list(platform.platform.forge.pulls(RepoId(team, f"garage-{team}")))
    assert [pull.number for pull in pulls] == [1]
    assert spec_of(platform, team)["colour"] == "red"


def test_an_order_that_the_ledger_lost_is_not_taken_for_one_with_other_values(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    assert orderkit("order", "--file", write(), "--no-wait").code == 0
    rewrite_application(platform, team, None)

    done = orderkit("order", "--file", write(stage="stage2"), "--no-wait", "--change")

    assert (done.code, "stage was 'stage1', asked for 'stage2'" in done.err) == (3, True), done.err
    assert spec_of(platform, team)["stage"] == "stage1"


def test_an_order_of_another_kit_is_not_changed(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    """The names of two kits and of their orders can make the same id."""
    assert orderkit("order", "--file", write(), "--no-wait").code == 0
    rewrite_application(platform, team, "disk")
    forge, repo = platform.platform.forge, RepoId(team, f"garage-{team}")
    record = forge.read(repo, order_file.PATH, "main")
    assert record is not None
    data = record.text.replace("kit: garage", "kit: disk").encode()
    operation = Operation(f"record-{team}", "user:default/mallory", "by hand")
    forge.write(repo, [FileChange(order_file.PATH, data, record.sha)], operation)

    done = orderkit("order", "--file", write(stage="stage2"), "--no-wait", "--change")

    assert (done.code, "is an order of kit 'disk'" in done.err) == (3, True), done.err


def rewrite_application(platform: Running, team: str, kit: str | None) -> None:
    """Take an order's Application out of the ledger, or give it another kit."""
    forge, repo = platform.platform.forge, platform.platform.ledger
    path = OrderEntry(TeamName(team), OrderId(f"garage-{team}")).application_path
    file = forge.read(repo, path, "main")
    assert file is not None
    application = yaml.safe_load(file.data)
    application["metadata"]["labels"][KIT_LABEL] = kit
    data = yaml11.dump(application).encode() if kit else None
    operation = Operation(f"by-hand-{team}", "user:default/mallory", "by hand")
    forge.write(repo, [FileChange(path, data, file.sha)], operation)


def test_what_the_kit_forbids_is_refused_also_with_change(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    assert orderkit("order", "--file", write(plate="AE-86", level="low")).code == 0
    before = heads(platform, team)

    done = orderkit("order", "--file", write(plate="AE-87", level="high"), "--change")

    assert (done.code, "2 problems" in done.err) == (4, True), done.err
    assert "this field never changes" in done.err
    assert "one step at a time" in done.err
    assert heads(platform, team) == before


def test_all_problems_are_reported_together_with_their_lines(
    orderkit: Command, write: Write
) -> None:
    file = write(
        {"name": "other", "labels": {"a": "b"}},
        stage="stage9", budget=-1, guests="eve", wheels=4, pit={"bays": "two"},
        password="hunter2-hunter2",
    )  # fmt: skip
    lines = Path(file).read_text().splitlines()

    done = orderkit("order", "--file", file, "--json")

    problems = {problem["field"]: problem for problem in done.json["error"]["problems"]}
    assert done.code == 2
    assert problems.keys() == {
        "metadata.labels", "spec.stage", "spec.budget", "spec.guests", "spec.wheels",
        "spec.pit.bays", "spec.password",
    }  # fmt: skip
    at = next(n for n, line in enumerate(lines, 1) if "budget" in line)
    assert f"(env.yaml:{at})" in problems["spec.budget"]["rule"]
    assert problems["spec.stage"]["value"] == "'stage9'"
    assert "hunter2" not in done.out + done.err


def test_a_wrong_name_or_namespace_is_refused(orderkit: Command, write: Write, team: str) -> None:
    done = orderkit("order", "--file", write({"name": "garage-other", "namespace": "x"}))

    assert (done.code, "2 problems" in done.err) == (2, True)
    assert f"is not 'garage-{team}', the name that these values give the order" in done.err
    named = orderkit("order", "--file", write({"name": team}), "--plan")
    assert named.code == 0, named.err


def test_assignments_add_what_the_file_lacks_and_win_over_it(
    orderkit: Command, write: Write, team: str, platform: Running
) -> None:
    file = write(teamName=None)
    missing = orderkit("order", "--file", file)
    assert (missing.code, "teamName" in missing.err) == (2, True)

    done = orderkit("order", "--file", file, f"team_name={team}", "stage=stage3")

    assert done.code == 0, done.err
    assert spec_of(platform, team)["stage"] == "stage3"


def test_a_field_that_only_changes_set_needs_a_living_order(
    platform: Running, orderkit: Command, write: Write, team: str
) -> None:
    early = orderkit("order", "--file", write(laps=3))
    assert (early.code, "is set by changes of a live order only" in early.err) == (2, True)
    assert orderkit("order", "--file", write()).code == 0

    done = orderkit("order", "--file", write(laps=3), "--change")
    left = orderkit("order", "--file", write())

    assert done.code == 0, done.err
    assert spec_of(platform, team)["laps"] == 3
    assert left.code == 0, "a field that the form does not ask for is not taken away"


def test_a_kit_that_asks_for_name_and_team_takes_them_from_the_metadata(
    orderkit: Command, tmp_path: Path, team: str
) -> None:
    file = tmp_path / "disk.yaml"
    meta = {"name": "logs", "namespace": f"team-{team}"}
    disk = {"apiVersion": "example.org/v1alpha1", "kind": "XDisk", "metadata": meta}
    file.write_text(yaml11.dump({**disk, "spec": {"sizeGb": 3, "team": team}}))

    ordered = orderkit("order", "--file", str(file), "--json")
    again = orderkit("order", "--file", str(file), "--json")
    file.write_text(yaml11.dump({**disk, "metadata": {}, "spec": {"sizeGb": 3, "team": team}}))
    nameless = orderkit("order", "--file", str(file))
    named = orderkit("order", "--file", str(file), "name=logs", f"order_team={team}", "--json")

    assert (ordered.code, ordered.json["order"]) == (0, "disk-logs"), ordered.err
    assert (ordered.json["team"], ordered.json["created"]) == (team, True)
    assert (again.code, again.json["created"]) == (0, False)
    assert (nameless.code, "2 problems" in nameless.err) == (2, True)
    assert "name is missing" in nameless.err
    assert (named.code, named.json["created"]) == (0, False), named.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "env.yaml: line"),
        ("", "holds 0 objects, and an order is one"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "is not of a kit"),
        ("apiVersion: blog.opsbogus.dev/v1\nkind: XGarage\nspec: {}\n", "no matches for kind"),
        ("apiVersion: blog.opsbogus.dev/v1alpha1\nkind: XGarages\n", "is not of a kit"),
        ("x" * 1_000_001, "larger than 1000000 bytes"),
        ("apiVersion: blog.opsbogus.dev/v1alpha1\nkind: XGarage\nspec: 3\n", "spec"),
        ("apiVersion: blog.opsbogus.dev/v1alpha1\nkind: XGarage\nmetadata: 3\n", "metadata"),
    ],
)
def test_a_file_that_is_no_order_is_refused(
    orderkit: Command, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(text)

    done = orderkit("order", "--file", str(file), "--json")

    assert done.code in (1, 2), done.err
    assert message in json.dumps(done.json)


def test_the_options_of_a_file_need_one(orderkit: Command) -> None:
    assert "Missing argument 'KIT'. One of: " in orderkit("order").err
    assert "belong to --file" in orderkit("order", "garage", "stage=stage1", "--change").err
    assert orderkit("order", "--file", "missing.yaml").code == 2


def test_a_file_with_several_orders_is_checked_whole_and_ordered_each(
    platform: Running, orderkit: Command, write: Write, team: str, tmp_path: Path
) -> None:
    other = f"{team}-too"
    add_team(platform.platform, other, requester="user:default/test")
    texts = [Path(write(note="one")).read_text(), Path(write(note="two")).read_text()]
    file = tmp_path / "both.yaml"

    def orders(*parts: str) -> Done:
        file.write_text("".join(parts))
        return orderkit("order", "--file", str(file))

    before = platform.platform.forge.head(platform.platform.ledger)
    twice = orders(*texts)
    assert (twice.code, "is declared twice" in twice.err) == (2, True), twice.err
    second = texts[1].replace(team, other)
    refused = orders(texts[0].replace("stage1", "stage9"), second.replace("stage1", "stage8"))
    assert refused.code == 2
    assert "stage9" in refused.err
    assert "stage8" in refused.err
    assert platform.platform.forge.head(platform.platform.ledger) == before
    done = orders(texts[0], second)
    assert done.code == 0, done.err
    assert (spec_of(platform, team)["note"], spec_of(platform, other)["note"]) == ("one", "two")
    assert words_of(done) == {f"garage-{team}": "ordered", f"garage-{other}": "ordered"}
    written = heads(platform, team), heads(platform, other)
    again = orders(texts[0], second)
    assert again.code == 0
    assert words_of(again) == {f"garage-{team}": "unchanged", f"garage-{other}": "unchanged"}
    assert (heads(platform, team), heads(platform, other)) == written


def words_of(done: Done) -> dict[str, str]:
    """Return the result of each order of the table at the end."""
    lines = [line.split() for line in done.out.splitlines()]
    rows = lines[lines.index(["ORDER", "RESULT", "STATE"]) + 1 :]
    return {row[0]: row[1] for row in rows}


def test_many_orders_go_on_where_they_stopped_and_one_refusal_stops_no_other(
    platform: Running, orderkit: Command, write: Write, team: str, tmp_path: Path
) -> None:
    """The file after a crash between two orders; somebody changed the first meanwhile."""
    others = [f"{team}-{number}" for number in range(2)]
    for other in others:
        add_team(platform.platform, other, requester="user:default/test")
    assert orderkit("order", "--file", write(note="by hand"), "--no-wait").code == 0
    text = Path(write(note="one")).read_text()
    file = tmp_path / "many.yaml"
    file.write_text("".join([text, *(text.replace(team, other) for other in others)]))
    first = orderkit("order", "--file", str(file), "--no-wait")
    assert first.code == 3, first.err
    assert "has other values than" in first.err
    assert words_of(first) == {
        f"garage-{team}": "refused", **{f"garage-{other}": "ordered" for other in others}
    }  # fmt: skip
    changed = orderkit("order", "--file", str(file), "--no-wait", "--change")
    assert changed.code == 0, changed.err
    assert words_of(changed) == {
        f"garage-{team}": "committed", **{f"garage-{other}": "unchanged" for other in others}
    }  # fmt: skip
    for name in (team, *others):
        made = platform.platform.forge.commits(RepoId(name, f"garage-{name}"))
        assert len(made) == (2 if name == team else 1)


@pytest.mark.parametrize("is_change", [False, True], ids=["a new order", "a change"])
def test_a_commit_names_who_declared_it_with_proof_and_agent(
    platform: Running, orderkit: Command, write: Write, team: str, *, is_change: bool
) -> None:
    """A program that reads the file for an AI agent proves for whom the agent asks."""
    if is_change:
        assert orderkit("order", "--file", write(note="one"), "--no-wait").code == 0
    data = Path(write(note="two")).read_bytes()
    groups = frozenset({f"group:default/{team}"})
    whose = Requester("user:default/eve", "OpenID Connect", groups, agent="assistant")
    (read,) = read_every(platform.platform, DeclaredFile("env.yaml", data, {}, whose.ref))
    declared, terms = replace(read, requester=whose), ChangeTerms(is_allowed=True)

    placed = place_declared(platform.platform, declared, terms, on_step=lambda *_: None)

    assert placed.result == ("committed" if is_change else "ordered")
    (newest, *_) = platform.platform.forge.commits(RepoId(team, f"garage-{team}"), limit=1)
    trailers = (REQUESTER_TRAILER, PROOF_TRAILER, AGENT_TRAILER)
    assert [newest.trailers.get(name) for name in trailers] == [whose.ref, whose.proof, whose.agent]


def test_one_of_many_waits_as_long_as_the_forge_says(platform: Running, write: Write) -> None:
    """GitHub lets 500 changes an hour pass; a file with 200 orders needs more than an hour."""
    data = Path(write(note="one")).read_bytes()
    (declared,) = read_every(
        platform.platform, DeclaredFile("env.yaml", data, {}, "user:default/test")
    )

    def placed(refusals: int) -> str:
        forge: Any = LimitedForge(platform.platform.forge, "head", refusals, seconds=0.1)
        limited = replace(platform.platform, forge=forge)
        return place_in_turn(limited, declared, ChangeTerms(), on_step=lambda *_: None).result

    with pytest.raises(TooFastError):
        placed(99)
    assert placed(4) == "ordered"
    assert placed(4) == "unchanged"
