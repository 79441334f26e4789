"""An imported XRD with 258 values, ordered by Backstage's own steps."""

from __future__ import annotations

from published import Up, read_kit
from scaffolderapi import Scaffolder
from wildforms import RARE, RARE_TEXT, fleet_parameters

PROFILE = "natural"
TEAM = "ae86"


def test_they_write_what_was_entered(up: Up, scaffolder: Scaffolder) -> None:
    values = {"name": "own", "team": TEAM, "region": "eu", "vmCount": 3, "osImage": "debian-13"}
    kit = read_kit(up, "fleet", {**values, "more_settings": RARE_TEXT})

    done = scaffolder.run("fleet", kit.values)

    assert done.status == "completed", done
    assert fleet_parameters(up, TEAM, "fleet-own") == {
        "region": "eu",
        "vmCount": 3,
        "osImage": "debian-13",
        **RARE,
    }
