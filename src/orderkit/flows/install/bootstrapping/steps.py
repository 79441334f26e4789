"""
What a bootstrap is asked for, and what one of its steps is.

A step knows how to look (reads only) and how to make sure (idempotent).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Protocol

from ground.objects.kube_objects import Manifest
from orderkit.core.kit.pack import Files
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack
from orderkit.flows.platform import Platform
from yamlfiles.manifests import parse_manifests

SETTINGS_FOLDER = PurePosixPath("gitops", "argocd")
"""Argo CD's own settings in a pack."""


class StepVerdict(StrEnum):
    """What a look at a step found."""

    DONE = "done"
    CREATE = "create"
    CHANGE = "change"
    WAIT = "wait"
    """Nothing is to be written; it has to become healthy."""
    SKIP = "skip"
    """This platform does without; the detail says why."""
    FAIL = "fail"
    """It cannot be ensured in this state."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is, and what would be done about it."""

    verdict: StepVerdict
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step that a run has made sure of, or the one at which it ended."""

    step: str
    verdict: StepVerdict
    detail: str
    seconds: float = 0.0
    advice: str = ""


Say = Callable[[str], None]
"""Tells a person what a step waits for, while it waits."""


class BootstrapStep(Protocol):
    """One thing that must hold before the next one can."""

    @property
    def name(self) -> str: ...

    def look(self) -> Look:
        """Return what is and what would be done. Reads only. Raises OrderkitError."""
        ...

    def ensure(self, say: Say) -> Look:
        """
        Make it hold, and return what that took. Idempotent.

        Raises:
            OrderkitError: It cannot be; what is done so far is taken up by the next run.
        """
        ...


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """How Argo CD gets at private repositories, and whom it shall trust."""

    entries: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The credential, by its entries in Argo CD's Secret; empty: the repositories are public."""
    ca_pem: str = ""
    """Certificates of the forge's authority; empty: Argo CD trusts it already."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What a probe orders. Empty: the pack's first kit with an example, and that example."""

    kit: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Form values, over those of the example."""


@dataclass(frozen=True, slots=True)
class BootstrapRequest:
    """A pack at a commit, for a platform, and how far to go."""

    files: Files
    values: PlatformValues
    requester: str
    timeout_s: float = 120.0
    installation: Installation = field(
        default_factory=lambda: Installation(PlatformTarget.EMBEDDED)
    )
    access: RepositoryAccess = RepositoryAccess()
    service_files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The Secret of the installed service; empty: the service is not installed."""
    replace_pack: bool = True
    """Overwrite another pack, or the pack of another platform."""
    holds_back: bool = False
    """Leave out a step that somebody else's access makes unsafe, instead of ending there."""
    move_ledger: bool = False
    """Copy the ledger that Argo CD delivers to the one that platform.yaml names."""
    probe: ProbeRequest | None = None
    """None: no probe order is placed."""
    portal_problem: str = ""
    """Why the portal cannot be asked; empty: it can."""
    idpbuilder: str = "localdev"
    """The name that idpbuilder's cluster was created with."""


class BootstrapContext:
    """The platform, the request, and the pack rendered for it: what every step is given."""

    def __init__(self, platform: Platform, request: BootstrapRequest) -> None:
        self.platform, self.wanted = platform, request

    @cached_property
    def files(self) -> Mapping[PurePosixPath, bytes]:
        """
        The files that are published.

        Raises:
            InvalidInputError: The pack is broken.
        """
        return render_pack(self.wanted.files, self.wanted.values)

    def manifests(self, folder: PurePosixPath) -> Sequence[Manifest]:
        """
        Return the objects in a folder's own files, in the order of their names.

        Raises:
            InvalidInputError: A file is not a manifest.
        """
        return [
            manifest
            for path in sorted(self.files)
            if path.parent == folder and path.suffix in {".yaml", ".yml"}
            for manifest in parse_manifests(str(path), self.files[path])
        ]


def holds(live: object, expected: object) -> bool:
    """Say whether everything in `expected` stands in `live`: maps may hold more, lists not."""
    if isinstance(expected, Mapping):
        return isinstance(live, Mapping) and all(
            key in live and holds(live[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(live, list)
            and len(live) == len(expected)
            and all(map(holds, live, expected))
        )
    return live == expected
