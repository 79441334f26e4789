"""The demo's stages about loss and end: the dataset vanishes, a swap, the end of the order."""

from __future__ import annotations

from orderkit.controllers import ObjectKey, condition, dig, metadata
from orderkit_standins.testing import Story, TrialOrder, expect, wait
from whisperops.demo.site import (
    AGENT,
    XR,
    Site,
    agent_xr,
    cloud_resources,
    namespace_exists,
    parts,
    registered_datasets,
    wait_ready,
)


def tell(story: Story, site: Site, order: TrialOrder) -> None:
    """
    Run these stages.

    Raises:
        OrderkitError: An expectation did not hold.
    """
    _dataset_vanishes(story, site)
    _dataset_is_swapped(story, site, order)
    _order_ends(story, site, order)


def _uids(site: Site) -> dict[ObjectKey, str]:
    return {key: str(metadata(part or {}).get("uid")) for key, part in parts(site).items()}


def _dataset_vanishes(story: Story, site: Site) -> None:
    uids_before = _uids(site)
    (site.bucket / "California_Housing.csv").unlink()
    for _ in range(site.loss_rule.passes):
        result = site.watcher.run_pass()
        expect(not result.failures, f"the watcher goes on: {result.failures}")
    expect("california-housing" not in registered_datasets(site), "the registry forgot it")
    dataset_found = wait(
        "the agent saying so",
        lambda: condition(agent_xr(site), "DatasetFound") or {},
        lambda entry: entry.get("reason") == "DatasetNotFound",
    )
    wait_ready(site, "False")
    expect(_uids(site) == uids_before, "not one of its parts was deleted or made anew")
    proof = f"{dataset_found['message']}; all {len(uids_before)} parts are the same objects"
    story.stage("vanished", proof)


def _dataset_is_swapped(story: Story, site: Site, order: TrialOrder) -> None:
    commit = site.platform.change(order.id, "datasetRef.name", "online-retail-ii")
    wait_ready(site)
    env = dig(site.deployment("sandbox"), "spec", "template", "spec", "containers")[0]["env"]
    path = next(entry["value"] for entry in env if entry["name"] == "DATASET")
    expect(path.endswith("/Online Retail II.csv"), f"the sandbox reads the other file: {path}")
    story.stage("swapped", f"{commit[:8]}: the sandbox reads {path.rpartition('/')[2]}")


def _order_ends(story: Story, site: Site, order: TrialOrder) -> None:
    bucket = agent_xr(site)["status"]["bucket"]
    removed = site.platform.end(order.id)
    expect(site.cluster.get(XR) is None, "the agent is gone")
    wait("the Namespace being gone", lambda: namespace_exists(site), lambda exists: not exists)
    left = wait("the cloud", lambda: cloud_resources(site), lambda names: len(names) == 1)
    expect(left == [f"Bucket {bucket}"], f"nothing but the bucket is left: {left}")
    expect(site.platform.orders() == [], "no order is left in the ledger")
    repository = site.platform.forge.repo(order.repository)
    expect(repository is not None and repository.archived, "the repository is archived")
    proof = f"{AGENT}: {removed + 1} objects seen to be gone; left in the cloud: {left[0]}"
    story.stage("end", proof)
