"""
End an order in a process that dies by SIGKILL before or after its n-th write, as if power failed.

``python -m dyingend PLATFORM_FILE ORDER NUMBER before|after [DEED LOGIN]`` counts the writes to
forge and catalog. With ``approve``, ``decline`` or ``settle``, somebody decides about an order that
waits; with ``decline-on-forge`` by the forge's credentials in the environment. What it asks of the
cluster is not counted: refreshes, as many as it has to wait; but for ``notify``, which tells the
channel LOGIN once that the order fails, and for ``seed``, a step of a bootstrap. *After* is when
the server's whole answer is here, of which the flow learns nothing. NUMBER 0 never dies: it prints
the writes, one a line.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ground.names import CommitSha
from orderkit.cli.connecting import connect, load_settings
from orderkit.core.notify.order_event import due, row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import NAMESPACE_NAME
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.approval.deciding import approve, decline, decline_on_forge, waiting_entry
from orderkit.flows.approval.settling import settle
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.install.bootstrapping import BootstrapRequest
from orderkit.flows.install.bootstrapping.bootstrap_run import PasswordSeedStep
from orderkit.flows.install.bootstrapping.steps import BootstrapContext
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.notify.notified_events import NotifiedEvents
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester

REQUESTER = "user:default/test"
_WRITES: dict[str, tuple[str, ...]] = {
    "forge": (
        "write",
        "archive",
        "delete_repo",
        "comment",
        "set_status",
        "merge_pull",
        "close_pull",
        "delete_branch",
        "open_pull",
        "ensure_branch",
        "review",
    ),
    "cluster": ("create", "replace"),
    "catalog": ("unregister",),
}


class _Deadly:
    """One port; its writing methods are counted, and one of them is the last."""

    def __init__(self, port: Any, name: str, counter: _Counter) -> None:
        self._port, self._name, self._counter = port, name, counter

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if method in _WRITES[self._name]:
            return self._counter.around(f"{self._name} {method}", found)
        return found


class _Counter:
    def __init__(self, last: int, side: str) -> None:
        self._last, self._side, self._number = last, side, 0

    def around(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self._number += 1
            if not self._last:
                sys.stdout.write(f"{what}\n")
            self._die("before")
            answer = call(*arguments, **options)
            self._die("after")
            return answer

        return counted

    def _die(self, side: str) -> None:
        if (self._number, self._side) == (self._last, side):
            os.kill(os.getpid(), signal.SIGKILL)


def main(file: str, order: str, number: str, side: str, *more: str) -> None:
    """Run one deed, which may not come to its end."""
    deed, login = more or ("end", "")
    platform = connect(load_settings(file))
    counter = _Counter(int(number), side)
    forge: Any = _Deadly(platform.forge, "forge", counter)
    catalog: Any = _Deadly(platform.catalog, "catalog", counter)
    cluster: Any = _Deadly(platform.cluster, "cluster", counter)
    deadly = replace(platform, forge=forge, catalog=catalog)
    person = Requester(f"user:default/{login}", "a token")
    match deed:
        case "approve":
            approve(deadly, order, person)
        case "decline":
            decline(deadly, order, person)
        case "decline-on-forge":
            decline_on_forge(deadly, order, REQUESTER)
        case "settle":
            settle(deadly, waiting_entry(deadly, order))
        case "notify":
            _notify(replace(platform, cluster=cluster), order, login)
        case "seed":
            values = PlatformValues("", CommitSha("0" * 40), LOCAL_REGISTRY)
            request = BootstrapRequest({}, values, REQUESTER)
            site = BootstrapContext(replace(platform, cluster=cluster), request)
            PasswordSeedStep(site).ensure(lambda _: None)
        case _:
            destroy(deadly, EndRequest(order, REQUESTER), on_step=lambda *_: None)


def _notify(platform: Platform, order: str, channel: str) -> None:
    """Do what the worker of a channel does: send what is due, note it, write it down."""
    notified = NotifiedEvents(platform, NAMESPACE_NAME, channel)
    notified.load()
    row = OrderRow(order, "ae86", "garage", "Failing", revision="a" * 40)
    for event in row_events(row, datetime(2026, 11, 23, tzinfo=UTC)):
        if numbered := due(event, notified.of(order), began=notified.began):
            sys.stdout.write(f"sent {numbered.id}\n")
            sys.stdout.flush()
            notified.note(numbered)
            notified.flush()


def run(arguments: Sequence[str]) -> None:
    """Run `main` in a fork of ``tests.crash.zygote``."""
    main(*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
