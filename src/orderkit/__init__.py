"""
Orderkit: platform orders as files in Git, from a form to their proven end.

The layers, top to bottom, each importing only what is below it: ``cli``, ``web``,
``flows``, ``adapters``, ``ports``, ``core``. docs/architecture.md has the map. On top of them is
the public API for packs: ``stations``, ``controllers`` and ``testing``; the rest is private.
"""

__version__ = "0.3.0"
