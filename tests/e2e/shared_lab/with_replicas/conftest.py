"""The shared lab while its garages change directly, with replicas of the service beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from labplatform import CHIEF, ServedLab
from replicas import ServedPlatform
from tests.component.replicas.conftest import add, figures, replicas

from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation

__all__ = ["add", "figures", "replicas"]
"""Fixtures."""
KIT = PurePosixPath("templates/garage/kit.yaml")


@pytest.fixture(scope="package")
def platform(served_lab: ServedLab) -> Iterator[ServedPlatform]:
    with changing_directly(served_lab.platform):
        yield ServedPlatform(served_lab.file, served_lab.platform)


@contextlib.contextmanager
def changing_directly(platform: Platform) -> Iterator[None]:
    """Publish a garage whose changes need no review, and the reviewed one again."""

    def publish(old: str, new: str, operation: str) -> None:
        seen = platform.forge.read(platform.pack_repo, KIT, "main")
        assert seen is not None
        text = seen.text.replace(old, new)
        change = FileChange(KIT, text.encode(), seen.sha)
        platform.forge.write(platform.pack_repo, [change], Operation(operation, CHIEF, new))

    publish("how: review", "how: direct", "direct")
    yield
    publish("how: direct", "how: review", "reviewed")
