"""
One embedded forge for all unit tests of a process, and what each test has on it.

A test has organisations, repositories and people of its own names, so it disturbs no other one.
Our account owns what it made, and is no site admin: what belongs to others is refused to it.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from bareplatform import platform_of
from faultproxy import Decision, Fault, FaultProxy, Plan, open_proxy

from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.gitea import GiteaForge
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.pulls import ForgeUser
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge, accounts
from orderkit_standins.forge.repositories import NewRepository

US = "Orderkit"
"""Our account. It owns what it makes and is no site admin."""
PEOPLE = EVE, FRANK, CAROL, BOT, MALLORY, DAVE, GINA = tuple(
    ForgeUser(number, login)
    for number, login in enumerate(("eve", "frank", "carol", "bot", "mallory", "dave", "Gina"), 2)
)
"""People that every test finds on the forge."""
SCOPES = ("write:issue", "write:organization", "write:repository", "write:user")
COMMON = RepoId("platform", "ledger"), RepoId("ae86", "garage-a")
"""Repositories of tests that change nothing in them and in their organisations."""
_numbers = itertools.count(1)


@dataclass
class Watched(Plan):
    """Notes the requests whose path has a word, and does to the next ones what it is told."""

    next: list[Decision] = field(default_factory=list)
    about: str = "/branches/"
    act: Callable[[], object] = lambda: None
    asked: queue.Queue[str] = field(default_factory=queue.Queue)

    def decide(self, method: str, path: str) -> Decision:
        if self.about not in path:
            return super().decide(method, path)
        self.asked.put(path)
        return self.next.pop(0) if self.next else Decision()

    def hook(self) -> None:
        self.act()


def unanswered(calls: int = 1) -> list[Decision]:
    """Return what leaves so many calls that read without an answer, with all their tries."""
    return [Decision(Fault.DROP_BEFORE)] * (calls * answers.GET_TRIES)


@dataclass
class SharedForge:
    """The forge of the process."""

    embedded: EmbeddedForge
    url: str

    @cached_property
    def ours(self) -> GiteaForge:
        """Our account's client, for all tests."""
        return self.client()

    def client(
        self, login: str = US, *, url: str = "", scopes: tuple[str, ...] = SCOPES, **how: Any
    ) -> GiteaForge:
        """Return a new client of somebody, who has a token of those scopes from now on."""
        secret = f"{next(_numbers):040x}"
        self.embedded.ensure_token(login, secret, secret, scopes)
        return GiteaForge(url or self.url, token=secret, **how)


@contextmanager
def shared_forge(folder: Path) -> Iterator[SharedForge]:
    """Serve a forge; a call that gets no answer is tried again at once."""
    with ExitStack() as undo:
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(accounts, "_SCRYPT_N", 2)  # nobody here signs in with a password
        patch.setattr(answers, "GET_PAUSE_S", 0.001)
        embedded = EmbeddedForge(folder)
        undo.callback(embedded.close)
        server = HttpServer(embedded.app, bind("forge", 0))
        embedded.set_base_url(server.url)
        server.start()
        undo.callback(server.stop)
        made = [
            embedded.accounts.ensure_user(login, login)
            for login in (US, *(person.login for person in PEOPLE))
        ]
        assert [ForgeUser(each.id, each.name) for each in made[1:]] == [*PEOPLE]
        shared = SharedForge(embedded, server.url)
        with shared.ours:
            for repo in COMMON:
                OwnForge(shared, undo, mark="").repo(repo)
            yield shared


@dataclass
class OwnForge:
    """What one test has on the shared forge."""

    shared: SharedForge
    undo: ExitStack
    mark: str = field(default_factory=lambda: f"-t{next(_numbers)}")
    """What the names of its organisations end with."""
    common: Collection[str] = ()
    """Organisations of `COMMON` that this test has not of its own."""

    @property
    def client(self) -> GiteaForge:
        """Our account's client."""
        return self.shared.ours

    def client_of(self, login: str = US, **how: Any) -> GiteaForge:
        """Return a new client, of our account or of another one."""
        client = self.shared.client(login, **how)
        self.undo.callback(client.close)
        return client

    def proxy(self, plan: Plan | None = None) -> FaultProxy:
        """Return a new proxy before the forge; `proxied` reads through it."""
        proxy = self.undo.enter_context(open_proxy(self.shared.url))
        proxy.plan = plan or Plan()
        return proxy

    def proxied(self, plan: Plan) -> GiteaForge:
        """Return a new client whose requests get the faults of a plan."""
        return self.client_of(url=self.proxy(plan).url)

    @property
    def ledger(self) -> RepoId:
        return RepoId(self.named("platform"), "ledger")

    @property
    def pack(self) -> RepoId:
        return RepoId(self.named("platform"), "pack")

    def named(self, name: str) -> str:
        """Return the name that an account or organisation has for this test."""
        return name if name in self.common else name + self.mark

    def plain(self, text: str) -> str:
        """Return a text with the names as tests of other forges would have them."""
        return text.replace(self.mark, "")

    def org(self, name: str, *, owner: str = US) -> str:
        """Make sure that an organisation of this test is there; return its name."""
        whole, found = self.named(name), self.shared.embedded.accounts
        if found.find(whole) is None:
            account = found.find_user(owner)
            assert account
            found.create_org(whole, account)
        return whole

    def empty(self, repo: RepoId) -> None:
        """Make an empty repository in an organisation of this test."""
        owner = self.shared.embedded.accounts.find(self.org(repo.owner.removesuffix(self.mark)))
        assert owner
        self.shared.embedded.repositories.create(owner, NewRepository(repo.name))

    def repo(self, repo: RepoId, files: Mapping[str, str] | None = None) -> CommitSha:
        """Make a repository with files; return their commit."""
        self.empty(repo)
        return self.write(repo, files or {"README.md": ""})

    def write(self, repo: RepoId, files: Mapping[str, str | None]) -> CommitSha:
        """Commit files to main, over what is there; None removes one."""
        head = self.client.head(repo)
        there = self.client.tree(repo, head) if head else {}
        changes = [
            FileChange(path, None if text is None else text.encode(), there.get(path))
            for path, text in ((PurePosixPath(name), text) for name, text in files.items())
        ]
        operation = Operation(f"op-{next(_numbers)}", "user:default/tester", "Change files")
        return self.client.write(repo, changes, operation).commit

    def platform(self, cluster: Any = None, **parts: Any) -> Platform:
        """Return a platform whose ledger and pack are this test's; without what is not named."""
        ours = {"forge": self.client, "ledger": self.ledger, "pack_repo": self.pack}
        return platform_of(cluster, **{**ours, **parts})
