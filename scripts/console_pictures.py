"""
Take the pictures of the console and of the embedded forge in docs/: a shop's environments.

Starts an embedded platform with the pack of environments, its example of prices, and twins of the
clouds. People of four teams order a dozen, then change, propose and end some in a browser. Needs
what ``scripts/browser.sh`` and ``scripts/backstage.sh`` install. Takes about three minutes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from realbrowser import RealBrowser, real_browser  # noqa: E402

from ground.names import RepoId  # noqa: E402
from orderkit.adapters.state_folder import PLATFORM_FILE  # noqa: E402
from orderkit.cli.commands.console import console_link  # noqa: E402
from orderkit.cli.main import run  # noqa: E402
from orderkit.controllers import Kind, ObjectKey  # noqa: E402
from orderkit.flows.order.placing import TaskRequest, order  # noqa: E402
from orderkit.ports.requesters import Requester  # noqa: E402
from orderkit_standins.platform import Ports  # noqa: E402
from orderkit_standins.serve_platform import (  # noqa: E402
    EmbeddedRunRequest,
    Person,
    Running,
    running,
)

KIT = "appenvironment"
PACK = ROOT / "packs" / "environments"
PLATFORM_VALUES = {"PROJECT_ID": "acme-lab", "BUCKET_PREFIX": "acme"}
OWNERS = {"catalog": "frank", "checkout": "grace", "payments": "heidi", "search": "ivan"}
"""By team: who orders for it."""
ENGINEER = "judy"
"""Of the platform team."""
STAGES = (("dev", "small", "20"), ("staging", "small", "50"), ("prod", "large", "100"))
KEPT = ("payments-ledger", "catalog-archive")
"""New environments that are to stay after their end, so they wait for approval."""
RULE = {
    "when": "order.isNew && has(new.parameters.deletionPolicy) &&"
    " new.parameters.deletionPolicy == 'Orphan'",
    "by": ["platform"],
    "because": "its data stay after its end, and cost money until somebody deletes them",
}
PAUSED = ObjectKey(
    Kind("platform.acme.io", "v1alpha1", "ApplicationEnvironment"),
    f"{KIT}-checkout-staging",
    "team-checkout",
)
CAMPAIGN = f"""\
apiVersion: orderkit.dev/v1alpha1
kind: Campaign
metadata: {{name: one-disk-size}}
spec:
  reason: one size of disk everywhere
  what: {{fields: {{set: {{parameters.storageGB: 50}}}}}}
  which: {{kit: {KIT}, where: "!spec.name.endsWith('-dev')"}}
  how: direct
  waves: [{{name: canary, count: 2}}, {{name: rest}}]
  gates: {{ready: 2m}}
  stop: {{failed: 1}}
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="orderkit-pictures-") as name:
        folder = Path(name)
        with _shop(folder) as shop:
            address = shop.settings.service_address
            with real_browser(address, folder / "profile") as browser:
                browser.open()
                Photographer(shop, browser).take_all(folder)
    return 0


@contextmanager
def _shop(folder: Path) -> Iterator[Running]:
    """Run the shop's platform, with a dozen environments that are Ready and two that wait."""
    pack = folder / "pack"
    shutil.copytree(PACK, pack)
    shutil.copy(pack / "gitops/prices.example.yaml", pack / "gitops/prices.yaml")
    kit = pack / "templates" / KIT / "kit.yaml"
    document = yaml.safe_load(kit.read_text())
    document["spec"]["approval"] = {"rules": [RULE]}
    kit.write_text(yaml.safe_dump(document, sort_keys=False))
    request = EmbeddedRunRequest(
        folder / "state",
        pack,
        Ports(0, 0, 0, 0),
        tuple(OWNERS),
        values=PLATFORM_VALUES,
        people=(Person(ENGINEER, "platform"), *(Person(o, team) for team, o in OWNERS.items())),
    )
    with running(request, on_step=lambda *_: None) as shop:
        for team in OWNERS:
            for stage, size, disk in STAGES:
                _order(shop, team, f"{team}-{stage}", nodeSize=size, storageGB=disk)
        for name in KEPT:
            kept = {"nodeSize": "small", "deletionPolicy": "Orphan"}
            _order(shop, name.partition("-")[0], name, wait=False, **kept)
        pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
        shop.platform.cluster.patch(PAUSED, pause, owner="kubectl")
        yield shop


def _order(shop: Running, team: str, name: str, *, wait: bool = True, **more: str) -> None:
    values = {"name": name, "team": team, **more}
    request = TaskRequest(KIT, values, Requester(f"user:default/{OWNERS[team]}"))
    ordered = order(shop.platform, request, wait_s=120 if wait else None)
    print(f"{ordered.order}: {ordered.report.state.phase}", flush=True)


@dataclass(frozen=True)
class Photographer:
    """Plays the people of the shop in a browser, and takes the pictures."""

    shop: Running
    browser: RealBrowser

    def take_all(self, folder: Path) -> None:
        self._enter(ENGINEER, "/")
        self.browser.shows("is paused")
        self._take("console-orders", full=False)
        self._look()
        self._change()
        self._end()
        self._enter("grace", "/teams/checkout", "checkout")
        self._take("console-team")
        self._enter(ENGINEER, "/approvals")
        self.browser.shows("its data stay")
        self._take("console-approvals")
        campaign = folder / "one-disk-size.yaml"
        campaign.write_text(CAMPAIGN)
        self._command("campaign", "start", str(campaign), "--requester", f"user:default/{ENGINEER}")
        self._enter(ENGINEER, "/campaigns/one-disk-size")
        self.browser.shows("may only grow")
        self._take("console-campaign")

    def _look(self) -> None:
        """Order, and look at an order."""
        self._enter("frank", f"/kits/{KIT}", "catalog")
        self.browser.fill("Name", "catalog-review")
        self.browser.fill("Team", "catalog")
        self.browser.fill("Size", "medium")
        self.browser.shows(f"What {KIT}-catalog-review would be")
        self.browser.shows("a month")
        self._take("console-new-order", full=False)
        self._enter("heidi", f"/orders/{KIT}-payments-prod", "payments")
        self.browser.shows("Everything in Git is delivered and works")
        self._take("console-order")
        self.browser.press("Parts")
        self.browser.shows("DatabaseInstance")
        self._take("console-parts", full=False)

    def _change(self) -> None:
        """Change an order, past a conflict; propose another change; look back."""
        name = f"{KIT}-search-prod"
        self._enter("ivan", f"/orders/{name}/change?change=storage", "search")
        self.browser.fill("Disk of the database", "200")
        self.browser.fill("Why", "the index grows")
        self.browser.shows("In the order")
        self._take("console-change")
        theirs = ("--requester", f"user:default/{ENGINEER}", "--reason", "disks were full")
        self._command("change", name, "parameters.storageGB=150", *theirs)
        self.browser.press("Change it")
        self.browser.shows("Somebody else was faster")
        self._take("console-conflict")
        self.browser.press("Go on with yours")
        self.browser.shows("In the order")
        self.browser.press("Change it")
        self.browser.shows("It is committed")
        proposed = ("--pr", "--requester", "user:default/ivan", "--reason", "medium is enough")
        self._command("change", name, "parameters.nodeSize=medium", *proposed)
        self.browser.goto(f"/orders/{name}/pulls/1")
        self.browser.shows("What merging #1 would do")
        self._take("console-pull", full=False)
        self.browser.press("History")
        self.browser.shows("What happened, from Git")
        self._take("console-history")
        self._take_of_forge(name)

    def _take_of_forge(self, name: str) -> None:
        """See a commit and a pull request on the forge, as everybody may."""
        base = f"{self.shop.settings.forge.address}/search/{name}"
        newest = self.shop.platform.forge.head(RepoId("search", name))
        self.browser.goto(f"{base}/commit/{newest}")
        self._take("forge-commit")
        self.browser.goto(f"{base}/pulls/1")
        self._take("forge-pull", full=False)

    def _end(self) -> None:
        name = f"{KIT}-search-dev"
        self._enter("ivan", f"/orders/{name}/end", "search")
        self.browser.shows("What stays")
        self._take("console-end")
        self.browser.fill(f"Type {name} to confirm", name)
        self.browser.fill("Why", "the feature is live")
        self.browser.press(f"End {name}")
        self.browser.shows("Proof of its end", timeout_s=120)
        self._take("console-proof")

    def _enter(self, login: str, page: str, *teams: str) -> None:
        """Sign in by a link, as `orderkit console` prints it, and open a page."""
        self.browser.goto(console_link(self.shop.settings, f"user:default/{login}", teams))
        self.browser.goto(page)

    def _command(self, *arguments: str) -> None:
        """Run a command as a person at a terminal; a campaign that stops is no failure here."""
        file = str(self.shop.embedded.state.folder / PLATFORM_FILE)
        run([*arguments, "--platform", file])

    def _take(self, name: str, *, full: bool = True) -> None:
        time.sleep(1)  # a picture must not show half of what moves
        self.browser.step("shoot", file=str(ROOT / "docs" / f"{name}.png"), full=full)
        print(f"docs/{name}.png", flush=True)


if __name__ == "__main__":
    sys.exit(main())
