"""Parallel steps of one request or command, which stay steps of it in traces, logs and limits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 8
"""Most requests that a flow has under way at once, where it names no other number."""


class InheritingThreads(ThreadPoolExecutor):
    """
    Threads that do each piece of work in a copy of the context of the thread that gave it.

    So a request in a worker has the parent span, the request id and the urgency of its caller.
    """

    def __init__(self, max_workers: int = AT_ONCE, thread_name_prefix: str = "") -> None:
        super().__init__(max_workers, thread_name_prefix)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See `Executor.submit`; `map` submits, too."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
