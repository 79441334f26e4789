"""A service that dies before or after any of a task's writes: the same request finishes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.core.portal.profile import Profile
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.placing import TaskDone, TaskRequest, run_task
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

WRITES = ["ensure_repo", "write", "protect_branch", "write", "register"]
"""What the garage kit's natural steps write: repository, order, its protection, ledger, catalog."""


class Dead(BaseException):
    """The process is gone: nothing may catch this and go on."""


class Cut:
    """A port that lets everything through and dies at one write."""

    def __init__(self, port: Any, cut: tuple[int, str], seen: list[str]) -> None:
        self._port, self._cut, self._seen = port, cut, seen

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in WRITES:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            number, side = self._cut
            self._seen.append(name)
            if len(self._seen) == number and side == "before":
                raise Dead
            done = found(*arguments, **options)
            if len(self._seen) == number and side == "after":
                raise Dead
            return done

        return call


def cut_at(platform: Platform, cut: tuple[int, str], seen: list[str]) -> Platform:
    return replace(
        platform,
        forge=Cut(platform.forge, cut, seen),
        portal=Cut(platform.portal, cut, seen),
        catalog=Cut(platform.catalog, cut, seen),
    )


def order(platform: Platform, team: str) -> TaskDone:
    values = {"team_name": team, "stage": "stage2"}
    return run_task(platform, TaskRequest("garage", values, Requester("user:default/eve")))


def test_these_are_all_the_writes(platform: Running, team: str) -> None:
    seen: list[str] = []

    order(cut_at(platform.platform, (0, ""), seen), team)

    assert seen == WRITES


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(WRITES) + 1))
def test_a_task_cut_at_any_write_is_finished_by_the_same_request(
    number: int, side: str, platform: Running, team: str
) -> None:
    whole = platform.platform
    seen: list[str] = []
    with pytest.raises(Dead):
        order(cut_at(whole, (number, side), seen), team)
    assert len(seen) == number

    done = order(whole, team)

    repository = RepoId(team, f"garage-{team}")
    entry = PurePosixPath("apps", team, f"garage-{team}.yaml")
    assert done.entry is not None
    assert done.entry.order == f"garage-{team}"
    assert len(whole.forge.commits(repository)) == 1
    assert len(whole.forge.commits(whole.ledger, path=entry)) == 1
    assert whole.catalog.entity(f"component:default/garage-{team}") is not None
    assert order(whole, team).result.outputs == done.result.outputs
    assert not order(whole, team).created


def test_a_platform_that_changes_its_profile_publishes_the_other_template(
    platform: Running,
) -> None:
    """As `orderkit up --profile natural` on the same state would, and back."""
    found = platform.platform
    files = read_folder(reference_pack())
    commit = pack_commit(reference_pack(), files)
    folder = PurePosixPath("templates", "garage")

    def published(profile: Profile) -> set[str]:
        registry = platform.settings.registry
        values = PlatformValues(platform.settings.forge.url, commit, registry, profile)
        bootstrap(
            found, BootstrapRequest(files, values, "user:default/me"), on_step=lambda *_: None
        )
        head = found.forge.head(found.pack_repo)
        assert head is not None
        return {
            path.name for path in found.forge.tree(found.pack_repo, head) if path.parent == folder
        }

    assert "natural.yaml" not in published(Profile.NATURAL)
    assert "natural.yaml" in published(Profile.SERVICE)
