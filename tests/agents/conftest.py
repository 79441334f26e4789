"""A cluster with the pack's kinds, a forge over HTTP, and buckets whose listing a test decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import UnreachableError
from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Commit, Forge
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.forge import EmbeddedForge
from whisperops.buckets import Blob
from whisperops.catalogrepo import CatalogFolder, CatalogRepo
from whisperops.comparing import LossRule
from whisperops.confirming import CONFIRM, Confirmation
from whisperops.records import XDATASET, Origin
from whisperops.registry import Registry
from whisperops.watching import Watcher, WatchResult

PACK = Path(__file__).parents[2] / "packs" / "agents"
TOKEN = "a" * 40
NAMESPACE = "whisperops"
SOURCE = "datasets"
ROOT = "gs://whisperops-datasets"
_numbers = itertools.count(1)


def dataset_crd() -> Manifest:
    found: Manifest = yaml.safe_load(
        (PACK / "gitops" / "apis" / "dataset" / "definition.yaml").read_text()
    )
    return found


@dataclass
class ListedBucket:
    """A bucket that lists what a test put there, or fails as it is told."""

    root: str = ROOT
    sizes: dict[str, int] = field(default_factory=dict)
    failing: bool = False

    def blobs(self) -> list[Blob]:
        if self.failing:
            raise UnreachableError(f"{self.root} cannot be listed: ConnectTimeout: no answer")
        return [Blob(path, size, f"v{size}") for path, size in sorted(self.sizes.items())]


@dataclass
class TestClock:
    """A clock that stands until it is moved."""

    __test__ = False
    time: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic_s(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Shop:
    """One bucket's registry and catalog, and the watchers that a test makes of it."""

    cluster: Cluster
    forge: Forge
    repo: RepoId
    bucket: ListedBucket = field(default_factory=ListedBucket)
    clock: TestClock = field(default_factory=TestClock)
    rule: LossRule = field(default_factory=LossRule)

    def watcher(self, **more: Any) -> Watcher:
        origin = Origin(self.bucket.root, SOURCE)
        cluster: Cluster = more.get("cluster", self.cluster)
        return Watcher(
            more.get("bucket", self.bucket),
            Registry(cluster, origin, self.clock),
            CatalogRepo(more.get("forge", self.forge), CatalogFolder(self.repo, SOURCE)),
            Confirmation(cluster, self.clock, namespace=NAMESPACE, source=SOURCE),
            origin,
            self.rule,
        )

    def passes(self, watcher: Watcher, count: int) -> list[WatchResult]:
        return [watcher.run_pass() for _ in range(count)]

    def records(self) -> dict[str, Manifest]:
        return {each["metadata"]["name"]: each for each in self.cluster.list(XDATASET).items}

    def commits(self) -> list[Commit]:
        return list(self.forge.commits(self.repo, limit=500))

    def entities(self) -> dict[str, Manifest]:
        """Return the Resources that the portal would read: what the Location names, no more."""
        root = self._documents(PurePosixPath(SOURCE, "catalog-info.yaml"))
        found = {}
        for target in root[0]["spec"]["targets"]:
            for entity in self._documents(PurePosixPath(SOURCE, target)):
                assert entity["kind"] == "Resource"
                found[entity["metadata"]["name"]] = entity
        return found

    def confirm(self) -> str:
        """Give the answer that the watcher asks for; return the question's reason."""
        question = self.question()
        assert question is not None
        answer = {"metadata": {"annotations": {CONFIRM: question["data"]["token"]}}}
        self.cluster.patch(ObjectKey.of(question), answer, owner="person")
        return str(question["data"]["reason"])

    def question(self) -> Manifest | None:
        return self.cluster.get(ObjectKey(CONFIG_MAP, f"dataset-watcher-{SOURCE}", NAMESPACE))

    def _documents(self, path: PurePosixPath) -> list[Manifest]:
        read = self.forge.read(self.repo, path, "main")
        assert read is not None, path
        return list(yaml.safe_load_all(read.text))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    opened.apply(dataset_crd(), owner="test")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    opened.apply(namespace, owner="test")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GiteaForge]:
    embedded = EmbeddedForge(tmp_path_factory.mktemp("forge"))
    server = HttpServer(embedded.app, bind("forge", 0))
    server.start()
    embedded.set_base_url(server.url)
    embedded.ensure_user("watcher", "watcher-pw1", admin=True)
    embedded.ensure_token("watcher", "tests", TOKEN, ["all"])
    yield GiteaForge(server.url, token=TOKEN)
    server.stop()
    embedded.close()


@pytest.fixture
def repo(forge: GiteaForge) -> RepoId:
    owner = f"platform{next(_numbers)}"
    forge.ensure_org(owner)
    return RepoId(owner, "datasets")


@pytest.fixture
def shop(cluster: EmbeddedCluster, forge: GiteaForge, repo: RepoId) -> Shop:
    return Shop(cluster, forge, repo)


@pytest.fixture
def filled(shop: Shop) -> Shop:
    """A shop of three datasets that everything is in step with."""
    shop.bucket.sizes = {
        "california-housing.csv": 1_990_000,
        "Athlete_Recovery.csv": 4_096,
        "spotify tracks.csv": 20_100_000,
    }
    assert not shop.watcher().run_pass().failures
    return shop


Maker = Callable[[], Watcher]
