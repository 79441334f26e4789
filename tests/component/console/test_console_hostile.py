"""Words of a stranger's push are text, on every page and in the terminal, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bays import Bay
from commands import in_process
from consolebrowser import Browser
from pusher import Pusher
from tests.component.console.conftest import Site
from tests.component.console.test_console_pages import until

from ground.errors import EXIT_DIFFERS
from orderkit.cli.connecting import token
from orderkit.core.order.order_state import short
from orderkit.ports.forge import (
    CHANGE_TRAILER,
    OPERATION_TRAILER,
    PROOF_TRAILER,
    REASON_TRAILER,
    REQUESTER_TRAILER,
    Operation,
)
from orderkit.ports.pulls import PullDraft
from orderkit.web.console.team_pages import PULLS_KEPT_S

EVIL = "<script>alert(1)</script><i>&amp;\x1b[2J\x1b]0;owned\x07\u202e\u2066"
TRAILERS = "\n".join(
    f"{name}: {EVIL}"
    for name in (
        REQUESTER_TRAILER, PROOF_TRAILER, REASON_TRAILER, CHANGE_TRAILER, OPERATION_TRAILER,
    )
)  # fmt: skip
MESSAGE = f"Tune {EVIL}\n\n{EVIL}\n\n{TRAILERS}\n"
XR = "manifests/xgarage.yaml"
NEVER = ("<script>alert", "<i>", "\x1b", "\x07", "\u202e", "\u2066")
"""In no page, and of these no control character in any output."""


@pytest.fixture
def pushed(bay: Bay, site: Site, tmp_path: Path) -> Bay:
    """An order with a commit and a pull request whose every word is hostile."""
    settings = site.running.settings
    repository = f"{settings.forge.url}/{bay.repo}.git"
    pusher = Pusher.cloned(tmp_path, repository, "orderkit", token(settings.forge))
    pusher.commit(MESSAGE, pusher.replace(XR, "stage1", "stage2"))
    pusher.push()
    pusher.git("checkout", "--quiet", "-b", "evil")
    pusher.commit(MESSAGE, pusher.replace(XR, "stage2", "stage3"))
    pusher.push("HEAD:evil")
    draft = PullDraft(f"Tune {EVIL}", MESSAGE, "evil", "main")
    opened = Operation("open-evil", EVIL, "by hand")
    bay.platform.forge.open_pull(bay.repo, draft, opened)
    return bay


def test_a_strangers_commit_and_pull_request_are_text_on_every_page(
    pushed: Bay, lead: Browser, engineer: Browser, site: Site
) -> None:
    order, newest = f"/orders/{pushed.order}", pushed.head
    paths = [
        "/", order, f"{order}/parts", f"{order}/history", f"{order}/history/{newest}",
        f"{order}/change", f"{order}/pulls/1", f"{order}/end", f"/teams/{pushed.repo.owner}",
    ]  # fmt: skip
    for browser in (lead, engineer):
        for path in paths:
            answer = browser.get(path)
            assert answer.status == 200, path
            assert [bad for bad in NEVER if bad in answer.text] == [], path
    proposal = f"{pushed.order} #1 Tune <script>alert(1)</script><i>&amp;"
    proposals = until(engineer, "/platform", proposal, timeout_s=2 * PULLS_KEPT_S)
    assert [bad for bad in NEVER if bad in proposals.text] == []
    for path in (f"{order}/history", f"{order}/history/{newest}", f"{order}/pulls/1"):
        assert "Tune <script>alert(1)</script><i>&amp;" in engineer.get(path).page.text, path
    forge = Browser(site.running.settings.forge.url)
    for path in ("", "/commits/branch/main", f"/commit/{newest}", "/pulls", "/pulls/1"):
        answer = forge.get(f"/{pushed.repo}{path}")
        assert answer.status == 200, path
        assert [bad for bad in NEVER if bad in answer.text] == [], path


def test_a_strangers_commit_and_pull_request_command_no_terminal(
    pushed: Bay, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    order = str(pushed.order)
    for arguments in (
        ("list",), ("status", order), ("history", order), ("trace", order), ("events", order),
        ("plan", "--pr", f"{pushed.repo}#1", "--no-post"),
        ("revert", order, short(pushed.head), "--dry-run"),
    ):  # fmt: skip
        for options in ((), ("--json",)):
            done = orderkit(*arguments, *options)
            assert done.code in (0, EXIT_DIFFERS), (arguments, done.err)
            text = done.out + done.err
            assert [bad for bad in NEVER[2:] if bad in text] == [], arguments
            assert not options or json.loads(done.out)
    assert "<script>alert(1)</script>" in orderkit("history", order).out
    assert "Tune <script>" in orderkit("status", order).out
