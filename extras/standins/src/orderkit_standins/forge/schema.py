"""
The tables of the forge, as steps from one release's state to the next: ``migrations/*.sql``.

A step is never changed after it was released: a state folder remembers how many it has
taken (``PRAGMA user_version``) and takes the others when it is opened. Tables of features that
are gone (labels, merges that wait, merge settings) stay there, unused.

Read by ``store``.
"""

from importlib.resources import files

_STEPS = (files("orderkit_standins.forge") / "migrations").iterdir()
MIGRATIONS = tuple(
    step.read_text(encoding="utf-8")
    for step in sorted(_STEPS, key=lambda step: int(step.name.partition("_")[0]))
)
