"""
A whole platform on the embedded forge's GitHub face: what orders and changes cost there.

GitHub.com takes 500 requests an hour that create content. The service's commit statuses are such
requests, too: one for each commit on main that it checks, one for each plan; they are told apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
import requests
from changingpack import changing_pack
from commands import Done, in_process

from ground.errors import ConflictError
from ground.names import CommitSha, OrderId, RepoId
from orderkit.adapters.github import GitHubForge
from orderkit.cli.connecting import token
from orderkit.core.campaign.definition import path_of
from orderkit.core.order.change import FieldEdit
from orderkit.core.platform.webhook_key import PATH, hook_key, signature
from orderkit.flows.campaign import starting
from orderkit.flows.campaign.running import run
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order import placing
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, MergeStyle, Operation
from orderkit.ports.pulls import PLAN_CONTEXT
from orderkit.ports.requesters import Requester
from orderkit_standins.forge.github.answers import API
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Person, Running, running

EVE = Requester("user:default/eve")
BOSS_TOKEN = "b" * 40
ORDER = """\
apiVersion: blog.opsbogus.dev/v1alpha1
kind: XGarage
metadata: {{name: garage-{team}}}
spec: {{teamName: {team}, stage: stage1}}
"""
CAMPAIGN = """\
apiVersion: orderkit.dev/v1alpha1
kind: Campaign
metadata: {name: tune}
spec:
  reason: more room
  what: {fields: {set: {budget: 7}}}
  which: {kit: garage, teams: [fd3s, r32]}
  how: direct
  waves: [{name: all, count: 2}]
  pace: {perMinute: 1000, inFlight: 10}
"""
TIMEOUT_S = 90


@dataclass
class Site:
    """The platform, and what its forge counts."""

    running: Running

    def cost(self, act: Callable[[], object]) -> list[str]:
        """Return the requests that create content and are no statuses, by what they make."""
        created = self.running.embedded.forge.github.limits.created
        before = len(created)
        act()
        made = [text.replace(API, "") for text in list(created)[before:]]
        return [text for text in made if "/statuses/" not in text]

    def order(self, team: str) -> OrderId:
        values = {"team_name": team, "stage": "stage1"}
        request = placing.TaskRequest("garage", values, EVE)
        done = placing.order(self.running.platform, request, wait_s=TIMEOUT_S)
        return OrderId(done.order)

    def change(self, order: OrderId, field: str, value: object, base: str = "") -> Changed:
        edit = FieldEdit(field, "set", value)
        request = ChangeRequest(
            order=order, edits=(edit,), requester=EVE, base=CommitSha(base) if base else None
        )
        return change(self.running.platform, request)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("github")
    request = EmbeddedRunRequest(
        folder / "state",
        changing_pack(folder / "pack"),
        Ports(0, 0, 0, 0),
        ("ae86", "rx7", "s13", "fd3s", "r32"),
        people=(Person("boss", "ae86"),),
        forge="github",
    )
    with running(request, on_step=lambda *_: None) as found:
        found.embedded.forge.ensure_token("boss", "review", BOSS_TOKEN, ["all"])
        yield Site(found)


@pytest.fixture(scope="module")
def order(site: Site) -> OrderId:
    return site.order("ae86")


def test_an_order_of_a_protected_kit_costs_three_requests_that_create_content(site: Site) -> None:
    """The repository, its ruleset, and the ledger's commit; the first commit is pushed."""
    made = site.cost(lambda: site.order("rx7"))

    assert sorted(made) == [
        "POST /api/graphql", "POST /orgs/rx7/repos", "POST /repos/rx7/garage-rx7/rulesets",
    ]  # fmt: skip
    assert not site.cost(lambda: site.order("rx7"))


def test_a_change_costs_one_where_reviews_count_and_a_stale_one_nothing(
    site: Site, order: OrderId
) -> None:
    """The order's commit; the ledger's, which names the commit that is delivered, is pushed."""
    repo = RepoId("ae86", order)
    forge = site.running.platform.forge
    before = forge.head(repo)

    made = site.cost(lambda: site.change(order, "budget", 5))

    assert made == ["POST /api/graphql"]
    assert len(forge.compare(repo, str(before), "main")) == 1
    site.change(order, "budget", 6)
    with pytest.raises(ConflictError):
        site.change(order, "budget", 7, base=str(before))


def test_a_proposal_is_planned_approved_and_merged(site: Site, order: OrderId) -> None:
    """The forge's signed delivery leads to the plan; an approval is one request."""
    repo, forge = RepoId("ae86", order), site.running.platform.forge
    proposed: list[Changed] = []

    made = site.cost(lambda: proposed.append(site.change(order, "colour", "red")))

    pull = proposed[0].pull
    assert pull is not None
    assert [text.rpartition("/")[2] for text in made] == ["refs", "graphql", "pulls"]

    def planned() -> bool:
        found = forge.statuses(repo, pull.head_commit)
        return any(status.context == PLAN_CONTEXT for status in found)

    until(SystemClock(), planned, bool, timeout_s=TIMEOUT_S, goal="the plan")
    with GitHubForge(site.running.settings.forge.url, token=BOSS_TOKEN) as boss:
        seen = pull.head_commit
        approved = site.cost(
            lambda: boss.review(repo, pull.number, "approved", head=seen, text="ok")
        )
    assert [text.rpartition("/")[2] for text in approved] == ["reviews"]
    (review,) = forge.reviews(repo, pull.number)
    assert (review.reviewer.login, review.commit, review.official) == ("boss", seen, True)
    merging = Operation("merge-it", EVE.ref, "Merge")
    merge_unreviewed(site.running.platform, repo, pull, merging, style=MergeStyle.MERGE)
    merged = forge.pull(repo, pull.number)
    assert merged is not None
    assert merged.state == "merged"


def test_many_orders_of_a_file_and_a_campaign_over_them_push_their_commits(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left: each repository with its ruleset, and the record of the campaign."""
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    file = tmp_path / "orders.yaml"
    file.write_text("---\n".join(ORDER.format(team=team) for team in ("fd3s", "r32")))

    made = site.cost(lambda: orderkit("order", "--file", str(file), "--no-wait"))

    assert sorted(text.rpartition("/")[2] for text in made) == [
        "repos", "repos", "rulesets", "rulesets",
    ]  # fmt: skip
    platform, who = site.running.platform, EVE
    text = CAMPAIGN.encode()
    starting.put(platform, starting.CampaignText.read(text, name=str(path_of("tune"))), who)
    starting.start(platform, "tune", who)
    heads = {team: platform.forge.head(RepoId(team, f"garage-{team}")) for team in ("fd3s", "r32")}
    made = site.cost(lambda: run(platform, "tune", who, timeout_s=TIMEOUT_S, is_new=True))
    for team, head in heads.items():
        (newest, *_) = platform.forge.commits(RepoId(team, f"garage-{team}"), limit=1)
        assert newest.parents == (head,)
        assert newest.requester == who.ref
    # Both orders are changed and their commits are named in the ledger: none of it is here.
    assert made == ["POST /api/graphql"], "the campaign's record, when its wave is over"


def test_several_that_are_adopted_push_their_commits(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left: their rulesets, and that they, made by hand, are not squashed."""
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    forge, repos = site.running.platform.forge, [RepoId(t, f"garage-{t}") for t in ("na6", "nb8")]
    for repo in repos:
        assert orderkit("team", "add", repo.owner).code == 0
        forge.ensure_repo(repo, description="")
        text = ORDER.format(team=repo.owner).encode()
        change = FileChange(PurePosixPath("manifests/bay.yaml"), text, None)
        forge.write(repo, [change], Operation(f"hand-{repo.owner}", EVE.ref, "By hand"))

    done: list[Done] = []
    made = site.cost(lambda: done.append(orderkit("adopt", *map(str, repos))))

    assert done[0].code == 0, done[0].err
    assert sorted(text.rpartition("/")[2] for text in made) == [
        "garage-na6", "garage-nb8", "rulesets", "rulesets",
    ]  # fmt: skip
    listed = orderkit("list").out
    assert all(repo.name in listed for repo in repos)


def test_an_end_leaves_an_archived_repository(site: Site) -> None:
    order = site.order("s13")

    destroy(site.running.platform, EndRequest(order, EVE.ref), on_step=lambda *_: None)

    repository = site.running.platform.forge.repo(RepoId("s13", order))
    assert repository is not None
    assert repository.archived


def test_the_check_of_a_forge_finds_that_all_holds_and_leaves_nothing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the faces; on a real forge by whoever has an account (docs/github.md)."""
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    evidence = tmp_path / "evidence.json"

    done = orderkit(
        "forge", "check", "--live", "--organisation", "rx7", "--yes", "--evidence", str(evidence)
    )

    assert done.code == 0, done.out + done.err
    found = json.loads(evidence.read_text())
    assert {case["problem"] for case in found["cases"]} == {""}
    assert (found["kind"], found["organisation"]) == ("github", "rx7")
    assert "a repeated write is recognised" in done.out
    left = site.running.embedded.forge.repositories.all()
    assert not [repo for repo in left if "orderkit-check" in repo.repo.name]


def test_doctor_says_what_github_can_do_and_finds_nothing_wrong_with_the_forge(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)

    found = {row["what"]: row for row in json.loads(orderkit("doctor", "--json").out)["findings"]}

    assert found["forge"]["verdict"] == found["rights"]["verdict"] == "ok"
    assert found["github-release"]["verdict"] == "ok"
    assert "the forge signs our commits" in found["capabilities"]["detail"]
    assert found["ownership"]["verdict"] == found["protection"]["verdict"] == "ok"


def test_a_delivery_of_github_needs_our_signature(site: Site) -> None:
    settings = site.running.settings
    key = hook_key(token(settings.service))
    body = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": "a/b"}}).encode()
    good = {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature(key, body)}"}

    def status(headers: dict[str, str]) -> int:
        url = f"{settings.service.url}{PATH}"
        sent = {**headers, "Content-Type": "application/json"}
        return requests.post(url, body, headers=sent, timeout=TIMEOUT_S).status_code

    assert status(good) == status(good) == 202
    assert status({**good, "X-Hub-Signature-256": f"sha256={signature(key, body + b' ')}"}) == 401
    assert status({"X-GitHub-Event": "push"}) == 401
    assert status({**good, "X-Gitea-Event": "push"}) == 401  # then Gitea's header counts
