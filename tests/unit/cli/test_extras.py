"""What other distributions bring: found by entry points, and named where it is missing."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from ground.objects.kube_objects import Kind
from orderkit.cli import extras
from orderkit.cli.command_list import COMMANDS, EXTRA_OF


def test_each_command_of_an_extra_has_an_entry_point_and_no_other_has() -> None:
    found = {entry.name for entry in entry_points(group=extras.COMMANDS)}

    assert found == {*EXTRA_OF} == {name for name, (module, _) in COMMANDS.items() if not module}


@pytest.mark.parametrize("name", sorted(EXTRA_OF))
def test_the_command_of_an_extra_is_the_one_that_was_asked_for(name: str) -> None:
    command = extras.command(name)

    assert command.name == name
    assert command.help


def test_the_stand_ins_can_run_a_catalog() -> None:
    stand_ins = extras.stand_ins()

    assert stand_ins is not None
    assert callable(stand_ins.running_catalog)


def test_the_stand_ins_say_what_the_embedded_cluster_serves() -> None:
    stand_ins = extras.stand_ins()

    assert stand_ins is not None
    assert stand_ins.serves(Kind("apps", "v1", "Deployment"))
    assert not stand_ins.serves(Kind("batch", "v1beta1", "CronJob"))


@pytest.mark.parametrize(
    ("missing", "extra"),
    [("starlette.requests", "service"), ("jwt", "service"), ("yaml", ""), ("", "")],
)
def test_a_missing_library_names_the_extra_that_brings_it(missing: str, extra: str) -> None:
    error = extras.missing_extra(ModuleNotFoundError(missing, name=missing))

    assert (error.hint if error else "") == (f"pip install 'orderkit[{extra}]'" if extra else "")


def test_a_failure_that_is_no_import_needs_no_extra() -> None:
    assert extras.missing_extra(ValueError("starlette")) is None
