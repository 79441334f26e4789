"""The catalog repository: one commit for a change, none without, whoever else is at work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from faultproxy import Decision, Fault, FaultProxy, Listed, Seeded, open_proxy

from ground.errors import UnreachableError
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.catalog import EmbeddedCatalog
from whisperops.catalogrepo import REQUESTER
from whisperops.entities import Dataset, Entities

TOKEN = "a" * 40


@pytest.fixture
def proxy(forge: GiteaForge) -> Iterator[FaultProxy]:
    with open_proxy(forge.base_url) as found:
        yield found


def test_a_commit_says_who_asked_and_what_it_is(filled: Any) -> None:
    (commit,) = filled.commits()

    assert commit.requester == REQUESTER == "component:default/dataset-watcher"
    assert commit.operation.startswith("datasets-")
    assert commit.summary == "datasets: bring 4 files in step with the registry"


def test_what_was_changed_by_hand_is_mended_in_one_commit(filled: Any) -> None:
    watcher = filled.watcher()
    watcher.run_pass()
    head = filled.forge.head(filled.repo)
    tree = filled.forge.tree(filled.repo, head)
    path = min(path for path in tree if path.parent.name == "entities")
    stray = PurePosixPath("datasets/entities/stray.yaml")
    note = PurePosixPath("datasets/NOTES.md")
    changes = [
        FileChange(path, b"kind: Nonsense\n", tree[path]),
        FileChange(stray, b"kind: Stray\n", None),
        FileChange(note, b"for people\n", None),
    ]
    filled.forge.write(filled.repo, changes, Operation("hand", "user:default/eve", "edit"))

    done = watcher.run_pass()

    assert done.commit == filled.forge.head(filled.repo)
    after = filled.forge.tree(filled.repo, done.commit)
    assert after[path] == tree[path]
    assert stray not in after
    assert note in after, "only what the watcher writes is its own"


def test_two_watchers_make_one_commit_and_one_record_of_everything(shop: Any) -> None:
    shop.bucket.sizes = {f"data-{number}.csv": number + 1 for number in range(20)}
    watchers = [shop.watcher(), shop.watcher()]

    for watcher in watchers * 2:
        assert not watcher.run_pass().failures

    assert len(shop.records()) == len(shop.entities()) == 20
    assert len(shop.commits()) == 1
    shop.bucket.sizes["data-3.csv"] = 999
    assert [watcher.run_pass().writes for watcher in watchers] == [2, 0]
    assert len(shop.commits()) == 2


def test_a_forge_that_is_down_stops_no_record_and_is_caught_up_with(
    filled: Any, proxy: FaultProxy
) -> None:
    watcher = filled.watcher(forge=GiteaForge(proxy.url, token=TOKEN))
    watcher.run_pass()
    filled.bucket.sizes["new.csv"] = 5
    with proxy.using(Listed([Decision(Fault.DROP_BEFORE)] * 1000, lambda *_: True)):
        down = watcher.run_pass()

    up = watcher.run_pass()

    assert tuple(down.failures) == ("catalog",)
    assert down.writes == 2
    assert not up.failures
    assert up.commit
    assert "new" in filled.entities()
    assert len(filled.commits()) == 2


def test_a_commit_whose_answer_is_lost_is_made_once(filled: Any, proxy: FaultProxy) -> None:
    watcher = filled.watcher(forge=GiteaForge(proxy.url, token=TOKEN))
    filled.bucket.sizes["new.csv"] = 5
    with proxy.using(Listed([Decision(Fault.DROP_AFTER)])):
        first = watcher.run_pass()

    assert not first.failures
    assert first.commit == filled.forge.head(filled.repo)
    assert watcher.run_pass().commit is None
    assert len(filled.commits()) == 2


def test_a_bad_line_to_the_forge_costs_passes_and_no_commits(
    shop: Any, proxy: FaultProxy, chances: Any
) -> None:
    """Each change is one commit, whatever was lost, late or false on the way."""
    watcher = shop.watcher(forge=GiteaForge(proxy.url, token=TOKEN))
    random = chances.random("bad line to the catalog")
    changes = chances.count(6, 100)
    for number in range(changes):
        shop.bucket.sizes[f"data-{random.randrange(5)}.csv"] = number + 1
        with proxy.using(Seeded(random, slow_rate=0)):
            for _ in range(3):
                watcher.run_pass()
        proxy.deliver_late()
        while watcher.run_pass().failures:
            pass  # the line is good now; what was late may have come in between

    assert {each["spec"]["sizeBytes"] for each in shop.records().values()} == {
        *shop.bucket.sizes.values()
    }
    assert shop.entities().keys() == shop.records().keys()
    assert len(shop.commits()) == changes


def test_ten_thousand_datasets_are_at_most_257_files() -> None:
    datasets = [
        Dataset(f"d-{n}", f"D {n}", f"gs://b/{n}.csv", n + 1, ready=True) for n in range(10_000)
    ]
    made = Entities("datasets", "group:default/platform")
    files = made.files(datasets)

    assert len(files) == 257
    assert max(map(len, files.values())) < 64 * 1024
    changed = [*datasets[:-1], Dataset("d-9999", "D", "gs://b/9999.csv", 1, ready=True)]
    after = made.files(changed)
    assert sum(after[path] != data for path, data in files.items()) == 1


def test_the_portal_is_told_once_and_then_follows(filled: Any, tmp_path: Path) -> None:
    """What is registered is the Location; the datasets are read through it."""
    where = f"{filled.forge.base_url}/{filled.repo}/src/branch/main/datasets/catalog-info.yaml"
    catalog = EmbeddedCatalog(
        tmp_path / "catalog.sqlite",
        filled.forge,
        interval_s=3600,
        platform_org=filled.repo.owner,
    )
    told: list[str] = []

    def register() -> object:
        told.append(where)
        if len(told) == 1:
            raise UnreachableError("the portal is starting")
        return catalog.register(where)

    watcher = filled.watcher()
    watcher.register = register
    first, *rest = filled.passes(watcher, 3)
    filled.bucket.sizes["new.csv"] = 5
    watcher.run_pass()
    catalog.refresh()

    assert tuple(first.failures) == ("catalog",)
    assert not any(each.failures for each in rest)
    assert len(told) == 2
    found = {entity["metadata"]["name"] for entity in catalog.entities()}
    assert found == {*filled.records(), "datasets"}
    catalog.close()
