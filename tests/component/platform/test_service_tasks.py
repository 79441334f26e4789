"""POST /v1/tasks over HTTP: the natural steps run by the service, each making sure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import requests
from platformsettings import settings_with
from signer import EVE, Signer, signing

from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.cli.connecting import SECRET_HEADER, connect, service_options, token
from orderkit.core.order.order_file import PATH as RECORD
from orderkit.core.platform.service_access import AccessSettings
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.order import placing
from orderkit.flows.order.placing import TaskRequest
from orderkit.flows.order.template_services import publish
from orderkit.flows.platform import Platform
from orderkit.flows.template.actions.action_context import PublishRequest
from orderkit.flows.template.published_templates import published_template
from orderkit.flows.template.scaffolder import TaskOptions
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

GUEST = "user:default/guest"
PROOF = "Orderkit-Requester-Proof"


@dataclass(frozen=True)
class Answer:
    """What the service said."""

    status: int
    body: dict[str, Any]

    @property
    def error(self) -> str:
        return str(self.body["error"]["message"])


Ask = Callable[..., Answer]


def ask_at(settings: PlatformSettings) -> Ask:
    def ask(body: object, *, secret: bool = True, **headers: str) -> Answer:
        added = {SECRET_HEADER: token(settings.service)} if secret else {}
        with requests.Session() as session:
            session.trust_env = False
            url = f"{settings.service.url}/v1/tasks"
            with session.post(url, json=body, headers={**added, **headers}, timeout=60) as found:
                return Answer(found.status_code, found.json())

    return ask


@pytest.fixture
def ask(platform: Running) -> Ask:
    return ask_at(platform.settings)


def task(team: str, stage: str = "stage2", **more: Any) -> dict[str, Any]:
    values = {"team_name": team, "stage": stage}
    return {"template": "garage", "values": values, "requester": GUEST, "id": "task-1", **more}


def repository(team: str) -> RepoId:
    return RepoId(team, f"garage-{team}")


def heads(platform: Platform, team: str) -> list[str | None]:
    return [platform.forge.head(repo) for repo in (repository(team), platform.ledger)]


def written(platform: Platform, team: str) -> dict[str, Any]:
    """Return all that an order consists of, with the team's name taken out."""
    repo = repository(team)
    head = platform.forge.head(repo)
    assert head is not None
    files = {}
    for path in platform.forge.tree(repo, head):
        revision = platform.forge.read(repo, path, head)
        assert revision is not None
        files[str(path)] = revision.text
    entry = platform.forge.read(
        platform.ledger, PurePosixPath("apps", team, f"garage-{team}.yaml"), "main"
    )
    entity = dict(platform.catalog.entity(f"component:default/garage-{team}") or {})
    entity["metadata"] = {k: v for k, v in entity["metadata"].items() if k not in {"uid", "etag"}}
    whole = {
        "files": files,
        "modes": {str(p): m for p, (m, _) in platform.forge.special_files(repo, head).items()},
        "entry": entry.text.replace(head, "HEAD") if entry else None,
        "entity": entity,
    }
    found: dict[str, Any] = json.loads(json.dumps(whole).replace(team, "TEAM"))
    return found


def run_naturally(platform: Platform, team: str) -> Mapping[str, Any]:
    source = published_template(platform, "garage")
    values = {"team_name": team, "stage": "stage2"}
    wanted = TaskRequest("garage", values, Requester(GUEST))
    return placing.run(source, wanted, platform).outputs


@pytest.fixture
def other_team(platform: Running) -> str:
    from orderkit.flows.team.teams import add_team

    name = "team-other"
    add_team(platform.platform, name, requester="user:default/test")
    return name


def test_the_service_writes_what_the_natural_steps_write(
    platform: Running, ask: Ask, team: str, other_team: str
) -> None:
    """The same files and modes, the same ledger entry, the same catalog entity, the same links."""
    natural = run_naturally(platform.platform, other_team)

    done = ask(task(team))

    assert done.status == 201
    assert written(platform.platform, team) == written(platform.platform, other_team)
    outputs = json.dumps(done.body["output"]).replace(team, "TEAM")
    assert outputs == json.dumps(natural).replace(other_team, "TEAM")


def test_the_same_again_finds_it_and_writes_nothing(platform: Running, ask: Ask, team: str) -> None:
    first = ask(task(team))
    before = heads(platform.platform, team)

    again, other_id = ask(task(team)), ask(task(team, id="task-2", requester="user:default/adam"))

    assert (first.status, again.status, other_id.status) == (201, 200, 200)
    assert again.body["output"] == other_id.body["output"] == first.body["output"]
    assert again.body["order"] == f"garage-{team}"
    assert heads(platform.platform, team) == before


def test_other_values_for_an_order_that_exists_are_a_conflict_in_words(
    platform: Running, ask: Ask, team: str
) -> None:
    ask(task(team))
    before = heads(platform.platform, team)

    done = ask(task(team, "stage3"))

    assert done.status == 409
    assert f"garage-{team} was ordered by {GUEST} with other values" in done.error
    assert "stage was 'stage2', asked for 'stage3'" in done.error
    assert heads(platform.platform, team) == before


def test_it_answers_when_registered_and_does_not_wait_for_ready(
    platform: Running, ask: Ask, team: str
) -> None:
    done = ask(task(team))

    path = PurePosixPath("apps", team, f"garage-{team}.yaml")
    assert done.status == 201
    assert platform.platform.forge.read(platform.platform.ledger, path, "main") is not None


def test_many_at_once_place_one_order(platform: Running, ask: Ask, team: str) -> None:
    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda n: ask(task(team, id=f"task-{n}")), range(12)))

    assert {answer.status for answer in done} <= {200, 201}
    assert len(platform.platform.forge.commits(repository(team))) == 1
    assert len({json.dumps(answer.body["output"]) for answer in done}) == 1


def test_an_order_that_was_published_and_not_registered_is_finished(
    platform: Running, ask: Ask, team: str
) -> None:
    """As a crash between the two steps leaves it."""
    source = published_template(platform.platform, "garage")
    values = {"team_name": team, "stage": "stage2"}
    wanted = TaskRequest("garage", values, Requester(GUEST), options=TaskOptions(dry_run=True))
    rendered = placing.run(source, wanted, platform.platform)
    files = {path: file.data for path, file in rendered.workspace.items()}
    publish(
        platform.platform.forge,
        PublishRequest(repository(team), files, "", "half", private=False, requester=GUEST),
    )
    before = heads(platform.platform, team)

    done = ask(task(team))

    assert done.status == 201
    assert heads(platform.platform, team)[0] == before[0]
    assert heads(platform.platform, team)[1] != before[1]


@dataclass(frozen=True)
class Refused:
    reason: str
    body: Callable[[str], object]
    status: int
    says: str


REFUSED = [
    Refused("a bad team name", lambda _: task("No Good"), 400, "does not match the pattern"),
    Refused("a bad stage", lambda t: task(t, "stage9"), 400, "is none of stage1, stage2, stage3"),
    Refused("a missing value", lambda _: task("x") | {"values": {}}, 400, "is missing"),
    Refused(
        "an unknown value",
        lambda t: task(t) | {"values": {"team_name": t, "stage": "stage1", "root": "1"}},
        400,
        "is not a parameter of this form",
    ),
    Refused(
        "a commit of a pack that was never published",
        lambda t: (
            task(t) | {"values": {"team_name": t, "stage": "stage1", "pack_commit": "f" * 40}}
        ),
        400,
        "is set by the platform",
    ),
    Refused(
        "another forge",
        lambda t: task(t) | {"values": {"team_name": t, "stage": "stage1", "forge_host": "evil"}},
        400,
        "is set by the platform",
    ),
    Refused(
        "a team nobody added", lambda _: task("no-team"), 404, "'no-team' is not in the ledger"
    ),
    Refused("a template nobody has", lambda t: task(t, template="nope"), 404, "nope"),
    Refused("a template out of the pack", lambda t: task(t, template="../garage"), 404, "garage"),
    Refused("a template in the request", lambda t: task(t, steps=[]), 400, "steps"),
    Refused("an id with a newline", lambda t: task(t, id="a\nb"), 400, "id"),
    Refused(
        "a requester that is not a reference", lambda t: task(t, requester="eve\nX: 1"), 400, "no"
    ),
    Refused("a list", lambda _: [], 400, "is refused"),
    Refused("no template", lambda _: {"values": {}}, 400, "template"),
    Refused("a body beyond the limit", lambda t: task(t, id="x" * 200_000), 400, "too many"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_what_is_refused_is_said_and_leaves_nothing(
    case: Refused, platform: Running, ask: Ask, team: str
) -> None:
    before = heads(platform.platform, team)

    done = ask(case.body(team))

    assert (done.status, case.says in done.error) == (case.status, True), done.body
    assert heads(platform.platform, team) == before == [None, before[1]]
    assert platform.platform.forge.repo(RepoId("no-team", "garage-no-team")) is None


def test_nobody_gets_in_without_the_portals_secret(ask: Ask, team: str) -> None:
    assert ask(task(team), secret=False).status == 401
    assert ask(task(team), secret=False, **{SECRET_HEADER: "wr\xf6ng"}).status == 401


def test_a_claimed_requester_is_recorded_without_a_proof(
    platform: Running, ask: Ask, team: str
) -> None:
    done = ask(task(team))

    assert (done.body["requester"], done.body["requesterProof"]) == (GUEST, "")
    for repo in (repository(team), platform.platform.ledger):
        newest = platform.platform.forge.commits(repo, limit=1)[0]
        assert f"Orderkit-Requester: {GUEST}" in newest.message
        assert PROOF not in newest.message


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    with signing() as found:
        yield found


@pytest.fixture(scope="module")
def signed(platform: Running, signer: Signer) -> Iterator[Ask]:
    """The same platform served by a service that checks a Backstage's signatures."""
    sock = bind("service", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    settings = settings_with(
        platform.settings,
        service__url=url,
        portal__signed_by=signer.url,
        service__access=AccessSettings(("group:default/platform",)),
    )
    server = HttpServer(service_app(connect(settings), service_options(settings, audit=None)), sock)
    server.start()
    yield ask_at(settings)
    server.stop()


def test_a_proved_requester_stands_in_every_commit_whatever_the_body_claims(
    platform: Running, signed: Ask, signer: Signer, team: str
) -> None:
    done = signed(task(team, requester=GUEST), Authorization=f"Bearer {signer.plugin()}")

    assert (done.status, done.body["requester"]) == (201, EVE)
    for repo in (repository(team), platform.platform.ledger):
        newest = platform.platform.forge.commits(repo, limit=1)[0]
        assert f"Orderkit-Requester: {EVE}\n{PROOF}: signed by {signer.url}" in newest.message
    record = platform.platform.forge.read(repository(team), RECORD, "main")
    assert record is not None
    assert EVE in record.text


@pytest.mark.parametrize(
    "header", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer x"}]
)
def test_who_proves_nothing_gets_nothing_where_signatures_are_checked(
    header: dict[str, str], platform: Running, signed: Ask, team: str
) -> None:
    done = signed(task(team), **header)

    assert done.status == 401
    assert "the requester is not proved" in done.error
    assert platform.platform.forge.head(repository(team)) is None


def test_a_task_of_a_service_account_is_refused(signed: Ask, signer: Signer, team: str) -> None:
    done = signed(task(team), Authorization=f"Bearer {signer.plugin(obo=None)}")

    assert (done.status, done.error) == (401, "the portal's token names no person")


def test_what_takes_too_long_is_answered_in_time_and_finished_by_the_same_request(
    platform: Running, ask: Ask, team: str
) -> None:
    hasty = replace(service_options(platform.settings, audit=None), answer_s=0.001)
    server = HttpServer(service_app(platform.platform, hasty), bind("tasks", 0))
    server.start()
    at = settings_with(platform.settings, service__url=server.url)

    done = ask_at(at)(task(team))

    assert (done.status, done.error) == (503, "not finished after 0.001 s")
    assert ask(task(team)).status in {200, 201}
    assert len(platform.platform.forge.commits(repository(team))) == 1
    server.stop()


def test_the_portals_copy_is_what_is_published(platform: Running) -> None:
    forge, pack = platform.platform.forge, platform.platform.pack_repo
    folder = PurePosixPath("templates", "garage")

    copy = forge.read(pack, folder / "template.yaml", "main")
    natural = forge.read(pack, folder / "natural.yaml", "main")

    assert copy is not None
    assert natural is not None
    assert "/proxy/orderkit/v1/tasks" in copy.text
    assert "publish:gitea" in natural.text
    assert "publish:gitea" not in copy.text


@pytest.mark.parametrize(
    ("profile", "files"),
    [("service", {"natural.yaml", "template.yaml"}), ("natural", {"template.yaml"})],
)
def test_platform_render_writes_what_would_be_published(
    profile: str, files: set[str], orderkit: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "published"

    done = orderkit("platform", "render", "--out", str(out), "--profile", profile, "--json")

    assert done.code == 0, done.err
    assert done.json["schema"] == "orderkit.platform-render/v1"
    written_files = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert written_files == set(done.json["files"])
    assert {path.name for path in (out / "templates" / "garage").glob("*.yaml")} - {
        "kit.yaml"
    } == files
    assert not [p for p in out.rglob("*.yaml") if "__ORDERKIT_" in p.read_text()]


def test_platform_render_equals_what_the_platform_has(
    orderkit: Callable[..., Any], platform: Running, tmp_path: Path
) -> None:
    out = tmp_path / "published"
    forge, pack = platform.platform.forge, platform.platform.pack_repo
    head = forge.head(pack)
    assert head is not None

    assert orderkit("platform", "render", "--out", str(out)).code == 0

    written_files = {PurePosixPath(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert written_files == set(forge.tree(pack, head))
    for path in written_files:
        found = forge.read(pack, path, head)
        assert found is not None
        assert found.data == (out / path).read_bytes()


def test_platform_render_names_the_step_that_cannot_run_in_the_service(
    orderkit: Callable[..., Any], tmp_path: Path
) -> None:
    """And the way out that it hints at works."""
    pack, out = tmp_path / "pack", tmp_path / "out"
    for path, data in read_folder(reference_pack()).items():
        (pack / path).parent.mkdir(parents=True, exist_ok=True)
        (pack / path).write_bytes(data)
    template = pack / "templates" / "garage" / "template.yaml"
    template.write_text(template.read_text().replace("publish:gitea", "publish:bitbucketCloud"))

    def render() -> Any:
        return orderkit("platform", "render", "--pack", str(pack), "--out", str(out))

    refused = render()
    natural = "metadata:\n  annotations: {orderkit.dev/profile: natural}\n"
    template.write_text(template.read_text().replace("metadata:\n", natural, 1))
    done = render()

    assert refused.code == 2
    assert "steps.publish" in refused.err
    assert "publish:bitbucketCloud" in refused.err
    assert done.code == 0, done.err
    assert not (out / "templates" / "garage" / "natural.yaml").exists()


def test_the_doctor_says_what_a_requester_is_worth(
    orderkit: Callable[..., Any], platform: Running, signer: Signer, tmp_path: Path
) -> None:
    def verdict(signed_by: str | None) -> tuple[str, str]:
        path = tmp_path / "platform.yaml"
        path.write_text(
            settings_with(platform.settings, portal__signed_by=signed_by or "").to_yaml()
        )
        found = orderkit("doctor", "--json", platform_file=path).json["findings"]
        row = next(row for row in found if row["what"] == "requesters")
        return row["verdict"], row["detail"]

    assert verdict(None) == ("ok", "claims: portal.signedBy names no Backstage that proves them")
    assert verdict(signer.url)[0] == "ok"
    assert signer.url in verdict(signer.url)[1]
    assert verdict(platform.settings.forge.url)[0] == "fail"


def test_platform_render_refuses_a_full_folder(
    orderkit: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "here").write_text("x")

    full = orderkit("platform", "render", "--out", str(tmp_path))

    assert full.code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
