"""
Twins of third-party Composition functions: reimplementations that run in this process.

A twin is a station: a request in, a response out. ``choice`` selects the twin by the *package*
installed under a function's name, not by the name. What a twin cannot do exactly it refuses with a
message that names it (`compositions.station.OpaqueError`). Each module states the function and
version that it reimplements. Functions without a twin (go-templating, KCL, CUE, Python scripts) run
templates and programs of their own: they are called as real processes or are opaque.
"""

from compositions.function_twins.choice import Chosen, choose

__all__ = ["Chosen", "choose"]
