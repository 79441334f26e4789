"""Plan for an order: edits, a new XR, or the step between two commits."""

from __future__ import annotations

import re
from dataclasses import replace

from ground.errors import InvalidInputError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest
from orderkit.core.plan import Plan
from orderkit.flows.change.applying import FormEntry, form_request
from orderkit.flows.change.edit_draft import ChangeEditor
from orderkit.flows.change.request import ChangeRequest, tidied
from orderkit.flows.order.approvals import Asking, foreseen, needs_of_step
from orderkit.flows.order.live_order import LiveOrder, find_commit, find_living, main_head, read_xr
from orderkit.flows.plan.order_plan import USUAL, Basis, plan_order
from orderkit.flows.plan.pull_requests import check_same, within_limits
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Forge


def plan_edits(platform: Platform, request: ChangeRequest, *, basis: Basis = USUAL) -> Plan:
    """
    Return the plan of a change, with the same checks as `flows.change.change`.

    Raises:
        OrderkitError: What `flows.change.change` raises for a refused change.
    """
    live = find_living(platform, request.order)
    editor = ChangeEditor(platform, live, tidied(request))
    edited = editor.edit(editor.read(editor.head()), editor.targets)
    plan = plan_order(platform, live, edited.current.xr, edited.xr, basis=basis)
    asking = Asking(request.requester.ref, request.requester.proof)
    needs = needs_of_step(platform, live, edited.xr, asking, current=edited.current)
    return replace(plan, approval=foreseen(platform, live.entry, needs, asking))


def plan_form_entry(
    platform: Platform, live: LiveOrder, entry: FormEntry, request: ChangeRequest
) -> Plan:
    """Return the plan of a form's values; raises like `plan_edits`."""
    return plan_edits(platform, form_request(platform, live, entry, request))


def plan_xr(platform: Platform, order: str, new: Manifest, *, basis: Basis = USUAL) -> Plan:
    """
    Return the plan of replacing the order's XR.

    The plan includes what the API server or the team's limits would refuse; the kit's rules are
    not applied.

    Raises:
        NotFoundError: No such order, or no XR in it.
        RefusedError: It is another object than the order's XR.
    """
    live = find_living(platform, order)
    old = read_xr(platform, live, main_head(platform, live.repository)).xr
    check_same(live, old, new)
    return within_limits(platform, live, old, plan_order(platform, live, old, new, basis=basis))


def plan_between(
    platform: Platform,
    order: str,
    base: str | None,
    head: str,
    *,
    basis: Basis = USUAL,
) -> Plan:
    """
    Return the plan of the step between two commits, of a pull request or of the history.

    Args:
        base: None: the head of main.
        head: A commit, or a branch.

    Raises:
        NotFoundError, InvalidInputError: No such order or commit.
    """
    live = find_living(platform, order)
    old = read_xr(platform, live, _commit(platform.forge, live, base or "main", "base")).xr
    new = read_xr(platform, live, _commit(platform.forge, live, head, "head")).xr
    check_same(live, old, new)
    basis = replace(basis, historical=base is not None)
    return within_limits(platform, live, old, plan_order(platform, live, old, new, basis=basis))


def _commit(forge: Forge, live: LiveOrder, name: str, field: str) -> CommitSha:
    """
    Return the commit of a branch, an id or an abbreviated id.

    Raises:
        InvalidInputError: It is none of them.
    """
    branch = forge.head(live.repository, name)
    if branch is not None:
        return branch
    if len(name) in _FULL_LENGTHS and forge.commits(live.repository, ref=name, limit=1):
        return CommitSha(name)
    if _COMMIT.fullmatch(name):
        return find_commit(forge, live, name, field=field).id
    raise InvalidInputError(
        field, name, f"is no branch of {live.repository}", hint=_branches(forge, live)
    )


def _branches(forge: Forge, live: LiveOrder) -> str:
    """Name the branches of open pull requests, and the command that lists all branches."""
    every = f"git ls-remote --heads {forge.base_url}/{live.repository}.git"
    pulls = [f"{pull.head} (#{pull.number})" for pull in forge.pulls(live.repository)]
    return f"open pull requests: {', '.join(pulls) or 'none'}; all branches: {every}"


_COMMIT = re.compile(r"[0-9A-Fa-f]{1,64}")
_FULL_LENGTHS = (40, 64)
