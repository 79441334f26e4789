"""What a newcomer meets with kits of their own: namespaced orders, teams that lack a kit."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bays import XR
from commands import Command, in_process

from ground.errors import RefusedError
from ground.names import CommitSha, OrderId, RepoId
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.main import run
from orderkit.core.order.change.conflicts import FieldConflict, FieldConflictError
from orderkit.flows.team.teams import add_team, remove_team
from orderkit.ports.forge import FileChange, Operation, PullDraft
from orderkit.web.exchange import Refusal
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

DISK_XR = XR.with_name("xdisk.yaml")
DISK = RepoId("rx7", "disk-one")
SPECS = ("sizeGb:integer:default=20", "tier:string:enum=basic|fast", "label:string:optional")
FIELDS = [argument for spec in SPECS for argument in ("--field", spec)]


def kit_new(pack: Path, name: str, scope: str) -> None:
    arguments = ["kit", "new", name, "--pack", str(pack), "--scope", scope, *FIELDS, "--no-input"]
    assert run(arguments) == 0


@pytest.fixture(scope="module")
def own_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack as `init` and `kit new` make it, with a namespaced kit."""
    pack = tmp_path_factory.mktemp("newcomer") / "my-pack"
    assert run(["init", str(pack)]) == 0
    kit_new(pack, "disk", "namespaced")
    committing = ("-c", "user.name=hand", "-c", "user.email=hand@example.org", "commit", "-qm", "x")
    for command in (("add", "--all"), committing):
        subprocess.run(["git", "-C", pack, *command], check=True, timeout=60)
    return pack


@pytest.fixture(scope="module")
def site(own_pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform that serves the pack, started twice; team cv is older than its kit bucket."""
    state = tmp_path_factory.mktemp("newcomer-state") / "state"
    request = EmbeddedRunRequest(state, own_pack, Ports(0, 0, 0, 0), ("rx7", "gone"))
    with running(request, on_step=lambda *_: None) as first:
        add_team(first.platform, "cv", requester="user:default/hand")
        remove_team(first.platform, "gone", requester="user:default/hand")
    kit_new(own_pack, "bucket", "cluster")
    later = EmbeddedRunRequest(state, own_pack, Ports(0, 0, 0, 0), ())
    with running(later, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture(scope="module")
def disk(site: Running) -> Running:
    """Order disk-one; its XR in Git has no namespace, as the form writes it."""
    platform_file = str(site.embedded.state.folder / "platform.yaml")
    values = ["name=one", "team=rx7", "tier=basic"]
    assert run(["order", "disk", *values, "--platform", platform_file]) == 0
    revision = site.platform.forge.read(DISK, DISK_XR, "main")
    assert revision is not None
    assert "namespace" not in revision.text
    return site


def pushed(site: Running, branch: str, old: str, new: str) -> int:
    """Open a pull request by hand that replaces a piece of disk-one's XR; return its number."""
    forge = site.platform.forge
    head, revision = forge.head(DISK), forge.read(DISK, DISK_XR, "main")
    assert head is not None
    assert revision is not None
    assert old in revision.text
    forge.ensure_branch(DISK, branch, head)
    file = FileChange(DISK_XR, revision.text.replace(old, new).encode(), revision.sha)
    by_hand = Operation(branch, "user:default/hand", "by hand")
    forge.write(DISK, [file], by_hand, branch=branch)
    return forge.open_pull(DISK, PullDraft("By hand", "", branch, "main"), by_hand).number


@pytest.mark.usefixtures("disk")
class TestANamespacedOrder:
    """Argo CD applies its XR in the Application's namespace, and so does every plan."""

    def test_is_planned_where_it_lives(self, orderkit: Command) -> None:
        done = orderkit("plan", "disk-one", "sizeGb=5", "--json")

        assert done.code == 10, done.out + done.err
        assert "does not have this order yet" not in done.out
        assert "has no namespace" not in done.out

    def test_is_planned_from_a_file_without_a_namespace(
        self, orderkit: Command, disk: Running, tmp_path: Path
    ) -> None:
        revision = disk.platform.forge.read(DISK, DISK_XR, "main")
        assert revision is not None
        file = tmp_path / "xdisk.yaml"
        file.write_text(revision.text.replace("basic", "fast"))

        done = orderkit("plan", "disk-one", "--file", str(file))

        assert (done.code, "has no namespace" in done.out) == (10, False), done.out + done.err

    def test_is_planned_from_a_snapshot(
        self, orderkit: Command, disk: Running, own_pack: Path, tmp_path: Path
    ) -> None:
        snapshot, file = tmp_path / "snapshot.json", tmp_path / "xdisk.yaml"
        revision = disk.platform.forge.read(DISK, DISK_XR, "main")
        assert revision is not None
        file.write_text(revision.text.replace("basic", "fast"))
        assert orderkit("plan", "disk-one", "tier=fast", "--record", str(snapshot)).code == 10

        source = ("--snapshot", str(snapshot), "--pack", str(own_pack))
        done = orderkit("plan", "disk-one", "--file", str(file), *source)

        assert (done.code, "has no namespace" in done.out) == (10, False), done.out + done.err

    def test_gets_a_plan_of_its_pull_requests(self, orderkit: Command, disk: Running) -> None:
        number = pushed(disk, "by-hand-fast", "basic", "fast")

        done = orderkit("plan", "--pull-request", f"{DISK}#{number}", "--no-post")

        assert done.code == 10, done.out + done.err
        assert "basic" in done.out
        assert "has no namespace" not in done.out

    def test_may_name_the_namespace_that_it_lives_in(
        self, orderkit: Command, disk: Running
    ) -> None:
        number = pushed(disk, "by-hand-same", "metadata:", "metadata:\n  namespace: team-rx7")

        done = orderkit("plan", "--pull-request", f"{DISK}#{number}", "--no-post")

        assert done.code == 0, done.out + done.err

    def test_may_not_move_to_another_namespace(self, orderkit: Command, disk: Running) -> None:
        number = pushed(disk, "by-hand-moves", "metadata:", "metadata:\n  namespace: team-cv")

        done = orderkit("plan", "--pull-request", f"{DISK}#{number}", "--no-post")

        assert done.code == 4, done.out + done.err
        assert "metadata.namespace is 'team-cv', not 'team-rx7'" in done.out

    def test_is_part_of_a_fleet_plan_of_the_cluster_and_of_git(
        self, orderkit: Command, own_pack: Path
    ) -> None:
        for offline in ((), ("--offline",)):
            done = orderkit("plan", "--kit", "disk", "--pack", str(own_pack), "--json", *offline)

            assert done.code == 0, done.out + done.err
            assert "has no namespace" not in done.out

    def test_is_planned_from_files_that_do_not_say_where_they_go(
        self, orderkit: Command, disk: Running, own_pack: Path, tmp_path: Path
    ) -> None:
        revision = disk.platform.forge.read(DISK, DISK_XR, "main")
        assert revision is not None
        (tmp_path / "xdisk.yaml").write_text(revision.text)

        done = orderkit("plan", "--kit", "disk", "--pack", str(own_pack), "--xrs", str(tmp_path))

        assert "has no namespace" not in done.out
        assert "planned as in 'default'" in done.out, done.out + done.err


def test_another_pack_in_the_same_state_folder_is_refused_at_once(
    own_pack: Path, tmp_path: Path
) -> None:
    """Who went through "Your first order" begins the tutorial: nothing would ever be ready."""
    state, ports = tmp_path / "state", Ports(0, 0, 0, 0)
    with running(EmbeddedRunRequest(state, reference_pack(), ports, ()), on_step=lambda *_: None):
        pass
    steps: list[str] = []
    other = EmbeddedRunRequest(state, own_pack, ports, ())

    with (
        pytest.raises(RefusedError) as caught,
        running(other, on_step=lambda *step: steps.append(step[0])),
    ):
        pass

    assert "holds pack 'reference' with garage; pack 'my-pack' would replace it" in str(
        caught.value
    )
    assert "XDG_STATE_HOME" in caught.value.hint
    assert steps == ["platform"], "nothing was published"


def test_a_restart_adds_no_team_and_brings_none_back(orderkit: Command) -> None:
    assert orderkit("team", "list", "--json").json["teams"] == ["cv", "rx7"]


def test_a_kit_that_the_team_was_not_given_is_refused_with_the_remedy(
    orderkit: Command, site: Running
) -> None:
    """The team's AppProject is older than the kit; its name is as short as `team add` allows."""
    done = orderkit("order", "bucket", "name=one", "team=cv", "tier=basic")

    assert done.code == 4, done.out + done.err
    assert "team cv was not given kit 'bucket'" in done.err
    assert "orderkit team add cv" in done.err
    assert site.platform.forge.head(RepoId("cv", "bucket-one")) is None, "nothing was written"

    assert orderkit("team", "add", "cv").code == 0
    assert orderkit("order", "bucket", "name=one", "team=cv", "tier=basic").code == 0


def test_a_kit_that_the_team_may_not_order_names_the_whole_command(orderkit: Command) -> None:
    assert orderkit("team", "add", "kits", "--kit", "disk").code == 0

    done = orderkit("order", "bucket", "name=two", "team=kits", "tier=basic")

    assert done.code == 4, done.out + done.err
    assert "orderkit team change kits --kit disk --kit bucket" in done.err


@pytest.mark.usefixtures("disk")
def test_ordering_again_says_what_was_ordered(orderkit: Command) -> None:
    """The order may have other values by now."""
    again = orderkit("order", "disk", "name=one", "team=rx7", "tier=basic")
    other = orderkit("order", "disk", "name=one", "team=rx7", "tier=fast")

    assert "disk-one was ordered already with these values" in again.out, again.err
    assert "tier was 'basic', asked for 'fast'" in other.err
    assert "hint:  orderkit change disk-one tier=fast\n" in other.err


@pytest.mark.usefixtures("disk")
def test_the_change_that_a_hint_names_is_quoted_for_the_shell(orderkit: Command) -> None:
    label = "it's $HOME; rm"

    again = orderkit("order", "disk", "name=one", "team=rx7", "tier=basic", f"label={label}")

    typed = again.err.partition("hint:  ")[2]
    assert shlex.split(typed) == ["orderkit", "change", "disk-one", f"label={label}"]


def test_a_member_who_is_no_user_of_the_forge_is_refused_with_a_way_out(orderkit: Command) -> None:
    done = orderkit("team", "add", "cv", "--member", "alice")

    assert done.code == 1, done.out
    assert "there is no user alice" in done.err
    assert "orderkit up --user NAME=TEAM" in done.err


@pytest.mark.parametrize(
    ("command", "way_out"),
    [(["kit", "check"], "orderkit init DIR"), (["kit", "import", "no.yaml"], "check the path")],
)
def test_a_missing_pack_or_file_has_a_hint(
    command: list[str],
    way_out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(command) != 0
    assert way_out in capsys.readouterr().err


@pytest.mark.usefixtures("disk")
def test_a_proposal_names_the_command_that_merges_it(orderkit: Command) -> None:
    """The embedded forge has no page that merges."""
    done = orderkit("change", "disk-one", "sizeGb=7", "--pr")

    assert done.code == 0, done.err
    number = done.out.partition("/pulls/")[2].split()[0]
    assert f"orderkit merge disk-one {number}" in done.out
    assert orderkit("merge", "disk-one", number).code == 0


@pytest.mark.usefixtures("site")
def test_a_finding_about_a_file_of_two_kits_is_told_once(
    own_pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kit", "check", "--pack", str(own_pack)]) == 0

    lines = [line for line in capsys.readouterr().out.splitlines() if "has no digest" in line]
    assert len(lines) == len(set(lines)) > 0


def test_kits_without_a_scenario_fail_the_test(own_pack: Path) -> None:
    folder = own_pack / "tests" / "kits"
    folder.rename(own_pack / "kits-aside")
    try:
        code = run(["kit", "test", "--pack", str(own_pack)])
    finally:
        (own_pack / "kits-aside").rename(folder)

    assert code == 1


def test_a_hint_for_a_form_names_no_option_of_the_command_line() -> None:
    conflict = FieldConflict("sizeGb", 1, 2, 3, None, "", "")
    error = FieldConflictError(OrderId("disk-one"), [conflict], CommitSha("0123456789"))

    refusal = Refusal.of(error)

    assert "--" not in str(refusal.error.to_json())
    assert "START OVER" in refusal.error.hint
    assert "--base 01234567" in error.hint
