"""
A forge, the proxy before it, and a summary of what was done to it.

The forge is the embedded one, and the real Gitea where that runs (``--e2e``, ``--soak``).
"""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from faultproxy import FaultProxy, open_proxy
from lab.realgitea import Gitea
from tests.conformance.forge.faces import Client
from tests.faults import history
from tests.faults.deeds import GROUP, Look, client_of
from tests.workers import summary

from ground.names import RepoId
from orderkit.adapters.forges import answers
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.gitlab.face import FaceSettings

TOKEN = "e" * 40
READ_TIMEOUT_S = {False: 0.5, True: 4.0}
"""By whether the forge is a real one: it needs 0.3 s for a write when nothing else goes on."""
_numbers = itertools.count(1)


@dataclass
class Bench:
    """A forge with three clients: two through the proxy, one past it."""

    url: str
    token: str
    real: bool
    proxy: FaultProxy
    client: Client
    """Gives up soon: what the proxy withholds costs no time. For what is disturbed."""
    patient: Client
    """Waits as long as a busy machine needs. For what must end well."""
    direct: Client
    org: str
    scratch: Path
    embedded: EmbeddedForge | None = None
    face: str = "embedded"

    def new_repo(self) -> RepoId:
        """Return a new empty repository."""
        repo = RepoId(self.org, f"r{next(_numbers)}")
        self.direct.ensure_repo(repo, description="")
        return repo

    @property
    def name(self) -> str:
        names = {"real": "real Gitea", "github": "GitHub face", "gitlab": "GitLab face"}
        return names.get(self.face, "embedded forge")

    @property
    def look(self) -> Look:
        return Look(self.url, self.token, self.repository)

    def hits(self) -> Counter[str]:
        """Return what happened to writes so far, and begin to count anew."""
        found, self.proxy.hits = self.proxy.hits, Counter()
        return Counter({fault.value: count for fault, count in found.items()})

    def repository(self, repo: RepoId) -> Path:
        """Return its git repository: the forge's own, or a copy of a real forge's."""
        if self.embedded is None:
            return history.copy_of(self.url, self.token, repo, self.scratch)
        found = self.embedded.repository_path(repo)
        assert found is not None
        return found


class Report:
    """Counts for the summary of the run."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def add(self, title: str, counts: Counter[str]) -> None:
        self.counts.setdefault(title, Counter()).update(counts)

    def lines(self) -> Iterator[str]:
        for title, counts in self.counts.items():
            numbers = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            yield f"{title}: {numbers}"


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    """Count for the summary."""
    made = Report()
    summary(pytestconfig).add("faults", made.lines)
    return made


@pytest.fixture(scope="package", params=["embedded", "github", "gitlab", "real"])
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    scratch = tmp_path_factory.mktemp("faults")
    if request.param == "real":
        real: Gitea = request.getfixturevalue("real_gitea")
        yield from _bench("real", real.url, real.token, None, scratch)
        return
    gitlab = FaceSettings(GROUP) if request.param == "gitlab" else None
    forge = EmbeddedForge(scratch / "forge", gitlab=gitlab)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    yield from _bench(request.param, server.url, TOKEN, forge, scratch)
    server.stop()
    forge.close()


def _bench(
    face: str, url: str, token: str, embedded: EmbeddedForge | None, scratch: Path
) -> Iterator[Bench]:
    real, org = embedded is None, f"faults-{secrets.token_hex(3)}"
    with (
        pytest.MonkeyPatch.context() as patch,
        open_proxy(url) as proxy,
        client_of(face, proxy.url, token, READ_TIMEOUT_S[real]) as client,
        client_of(face, proxy.url, token, 120) as patient,
        client_of(face, url, token) as direct,
    ):
        if not real:
            patch.setattr(answers, "PAUSE_FIRST_S", 0.001)
            patch.setattr(answers, "PAUSE_MAX_S", 0.01)
        direct.ensure_org(org)
        yield Bench(url, token, real, proxy, client, patient, direct, org, scratch, embedded, face)
