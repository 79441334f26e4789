"""
Changes of living orders with a real Gitea as the forge: a share of what the component tests do.

Everything else is embedded, as in ``test_real_gitea_orders``; the user is an ordinary one.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mixedplatform
import pytest
import requests
from bays import XR, Bay, allow_squash, ask, new_bay, set_
from changingcrowd import Crowd
from changingpack import changing_pack
from faultproxy import FAULTS_OF_A_BAD_LINE, Seeded, open_proxy
from lab.realgitea import Gitea, add_token, add_user, serving
from published import Up
from pullhand import Hand
from roguery import deliver_main

from ground.errors import ConflictError
from ground.names import CommitSha
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import token
from orderkit.cli.main import run
from orderkit.core.order.change import FieldConflictError, FieldEdit
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.change.review_judging import ReviewVerdict
from orderkit.flows.change.reviewing import merge_unreviewed, set_review_status
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_history import history
from orderkit.flows.repeating import until
from orderkit.ports.forge import MergeStyle, Operation, PullRequest
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import BOT_SCOPES

if TYPE_CHECKING:
    from chances import Chances

SCOPES = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)
READY_S = 180.0


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    """A real Gitea of our own: two platforms on one would share their two repositories."""
    with serving(tmp_path_factory.mktemp("gitea")) as found:
        yield found


@pytest.fixture(scope="module")
def up(gitea: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A bootstrapped platform on the real Gitea whose garage has fields to change."""
    folder = tmp_path_factory.mktemp("mixed")
    pack = changing_pack(folder / "pack")
    bot = add_user(gitea, f"orderkit-{secrets.token_hex(3)}")
    state = folder / "state"
    state.mkdir()
    token = add_token(gitea.url, bot, SCOPES)
    wanted = mixedplatform.Wanted(state, pack, gitea.url, bot[0], token)
    files = read_folder(pack)
    values = PlatformValues(gitea.url, pack_commit(pack, files), LOCAL_REGISTRY)
    with mixedplatform.running(wanted) as found:
        request = BootstrapRequest(files, values, "user:default/guest")
        bootstrap(found.platform, request, on_step=lambda *_: None)
        yield found


@pytest.fixture
def bay(up: Up) -> Bay:
    return new_bay(up.platform)


def merge(bay: Bay, pull: PullRequest, style: MergeStyle, *, deadline_s: float = 30.0) -> None:
    if style is MergeStyle.SQUASH:
        allow_squash(bay)
    by_hand = Operation(f"merge-{pull.number}", "user:default/boss", f"Merge #{pull.number}")
    merge_unreviewed(bay.platform, bay.repo, pull, by_hand, style=style, deadline_s=deadline_s)


def test_a_direct_change_is_ready_and_reverted_and_told(bay: Bay) -> None:
    done = ask(bay, set_("stage", "stage2"), reason="race day")
    assert done.commit is not None
    assert await_commit(bay.platform, bay.order, done.commit, timeout_s=READY_S).ready

    back = revert(
        bay.platform,
        RevertRequest(order=bay.order, commit=done.commit, requester=Requester("user:default/b")),
    )

    assert (back.state, bay.spec()["stage"]) == ("committed", "stage1")
    newest, change, order = history(bay.platform, bay.order)
    assert [str(found) for found in newest.fields] == ["stage stage2 → stage1"]
    assert change.who == "user:default/eve"
    assert change.commit.author
    assert order.first


def test_a_field_that_somebody_changed_is_a_conflict_with_both_values(bay: Bay) -> None:
    base = bay.head
    theirs = bay.edit("stage1", "stage3")

    with pytest.raises(FieldConflictError) as caught:
        ask(bay, set_("stage", "stage2"), base=base)

    (found,) = caught.value.conflicts
    assert (found.base, found.now, found.commit) == ("stage1", "stage3", theirs)


def test_an_operation_changes_nothing_twice(bay: Bay) -> None:
    edit = FieldEdit("budget", "add", 5)
    first = ask(bay, edit, operation="op-1")

    again = ask(bay, edit, operation="op-1")

    assert (again.commit, again.repeated, bay.spec()["budget"]) == (first.commit, True, 5)


def rebase(gitea: Gitea, up: Up, bay: Bay, pull: PullRequest) -> None:
    """Merge as an owner of the organisation does who chooses a rebase on the forge's page."""
    set_review_status(up.platform.forge, bay.repo, pull, ReviewVerdict(("boss",)))
    url = f"{gitea.url}/api/v1/repos/{bay.repo}/pulls/{pull.number}/merge"
    headers = {"Authorization": f"token {token(up.settings.forge)}"}
    deadline = time.monotonic() + 30
    while not requests.post(url, json={"Do": "rebase"}, headers=headers, timeout=60).ok:
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("style", [MergeStyle.MERGE, MergeStyle.SQUASH, None])
def test_a_proposal_is_updated_replaced_merged_and_found_again(
    gitea: Gitea, up: Up, bay: Bay, style: MergeStyle | None
) -> None:
    first = ask(bay, set_("colour", "red")).pull
    updated = ask(bay, set_("colour", "blue")).pull
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  motto: slow')
    replaced = ask(bay, set_("colour", "green"), operation="op-1").pull
    assert first is not None
    assert updated is not None
    assert replaced is not None

    if style is None:
        rebase(gitea, up, bay, replaced)
    else:
        merge(bay, replaced, style)

    assert (updated.number, replaced.number > first.number) == (first.number, True)
    assert list(bay.platform.forge.pulls(bay.repo)) == []
    assert bay.spec().items() >= {"colour": "green", "motto": "slow"}.items()
    again = ask(bay, set_("colour", "green"), operation="op-1")
    assert (again.state, again.repeated) == ("committed", True)


def test_merged_out_of_order_the_earlier_one_conflicts(bay: Bay) -> None:
    early = ask(bay, set_("colour", "red"), requester=Requester("user:default/ann")).pull
    late = ask(bay, set_("colour", "green"), requester=Requester("user:default/bob")).pull
    assert early is not None
    assert late is not None

    merge(bay, late, MergeStyle.MERGE)

    with pytest.raises(ConflictError):
        merge(bay, early, MergeStyle.MERGE, deadline_s=5)
    assert bay.spec()["colour"] == "green"


def test_gitea_tells_of_a_pull_request_by_hand_and_it_gets_its_plan(up: Up, bay: Bay) -> None:
    """One comment that follows the branch, and a status on each head; the real deliveries."""
    hand = Hand(up.settings, bay)
    registering = ["platform", "webhook", "--repository", str(bay.repo)]
    assert run([*registering, "--platform", str(up.state / PLATFORM_FILE)]) == 0
    pull = hand.edits("stage1", "stage2")
    assert _stated(hand, pull.head_commit) == "success"
    (first,) = hand.comments(pull)

    later = bay.edit("stage2", "stage9", branch=pull.head)
    assert _stated(hand, later) == "failure"
    (second,) = hand.comments(pull)

    assert "| `data.stage` | `stage1` | `stage2` |" in first["body"]
    assert second["id"] == first["id"]
    assert later[:7] in second["body"]
    assert "supported values" in second["body"].lower()


def test_gitea_tells_that_main_moved_on_and_what_is_open_gets_another_plan(
    up: Up, bay: Bay
) -> None:
    """What could be merged is in conflict then, and its status says so without a push to it."""
    hand = Hand(up.settings, bay)
    registering = ["platform", "webhook", "--repository", str(bay.repo)]
    assert run([*registering, "--platform", str(up.state / PLATFORM_FILE)]) == 0
    pull = hand.edits("stage1", "stage3")
    assert _stated(hand, pull.head_commit) == "success"

    bay.edit("stage1", "stage2")

    assert _stated(hand, pull.head_commit, but="success") == "failure"


def test_a_pull_request_from_a_fork_is_planned_by_the_command(
    up: Up, bay: Bay, gitea: Gitea, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = add_user(gitea, f"stranger-{secrets.token_hex(3)}")
    number = _from_fork(gitea, bay, stranger, bay.text().replace("stage1", "stage3"))
    bay.edit('stage: "stage1"', 'stage: "stage1"\n  note: meanwhile')  # and main goes on
    asked = ["plan", "--pr", f"{bay.repo}#{number}", "--json"]

    code = run([*asked, "--platform", str(up.state / PLATFORM_FILE)])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["pull"]["state"]) == (10, "success")
    assert [each["field"] for each in told["plan"]["fields"]] == ["stage"]
    hand = Hand(up.settings, bay)
    status = hand.status(told["pull"]["head"])
    assert status is not None
    assert status.state == "success"
    pull = up.platform.forge.pull(bay.repo, number)
    assert pull is not None
    assert len(hand.comments(pull)) == 1


def _from_fork(gitea: Gitea, bay: Bay, stranger: tuple[str, str], text: str) -> int:
    """Open a pull request from a stranger's fork; return its number."""
    api, fork = f"{gitea.url}/api/v1/repos", f"{stranger[0]}/{bay.repo.name}"

    def call(method: str, path: str, body: object = None) -> Any:
        url = f"{api}/{path}"
        answer = requests.request(method, url, json=body, auth=stranger, timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    call("POST", f"{bay.repo}/forks", {})
    seen = call("GET", f"{fork}/contents/{XR}")
    content = base64.b64encode(text.encode()).decode()
    change = {"sha": seen["sha"], "content": content, "new_branch": "mine", "message": "mine"}
    call("PUT", f"{fork}/contents/{XR}", change)
    draft = {"head": f"{stranger[0]}:mine", "base": "main", "title": "From a fork"}
    return int(call("POST", f"{bay.repo}/pulls", draft)["number"])


def _stated(hand: Hand, commit: CommitSha, *, but: str = "") -> str:
    """Wait for the status of a commit, or for another one than it has."""
    found = until(
        hand.bay.platform.clock,
        lambda: hand.status(commit),
        lambda seen: seen is not None and seen.state != but,
        timeout_s=READY_S,
        goal="the status",
    )
    assert found is not None
    return found.state


def test_every_acknowledged_change_is_there_once_and_every_conflict_is_true(
    up: Up, bay: Bay, tmp_path: Path, chances: Chances
) -> None:
    straight = up.state / PLATFORM_FILE
    with open_proxy(up.settings.forge.url) as proxy:
        bad = straight.with_name("behind-a-bad-line.yaml")
        bad.write_text(straight.read_text().replace(up.settings.forge.url, proxy.url))
        faults = chances.random("chaos on Gitea")
        proxy.plan = Seeded(faults, FAULTS_OF_A_BAD_LINE, write_rate=0.2, read_rate=0.02)
        crowd = Crowd(
            bay, [straight, bad], tmp_path, chances.seed,
            wishes_each=chances.count(2, 20), kills=chances.count(1, 20),
            people=chances.count(3, 8),
        )  # fmt: skip
        crowd.run(deadline_s=chances.count(550, 3000))

    crowd.judge()
    print(dict(sorted(crowd.counts.items())))  # noqa: T201  shown with -rP
    deliver_main(up.platform, bay.repo)  # the last to write may have been a hand
    state = await_commit(up.platform, bay.order, bay.head, timeout_s=READY_S)
    assert state.ready
