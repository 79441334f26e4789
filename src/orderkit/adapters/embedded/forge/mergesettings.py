"""
How a repository lets pull requests be merged: allowed styles, what happens afterwards.

Called by the endpoints of repositories and pull requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orderkit.adapters.embedded.forge.store import Store

DEFAULTS: Mapping[str, bool] = {
    "allow_merge_commits": True,
    "allow_rebase": True,
    "allow_rebase_explicit": True,
    "allow_squash_merge": True,
    "allow_fast_forward_only_merge": True,
    "allow_rebase_update": True,
    "allow_manual_merge": False,
    "autodetect_manual_merge": False,
    "default_delete_branch_after_merge": False,
}
"""Every setting with Gitea's default, by its name in the API."""
STYLES: Mapping[str, str] = {
    "merge": "allow_merge_commits",
    "rebase": "allow_rebase",
    "rebase-merge": "allow_rebase_explicit",
    "squash": "allow_squash_merge",
    "fast-forward-only": "allow_fast_forward_only_merge",
    "manually-merged": "allow_manual_merge",
}
"""Which setting allows a merge style."""


class MergeSettings:
    """The merge settings of all repositories; only what differs from `DEFAULTS` is stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, repo_id: int) -> dict[str, bool]:
        """Return every setting of a repository."""
        row = self._store.row("SELECT settings FROM merge_settings WHERE repo_id = ?", repo_id)
        return {**DEFAULTS, **(json.loads(row["settings"]) if row else {})}

    def change(self, repo_id: int, body: Mapping[str, Any]) -> None:
        """Take those settings from a request that are there and are booleans."""
        given = {key: body[key] for key in DEFAULTS if isinstance(body.get(key), bool)}
        if not given:
            return
        with self._store.transaction():
            changed = {
                key: value
                for key, value in {**self.of(repo_id), **given}.items()
                if value != DEFAULTS[key]
            }
            self._store.change(
                "INSERT INTO merge_settings VALUES (?, ?)"
                " ON CONFLICT (repo_id) DO UPDATE SET settings = excluded.settings",
                repo_id,
                json.dumps(changed),
            )
