"""
Hold Python's garbage collector off while very many objects are made at once, none of them garbage.

The collector walks all that is alive each time enough was made: reading a list of 10,000
Applications took 1.7 s with it and 0.3 s without. What nothing refers to any more is freed
meanwhile as always; only circles wait.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Begin no collection inside.

    It holds for all threads. Where several do this at once, the end of the first ends it: a
    process that does little else is collected all the same.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
