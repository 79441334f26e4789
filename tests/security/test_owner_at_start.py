"""An owner who was added to the platform's organisation neither stops it nor is taken for ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import in_process
from forgeusers import embedded_admin, new_user

from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import load_settings
from orderkit_standins.commands.up import held_back_text
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

QUICK = ("bootstrap", "--no-probe")


def test_up_starts_with_a_foreign_owner_and_each_remedy_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The forge has to run, because nobody can remove the owner from a forge that is down."""
    state = tmp_path / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    orderkit = in_process(state / PLATFORM_FILE, capsys)
    with running(request, on_step=lambda *_: None) as first:
        assert held_back_text(first) == ""
        org = first.settings.ledger.owner
        admin = embedded_admin(first.settings.forge.url, state)
        mike = new_user(admin, "mike")
        (owners,) = (
            t["id"] for t in admin.api("GET", f"/orgs/{org}/teams") if t["name"] == "Owners"
        )
        seat = f"/teams/{owners}/members/{mike.login}"
        admin.api("PUT", seat)

    with running(request, on_step=lambda *_: None) as second:
        told = held_back_text(second)
        head = second.platform.forge.head(second.platform.ledger)
        refused, adopted = orderkit(*QUICK), orderkit(*QUICK, "--adopt", mike.login)
        admin.api("DELETE", seat)
        removed = orderkit(*QUICK)
        admin.api("PUT", seat)

    assert [step.step for step in second.held_back] == ["ledger", "pack"]
    assert f"organisation {org} is not the platform's alone: {mike.login} (owner)" in told
    assert f"orderkit bootstrap --adopt {mike.login}, or spec.forge.adopted" in told
    assert head is not None
    assert (refused.code, adopted.code, removed.code) == (4, 0, 0), adopted.err + removed.err

    settings = load_settings(str(state / PLATFORM_FILE))
    settings = changed(settings, forge=changed(settings.forge, adopted=(mike.login,)))
    (state / PLATFORM_FILE).write_text(settings.to_yaml())
    with running(request, on_step=lambda *_: None) as third:
        assert third.held_back == ()
