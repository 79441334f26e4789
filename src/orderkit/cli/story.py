"""
The story the demo tells, as expectations about a running platform.

It uses the flows as the commands do, the real ``git`` over HTTP as a developer would, and the
cluster's API to look, so whatever it prints was seen from outside.
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from orderkit.adapters.embedded.platform import BOT, Ports
from orderkit.adapters.packfolder import reference_pack
from orderkit.cli.connecting import token
from orderkit.cli.running import Running, RunRequest, running
from orderkit.core import orderstate
from orderkit.core.errors import OrderkitError
from orderkit.core.names import RepoId
from orderkit.core.objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey, dig, metadata
from orderkit.flows import destroying, ordering, orders, tracing
from orderkit.flows.refreshing import application_key
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock

T = TypeVar("T")

TEAM = "ae86"
ORDER = f"garage-{TEAM}"
REPO = RepoId(TEAM, ORDER)
REQUESTER = "user:default/demo"
XGARAGE = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), ORDER)
BAY = ObjectKey(NAMESPACE, ORDER)
SPEC_SHEET = ObjectKey(CONFIG_MAP, "spec-sheet", ORDER)
_PATIENCE_S = 30.0


class ExpectationError(OrderkitError):
    """Something the demo promises did not hold."""


class Story:
    """Where the demo works and how it speaks; counts what it proved."""

    def __init__(self, folder: Path, say: Callable[[str], object]) -> None:
        self.folder, self._say = folder, say
        self._begin_s = self._mark_s = time.monotonic()
        self.proved = 0

    def stage(self, name: str, proof: str) -> None:
        """Print one line: what was done, how long it took, what it proved."""
        now_s = time.monotonic()
        self._say(f"  {name:<12} {now_s - self._mark_s:6.2f} s   {proof}")
        self._mark_s = now_s
        self.proved += 1

    def headline(self, text: str) -> None:
        self._say(text)

    def end(self) -> None:
        elapsed_s = time.monotonic() - self._begin_s
        self._say(f"all {self.proved} stages held, {elapsed_s:.1f} s")


def tell(story: Story) -> None:
    """
    Tell the whole story on a platform of its own.

    Raises:
        OrderkitError: An expectation did not hold; nothing is left running.
    """
    story.headline("Orderkit demo: an embedded platform on free loopback ports")
    request = RunRequest(story.folder / "state", reference_pack(), Ports(0, 0, 0, 0), (TEAM,))

    def bootstrapped(step: str, summary: str) -> None:
        story.stage(step, summary)

    with running(request, on_step=bootstrapped) as platform:
        _order(story, platform)
        clone = _clone(story, platform)
        _assembled(story, platform)
        _change(story, platform, clone)
        _repair(story, platform)
        _repeat(story, platform)
        _end(story, platform)
    story.end()


def _order(story: Story, running: Running) -> None:
    wanted = ordering.OrderRequest(
        "garage", {"team_name": TEAM, "stage": "stage2"}, REQUESTER, timeout_s=_PATIENCE_S
    )
    done = ordering.order(running.platform, wanted, on_step=lambda *_: None)
    expect(done.created, f"{ORDER} is new")
    story.stage("order", f"template.yaml interpreted, {ORDER} is {done.report.state.phase}")


def _clone(story: Story, running: Running) -> Path:
    target = story.folder / "clone"
    git(running, story.folder, "clone", "--quiet", _url(running), str(target))
    files = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    visible = [file for file in files if not file.startswith(".git/")]
    expect("manifests/xgarage.yaml" in visible, f"the XR is in the clone: {visible}")
    story.stage("clone", f"git clone over HTTP: {', '.join(visible)}")
    return target


def _url(running: Running) -> str:
    return f"{running.settings.forge.url}/{TEAM}/{ORDER}.git"


def _assembled(story: Story, running: Running) -> None:
    cluster = running.platform.cluster
    application = cluster.get(application_key(ORDER)) or {}
    head = running.platform.forge.head(REPO)
    expect(not orderstate.undelivered(application, head), "the Application is Synced at the head")
    story.stage("application", f"Synced and Healthy at {orderstate.short(head or '')}")
    trace = tracing.trace(running.platform, ORDER)
    expect(trace.failing is None, f"nothing fails: {trace.failing}")
    nodes = [str(node.key) for _, node in trace.root.walk()]
    expect(str(BAY) in nodes and str(SPEC_SHEET) in nodes, f"both parts are composed: {nodes}")
    story.stage("assembled", " → ".join(nodes[1:]))
    _expect_sheet(running, "stage2")
    story.stage("spec sheet", f"stage: stage2, team: {TEAM}")


def _change(story: Story, running: Running, clone: Path) -> None:
    xr = clone / "manifests" / "xgarage.yaml"
    before = xr.read_text()
    expect(before.count("stage2") == 1, "the XR names stage2 once")
    xr.write_text(before.replace("stage2", "stage3"))
    git(running, clone, "commit", "--quiet", "--all", "--message", "stage3, by hand")
    git(running, clone, "push", "--quiet", "origin", "main")
    commit = git(running, clone, "rev-parse", "HEAD")
    wait(
        "the pushed commit becoming Ready",
        lambda: orders.status(running.platform, ORDER),
        lambda found: found.state.ready and found.state.revision == commit,
    )
    _expect_sheet(running, "stage3")
    story.stage("change", f"git push of {orderstate.short(commit)}: the spec sheet says stage3")


def _repair(story: Story, running: Running) -> None:
    cluster = running.platform.cluster
    old = _uid(cluster.get(SPEC_SHEET))
    cluster.delete(SPEC_SHEET, uid=old)
    new = wait(
        "the deleted ConfigMap coming back",
        lambda: cluster.get(SPEC_SHEET),
        lambda found: _uid(found) not in ("", old),
    )
    _expect_sheet(running, "stage3")
    story.stage("repair", f"deleted by hand, back as {_uid(new)[:8]} with the same data")


def _repeat(story: Story, running: Running) -> None:
    wanted = ordering.OrderRequest("garage", {"team_name": TEAM, "stage": "stage2"}, REQUESTER)
    done = ordering.order(running.platform, wanted, on_step=lambda *_: None)
    expect(not done.created, "the same order again is no new one")
    _expect_sheet(running, "stage3")
    story.stage("again", "the same order changes nothing, the live stage3 stays")


def _end(story: Story, running: Running) -> None:
    platform = running.platform
    wanted = destroying.EndRequest(ORDER, REQUESTER, timeout_s=_PATIENCE_S)
    ended = destroying.destroy(platform, wanted, on_step=lambda *_: None)
    for key in (XGARAGE, BAY, SPEC_SHEET, application_key(ORDER)):
        expect(platform.cluster.get(key) is None, f"{key} is gone")
    expect(orders.list_orders(platform) == [], "no order is left in the ledger")
    expect(platform.catalog.entity(f"component:default/{ORDER}") is None, "the catalog forgot it")
    repository = platform.forge.repo(REPO)
    expect(repository is not None and repository.archived, "the repository is archived")
    story.stage("end", f"{len(ended.record.must_be_gone) + 1} objects gone, repository archived")


def expect(holds: object, what: str) -> None:
    """
    Go on if it holds.

    Raises:
        ExpectationError: It does not.
    """
    if not holds:
        raise ExpectationError(f"expected: {what}")


def wait(what: str, look: Callable[[], T], done: Callable[[T], bool]) -> T:
    """Look until it is done; raises IncompleteError after half a minute."""
    return until(SystemClock(), look, done, timeout_s=_PATIENCE_S, what=what)


def _expect_sheet(running: Running, stage: str) -> None:
    found = dig(running.platform.cluster.get(SPEC_SHEET) or {}, "data")
    expect(found == {"stage": stage, "team": TEAM}, f"the spec sheet says {stage}, not {found}")


def _uid(manifest: Manifest | None) -> str:
    return str(metadata(manifest or {}).get("uid", ""))


def git(running: Running, folder: Path, *arguments: str) -> str:
    """
    Run the real git; the credential travels in the environment, never in an argument.

    Raises:
        ExpectationError: git failed.
    """
    secret = base64.b64encode(f"{BOT}:{token(running.settings.forge)}".encode()).decode()
    settings = {
        f"http.{running.settings.forge.url}/.extraHeader": f"Authorization: Basic {secret}",
        "user.name": "Demo",
        "user.email": "demo@localhost",
        "commit.gpgSign": "false",
    }
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(settings)},
        **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(settings.values())},
    }
    done = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", *arguments],  # noqa: S607 - git from PATH
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise ExpectationError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
