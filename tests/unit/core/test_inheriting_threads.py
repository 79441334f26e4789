"""A parallel step belongs to the request, the trace and the urgency of whoever gave it."""

from __future__ import annotations

import threading
from contextvars import copy_context

from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.ports.urgency import background, is_background
from orderkit.web.auditing import REQUEST


def found(_number: int) -> tuple[str, bool, bool]:
    is_main = threading.current_thread() is threading.main_thread()
    return REQUEST.get(), is_background(), is_main


def test_a_worker_has_the_request_and_the_urgency_of_its_caller() -> None:
    with InheritingThreads(2) as threads:

        def in_request() -> list[tuple[str, bool, bool]]:
            REQUEST.set("r-1")
            with background():
                return list(threads.map(found, range(4)))

        assert copy_context().run(in_request) == [("r-1", True, False)] * 4
        assert threads.submit(found, 0).result() == ("", False, False), "not that of others"
