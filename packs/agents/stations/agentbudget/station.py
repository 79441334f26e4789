"""The stations of a budget, by the names in the Composition."""

from __future__ import annotations

from .deciding import decide
from .rendering import render
from .spending import fetch_spend

stations = {"fetch-spend": fetch_spend, "decide": decide, "render": render}
