"""Every generated form of the corpus as the real scaffolder's backend hands it out."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml
from corpuspack import kit_names, made
from formanswers import fill
from scaffolderapi import Scaffolder

from yamlfiles.manifests import parse_manifests

PROFILE = "corpus"
_BAKED = {"forge_host", "pack_commit", "domain"}


@pytest.mark.parametrize("kit", kit_names())
def test_the_backend_hands_the_form_out_as_it_was_generated(
    scaffolder: Scaffolder, kit: str
) -> None:
    pages = scaffolder.form(kit)

    ours = made(kit).pages
    assert len(pages) == len(ours)
    for theirs, mine in zip(pages, ours, strict=True):
        assert set(theirs["properties"]) == set(mine["properties"])
        for name in set(mine["properties"]) - _BAKED:
            assert theirs["properties"][name] == mine["properties"][name]
        assert theirs.get("required") == mine.get("required")
        assert theirs.get("dependencies") == mine.get("dependencies")


@pytest.mark.parametrize("kit", kit_names())
def test_a_dry_run_of_the_backend_writes_the_xr_that_ours_writes(
    scaffolder: Scaffolder, kit: str
) -> None:
    ours = made(kit)
    room = PurePosixPath("templates", kit)
    template = room / "template.yaml"
    files = {
        path.relative_to(room): data
        for path, data in ours.files.items()
        if path.is_relative_to(room) and path != template
    }
    entity = yaml.safe_load(ours.files[template])

    for values in fill(ours, 2):
        whole = ours.template.validate(values)
        done = scaffolder.dry_run(entity, whole, files)

        (xr,) = (
            manifest
            for path, file in done.files.items()
            if path.parts[0] == "manifests"
            for manifest in parse_manifests(str(path), file.data)
        )
        assert xr == ours.order(values)
