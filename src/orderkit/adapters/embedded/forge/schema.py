"""
The tables of the forge, as steps from one release's state to the next: ``migrations/*.sql``.

A step is never changed after it was released: a state folder remembers how many it has
taken (``PRAGMA user_version``) and takes the others when it is opened. Tables of features that
are gone (labels, merges that wait, merge settings) stay there, unused.

Read by ``store``.
"""

from importlib.resources import files

_FOLDER = files("orderkit.adapters.embedded.forge") / "migrations"
_NAMES = (
    *("1_accounts_and_repositories", "2_issues_and_pulls", "3_comments"),
    *("4_hooks", "5_teams", "6_renames", "7_read_only", "8_reviews"),
    "9_squash_merges",
)
MIGRATIONS = tuple((_FOLDER / f"{name}.sql").read_text(encoding="utf-8") for name in _NAMES)
