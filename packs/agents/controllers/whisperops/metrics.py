"""
Counters and gauges, and the text format in which Prometheus reads them.

These controllers need three kinds of line of that format, so they use no client library for it.
Thread-safe.

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
    help: str
    values: dict[Labels, float] = field(default_factory=dict)


class Metrics:
    """Values by metric name; `describe` a metric before using it."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self._lock = threading.Lock()

    def describe(self, name: str, kind: Literal["counter", "gauge"], help_text: str) -> None:
        """Add a metric. Its values are shown once they are set."""
        self._families[name] = _Family(kind, help_text)

    def begin(self, prefix: str, gauges: Mapping[str, str], counters: Mapping[str, str]) -> None:
        """Add metrics without labels, each at 0. The maps give help texts by name, unprefixed."""
        for name, help_text in gauges.items():
            self.describe(prefix + name, "gauge", help_text)
            self.set(prefix + name, 0)
        for name, help_text in counters.items():
            self.describe(prefix + name, "counter", help_text)
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
        """Return all metrics in Prometheus' text format."""
        lines: list[str] = []
        with self._lock:
            for name, family in self._families.items():
                lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
                for labels, value in sorted(family.values.items()):
                    lines.append(f"{name}{_label_text(labels)} {value:.17g}")
        return "\n".join(lines) + "\n"


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
