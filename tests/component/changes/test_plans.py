"""The plan of a change: what it says is what happens, and what it warns of is not done unasked."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
import yaml
from bays import TEAM, Bay, ask, new_bay, set_
from commands import Command

from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey
from orderkit.core.kit.kit_file import How
from orderkit.core.plan import Action, Plan
from orderkit.flows.change import Changed
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation

ROOT = Path(__file__).parents[3]


@pytest.fixture
def living(platform: Platform) -> Bay:
    """An order that is assembled, with a lift."""
    bay = new_bay(platform)
    _delivered(bay, ask(bay, set_("pit", {"lift": True})))
    return bay


def _delivered(bay: Bay, done: Changed) -> None:
    assert done.commit is not None
    assert await_commit(bay.platform, bay.order, done.commit, timeout_s=180).ready


def _plan(done: Changed) -> Plan:
    assert done.change_plan is not None
    assert done.change_plan.plan is not None, done.change_plan.why_not
    return done.change_plan.plan


def _sheet(bay: Bay) -> Manifest | None:
    key = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{bay.name}")
    return get_object(bay.platform.cluster, key)


def test_what_was_planned_is_what_happens(living: Bay) -> None:
    done = ask(living, set_("stage", "stage3"))

    plan = _plan(done)
    _delivered(living, done)
    found = _sheet(living)

    assert [(each.path, each.action) for each in plan.changes] == [("spec-sheet", Action.CHANGED)]
    assert plan.after.ready
    assert not plan.unknowns
    assert found is not None
    wanted = plan.after.resources["spec-sheet"]
    assert found["data"] == wanted["data"] == {"stage": "stage3", "team": living.name}
    assert found["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"]


def test_a_change_that_deletes_data_is_refused_until_it_is_meant(living: Bay) -> None:
    head = living.head

    with pytest.raises(RefusedError, match=f"lift-{living.name} is deleted: everything in it"):
        ask(living, set_("pit.lift", value=False))

    assert living.head == head
    done = ask(living, set_("pit.lift", value=False), accept_loss=True)
    _delivered(living, done)
    room = ObjectKey(NAMESPACE, f"lift-{living.name}")
    until(
        living.platform.clock, lambda: get_object(living.platform.cluster, room),
        lambda seen: seen is None, timeout_s=90, goal="the lift's room going",
    )  # fmt: skip


def test_a_dry_run_shows_the_loss_and_is_not_refused(living: Bay) -> None:
    done = ask(living, set_("pit.lift", value=False), dry_run=True)

    assert [danger.code for danger in _plan(done).dangers] == ["data-loss"]


def test_what_would_be_refused_is_committed_only_where_that_is_asked_for(living: Bay) -> None:
    ask(living, set_("pit.lift", value=False), accept_loss=True)
    head, breaking = living.head, set_("pit.bays", 99)

    with pytest.raises(RefusedError, match="99 bays need a lift") as refused:
        ask(living, breaking)
    tried = ask(living, breaking, dry_run=True)
    proposed = ask(living, breaking, how=How.REVIEW)
    assert living.head == head

    assert refused.value.hint is not None
    assert "--direct" in refused.value.hint
    assert [fault.message for fault in _plan(tried).faults]
    assert proposed.pull is not None
    done = ask(living, breaking, how=How.DIRECT)
    mended = ask(living, set_("pit.bays", 98))
    assert (done.state, mended.state) == ("committed", "committed")


def test_a_pull_request_carries_its_plan(living: Bay) -> None:
    done = ask(living, set_("stage", "stage2"), how=How.REVIEW)

    assert done.pull is not None
    assert "**Plan: 1 changed, 2 unchanged.** The order is Ready in the end." in done.pull.body
    assert f"ConfigMap garage-{living.name}/spec-sheet" in done.pull.body
    assert "| `data.stage` | `stage1` | `stage2` |" in done.pull.body


def test_the_command_tells_the_plan_and_ends_with_what_it_means(
    orderkit: Command, living: Bay
) -> None:
    same = orderkit("plan", living.order, "stage=stage1")
    other = orderkit("plan", living.order, "stage=stage2")
    broken = orderkit("plan", living.order, "pit.lift=false", "pit.bays=99")

    assert (same.code, other.code, broken.code) == (0, 10, 4)
    assert f"{living.order}: 3 unchanged" in same.out
    assert "~ ConfigMap" in other.out
    assert "data.stage stage1 → stage2" in other.out
    assert "99 bays need a lift" in broken.out


def test_the_command_gives_the_structured_shape(orderkit: Command, living: Bay) -> None:
    done = orderkit("plan", living.order, "stage=stage2", "--json")

    assert done.json["schema"] == "orderkit.plan/v1"
    assert done.json["summary"] == {"added": 0, "modified": 1, "removed": 0}
    assert done.json["changes"][0]["diff"]["new"]["data"]["stage"] == "stage2"
    assert done.json["plan"]["resources"][0]["path"] == "spec-sheet"


def test_two_commits_and_a_branch_can_be_planned(orderkit: Command, living: Bay) -> None:
    before = living.head
    _delivered(living, ask(living, set_("stage", "stage2")))
    proposed = ask(living, set_("stage", "stage3"), how=How.REVIEW)
    assert proposed.pull is not None

    back = orderkit("plan", living.order, "--base", "main", "--head", before)
    pull = orderkit("plan", living.order, "--head", proposed.pull.head)

    assert "data.stage stage2 → stage1" in back.out
    assert "data.stage stage2 → stage3" in pull.out


def test_a_whole_file_can_be_planned(orderkit: Command, living: Bay, tmp_path: Path) -> None:
    xr = yaml.safe_load(living.text())
    xr["spec"]["stage"] = "stage3"
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(xr))
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**xr, "metadata": {"name": "another"}}))

    assert "data.stage stage1 → stage3" in orderkit("plan", living.order, "--file", str(file)).out
    refused = orderkit("plan", living.order, "--file", str(other))
    assert refused.code == RefusedError.exit_code
    assert "an XR of another name or kind is another order" in refused.err


def test_without_the_cluster_the_plan_says_what_it_lacks(orderkit: Command, living: Bay) -> None:
    done = orderkit("plan", living.order, "stage=stage2", "--offline", "--json")

    assert done.code == 10
    assert "the cluster was not asked" in done.json["plan"]["unknowns"][0]
    assert done.json["plan"]["resources"][0]["path"] == "spec-sheet"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "one of them"),
        (("stage=stage2", "--head", "main"), "one of them"),
        (("stage=stage2", "--base", "main"), "--base goes with --head"),
        (("stage=stage9",), "supported values"),
        (("--head", "deadbeef"), "deadbeef"),
    ],
)
def test_what_cannot_be_planned_is_said(
    orderkit: Command, quiet_bay: Bay, arguments: tuple[str, ...], told: str
) -> None:
    done = orderkit("plan", quiet_bay.order, *arguments)

    assert done.code not in (0, 10)
    assert told in done.err


def test_a_branch_that_does_not_exist_is_named_with_those_that_do(
    orderkit: Command, bay: Bay
) -> None:
    proposed = ask(bay, set_("colour", "red"), how=How.REVIEW).pull
    assert proposed is not None

    done = orderkit("plan", bay.order, "--head", "no-branch")

    assert done.code == InvalidInputError.exit_code
    url = f"{bay.platform.forge.base_url}/{bay.repo}.git"
    assert done.err == (
        f"error: head: 'no-branch' is no branch of {bay.repo}\n"
        f"hint:  open pull requests: {proposed.head} (#{proposed.number});"
        f" all branches: git ls-remote --heads {url}\n"
    )


def test_the_graph_is_drawn_into_a_file(orderkit: Command, quiet_bay: Bay, tmp_path: Path) -> None:
    for name, begins in (("a.svg", "<svg "), ("a.mmd", "flowchart LR"), ("a.md", "```mermaid")):
        done = orderkit(
            "plan", quiet_bay.order, "stage=stage2", "--offline", "--graph", str(tmp_path / name)
        )
        assert done.code == 10, done.err
        assert (tmp_path / name).read_text().startswith(begins)

    refused = orderkit("plan", quiet_bay.order, "stage=stage2", "--graph", "a.png")
    assert refused.code == 2
    assert "plan.svg, plan.mmd or plan.md" in refused.err


def test_the_outcome_is_judged_by_schemas_of_a_folder(
    orderkit: Command, quiet_bay: Bay, tmp_path: Path
) -> None:
    stage = {"type": "object", "properties": {"stage": {"enum": ["stage1"]}, "team": {}}}
    schema = {"type": "object", "properties": {"data": stage}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "configmaps"},
        "spec": {
            "group": "",
            "scope": "Namespaced",
            "names": {"kind": "ConfigMap", "plural": "configmaps"},
            "versions": [version],
        },
    }
    (tmp_path / "configmaps.yaml").write_text(yaml.safe_dump(crd))
    folder = ("--schemas", str(tmp_path))

    done = orderkit("plan", quiet_bay.order, "stage=stage2", *folder)
    data = orderkit("plan", quiet_bay.order, "stage=stage2", *folder, "--json")
    text = orderkit("plan", quiet_bay.order, "stage=stage2", *folder, "--markdown")

    assert done.code == 4
    told = 'ConfigMap: Unsupported value: "stage2": supported values: "stage1"'
    assert f"refused     spec-sheet.data.stage: {told}" in done.out
    assert data.json["plan"]["faults"][0]["field"] == "data.stage"
    assert data.json["errors"][0]["validationFailures"][0]["name"] == "spec-sheet"
    assert "It would be refused:" in text.out
    (tmp_path / "configmaps.yaml").write_text("a: [1")
    assert "cannot be read" in orderkit("plan", quiet_bay.order, "stage=stage2", *folder).err


def test_a_name_that_something_else_has_is_a_fault(orderkit: Command, platform: Platform) -> None:
    bay = new_bay(platform)
    tracking = {"argocd.argoproj.io/tracking-id": "lifts:/Namespace:lift"}
    room = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"lift-{bay.name}", "annotations": tracking},
    }
    platform.cluster.create(room, owner="somebody")

    done = orderkit("plan", bay.order, "pit.lift=true")

    assert done.code == 4
    assert "is delivered by Application lifts" in done.out


def test_what_belongs_to_nobody_is_taken_over_and_that_is_told(
    orderkit: Command, platform: Platform
) -> None:
    bay = new_bay(platform)
    room = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"lift-{bay.name}"}}
    platform.cluster.create(room, owner="somebody")

    done = orderkit("plan", bay.order, "pit.lift=true")

    assert done.code == 10
    assert "exists and has no owner" in done.out
    assert "(adopts)" in done.out


def test_what_a_team_may_not_have_is_a_fault_of_a_whole_file(
    orderkit: Command, platform: Platform, tmp_path: Path
) -> None:
    bay = new_bay(platform)
    xr = yaml.safe_load(bay.text())
    xr["spec"]["stage"] = "stage3"
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(xr))
    bound = ("garage.stage=stage2", "garage.stage")
    assert orderkit("team", "change", TEAM, "--limit", bound[0]).code == 0
    try:
        done = orderkit("plan", bay.order, "--file", str(file))
    finally:  # other tests change orders of the same team
        assert orderkit("team", "change", TEAM, "--no-limit", bound[1]).code == 0

    assert done.code == 4
    assert f"above the limit of team {TEAM}" in done.out


def test_the_packs_own_prices_are_taken_and_a_broken_table_stops_no_plan(
    orderkit: Command, bay: Bay, tmp_path: Path
) -> None:
    table = (ROOT / "gitops" / "prices.example.yaml").read_text()
    forge, pack = bay.platform.forge, bay.platform.pack_repo
    path = PurePosixPath("gitops", "prices.yaml")

    def published(text: str | None) -> None:
        seen = forge.read(pack, path, "main")
        data = None if text is None else text.encode()
        change = FileChange(path, data, seen.sha if seen else None)
        forge.write(pack, [change], Operation(f"prices-{len(text or '')}", "user:default/t", "p"))

    try:
        published(table)
        own = orderkit("plan", bay.order, "stage=stage3", "--json")
        published(table.replace("currency: EUR", "currency: EURO"))
        broken = orderkit("plan", bay.order, "stage=stage3", "--json")
    finally:
        published(None)
    file = tmp_path / "prices.yaml"
    file.write_text(table.replace("'110.00'", "'111.11'"))
    given = orderkit("plan", bay.order, "stage=stage3", "--prices", str(file))
    file.write_text(table.replace("'110.00'", "1e400"))
    refused = orderkit("plan", bay.order, "stage=stage3", "--prices", str(file))

    assert own.json["plan"]["costs"]["monthly"]["difference"] == "70"
    assert broken.code == 10
    assert broken.json["plan"]["costs"] is None
    assert any("costs are not known" in text for text in broken.json["plan"]["unknowns"])
    assert "40.00 → 111.11 EUR a month (+71.11)" in given.out
    assert refused.code == 2
    assert "price" in refused.err
    assert orderkit("plan", bay.order, "stage=stage3", "--json").json["plan"]["costs"] is None


def test_a_change_that_cannot_be_planned_is_proposed_and_says_why(
    orderkit: Command, bay: Bay
) -> None:
    """For example, somebody broke the pack's Composition a minute ago."""
    forge, pack = bay.platform.forge, bay.platform.pack_repo
    path = PurePosixPath("gitops", "apis", "garage", "composition.yaml")

    def published(data: bytes) -> bytes:
        seen = forge.read(pack, path, "main")
        assert seen is not None
        operation = Operation(f"composition-{seen.sha}", "user:default/t", "p")
        forge.write(pack, [FileChange(path, data, seen.sha)], operation)
        return seen.data

    sound = published(b"{")
    try:
        done = orderkit("change", bay.order, "stage=stage2", "--pr", "--json")
    finally:
        published(sound)

    assert (done.code, done.json["state"]) == (0, "proposed"), done.err
    assert "composition.yaml" in done.json["planWhyNot"]
    (pull,) = forge.pulls(bay.repo)
    assert f"No plan: {done.json['planWhyNot']}" in pull.body


def test_a_change_of_a_paused_order_is_refused_before_the_commit(
    orderkit: Command, platform: Platform, bay: Bay
) -> None:
    """A commit would wait for nothing; whoever wants it says so."""
    xr = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), bay.order)
    paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    until(
        platform.clock, lambda: platform.cluster.get(xr), bool,
        timeout_s=100, goal="the order being delivered",
    )  # fmt: skip
    platform.cluster.patch(xr, paused, owner="admin")
    before = platform.forge.head(bay.repo)

    refused = orderkit("change", bay.order, "note=waits")

    assert refused.code == 4
    assert f'{bay.order}: XGarage {bay.order} is paused (crossplane.io/paused: "true" in the ' in (
        refused.err
    )
    assert "nothing of this happens until it is resumed" in refused.err
    assert "--direct --no-wait (how: direct) commits it" in refused.err
    assert platform.forge.head(bay.repo) == before

    accepted = orderkit("change", bay.order, "note=waits", "--direct", "--timeout", "100")

    assert accepted.code == 5
    assert f"{bay.order}: becoming Ready at " in accepted.err
    assert "does not happen: Attention: XGarage" in accepted.err
    assert platform.forge.head(bay.repo) != before
