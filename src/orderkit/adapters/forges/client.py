"""The parts of every forge's client that say who we are, and close it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ground.names import RepoId
from orderkit.adapters.forges.file_cache import Trees
from orderkit.adapters.forges.transport import ForgeTransport
from orderkit.ports.signatures import Signatures
from orderkit.ports.workflows import ForgeWorkflows


class ForgeClient:
    """What every forge's client has. Safe to use from threads."""

    _http: ForgeTransport
    declined: set[tuple[RepoId, str]]
    """The branches that took no push of ours."""

    def _set_up(self, http: ForgeTransport, source: str, signatures: Signatures | None) -> None:
        self._http, self._source, self.signatures = http, source, signatures
        self._trees, self.declined = Trees(), set()

    @property
    def trees(self) -> Trees:
        """The cache of files."""
        return self._trees

    @property
    def workflows(self) -> ForgeWorkflows | None:
        """None: this forge has none; see the port."""
        return None

    @property
    def credentials_source(self) -> str:
        """Where our credentials came from; see the port."""
        return self._source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository that the forge itself calls so; see the port."""
        return RepoId.parse(full_name)

    def remember(self) -> None:
        """Ask each thing once from now on; see the port."""
        self._http.remember()

    def close(self) -> None:
        """Close idle connections. Idempotent; the client stays usable."""
        self._http.close()
