"""Each delivery of a webhook is as GitHub and GitLab describe it (``judged``)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.forge import judged
from tests.conformance.forge.conftest import Workshop, embedded_target, open_shop
from tests.conformance.forge.described import DESCRIPTION
from tests.conformance.forge.faces import FACES
from tests.conformance.forge.gitlab_described import DELIVERIES

from ground.names import RepoId
from orderkit.ports.forge import MergeStyle, PullDraft, Webhook

EVENTS = ("push", "pull_request", "pull_request_review")
GITHUB_DELIVERIES = {
    *("push", "pull-request-opened", "pull-request-edited", "pull-request-synchronize"),
    *("pull-request-closed", "pull-request-reopened", "pull-request-review-submitted"),
}


def cause_all(shop: Workshop) -> RepoId:
    """Do what webhooks tell of: pushes, and the life of a pull request."""
    repo, forge = shop.seeded_repo(), shop.forge
    forge.ensure_webhook(repo, Webhook("http://127.0.0.1:9/hook", EVENTS, "secret-of-the-hook"))
    forge.write(repo, [shop.new("n", "1")], shop.op(), branch="other")
    pull = forge.open_pull(repo, PullDraft("t", "", "other"), shop.op())
    pulls = f"/repos/{repo}/pulls/{pull.number}"
    forge.write(repo, [shop.new("m", "1")], shop.op(), branch="other")
    forge.update_pull(repo, pull.number, shop.op(), title="Another", body="")
    assert shop.api("PATCH", pulls, {"base": "third"}).status_code == 404
    head = forge.head(repo)
    assert head is not None
    forge.ensure_branch(repo, "third", head)
    for base in ("third", "main"):
        assert shop.api("PATCH", pulls, {"base": base}).status_code == 201
    for state in ("closed", "open"):
        assert shop.api("PATCH", pulls, {"state": state}).status_code == 201
    assert shop.api(
        "PUT", f"/repos/{repo}/collaborators/{shop.outsider[0]}", {"permission": "write"}
    )
    with shop.client(shop.outsider) as guest:
        now = forge.pull(repo, pull.number)
        assert now is not None
        guest.review(repo, pull.number, "approved", head=now.head_commit, text="")
        guest.comment(repo, pull.number, "A word", marker="plan")
    forge.merge_pull(
        repo, pull.number, head=now.head_commit, style=MergeStyle.MERGE, operation=shop.op()
    )
    return repo


@pytest.mark.parametrize("face", ["github", "gitlab"])
def test_every_delivery_is_described(face: str, tmp_path: Path) -> None:
    if face == "github" and not DESCRIPTION.exists():
        pytest.skip("scripts/descriptions.sh fetches GitHub's descriptions")
    with (
        embedded_target(tmp_path / "forge", FACES[face]) as (_, target),
        open_shop(target, tmp_path) as shop,
    ):
        cause_all(shop)

    if face == "github":
        assert {f"delivery {name}" for name in GITHUB_DELIVERIES} <= judged.GITHUB.seen
    else:
        assert {f"delivery {name}" for name in DELIVERIES} <= set(judged.GITLAB.seen)
