"""
Which forges the portal has integrations for: ``parseRepoUrl`` fails on any other.

Nobody knows them without a platform; then every host is taken. Who runs a task for a platform
names its forge for the time of that task; what Backstage has without any configuration is
known besides. Kept per thread of execution, because filters get values and nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar

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
"""What Backstage 1.55 knows without configuration (read from @backstage/integration)."""

_hosts: ContextVar[frozenset[str] | None] = ContextVar("integrations", default=None)


@contextlib.contextmanager
def integrations(hosts: Collection[str] | None) -> Iterator[None]:
    """Let only these hosts, and the built-in ones, be known; None: every host is."""
    token = _hosts.set(None if hosts is None else frozenset(hosts))
    try:
        yield
    finally:
        _hosts.reset(token)


def hosts_known() -> frozenset[str] | None:
    """Return the hosts named by `integrations`, None if nobody named any."""
    return _hosts.get()


def has_integration(host: str) -> bool:
    """Say whether the portal knows this host, as far as anybody said."""
    hosts = _hosts.get()
    return hosts is None or host in hosts or host in BUILT_IN
