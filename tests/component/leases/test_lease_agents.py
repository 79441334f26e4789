"""An AI agent asks to extend an order or to end it: a request that a person merges."""

from __future__ import annotations

import pytest
import requests
import yaml
from tests.component.leases.conftest import Leases, entry_of
from tests.component.leases.test_lease_sweeps import (
    EVE,
    HOUR,
    XR,
    KilledError,
    ends,
    rewritten,
    write_notes,
)

from ground.errors import InvalidInputError, RefusedError
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order.end_record import PROTECTED, Phase
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.lease.extending import (
    ExtendRequest,
    extend_lease,
    propose_end,
    propose_extension,
    read_leased,
)
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import MergeStyle, Operation
from orderkit_standins.serve_platform import Running


def asked_by_agent(site: Running, path: str, **body: str) -> requests.Response:
    headers = {SECRET_HEADER: token(site.settings.service)}
    body = {"requester": EVE.ref, "agent": "bot", "reason": "it said so", **body}
    url = f"{site.settings.service.url}/v1/orders/{path}"
    return requests.post(url, json=body, headers=headers, timeout=60)


def test_an_extension_that_an_agent_asks_for_is_one_open_request(
    running_platform: Running, order: str, platform: Platform, leases: Leases
) -> None:
    before, forge = leases.expires(order), platform.forge
    first, second = (
        asked_by_agent(running_platform, f"{order}/lease", by=by) for by in ("2h", "3h")
    )
    (pull,) = forge.pulls(platform.ledger, head=f"orderkit/agents/extend-{order}")
    assert [first.status_code, second.status_code] == [201, 201], first.text
    assert first.json()["url"] == second.json()["url"] == pull.web_url
    assert "on behalf of user:default/eve" in pull.body
    assert "it said so" in pull.body
    statuses = forge.statuses(platform.ledger, pull.head_commit)
    assert ("orderkit/approval", "success") in [(one.context, one.state) for one in statuses]
    forge.close_pull(platform.ledger, pull.number)
    extend_lease(platform, ExtendRequest(order, HOUR, EVE, "meanwhile"))

    again = asked_by_agent(running_platform, f"{order}/lease", by="3h")

    assert again.json()["url"] != pull.web_url
    assert leases.expires(order) == before + HOUR
    (pull,) = forge.pulls(platform.ledger, head=f"orderkit/agents/extend-{order}")
    merging = Operation("merge", EVE.ref, "merge")
    forge.merge_pull(
        platform.ledger,
        pull.number,
        head=pull.head_commit,
        style=MergeStyle.MERGE,
        operation=merging,
    )
    assert leases.expires(order) == before + 4 * HOUR


@pytest.mark.parametrize("has_lease", [True, False])
def test_an_end_that_an_agent_asks_for_is_carried_out_once_a_person_merges_it(
    running_platform: Running,
    order: str,
    platform: Platform,
    leases: Leases,
    *,
    has_lease: bool,
) -> None:
    leases.delivered(order)
    lease = read_leased(platform, entry_of(order)).record
    assert lease is not None
    if not has_lease:
        write_notes(platform, order, {})
    asked = asked_by_agent(running_platform, f"{order}/end", confirm=order)

    assert (asked.status_code, asked.json()["state"]) == (202, "proposed"), asked.text
    record = read_leased(platform, entry_of(order)).record
    assert record == (lease if has_lease else None)
    (pull,) = platform.forge.pulls(platform.ledger, head=f"orderkit/agents/end-{order}")
    merging = Operation("merge", EVE.ref, "merge")
    platform.forge.merge_pull(
        platform.ledger,
        pull.number,
        head=pull.head_commit,
        style=MergeStyle.MERGE,
        operation=merging,
    )
    record = read_leased(platform, entry_of(order)).record
    assert record is not None
    assert (record.by, record.reason) == (EVE.ref, "it said so")
    assert (record.began == lease.began) is has_lease
    until(
        SystemClock(), lambda: leases.actions(order), bool, timeout_s=60, goal="the end being seen"
    )
    assert ends(platform, order)[1] == 1


def test_no_agent_asks_for_what_a_person_could_not(
    order: str, platform: Platform, leases: Leases
) -> None:
    leases.delivered(order)
    repo = entry_of(order).repository
    with pytest.raises(InvalidInputError, match="catalog reference"):
        propose_end(platform, EndRequest(order, "nobody"))
    sound = platform.forge.read(repo, XR, "main")
    assert sound is not None
    xr = yaml.safe_load(sound.data)
    xr["metadata"].setdefault("annotations", {})[PROTECTED] = "audited"
    rewritten(platform, repo, XR, yaml.safe_dump(xr).encode())
    with pytest.raises(RefusedError, match="is protected and cannot end"):
        propose_end(platform, EndRequest(order, EVE.ref))
    rewritten(platform, repo, XR, sound.data)

    def cut(_step: Phase, _: str) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        destroy(platform, EndRequest(order, EVE.ref), on_step=cut)
    extending = ExtendRequest(order, HOUR, EVE, "wait")
    with pytest.raises(RefusedError, match="is ending"):
        propose_extension(platform, extending)
    with pytest.raises(RefusedError, match="is ending and cannot be extended"):
        extend_lease(platform, extending)
    assert not tuple(platform.forge.pulls(platform.ledger, head=f"orderkit/agents/end-{order}"))
