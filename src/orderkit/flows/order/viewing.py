"""
Show one order with everything people want to see of it, and reveal its secret outputs.

`view` takes the row from the cluster and adds what only the forge knows. The number of requests to
the forge is bounded, whatever people pushed; a part that cannot be read is left empty. `reveal`
reads Secrets, and only those of the order itself. Called by the service, the console and the
command line.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError
from orderkit.core.kit.change_forms import changes_of, title_of
from orderkit.core.kit.model import Kit, KitOutput
from orderkit.core.names import MAIN
from orderkit.core.objects.kube_objects import Manifest, ObjectKey, controller, dig, metadata
from orderkit.core.objects.secret_values import SECRET
from orderkit.core.order.change.change_rules import ChangeRequester, ChangeVerdict, judge_who
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_summary import filled, plain
from orderkit.core.order.order_view import OfferedChange, OpenPull, OrderView, PartState
from orderkit.core.suggestions import did_you_mean
from orderkit.flows.order import order_damage, order_report
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.order.order_history import history_of
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.order.registrations import registered_by
from orderkit.flows.order.tracing import Trace, trace_of
from orderkit.flows.platform import Platform, RepositorySnapshot, get_object
from orderkit.ports.pulls import PLAN_CONTEXT, PullRequest
from orderkit.ports.requesters import Requester

PULLS_MAX = 10
"""Open pull requests that are shown, the newest first."""
SECRET_MAX = 20_000
"""Characters of a secret output."""
_VALUE_MAX = 20_000
"""Characters of one value as JSON; larger ones are left out."""
_AT_ONCE = 4
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks. Without a proof, `requester` is a claim and no change is refused for it."""

    requester: Requester
    may_change: bool = True
    """Whether they have the right ``change`` for the order's team."""


def view(
    platform: Platform,
    order: str,
    viewer: Viewer,
    *,
    ledger_files: RepositorySnapshot | None = None,
    report: OrderReport | None = None,
) -> OrderView:
    """
    Return an order's view.

    Args:
        ledger_files: The ledger's files, if they were read already.
        report: What `order_damage.status` reports, if that was asked already.

    Raises:
        NotFoundError: The ledger has no such order; the message says if it ended.
    """
    report = report or order_damage.status(platform, order, ledger_files)
    entry = report.entry
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        tree = threads.submit(trace_of, platform, report)
        costs = threads.submit(_tried, lambda: _costs(platform, report))
        live = _tried(lambda: find_living(platform, order, ledger_files))
        pulls = threads.submit(_tried, lambda: _pulls(platform, entry))
        owner = threads.submit(_tried, lambda: registered_by(platform, entry))
        entries = threads.submit(
            _tried, lambda: history_of(platform, live, limit=1) if live else None
        )
        at_head = _tried(lambda: _values(platform, live)) if live else None
    ordered_by = owner.result() or ""
    newest = (entries.result() or [])[:1]
    head, values = at_head or (None, {})
    row = report.row(tuple(_parts(tree.result())), costs.result())
    return OrderView(
        replace(row, owner=plain(ordered_by) or row.owner),
        report.state.head or head or "",
        values,
        pulls.result() or (),
        _changes(live, viewer, ordered_by) if live else (),
        newest[0].to_json() if newest else None,
        tuple(report.check.to_json()) if report.check else (),
        tuple(node.observed for _, node in tree.result().root.walk() if node.observed),
    )


def _tried(read: Callable[[], _Read]) -> _Read | None:
    """Return what is read, or None if it cannot be: a view without it is better than none."""
    try:
        return read()
    except OrderkitError:
        return None


def _costs(platform: Platform, report: OrderReport) -> OrderCost | None:
    xr = report.sources.xr
    return platform.cost_of(platform, xr) if xr else None


def _parts(tree: Trace) -> list[PartState]:
    nodes = [node for _, node in tree.root.walk() if not node.is_foreign]
    return [
        PartState(node.key, node.synced, node.ready, node.reason)
        for node in nodes
        if node is not tree.root and node.key != tree.report.xr
    ]


def _values(platform: Platform, live: LiveOrder) -> tuple[str, Mapping[str, Any]]:
    head = platform.forge.head(live.repository)
    if head is None:
        return "", {}
    spec = read_xr(platform, live, head).xr.get("spec")
    fields = live.kit.spec_schema.get("properties", {})
    return head, {
        name: value
        for name, value in (spec if isinstance(spec, dict) else {}).items()
        if name in fields and len(json.dumps(value, default=str)) <= _VALUE_MAX
    }


def _pulls(platform: Platform, entry: OrderEntry) -> tuple[OpenPull, ...]:
    repo = entry.repository
    newest = list(islice(platform.forge.pulls(repo, state="open", base=MAIN), PULLS_MAX))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return tuple(threads.map(lambda pull: _pull(platform, entry, pull), newest))


def open_pulls(
    platform: Platform, entries: Sequence[OrderEntry]
) -> list[tuple[OrderEntry, OpenPull]]:
    """
    Return the open pull requests of several orders, without their plans and proofs.

    Costs one request for each order; orders that cannot be read are left out.
    """

    def read(entry: OrderEntry) -> list[tuple[OrderEntry, OpenPull]]:
        pulls = platform.forge.pulls(entry.repository, state="open", base=MAIN)
        return [
            (
                entry,
                OpenPull(pull.number, plain(pull.title), pull.web_url, plain(pull.author.login)),
            )
            for pull in islice(pulls, PULLS_MAX)
        ]

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda entry: _tried(lambda: read(entry)) or [], entries)
        return [pull for pulls in found for pull in pulls]


def _pull(platform: Platform, entry: OrderEntry, pull: PullRequest) -> OpenPull:
    statuses = _tried(lambda: platform.forge.statuses(entry.repository, pull.head_commit)) or ()
    plan = next((status for status in statuses if status.context == PLAN_CONTEXT), None)
    return OpenPull(
        pull.number,
        plain(pull.title),
        pull.web_url,
        plain(_tried(lambda: _proved_requester(platform, entry, pull)) or pull.author.login),
        plain(plan.description) if plan else "",
        plan.state if plan else "",
    )


def _proved_requester(platform: Platform, entry: OrderEntry, pull: PullRequest) -> str:
    """Return who asked for a pull request, if a signature proves it; its text is anybody's."""
    if not pull.requester:
        return ""
    commits = platform.forge.commits(entry.repository, ref=pull.head_commit, limit=1)
    judge = CommitJudge(platform, entry.repository, pull.head_commit)
    return judge.requester(commits[0]) if commits else ""


def _changes(live: LiveOrder, viewer: Viewer, ordered_by: str) -> tuple[OfferedChange, ...]:
    asking = ChangeRequester(
        viewer.requester.ref,
        viewer.requester.groups,
        ordered_by,
        live.entry.team,
        live.kit.owner,
    )
    offered = []
    for change in changes_of(live.kit):
        why_not = "" if viewer.may_change else "you lack the right 'change' for this team"
        if not why_not and viewer.requester.proof:
            why_not = _refusal(ChangeVerdict((change,)), asking)
        offered.append(
            OfferedChange(
                change.name, title_of(change), change.fields, change.how, not why_not, why_not
            )
        )
    return tuple(offered)


def _refusal(verdict: ChangeVerdict, asking: ChangeRequester) -> str:
    try:
        judge_who(verdict, asking)
    except RefusedError as error:
        return str(error)
    return ""


def reveal(
    platform: Platform,
    order: str,
    names: Iterable[str],
    ledger_files: RepositorySnapshot | None = None,
) -> dict[str, str | None]:
    """
    Return the values of secret outputs by name; None if one is not there yet.

    A Secret is read only if the order composes it, or if one of its parts owns it: its name may
    come from a value that somebody pushed.

    Raises:
        NotFoundError: No such order.
        InvalidInputError: The kit declares no such secret output, or its value is not a text.
        RefusedError: The Secret is not the order's.
    """
    report = order_report.status(platform, order, ledger_files)
    outputs = [_secret_output(report.declared, name) for name in names]
    xr = report.sources.xr
    return {
        output.name: None if xr is None else _revealed(platform, report, output, xr)
        for output in outputs
    }


def _revealed(
    platform: Platform, report: OrderReport, output: KitOutput, xr: Manifest
) -> str | None:
    if output.path:
        value = dig(xr, "status", *output.path.split("."))
        return None if value is None else str(value)[:SECRET_MAX]
    secret = _own_secret(platform, report, output, xr)
    encoded = dig(secret, "data", output.secret_key)
    try:
        text = None if encoded is None else base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidInputError("output", output.name, "is not a text in its Secret") from error
    return None if text is None else text[:SECRET_MAX]


def _secret_output(kit: Kit | None, name: str) -> KitOutput:
    secret = {output.name: output for output in (kit.outputs if kit else ()) if output.is_secret}
    if name not in secret:
        hint = did_you_mean(name, secret, f"secret outputs: {', '.join(secret) or 'none'}")
        raise InvalidInputError("output", name, "is not a secret output of its kit", hint=hint)
    return secret[name]


def _own_secret(
    platform: Platform, report: OrderReport, output: KitOutput, xr: Manifest
) -> Manifest | None:
    name = filled(output.secret_name, xr)
    parts = list(trace_of(platform, report).parts())
    composed = [key for key in parts if key.kind == SECRET and key.name == name]
    namespace = filled(output.secret_namespace, xr) or str(metadata(xr).get("namespace") or "")
    keys = [key for key in composed if namespace in ("", key.namespace)]
    if keys:
        return get_object(platform, keys[0])
    secret = get_object(platform, ObjectKey(SECRET, name, namespace)) if namespace else None
    if secret is not None and not _is_owned(platform, secret, parts):
        raise RefusedError(
            f"Secret {namespace}/{name} is not one of {report.entry.order}",
            hint="an output names a Secret that the order composes, or that a part of it owns",
        )
    return secret


def _is_owned(platform: Platform, secret: Manifest, parts: list[ObjectKey]) -> bool:
    """Say whether one of the order's parts made a Secret, by its uid and not by its name."""
    owner = controller(secret)
    if owner is None:
        return False
    for key in parts:
        if (key.kind.kind, key.name) == (owner.get("kind"), owner.get("name")):
            part = get_object(platform, key)
            if part is not None and metadata(part).get("uid") == owner.get("uid"):
                return True
    return False
