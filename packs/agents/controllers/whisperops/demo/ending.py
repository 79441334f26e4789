"""The demo's stages about loss and end: the dataset vanishes, a swap, the end of the order."""

from __future__ import annotations

from orderkit.cli.demo.narration import PATIENCE_S, Story, expect, wait
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import ObjectKey, condition, dig, metadata
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.end import destroying
from orderkit.flows.order import listing
from orderkit.flows.order.delivering import await_commit
from orderkit.ports.requesters import Requester
from whisperops.demo.looking import (
    AGENT,
    ORDER,
    REPO,
    REQUESTER,
    XR,
    Site,
    in_the_cloud,
    namespace_is_there,
    parts,
    registry,
    wait_ready,
    xr,
)


def tell(story: Story, site: Site) -> None:
    """
    Tell these stages.

    Raises:
        OrderkitError: An expectation did not hold.
    """
    _vanished(story, site)
    _swapped(story, site)
    _ended(story, site)


def _uids(site: Site) -> dict[ObjectKey, str]:
    return {key: str(metadata(found or {}).get("uid")) for key, found in parts(site).items()}


def _vanished(story: Story, site: Site) -> None:
    before = _uids(site)
    (site.bucket / "California_Housing.csv").unlink()
    for _ in range(site.losses.passes):
        done = site.watcher.run_pass()
        expect(not done.failures, f"the watcher goes on: {done.failures}")
    expect("california-housing" not in registry(site), "the registry forgot it")
    said = wait(
        "the agent saying so",
        lambda: condition(xr(site), "DatasetFound") or {},
        lambda found: found.get("reason") == "DatasetNotFound",
    )
    wait_ready(site, "False")
    expect(_uids(site) == before, "not one of its parts was deleted or made anew")
    story.stage("vanished", f"{said['message']}; all {len(before)} parts are the same objects")


def _swapped(story: Story, site: Site) -> None:
    wanted = ChangeRequest(
        order=ORDER,
        edits=(FieldEdit("datasetRef.name", "set", "online-retail-ii"),),
        requester=Requester(REQUESTER),
    )
    done = change(site.platform, wanted)
    expect(done.commit, f"the swap is committed: {done.state}")
    await_commit(site.platform, ORDER, CommitSha(str(done.commit)), timeout_s=2 * PATIENCE_S)
    wait_ready(site)
    env = dig(site.deployment("sandbox"), "spec", "template", "spec", "containers")[0]["env"]
    path = next(entry["value"] for entry in env if entry["name"] == "DATASET")
    expect(path.endswith("/Online Retail II.csv"), f"the sandbox reads the other file: {path}")
    story.stage("swapped", f"{str(done.commit)[:8]}: the sandbox reads {path.rpartition('/')[2]}")


def _ended(story: Story, site: Site) -> None:
    bucket = xr(site)["status"]["bucket"]
    wanted = destroying.EndRequest(ORDER, REQUESTER, timeout_s=2 * PATIENCE_S)
    ended = destroying.destroy(site.platform, wanted, on_step=lambda *_: None)
    expect(site.cluster.get(XR) is None, "the agent is gone")
    wait("the Namespace being gone", lambda: namespace_is_there(site), lambda there: not there)
    left = wait("the cloud", lambda: in_the_cloud(site), lambda found: len(found) == 1)
    expect(left == [f"Bucket {bucket}"], f"nothing but the bucket is left: {left}")
    expect(listing.list_orders(site.platform) == [], "no order is left in the ledger")
    repository = site.platform.forge.repo(REPO)
    expect(repository is not None and repository.archived, "the repository is archived")
    gone = len(ended.record.must_be_gone) + 1
    story.stage("end", f"{AGENT}: {gone} objects seen to be gone; left in the cloud: {left[0]}")
