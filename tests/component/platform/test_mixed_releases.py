"""
Release 0.2.0 and this one on the same platform, as during an upgrade.

0.2.0 comes from this repository's history; without it, nothing can be said. Its embedded platform
is started with its own code, ends, and this release goes on with its state.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import Command, Done, as_process
from documentedpages import ANY_PORT, ROOT, environment, running_platform

RELEASE = "cad79e426f46a0d03f1896b318b4855221fb0c73"
"""The commit of 0.2.0."""
TEAMS = ("--team=ae86", "--team=rx7")
pytestmark = pytest.mark.soak


@dataclass
class Mixed:
    """A platform that 0.2.0 made, with an order, and that this release runs now."""

    home: Path
    source: Path
    new: Command

    @property
    def file(self) -> Path:
        return self.home / ".local/state/orderkit/platform.yaml"

    @property
    def environ(self) -> dict[str, str]:
        return {**environment(self.home), "PYTHONPATH": str(self.source / "src")}

    def old(self, *arguments: str, file: Path | None = None) -> Done:
        done = subprocess.run(
            [*_OLD, *arguments, "--platform", str(file or self.file)],
            env=self.environ,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        return Done(done.returncode, done.stdout, done.stderr)


_OLD = (sys.executable, "-P", "-m", "orderkit")


def unpacked(home: Path) -> Mixed:
    """Return 0.2.0 beside this release, with nothing running."""
    parts = ("src", "gitops", "stations", "templates", "pack.yaml")
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", RELEASE, *parts], capture_output=True, check=False
    )
    if packed.returncode:
        pytest.skip("the history has no 0.2.0")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(home / "old", filter="data")
    return Mixed(home, home / "old", as_process(home / ".local/state/orderkit/platform.yaml"))


@contextmanager
def old_platform(mixed: Mixed, *options: str) -> Iterator[None]:
    """Run the embedded platform of 0.2.0, and its service, with its own code."""
    with subprocess.Popen(
        [*_OLD, "up", *ANY_PORT, *options], env=mixed.environ, cwd=mixed.home,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert any("Stop with ctrl-C" in line for line in process.stdout)
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    found = unpacked(tmp_path_factory.mktemp("home"))
    with old_platform(found, *TEAMS):
        assert found.old("order", "garage", "team_name=ae86", "stage=stage1").code == 0
        listed = found.new("list", "--json").json["orders"]
        assert [(row["order"], row["phase"]) for row in listed] == [("garage-ae86", "Ready")], (
            "this release reads the ledger and the kit of 0.2.0"
        )
    with running_platform(found.home, (*ANY_PORT, *TEAMS)):
        yield found


def test_an_order_of_the_old_release_lives_on(mixed: Mixed) -> None:
    done = mixed.new("wait", "garage-ae86", "--timeout", "60")
    assert done.code == 0, done.err
    status = mixed.new("status", "garage-ae86", "--json")
    assert status.json["phase"] == "Ready"
    assert mixed.new("history", "garage-ae86").code == 0


def test_the_old_command_refuses_what_it_does_not_know_and_writes_nothing(mixed: Mixed) -> None:
    """It cannot know this release's versions; it names the key that it does not know."""
    before = mixed.new("log", "--json").json
    refused = mixed.old("order", "garage", "team_name=rx7", "stage=stage1")
    assert refused.code == 2
    assert "'signingKeyFile' is no known key" in refused.err

    own = mixed.home / "own.yaml"
    lines = mixed.file.read_text().splitlines(keepends=True)
    own.write_text("".join(line for line in lines if "signingKeyFile" not in line))
    refused = mixed.old("order", "garage", "team_name=rx7", "stage=stage1", file=own)
    assert refused.code == 2
    assert "templates/garage/kit.yaml" in refused.err
    assert "'outputs' is no known key" in refused.err
    assert mixed.new("log", "--json").json == before
    assert mixed.new("status", "garage-rx7").code != 0


def test_this_release_orders_beside_it_and_ends_the_old_order(mixed: Mixed) -> None:
    done = mixed.new("order", "garage", "team_name=rx7", "stage=stage1")
    assert done.code == 0, done.err
    done = mixed.new("destroy", "garage-ae86", "--yes")
    assert done.code == 0, done.err
    assert [row["order"] for row in mixed.new("list", "--json").json["orders"]] == ["garage-rx7"]
