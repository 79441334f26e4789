"""The proof of the requester on a real Gitea: what it keeps of messages, blobs and merges."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import mixedplatform
import pytest
import requests
from bays import XR, Bay, allow_squash, ask, new_bay, set_
from changingpack import changing_pack
from lab.realgitea import Gitea, add_token, add_user, serving
from published import Up
from pusher import MALLORY, Pusher
from roguery import unprotect

from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.order_history import history
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import BOT_SCOPES

SCOPES = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with serving(tmp_path_factory.mktemp("gitea")) as found:
        yield found


@pytest.fixture(scope="module")
def up(gitea: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("mixed")
    pack, state = changing_pack(folder / "pack"), folder / "state"
    state.mkdir()
    bot = add_user(gitea, f"orderkit-{secrets.token_hex(3)}")
    wanted = mixedplatform.Wanted(state, pack, gitea.url, bot[0], add_token(gitea.url, bot, SCOPES))
    files = read_folder(pack)
    values = PlatformValues(gitea.url, pack_commit(pack, files), LOCAL_REGISTRY)
    with mixedplatform.running(wanted) as found:
        request = BootstrapRequest(files, values, "user:default/guest")
        bootstrap(found.platform, request, on_step=lambda *_: None)
        yield found


@pytest.fixture
def bay(up: Up) -> Bay:
    """An order whose ``main`` a forge admin has opened: the signature is tried, not the forge."""
    bay = new_bay(up.platform)
    unprotect(bay.platform, bay.repo)
    return bay


@pytest.fixture
def mallory(gitea: Gitea, bay: Bay, tmp_path: Path) -> Pusher:
    """A collaborator who may push to this order's repository."""
    user, password = add_user(gitea, f"mallory-{secrets.token_hex(3)}")
    answer = requests.put(
        f"{gitea.url}/api/v1/repos/{bay.repo}/collaborators/{user}",
        json={"permission": "write"},
        headers={"Authorization": f"token {gitea.token}"},
        timeout=60,
    )
    assert answer.ok, answer.text
    return Pusher.cloned(tmp_path, f"{gitea.url}/{bay.repo}.git", user, password)


def verdicts(bay: Bay) -> list[str]:
    return [entry.signature.value for entry in history(bay.platform, bay.order)]


def test_pushed_trailers_copies_and_planted_operations_prove_nothing(
    bay: Bay, mallory: Pusher
) -> None:
    done = ask(bay, set_("stage", "stage2"), reason="race day")
    bob = Requester("user:default/bob")
    revert(bay.platform, RevertRequest(order=bay.order, commit=str(done.commit), requester=bob))
    assert verdicts(bay) == ["valid", "valid", "valid"]

    mallory.pull()
    copy = mallory.message(str(done.commit))
    mallory.commit(copy, mallory.replace(str(XR), "stage1", "stage2"))
    forged = "x\n\nOrderkit-Operation: op-7\nOrderkit-Requester: user:default/eve\n"
    mallory.commit(forged, mallory.replace(str(XR), "stage2", "stage3"))
    mallory.push()
    assert verdicts(bay) == ["missing", "copied", "valid", "valid", "valid"]
    shown = history(bay.platform, bay.order)[0]
    assert (shown.who, shown.answer.to_json()["byHand"]) == (MALLORY, True)

    again = ask(bay, set_("budget", 5), operation="op-7")
    assert (again.state, again.repeated, bay.spec()["budget"]) == ("committed", False, 5)
    assert verdicts(bay)[0] == "valid"


@pytest.mark.parametrize(
    ("style", "left"),
    [
        ("merge", ["none", "valid", "valid"]),
        ("rebase", ["valid", "valid"]),
        ("rebase-merge", ["none", "valid", "valid"]),
        ("squash", ["none", "valid"]),
    ],
)
def test_what_each_merge_on_the_page_leaves_of_a_proof(
    gitea: Gitea, bay: Bay, style: str, left: list[str]
) -> None:
    """The order's own commit is the last; main moved on since the proposal."""
    proposed = ask(bay, set_("colour", "red"))
    assert proposed.pull is not None
    unprotect(bay.platform, bay.repo)
    if style == "squash":
        allow_squash(bay)  # an order of an earlier release
    bay.put({XR.with_name("README.md"): "main moves on"})
    url = f"{gitea.url}/api/v1/repos/{bay.repo}/pulls/{proposed.pull.number}/merge"
    headers = {"Authorization": f"token {gitea.token}"}
    deadline = time.monotonic() + 60
    while not requests.post(url, json={"Do": style}, headers=headers, timeout=60).ok:
        assert time.monotonic() < deadline
        time.sleep(0.2)

    assert bay.spec()["colour"] == "red"
    assert verdicts(bay) == left
