"""The port `orderkit.ports.access.ForgeAccess`, and rights, through the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import AccessError, InvalidInputError, MovedError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.flows.team.connections import service_webhook
from orderkit.ports.forge import FileChange, ReaderAccount, TeamRight, Webhook

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop
    from tests.conformance.forge.faces import Client

NOWHERE = RepoId("no-such-team", "no-such-order")


@pytest.fixture
def guest(shop: Workshop) -> Iterator[Client]:
    """The client of a user who owns nothing."""
    user, password = shop.outsider
    with shop.client((user, password)) as forge:
        yield forge


@pytest.fixture
def owner(shop: Workshop) -> Iterator[Client]:
    """The client of the site admin, by password."""
    user, password = shop.admin
    with shop.client((user, password)) as forge:
        yield forge


def rights(forge: Client, repo: RepoId) -> tuple[bool, bool] | None:
    found = forge.repo(repo)
    return (found.can_write, found.can_admin) if found else None


def test_f71_a_team_has_the_right_it_was_given_on_all_repositories(
    shop: Workshop, guest: Client
) -> None:
    repo, me = shop.empty_repo(private=True), shop.outsider[0]
    seen = [rights(guest, repo)]

    for right in (TeamRight.READ, TeamRight.WRITE, TeamRight.ADMIN, TeamRight.READ):
        shop.forge.ensure_access(repo.owner, "devs", right=right, members=[me])
        seen.append(rights(guest, repo))

    assert seen == [None, (False, False), (True, False), (True, True), (False, False)]


def test_f72_who_may_write_writes(shop: Workshop, guest: Client) -> None:
    repo, me = shop.empty_repo(private=True), shop.outsider[0]
    shop.forge.ensure_access(repo.owner, "devs", right=TeamRight.WRITE, members=[me])

    written = guest.write(repo, [shop.new("a", "1")], shop.op())

    assert shop.forge.head(repo) == written.commit


def test_f73_members_are_exactly_those_named(shop: Workshop) -> None:
    org, (guest, _), admin = shop.org(), shop.outsider, shop.target.user

    for members in ([guest, admin], [guest.upper()], [admin], []):
        for _ in range(2):
            shop.forge.ensure_access(org, "devs", right=TeamRight.READ, members=members)
        found = {member.login.lower() for member in shop.forge.members(org, "devs")}
        ours = {admin.lower()}  # who owns the organisation may be left out of its teams
        assert found - ours == {name.lower() for name in members} - ours


def test_f74_repositories_are_exactly_those_named(shop: Workshop, guest: Client) -> None:
    org, me = shop.org(), shop.outsider[0]
    one, two = RepoId(org, "one"), RepoId(org, "two")
    for repo in (one, two):
        shop.forge.ensure_repo(repo, description="", private=True)
    seen = []

    for names in (["one"], ["two"], None, ["one"], []):
        shop.forge.ensure_access(
            org, "devs", right=TeamRight.READ, members=[me], repositories=names
        )
        seen.append((guest.repo(one) is not None, guest.repo(two) is not None))

    assert seen == [(True, False), (False, True), (True, True), (True, False), (False, False)]


def test_f75_a_team_needs_an_organisation_users_repositories_and_a_name(shop: Workshop) -> None:
    org, read = shop.org(), TeamRight.READ

    with pytest.raises(NotFoundError, match="no organisation no-such-team"):
        shop.forge.ensure_access("no-such-team", "devs", right=read, members=[])
    with pytest.raises(NotFoundError, match="no user no-such-user"):
        shop.forge.ensure_access(org, "devs", right=read, members=["no-such-user"])
    with pytest.raises(NotFoundError, match="no repository"):
        shop.forge.ensure_access(org, "d2", right=read, members=[], repositories=["none"])
    with pytest.raises(InvalidInputError, match="team"):
        shop.forge.ensure_access(org, "a b", right=read, members=[])
    with pytest.raises(RefusedError, match="owners"):
        shop.forge.ensure_access(org, "Owners", right=read, members=[])


def test_f76_who_is_no_owner_sets_up_no_team(shop: Workshop, guest: Client) -> None:
    org = shop.org()

    with pytest.raises(AccessError):
        guest.ensure_access(org, "devs", right=TeamRight.ADMIN, members=[shop.outsider[0]])


def test_f77_a_reader_clones_its_organisation_and_nothing_else(shop: Workshop) -> None:
    needs_readers(shop)
    own, foreign = shop.seeded_repo(private=True), shop.seeded_repo(private=True)

    reader = shop.forge.add_reader(own.owner)

    assert reads(shop, reader, own)
    assert not reads(shop, reader, foreign)
    assert not writes(shop, reader, own)


def test_f78_the_next_reader_takes_the_right_of_the_one_before(shop: Workshop) -> None:
    needs_readers(shop)
    repo = shop.seeded_repo(private=True)
    first = shop.forge.add_reader(repo.owner)

    second = shop.forge.add_reader(repo.owner)

    assert (reads(shop, first, repo), reads(shop, second, repo)) == (False, True)


def test_f79_a_removed_reader_is_nobody(shop: Workshop) -> None:
    needs_readers(shop)
    repo = shop.seeded_repo(private=True)
    reader = shop.forge.add_reader(repo.owner)

    for _ in range(2):
        shop.forge.remove_reader(repo.owner, reader.name)

    assert not reads(shop, reader, repo)
    assert shop.api("GET", "/user", auth=f"token {reader.token}").status_code == 401


def test_f80_only_an_admin_of_the_forge_adds_and_removes_readers(
    shop: Workshop, guest: Client
) -> None:
    needs_readers(shop)
    repo = shop.seeded_repo(private=True)
    org, reader = repo.owner, shop.forge.add_reader(repo.owner)
    shop.forge.ensure_access(org, "Admins", right=TeamRight.ADMIN, members=[shop.outsider[0]])

    with pytest.raises(AccessError) as refused:
        guest.add_reader(org)
    with pytest.raises(AccessError):
        guest.remove_reader(org, reader.name)

    assert "forge.teamTokenFolder" in refused.value.hint
    assert reads(shop, reader, repo)


def needs_readers(shop: Workshop) -> None:
    if not shop.forge.capabilities.makes_readers:
        pytest.skip("the forge makes no accounts: platform.yaml names Argo CD's credential")


def reads(shop: Workshop, reader: ReaderAccount, repo: RepoId) -> bool:
    """Say whether git reads a repository with the reader's token, as Argo CD does."""
    url = shop.remote(repo, auth=(reader.name, reader.token))
    return shop.git("ls-remote", url, "HEAD").returncode == 0


def writes(shop: Workshop, reader: ReaderAccount, repo: RepoId) -> bool:
    folder = shop.clone(repo)
    url = shop.remote(repo, auth=(reader.name, reader.token))
    return shop.git("push", "-q", url, "HEAD:refs/heads/mine", cwd=folder).returncode == 0


@dataclass
class Ear:
    """Listens for deliveries and keeps them."""

    url: str
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Ear]:
    ear = Ear("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            ear.heard.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            """Stay silent."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ear.url = f"http://127.0.0.1:{http.server_port}/hook"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield ear
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture(params=["organisation", "repository"])
def hooked(request: pytest.FixtureRequest, shop: Workshop) -> tuple[str | RepoId, RepoId]:
    """What has the hook, and a repository whose pushes it tells."""
    repo = shop.seeded_repo()
    target = repo.owner if request.param == "organisation" else repo
    return target, repo


def hooks_of(target: str | RepoId) -> str:
    return f"/orgs/{target}/hooks" if isinstance(target, str) else f"/repos/{target}/hooks"


def test_f87_the_record_says_what_we_may_do(shop: Workshop, guest: Client) -> None:
    repo = shop.seeded_repo()

    assert rights(shop.forge, repo) == (True, True)
    assert rights(guest, repo) == (False, False)
    with pytest.raises(AccessError, match="no right"):
        guest.write(repo, [FileChange(PurePosixPath("x"), b"1", None)], shop.op())


def test_f88_a_renamed_repository_is_an_error_that_names_the_new_one(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    assert shop.api("PATCH", f"/repos/{repo}", {"name": "renamed"}).status_code == 200

    for ask in (shop.forge.repo, shop.forge.head, shop.forge.commits):
        with pytest.raises(MovedError, match="has moved") as caught:
            ask(repo)
        assert f"{repo.owner}/renamed" in caught.value.hint
    with pytest.raises(MovedError, match="has moved"):
        shop.forge.write(repo, [shop.new("x", "1")], shop.op())


def test_f89_what_is_missing_to_write_is_told_without_writing(
    shop: Workshop, guest: Client
) -> None:
    repo = shop.seeded_repo()
    reader = shop.token("read:repository", "read:user")[6:]
    before = shop.forge.head(repo)

    with shop.client(token=reader) as client:
        missing = client.missing_rights(repo)

    assert missing
    assert guest.missing_rights(repo) == (f"write access to {repo}",)
    assert shop.forge.missing_rights(repo) == ()
    with pytest.raises(NotFoundError):
        shop.forge.missing_rights(NOWHERE)
    assert shop.forge.head(repo) == before
    assert shop.api("POST", f"/repos/{repo}/issues", {"title": "T"}).json()["number"] == 1


def test_f99_a_webhook_is_there_once_it_was_registered(shop: Workshop, guest: Client) -> None:
    repo = shop.empty_repo()
    webhook = service_webhook("http://127.0.0.1:9/", "key")
    other = Webhook(webhook.url, (*webhook.events, "issues"), "key")

    for target in (repo, repo.owner):  # an organisation's may count for its repositories
        assert not shop.forge.has_webhook(target, webhook)
        shop.forge.ensure_webhook(target, webhook)
        assert shop.forge.has_webhook(target, webhook)
        assert not shop.forge.has_webhook(target, other)
        with pytest.raises((AccessError, NotFoundError)):
            guest.has_webhook(target, webhook)
    with pytest.raises(NotFoundError):
        shop.forge.has_webhook(NOWHERE, webhook)
