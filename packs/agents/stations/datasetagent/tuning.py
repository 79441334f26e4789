"""
Station ``compute-tuning``: how much memory the sandbox needs for this dataset.

pandas needs about 3.5 times the size of a CSV. That is rounded up to whole GiB, at least 1 and at
most 8.
"""

from __future__ import annotations

from orderkit.stations import StationRequest, StationResponse

from .agent import MEMORY, start

_GIB_IN_MIB, _MIB = 1024, 1024 * 1024
_LEAST_MIB, _MOST_MIB = _GIB_IN_MIB, 8 * _GIB_IN_MIB


def compute_tuning(request: StationRequest) -> StationResponse:
    """Put the sandbox's memory into context and status."""
    agent = start(request)
    if agent.dataset:
        memory_mib = sandbox_memory_mib(int(agent.dataset["sizeBytes"]))
        agent.response.context[MEMORY] = memory_mib
        agent.response.merge_status({"sandboxMemMi": memory_mib})
    return agent.response


def sandbox_memory_mib(size_bytes: int) -> int:
    """Return the memory for a CSV of this size, computed in integers."""
    needed_mib = -(-size_bytes * 7 // (2 * _MIB))
    rounded_mib = -(-needed_mib // _GIB_IN_MIB) * _GIB_IN_MIB
    return max(_LEAST_MIB, min(rounded_mib, _MOST_MIB))
