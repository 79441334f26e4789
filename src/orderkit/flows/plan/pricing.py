"""
What a plan costs: by the price table that was given, else by the platform's own.

The platform's own is ``gitops/prices.yaml`` of its pack, as published; a platform without one has
plans without costs. A broken table of the platform does not stop a plan; a broken table given for
this plan does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orderkit.core.errors import InvalidInputError
from orderkit.core.names import CommitSha, RepoId
from orderkit.core.objects.kube_objects import ObjectKey
from orderkit.core.plan import Plan
from orderkit.core.plan.cost import costs_of, flat_cost
from orderkit.core.plan.price_table import PriceTable, read_prices

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform

PRICES = PurePosixPath("gitops", "prices.yaml")
"""Where a pack keeps what things cost."""
_KEPT = 4
_lock = threading.Lock()
_tables: OrderedDict[tuple[str, RepoId, CommitSha], PriceTable | None] = OrderedDict()


def priced(platform: Platform, plan: Plan, table: PriceTable | None = None) -> Plan:
    """
    Return a plan with what it costs. One that would be refused costs nothing yet.

    Args:
        table: None: the platform's own.

    Raises:
        RemoteError: The forge.
    """
    try:
        price_table = table or published_prices(platform)
    except InvalidInputError as error:
        unknowns = (*plan.after.unknowns, f"costs are not known: {error}")
        return replace(plan, after=replace(plan.after, unknowns=unknowns))
    return with_costs(plan, price_table)


def with_costs(plan: Plan, table: PriceTable | None) -> Plan:
    """Return a plan with what it costs by a table, if there is one."""
    if table is None or plan.faults:
        return plan
    return replace(plan, costs=costs_of(plan.before, plan.after, table))


def flat_prices(platform: Platform) -> Callable[[Iterable[ObjectKey]], str] | None:
    """Return what tells the monthly cost of parts by their kinds; None without a usable table."""
    try:
        table = published_prices(platform)
    except InvalidInputError:
        return None  # 'orderkit platform check' says what is wrong with it
    return partial(flat_cost, table=table) if table else None


def published_prices(platform: Platform) -> PriceTable | None:
    """
    Return the platform's own price table, if it has one.

    Raises:
        InvalidInputError: It is broken.
        RemoteError: The forge.
    """
    from orderkit.flows.platform import pack_files  # lazy: a plan from a snapshot has no platform

    commit = platform.forge.head(platform.pack_repo)
    if commit is None:
        return None
    key = (platform.forge.base_url, platform.pack_repo, commit)
    with _lock:
        if key in _tables:
            return _tables[key]
    data = pack_files(platform, commit, [PRICES]).get(PRICES)
    table = None if data is None else read_prices(data, name=str(PRICES))
    with _lock:
        _tables[key] = table
        if len(_tables) > _KEPT:
            _tables.popitem(last=False)
    return table
