"""``orderkit change`` as a person uses it: what it writes, shows, waits for and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from bays import XR, Bay, ask, new_bay, set_
from commands import Command
from forgehands import unprotect_main
from rivals import Rival

from ground.errors import RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, ObjectKey, dig
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.order.order_file import PATH as RECORD
from orderkit.flows.change.plan_requests import plan_xr
from orderkit.flows.forge_protection import unprotected_orders
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import FileChange, Operation, trailers
from yamlfiles.manifests import parse_manifests


def test_a_direct_change_is_one_commit_that_is_delivered_and_ready(
    orderkit: Command, bay: Bay, platform: Platform
) -> None:
    before = bay.text()

    done = orderkit(
        "change", bay.order, "stage=stage2", "--reason", "race  day",
        "--requester", "user:default/bob", "--json",
    )  # fmt: skip

    assert done.code == 0, done.err
    told = done.json
    assert (told["schema"], told["state"], told["change"]) == (
        "orderkit.change/v1", "committed", "stage",
    )  # fmt: skip
    assert (told["ready"], told["revision"], told["commit"]) == (True, bay.head, bay.head)
    assert told["edits"] == [{"field": "stage", "from": "stage1", "to": "stage2"}]
    assert bay.text() == before.replace("stage1", "stage2")
    newest = bay.commits()[0]
    assert trailers(newest.message) == {
        "Orderkit-Operation": told["operation"],
        "Orderkit-Requester": "user:default/bob",
        "Orderkit-Change": "stage",
        "Orderkit-Reason": "race day",
        "Orderkit-Request": trailers(newest.message)["Orderkit-Request"],
        "Orderkit-Signature": trailers(newest.message)["Orderkit-Signature"],
    }
    sheet = platform.cluster.get(ObjectKey(CONFIG_MAP, "spec-sheet", bay.order))
    assert dig(sheet, "data", "stage") == "stage2"


def test_people_see_the_diff_and_the_commit(orderkit: Command, bay: Bay) -> None:
    done = orderkit("change", bay.order, "stage=stage3")

    assert done.code == 0, done.err
    assert "changed stage stage1 → stage3" in done.out
    assert '-  stage: "stage1"\n+  stage: "stage3"\n' in done.out.replace("'", '"')
    assert f"commit      {bay.head[:8]}, Ready at {bay.head[:8]}" in done.out


def test_several_fields_lists_numbers_and_removal_in_one_commit(
    orderkit: Command, bay: Bay
) -> None:
    commits = len(bay.commits())

    first = orderkit(
        "change", bay.order, "budget=10", "guests+=eve", "guests+=bob", "note=yes",
        "pit.bays=2", "laps=3", "--no-wait",
    )  # fmt: skip
    second = orderkit(
        "change", bay.order, "budget+=5", "guests-=eve", "note-", "laps-=1", "pit.lift=true",
        "--no-wait",
    )  # fmt: skip

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert len(bay.commits()) == commits + 2
    spec = bay.spec()
    assert (spec["budget"], spec["guests"], spec["laps"]) == (15, ["bob"], 2)
    assert spec["pit"] == {"bays": 2, "lift": True}
    assert "note" not in spec


def test_what_is_so_already_is_unchanged_and_writes_nothing(orderkit: Command, bay: Bay) -> None:
    head = bay.head

    done = orderkit("change", bay.order, "stage=stage1", "guests-=nobody", "--json")

    assert (done.code, done.json["state"], done.json["commit"]) == (0, "unchanged", head)
    assert bay.head == head
    assert "unchanged" in orderkit("change", bay.order, "stage=stage1").out


def test_a_dry_run_shows_the_diff_and_writes_nothing(orderkit: Command, bay: Bay) -> None:
    head = bay.head

    direct = orderkit("change", bay.order, "stage=stage2", "--dry-run")
    reviewed = orderkit("change", bay.order, "colour=red", "--dry-run")

    assert (direct.code, reviewed.code) == (0, 0), direct.err + reviewed.err
    assert "would change stage stage1 → stage2, committed directly; nothing" in direct.out
    assert "would change colour (not set) → red, by a pull request; nothing" in reviewed.out
    assert "+" in direct.out
    assert bay.head == head
    assert list(bay.platform.forge.pulls(bay.repo)) == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["stag=stage2"], 2, "did you mean 'stage'?"),
        (["stage=stage9"], 2, 'supported values: "stage1", "stage2", "stage3"'),
        (["stage=stag2"], 2, "use one of"),
        (["budget=-1"], 2, "should be greater than or equal to 0"),
        (["budget=many"], 2, "is not of type integer"),
        (["note=" + "x" * 41], 2, "Too long"),
        (["team_name=other"], 4, "names the order or its team"),
        (["plate=x"], 4, "never changes"),
        (["level=low", "--change=stage"], 4, "does not allow this change in change 'stage'"),
        (["stage=stage2", "--change=stages"], 2, "did you mean 'stage'?"),
        (["stage-"], 2, "Required value"),
        (["colour=red", "--direct"], 4, "must be reviewed"),
        (["stage=stage2", "stage=stage3"], 2, "stage is given twice"),
        (["pit.bays=1", "pit={lift: true}"], 2, "are the same field"),
        (["stage"], 2, "is not an edit"),
        (["stage=stage2", "--base=beef"], 2, "is none of the newest"),
        (["stage=stage2", "--base=" + "a" * 40], 2, "holds no XR"),
        (["stage=stage2", "--requester=me"], 2, "is not a catalog reference"),
        (["stage=stage2", "--operation=a b"], 2, "holds a space"),
        (["stage=stage2", "--reason=" + "x" * 501], 2, "is longer than 500"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words_and_writes_nothing(
    orderkit: Command, quiet_bay: Bay, arguments: list[str], code: int, told: str
) -> None:
    head = quiet_bay.head

    done = orderkit("change", quiet_bay.order, *arguments)

    assert (done.code, told in done.err) == (code, True), done.err
    assert quiet_bay.head == head


def test_transitions_of_kit_and_xrd_hold(orderkit: Command, bay: Bay) -> None:
    first = orderkit("change", bay.order, "budget=10", "level=low", "serial=a1", "--no-wait")
    assert first.code == 0, first.err
    head = bay.head

    shrink = orderkit("change", bay.order, "budget-=1")
    leap = orderkit("change", bay.order, "level=high")
    serial = orderkit("change", bay.order, "serial=a2")

    assert (shrink.code, "budget 10 → 9 is refused: it may only grow" in shrink.err) == (4, True)
    assert (leap.code, "one step at a time; next is middle" in leap.err) == (4, True)
    assert (serial.code, "serial is for ever" in serial.err) == (2, True)
    assert bay.head == head
    assert orderkit("change", bay.order, "level=middle", "--no-wait").code == 0


def test_a_file_that_was_broken_before_can_be_mended_and_nothing_else(
    orderkit: Command, bay: Bay
) -> None:
    bay.edit("stage1", "stage9")

    other = orderkit("change", bay.order, "note=hello", "--no-wait")
    mended = orderkit("change", bay.order, "stage=stage2", "note=hello", "--no-wait")

    assert (other.code, "already invalid before this change" in other.err) == (2, True), other.err
    assert mended.code == 0, mended.err
    assert bay.spec()["stage"] == "stage2"


def test_an_unknown_order_names_the_nearest_and_an_ended_one_its_end(
    orderkit: Command, bay: Bay
) -> None:
    unknown = orderkit("change", f"{bay.order}x", "stage=stage2")
    assert orderkit("destroy", "--yes", bay.order).code == 0
    ended = orderkit("change", bay.order, "stage=stage2")

    assert (unknown.code, f"did you mean '{bay.order}'?" in unknown.err) == (1, True)
    assert (ended.code, f"{bay.order} has ended" in ended.err) == (1, True)


def test_an_archived_repository_is_refused(orderkit: Command, bay: Bay) -> None:
    bay.platform.forge.archive(bay.repo)

    done = orderkit("change", bay.order, "stage=stage2")

    assert (done.code, "is archived" in done.err) == (4, True), done.err


@pytest.mark.parametrize(
    ("reason", "files", "told"),
    [
        ("renamed", {XR: "name: {order}-2"}, "names its XR"),
        ("unreadable", {XR: "spec: ["}, "xgarage.yaml: line"),
        ("gone", {XR: None}, "no file of manifests/ holds"),
        ("twice", {PurePosixPath("manifests/more.yaml"): "name: {order}-2"}, "delivers one XG"),
        (
            "beside",
            {PurePosixPath("manifests/old/x.yaml"): "name: {order}-2"},
            "2 objects of XGarage",
        ),
    ],
)
def test_an_xr_that_is_not_as_it_must_be_is_refused(
    orderkit: Command, bay: Bay, reason: str, files: dict[PurePosixPath, str | None], told: str
) -> None:
    text = bay.text()
    made: dict[PurePosixPath, str | None] = {}
    for path, new in files.items():
        key = "spec:" if new and new.startswith("spec") else f'name: "{bay.order}"'
        assert key in text
        made[path] = new and text.replace(key, new.format(order=bay.order), 1)
    bay.put(made)

    done = orderkit("change", bay.order, "stage=stage2")

    assert (done.code in (1, 4), told in done.err) == (True, True), (reason, done.err)


@pytest.mark.parametrize(
    "asked",
    [
        lambda bay: ask(bay, set_("stage", "stage2")),
        lambda bay: plan_xr(bay.platform, bay.order, {}),
    ],
)
def test_who_changes_an_order_whose_main_goes_at_that_moment_is_told_so(
    bay: Bay, asked: Callable[[Bay], object]
) -> None:
    forge = bay.platform.forge

    def remove_main() -> None:
        forge.ensure_branch(bay.repo, "trunk", bay.head)
        forge.set_default_branch(bay.repo, "trunk")
        unprotect_main(forge, bay.repo)
        forge.delete_branch(bay.repo, "main")

    rival: Any = Rival(forge, "read", remove_main, when="after")  # its record

    with pytest.raises(RefusedError, match=f"{bay.repo} has no branch main") as refused:
        asked(replace(bay, platform=replace(bay.platform, forge=rival)))

    assert refused.value.hint == f"orderkit repair {bay.order}"


def replaced(bay: Bay, repo: RepoId, path: PurePosixPath, old: str, new: str) -> None:
    """Edit a file by hand."""
    forge = bay.platform.forge
    file = forge.read(repo, path, "main")
    assert file is not None
    assert old in file.text
    operation = Operation(f"hand-{bay.order}", "user:default/hand", "by hand")
    forge.write(repo, [FileChange(path, file.text.replace(old, new).encode(), file.sha)], operation)


def edit_ledger(bay: Bay) -> None:
    path = PurePosixPath("apps", bay.repo.owner, f"{bay.order}.yaml")
    replaced(bay, bay.platform.ledger, path, "path: manifests", "path: elsewhere")


def by_hand(bay: Bay, method: str, path: str, body: dict[str, str] | None = None) -> None:
    """Do what the port does not offer."""
    forge = bay.platform.forge
    assert isinstance(forge, GiteaForge)
    forge._http.send(method, f"/repos/{bay.repo}/{path}", body=body)  # noqa: SLF001


def rename_main(bay: Bay) -> None:
    by_hand(bay, "PATCH", "branches/main", {"name": "trunk"})


def test_an_order_without_main_holds_up_no_change_of_its_team(
    orderkit: Command, platform: Platform
) -> None:
    lost, other_default = new_bay(platform, "mainless"), new_bay(platform, "mainless")
    rename_main(lost)
    by_hand(other_default, "POST", "branches", {"new_branch_name": "trunk"})
    platform.forge.set_default_branch(other_default.repo, "trunk")
    by_hand(other_default, "DELETE", "branch_protections/main")
    before = unprotected_orders(platform, ledger_snapshot(platform))

    done = orderkit("team", "change", "mainless", "--limit", "garage.stage=stage2")

    assert done.code == 0, done.err
    after = unprotected_orders(platform, ledger_snapshot(platform))
    orders = [{entry.order for entry in found} for found in (before, after)]
    assert [(lost.order in found, other_default.order in found) for found in orders] == [
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("reason", "break_it", "code", "told"),
    [
        ("no repository", lambda b: b.platform.forge.delete_repo(b.repo), 1, "does not exist, or"),
        ("no main", rename_main, 1, "has no branch main any more"),
        ("no record", lambda b: b.put({RECORD: None}), 1, "no .orderkit/order.yaml on branch main"),
        (
            "record of another kit",
            lambda b: replaced(b, b.repo, RECORD, "kit: garage", "kit: shed"),
            4,
            "is registered as an order of kit 'garage', and that never changes",
        ),
        ("entry edited", edit_ledger, 4, "elsewhere"),
        (
            "a submodule",
            lambda b: b.put({PurePosixPath(".gitmodules"): '[submodule "x"]\n\tpath = x\n'}),
            4,
            "cannot be changed: ",
        ),
    ],
)
def test_an_order_that_was_damaged_is_not_changed(
    orderkit: Command,
    bay: Bay,
    *,
    reason: str,
    break_it: Callable[[Bay], object],
    code: int,
    told: str,
) -> None:
    break_it(bay)

    done = orderkit("change", bay.order, "stage=stage2")

    assert (done.code, told in done.err) == (code, True), (reason, done.err)


def test_a_base_that_several_commits_begin_with_is_refused(orderkit: Command, bay: Bay) -> None:
    while len(firsts := [commit.id[0] for commit in bay.commits()]) == len(set(firsts)):
        bay.put({PurePosixPath("notes.txt"): f"{len(firsts)}\n"})
    shared = next(first for first in firsts if firsts.count(first) > 1)

    done = orderkit("change", bay.order, "stage=stage2", f"--base={shared}")

    assert (done.code, "is the beginning of 2 commit ids" in done.err) == (2, True), done.err
    assert bay.spec()["stage"] == "stage1"


def test_the_file_is_found_wherever_it_is_and_everything_around_it_stays(
    orderkit: Command, bay: Bay
) -> None:
    """Another name, an empty document before it, comments, and Windows' line ends."""
    other = "# nothing yet\n---\n"
    text = (other + bay.text().replace("stage: ", "stage:   ") + "# the end\n").replace(
        "\n", "\r\n"
    )
    path = PurePosixPath("manifests/all.yml")
    bay.put({XR: None, path: text})

    done = orderkit("change", bay.order, "stage=stage2", "--no-wait")

    assert done.code == 0, done.err
    assert bay.text(path) == text.replace("stage1", "stage2")


def test_an_unreadable_file_that_is_no_manifest_is_passed_over(orderkit: Command, bay: Bay) -> None:
    """Argo CD skips such a file too, so the order is as readable as before."""
    bay.put({PurePosixPath("manifests/notes.yaml"): "to do: [paint, tyres\n"})

    done = orderkit("change", bay.order, "stage=stage2", "--no-wait")

    assert done.code == 0, done.err
    assert bay.spec()["stage"] == "stage2"


def test_a_json_file_stays_json(orderkit: Command, bay: Bay) -> None:
    (xr,) = parse_manifests(str(XR), bay.text().encode())
    path = PurePosixPath("manifests/xgarage.json")
    bay.put({XR: None, path: json.dumps(xr, indent=4)})

    done = orderkit("change", bay.order, "stage=stage2", "guests+=eve", "--no-wait")

    assert done.code == 0, done.err
    xr["spec"] |= {"stage": "stage2", "guests": ["eve"]}
    assert json.loads(bay.text(path)) == xr


def test_an_item_of_a_list_is_edited_in_its_place(orderkit: Command, bay: Bay) -> None:
    xr = bay.text().partition("apiVersion: blog")[2]
    lines = f"apiVersion: blog{xr}".splitlines()
    items = "\n".join(["  - " + lines[0], *(f"    {line}" for line in lines[1:])])
    bay.put({XR: f"apiVersion: v1\nkind: List\nitems:\n{items}\n"})

    done = orderkit("change", bay.order, "stage=stage2", "--no-wait")

    assert done.code == 0, done.err
    assert '    stage: "stage2"' in bay.text().replace("'", '"')
