"""A browser without JavaScript at the embedded forge: a pull request and its buttons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from bays import new_bay
from browsing import browse
from changingpack import changing_pack
from forgeusers import embedded_admin, new_user
from lab.realbackstage import Backstage
from pullhand import Hand

from orderkit.flows.repeating import until
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

BODY = """Race day is on Sunday.

| Stage | Until |
|---|---|
| `stage1` | today |
| `stage2` | Sunday |

<script>alert(1)</script>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("forge-pages")
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ()
    )
    with running(request, on_step=lambda *_: None) as found:
        yield found


def test_a_pull_request_is_approved_and_merged_without_javascript(
    site: Running, tmp_path: Path
) -> None:
    hand = Hand(site.settings, new_bay(site.platform, "race"))
    pull = hand.edits("stage1", "stage2", body=BODY)
    until(
        site.platform.clock,
        lambda: hand.status(pull.head_commit),
        lambda status: status is not None,
        timeout_s=120,
        goal="the plan",
    )
    admin = embedded_admin(site.settings.forge.url, site.embedded.state.folder)
    keiko = new_user(admin, "keiko")
    # Where a kit wants reviews, only ``orderkit merge`` sets the check that main asks for.
    admin.api("DELETE", f"/repos/{hand.bay.repo}/branch_protections/main")
    owners = admin.api("GET", f"/orgs/{hand.bay.repo.owner}/teams")[0]
    admin.api("PUT", f"/teams/{owners['id']}/members/{keiko.login}")
    writer = {"username": keiko.login, "password": keiko.password}

    seen: Any = browse(
        "forge",
        cast("Backstage", SimpleNamespace(url=site.settings.forge.url)),
        tmp_path / "profile",
        writer=writer,
        signIn=f"{site.settings.forge.url}/?sign_in=/",
        pull=pull.web_url,
    )

    assert "Plan of" in seen["before"]
    assert "<script>alert(1)</script>" in seen["before"]
    assert f"{keiko.login} approved it" in seen["approved"]
    assert f"Merged by {keiko.login}" in seen["merged"]
    assert seen["problems"] == []
    assert seen["foreign"] == []
    assert "stage2" in hand.bay.text()
