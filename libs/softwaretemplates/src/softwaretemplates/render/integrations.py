"""
The forges that the portal has integrations for: ``parseRepoUrl`` fails on any other.

Without a platform they are unknown, and every host is accepted. Code that runs a task for a
platform names its forge for the duration of the task; the hosts that Backstage knows without
configuration are added. Stored in a context variable, because filters receive only values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar

__all__ = ["hosts_known", "integrations", "is_planning", "planning"]

BUILT_IN = frozenset(
    {
        "amazonaws.com",
        "bitbucket.org",
        "blob.core.windows.net",
        "dev.azure.com",
        "github.com",
        "gitlab.com",
    }
)
"""Hosts that Backstage 1.57 knows without configuration (from @backstage/integration)."""

_is_planning: ContextVar[bool] = ContextVar("planning", default=False)
_hosts: ContextVar[frozenset[str] | None] = ContextVar("integrations", default=None)


@contextlib.contextmanager
def integrations(hosts: Collection[str] | None) -> Iterator[None]:
    """Accept only these hosts and the built-in ones; None: every host."""
    token = _hosts.set(None if hosts is None else frozenset(hosts))
    try:
        yield
    finally:
        _hosts.reset(token)


@contextlib.contextmanager
def planning(*, is_on: bool) -> Iterator[None]:
    """Take filters of an installation's own, which nobody knows here: what they give is unknown."""
    token = _is_planning.set(is_on)
    try:
        yield
    finally:
        _is_planning.reset(token)


def is_planning() -> bool:
    """Return whether filters that nobody knows are taken: in a dry run."""
    return _is_planning.get()


def hosts_known() -> frozenset[str] | None:
    """Return the hosts set by `integrations`; None if none were set."""
    return _hosts.get()


def has_integration(host: str) -> bool:
    """Return whether the portal knows this host; True if no hosts were set."""
    hosts = _hosts.get()
    return hosts is None or host in hosts or host in BUILT_IN
