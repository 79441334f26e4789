"""
Coordinate writes: one at a time per repository, pauses between tries, and the loop of tries.

``settle`` makes every step of the client safe to repeat: it checks whether the step is already done
before it acts, and checks again before it reports a failure.

``transport`` has its pauses for reads from here.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakValueDictionary

from ground.errors import OrderkitError, UnreachableError
from ground.names import RepoId
from orderkit.adapters.forges.answers import GarbledError, LostAnswerError, ServerError

GET_TRIES = 3
GET_PAUSE_S = 0.05
"""Before the second try of a read; twice as long before the third."""
ROUNDS = 12
PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 2.0
UNCLEAR = (UnreachableError, ServerError, GarbledError)
"""After these errors the request may have been carried out."""
T = TypeVar("T")


class _Lock:
    """A lock that supports weak references, so that unused locks disappear."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_locks: WeakValueDictionary[tuple[str, str], _Lock] = WeakValueDictionary()
_locks_guard = threading.Lock()
_has_turn: ContextVar[bool] = ContextVar("has_turn", default=False)
_chance = random.Random()  # noqa: S311  pauses, no secrets


@contextmanager
def turn(base_url: str, repo: RepoId) -> Iterator[None]:
    """Wait until no other thread of this process writes to the repository."""
    key = (base_url, str(repo).lower())
    with _locks_guard:
        lock = _locks.get(key)
        if lock is None:
            lock = _locks[key] = _Lock()
    with lock.lock:
        mark = _has_turn.set(True)
        try:
            yield
        finally:
            _has_turn.reset(mark)


def has_turn() -> bool:
    """Say whether others of this process wait for this thread to write to a repository."""
    return _has_turn.get()


def pauses(chance: random.Random = _chance) -> Iterator[float]:
    """Yield endless pauses in seconds: a random 50 to 100 % of 0.05, 0.1, 0.2, … at most 2."""
    longest = PAUSE_FIRST_S
    while True:
        yield longest * (0.5 + chance.random() / 2)
        longest = min(longest * 2, PAUSE_MAX_S)


def settle(look: Callable[[bool], T | None], act: Callable[[], T | None], doing: str) -> T:
    """
    Repeat a step until `look` finds it done, for a bounded number of rounds.

    Args:
        look: Returns the result if the step is done. Its argument: whether `act` was called.
        act: Carries out the step; returns the result, or None if only `look` can tell.
        doing: The step in words, for messages.

    Raises:
        OrderkitError: `act` failed and `look` finds no result; no request is still running.
        UnreachableError: No round got a clear answer; the step may have been carried out.
    """
    waits, attempted, doubt = pauses(), False, False
    problem: Exception = LostAnswerError(f"{doing}: accepted, but the forge does not show it")
    for number in range(1, ROUNDS + 1):
        try:
            result = look(attempted)
            if result is None:
                before, attempted, doubt = doubt, True, True
                result, refusal = _attempt(look, act)
                if result is None and refusal is not None:
                    doubt = before
                    raise refusal
        except UNCLEAR as error:
            if not attempted:
                raise
            problem, result = error, None
        except OrderkitError as error:
            if not doubt:
                raise
            raise unsettled(error, doing) from error
        if result is not None:
            return result
        if number < ROUNDS:
            time.sleep(next(waits))
    raise problem


def unsettled(problem: OrderkitError, doing: str) -> OrderkitError:
    """Return the error to raise if a request before `problem` got no answer."""
    if isinstance(problem, UNCLEAR):
        return problem
    return LostAnswerError(
        f"{doing}: a request without an answer may still be carried out; {problem}",
        hint="repeat the command: what was carried out is found and not done again",
    )


def _attempt(
    look: Callable[[bool], T | None], act: Callable[[], T | None]
) -> tuple[T | None, OrderkitError | None]:
    """Act once; return the result, and the refusal, which counts only without a result."""
    try:
        result = act()
    except UNCLEAR:
        raise
    except OrderkitError as error:
        return look(True), error  # noqa: FBT003  settle's shape
    return (look(True) if result is None else result), None  # noqa: FBT003
