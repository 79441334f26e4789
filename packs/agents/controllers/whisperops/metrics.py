"""
Counters and gauges, and the text in which Prometheus reads them.

The whole format that these controllers need is three kinds of line, so no client library is
asked for it. Safe to use from several threads.

Called by ``watchmetrics``, ``metermetrics`` and ``serving``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Family:
    kind: Literal["counter", "gauge"]
    told: str
    values: dict[Labels, float] = field(default_factory=dict)


class Metrics:
    """Families of values by name; each has to be described before it is used."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self._lock = threading.Lock()

    def describe(self, name: str, kind: Literal["counter", "gauge"], told: str) -> None:
        """Add a family. One without labels is shown from the start, as 0."""
        self._families[name] = _Family(kind, told)

    def begin(self, prefix: str, gauges: Mapping[str, str], counters: Mapping[str, str]) -> None:
        """Add families without labels, each at 0; what they mean by name without the prefix."""
        for name, told in gauges.items():
            self.describe(prefix + name, "gauge", told)
            self.set(prefix + name, 0)
        for name, told in counters.items():
            self.describe(prefix + name, "counter", told)
            self.add(prefix + name, 0)

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        """Raise a counter."""
        with self._lock:
            values = self._families[name].values
            key = tuple(sorted(labels.items()))
            values[key] = values.get(key, 0) + value

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._families[name].values[tuple(sorted(labels.items()))] = value

    def text(self) -> str:
        """Return everything as Prometheus reads it."""
        lines: list[str] = []
        with self._lock:
            for name, family in self._families.items():
                lines += [f"# HELP {name} {family.told}", f"# TYPE {name} {family.kind}"]
                for labels, value in sorted(family.values.items()):
                    lines.append(f"{name}{_shown(labels)} {value:.17g}")
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
