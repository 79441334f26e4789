"""
Answers of a forge, the errors for those that failed, and how a write is tried again.

Errors stand for missing, incomplete or failed answers. Texts of the server are shortened and
redacted before they enter a message.

Writes go one at a time per repository (`turn`), with pauses between tries (`pauses`). `settle`, the
loop of tries, makes every step of the client safe to repeat: it checks whether the step is already
done before it acts, and checks again before it reports a failure.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from ground.errors import (
    AccessError,
    MovedError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.names import RepoId
from ground.secrets import redact

RACE = re.compile(
    r"cannot lock ref|is at \S+ but expected|non-fast-forward|push ?out ?of ?date|"
    r"fetch first|failed to update ref",
    re.IGNORECASE,
)
"""Messages of a forge when another writer moved the branch first."""


OTHER_FORGE = (
    "do forge.kind and forge.url in platform.yaml point to this forge, and not to a proxy's page?"
)


UNARCHIVE = "unarchive it in the forge"


class LostAnswerError(UnreachableError):
    """The request was sent, but no complete answer arrived: it may have been carried out."""

    timed_out = False


class ServerError(RemoteError):
    """The forge failed (5xx); the request may have been carried out."""

    retryable = True


class GarbledError(RemoteError):
    """A success status with an unexpected body: another server answered, or the body was cut."""

    retryable = True


@dataclass(frozen=True, slots=True)
class ForgeResponse:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004  what 2xx means

    def json(self) -> Any:
        """
        Return the body as JSON.

        Raises:
            GarbledError: It is not JSON, so this is not a forge's API.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise GarbledError(
                f"the forge answered {self.status} without JSON: {foreign(self.body)}",
                hint=OTHER_FORGE
                if self.body
                else "see whether the newest commit's author and message are UTF-8",
            ) from error

    @property
    def text(self) -> str:
        """The server's error message: shortened, on one line, redacted."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return foreign(self.body)
        if not isinstance(document, dict):
            return foreign(self.body)
        parts = [str(document.get("message") or document.get("error") or "")]
        errors = document.get("errors")
        if isinstance(errors, list):
            parts += [str(error) for error in errors]
        return shorten(redact(": ".join(text for text in parts if text)))


def refusal(answer: ForgeResponse, doing: str) -> Exception:
    """Return the error for an unexpected answer."""
    status = answer.status
    message = f"{doing}: {status} {answer.text}".rstrip()
    if answer.ok or status >= 500:  # noqa: PLR2004  server errors
        return _unclear(answer, message)
    if status == 401:  # noqa: PLR2004
        return AccessError(
            f"bad credentials: {message}",
            hint="check the token or password, and that it is not expired",
        )
    if status == 403:  # noqa: PLR2004
        return _forbidden(answer, message)
    if status == 404:  # noqa: PLR2004
        return NotFoundError(message, hint="it does not exist, or is hidden from these credentials")
    if status == 423:  # noqa: PLR2004
        return archived(message)
    return RemoteError(message)


def archived(what: str) -> RefusedError:
    """Return the error for a change of a repository that only can be read."""
    return RefusedError(f"archived, hence read-only: {what}", hint=UNARCHIVE)


def _unclear(answer: ForgeResponse, message: str) -> Exception:
    if answer.ok:
        return GarbledError(message, hint=OTHER_FORGE)
    return ServerError(message, hint="repeat the command; if it stays, look into the forge's log")


def missing_scope(answer: ForgeResponse) -> str:
    """Return the token scope that a refusal names as missing, or ""."""
    if answer.status != 403:  # noqa: PLR2004
        return ""
    try:
        document = answer.json()
    except GarbledError:
        document = None
    if isinstance(document, dict) and document.get("error") == "insufficient_scope":  # GitLab's
        return str(document.get("scope") or "api")
    if "required scope" not in answer.text:
        return ""
    _, _, tail = answer.text.partition("required=")
    return tail.partition(",")[0].strip("[] ") or "the one named in the message"


def _forbidden(answer: ForgeResponse, message: str) -> AccessError:
    scope = missing_scope(answer)
    if scope:
        return AccessError(f"missing scope: {message}", hint=f"make a token with scope {scope}")
    return AccessError(
        f"no right: {message}", hint="ask an owner of the organisation for write access"
    )


def moved(path: str, answer: ForgeResponse) -> MovedError:
    """Return the error for a redirect, with the new repository name if there is one."""
    target_path = urlsplit(answer.headers.get("location", "")).path
    message = f"{path} has moved to {shorten(redact(target_path))} ({answer.status})"
    new = re.search(r"/repos/([^/]+/[^/]+)", target_path)
    if new:
        return MovedError(
            message,
            hint=f"it is {new[1]} now: give it its old name back on the forge"
            " ('orderkit repair ORDER' does that for an order), or, if platform.yaml names it,"
            " write the new name there",
            place=new[1],
        )
    return MovedError(
        message,
        hint="the owner or repository was renamed, or the base URL lacks a path or https:"
        " use the new name or address",
    )


def untrusted(base_url: str, error: Exception) -> UnreachableError:
    """Return the error for a failed TLS handshake, with a hint for its specific cause."""
    text = str(error)
    reason = re.search(r"certificate verify failed: (.*?) \(_ssl", text)
    message = f"no trusted TLS connection to {base_url}: "
    if reason is None and re.search(r"WRONG_VERSION_NUMBER|RECORD_LAYER", text):
        return UnreachableError(
            f"{message}the port does not speak TLS", hint="use http:// (a lab), or the right port"
        )
    if reason is None:
        return UnreachableError(message + foreign(text), hint="see the forge's TLS settings")
    hints = {
        "expired": "renew the forge's certificate",
        "mismatch": "use the name that the certificate is for in the base URL",
        "not valid for": "use the name that the certificate is for in the base URL",
    }
    default_hint = "name the CA that signed the certificate: forge.caFile in platform.yaml"
    hint = next((way for word, way in hints.items() if word in reason[1]), default_hint)
    return UnreachableError(f"{message}{reason[1]}", hint=hint)


def foreign(body: bytes | str) -> str:
    """Return a text of the server for use in a message: shortened, on one line, redacted."""
    text = body[:4096].decode(errors="replace") if isinstance(body, bytes) else body
    return shorten(redact(text))


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
                    # refused, and not found afterwards: this attempt was not carried out
                    doubt = before
                    raise refusal
        except UNCLEAR as error:
            # only reading failed: nothing of ours is under way
            if not attempted:
                raise
            problem, result = error, None
        # an earlier attempt without a clear answer may still be carried out
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
