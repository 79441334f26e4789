"""
Twins of Composition functions that are not the pack's: the same answers, in this process.

Each twin is a station: a request in, a response out. Which function a twin stands for is decided
by the *package* that is installed under a name, not by the name; ``choosing`` does that. What a
twin does not do exactly it refuses by name (`core.crossplane.station.OpaqueError`), and what it
stands for, at which version, its module says. Functions without a twin (go-templating, KCL, CUE,
Python scripts) run templates and programs of their own: they are called as real processes or are
opaque.
"""

from orderkit.core.crossplane.twins.choice import Chosen, choose

__all__ = ["Chosen", "choose"]
