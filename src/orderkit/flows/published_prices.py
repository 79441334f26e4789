"""The platform's own price table: ``gitops/prices.yaml`` of its pack, as published."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ground.names import CommitSha, RepoId
from ground.shapes import changed
from orderkit.core.plan.price_table import PRICES, PriceTable, read_prices
from orderkit.flows.platform import Platform, pack_files

_KEPT = 4
_lock = threading.Lock()
_tables: OrderedDict[tuple[str, RepoId, CommitSha], PriceTable | None] = OrderedDict()


def published_prices(platform: Platform) -> PriceTable | None:
    """
    Return the platform's own price table, if it has one.

    Raises:
        InvalidInputError: It is broken.
        RemoteError: The forge.
    """
    commit = platform.forge.head(platform.pack_repo)
    if commit is None:
        return None
    key = (platform.forge.base_url, platform.pack_repo, commit)
    with _lock:
        is_read, table = key in _tables, _tables.get(key)
    if not is_read:
        data = pack_files(platform, commit, [PRICES]).get(PRICES)
        table = None if data is None else read_prices(data, name=str(PRICES))
        with _lock:
            _tables[key] = table
            if len(_tables) > _KEPT:
                _tables.popitem(last=False)
    return changed(table, today=platform.clock.now().date()) if table else None
