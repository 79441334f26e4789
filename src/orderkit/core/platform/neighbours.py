"""
The servers and tools beside Orderkit: which releases are supported, and how that was proved.

The one table. ``orderkit doctor`` and ``orderkit bootstrap`` judge servers by it, docs/versions.md
is written from it (``scripts/versions_docs.py``), and ``make e2e`` checks that the releases that it
runs stand in it. *Observed* is said of a release only if a suite ran against exactly that release.

`read_release` reads a release number in a version text; such numbers can be compared. It is pure. A
text that does not begin with a number is not read: a version is never guessed. What a vendor adds
(``-eks-a1b2c3``, ``+k3s1``, ``-rootless``) does not change the number. ``-rc1`` and
``+dev-12-gabc`` name builds before their number. A text with two numbers names no patch release.

``known_holes.yaml`` is the dated list of known holes of these servers. A release is affected if one
of a hole's ranges contains it; the range's end is the first release of that line with the fix. The
list is read once per process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from yamlfiles import yaml12

_RELEASE = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?![0-9.])(.*)", re.DOTALL)
_BEFORE = re.compile(r"[-+~]?(rc|alpha|beta|pre|dev|nightly|snapshot)(?![a-z])", re.IGNORECASE)
_AFTER = re.compile(r"[-+][0-9]+-g[0-9a-f]{4,}")
"""Gitea's and git's mark of a build some commits after a release: ``1.27.3+12-gabcd``."""


@dataclass(frozen=True, order=True, slots=True)
class ReleaseNumber:
    """Three numbers; a build before a release sorts before it."""

    numbers: tuple[int, int, int]
    final: bool = True
    """False for a release candidate or a development build: it comes before the release."""
    between: bool = field(default=False, compare=False)
    """Whether it is a build between two releases, so its number does not tell its fixes."""
    exact: bool = field(default=True, compare=False)
    """False if the text names no patch release."""
    plain: bool = field(default=True, compare=False)
    """Whether nothing follows the number: it is the project's own build of that release."""

    @property
    def series(self) -> tuple[int, int]:
        """The numbers of its line of releases."""
        return self.numbers[:2]


def read_release(text: str) -> ReleaseNumber | None:
    """Return the release that a version text names; None if it names none."""
    match = _RELEASE.fullmatch(text)
    if match is None:
        return None
    major, minor, patch, rest = match.groups()
    is_before = bool(_BEFORE.match(rest))
    return ReleaseNumber(
        (int(major), int(minor), int(patch or 0)),
        final=not is_before,
        between=is_before or bool(_AFTER.match(rest)),
        exact=patch is not None,
        plain=not rest,
    )


SEVERITIES = ("critical", "high", "medium", "low", "unrated")
_RANGE = re.compile(r"(?:>=(?P<first>[0-9.]+) )?<(?P<fixed>[0-9.]+)")


@dataclass(frozen=True, slots=True)
class ReleaseRange:
    """Releases from `first` on, candidates of it included, and before `fixed`."""

    first: ReleaseNumber
    fixed: ReleaseNumber
    text: str
    """As the list writes it."""

    def __contains__(self, release: ReleaseNumber) -> bool:
        return self.first.numbers <= release.numbers and release < self.fixed


@dataclass(frozen=True, slots=True)
class KnownHole:
    """A hole of a server, and what it means for a platform of Orderkit."""

    id: str
    product: str
    severity: str
    affected: tuple[ReleaseRange, ...]
    means: str
    source: str

    def fixed_in(self, release: ReleaseNumber) -> str:
        """Return the first release with the fix after an affected one; empty if unaffected."""
        return next((part.text.rpartition("<")[2] for part in self.affected if release in part), "")


@dataclass(frozen=True, slots=True)
class HoleList:
    """All known holes, as of a day."""

    date: str
    holes: tuple[KnownHole, ...]

    def affecting(self, product: str, release: ReleaseNumber) -> Sequence[KnownHole]:
        """Return the holes of a release, the most severe first."""
        found = [hole for hole in self.holes if hole.product == product and hole.fixed_in(release)]
        return sorted(found, key=lambda hole: SEVERITIES.index(hole.severity))


@cache
def known_holes() -> HoleList:
    """Return the list that this release of Orderkit knows."""
    name = "known_holes.yaml"
    data = yaml12.load(files("orderkit.core.platform").joinpath(name).read_bytes(), name=name)
    return HoleList(
        str(data["date"]),
        tuple(
            KnownHole(
                hole["id"],
                hole["product"],
                hole["severity"],
                tuple(map(read_range, hole["affected"])),
                hole["means"],
                hole["source"],
            )
            for hole in data["holes"]
        ),
    )


def read_range(text: str) -> ReleaseRange:
    """
    Return the range that ``>=FIRST <FIXED`` or ``<FIXED`` names.

    Raises:
        ValueError: The text has another form.
    """
    match = _RANGE.fullmatch(text)
    first, fixed = (
        (read_release(match["first"] or "0.0.0"), read_release(match["fixed"]))
        if match
        else (None, None)
    )
    if match is None or first is None or fixed is None:
        raise ValueError(f"'{text}' is no range of releases, such as '>=3.4.0 <3.4.10'")
    return ReleaseRange(first, fixed, text)


Basis = Literal["observed", "supported", "unknown", "too old", "embedded"]
TABLE_DATE = "2026-11-27"
_EMBEDDED = re.compile(r"v?([0-9.]+)\+orderkit")
_SHOWN = 40
"""Longest version text that is repeated: a server chooses it."""
_EXPLAINED = 4
"""Holes that a report explains."""


@dataclass(frozen=True, slots=True)
class ReleaseSeries:
    """A line of releases."""

    oldest: str
    """The oldest supported release: the first without a critical hole that matters here."""
    newest: str
    """The newest one published on `TABLE_DATE`."""
    proof: str
    ends: str
    observed: tuple[str, ...] = ()
    """Releases that a suite ran against."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A server or tool, and its supported lines of releases, oldest first."""

    name: str
    series: tuple[ReleaseSeries, ...]
    learned: str
    """How doctor and bootstrap learn its release."""

    @property
    def newest(self) -> str:
        """The newest release published on `TABLE_DATE`."""
        return self.series[-1].newest

    @property
    def advice(self) -> str:
        """Which release to install, and which one was run if that is another line."""
        observed = [release for series in self.series for release in series.observed]
        if self.series[-1].observed or not observed:
            return f"install {self.name} {self.newest}"
        return (
            f"install {self.name} {self.newest}, or {observed[-1]}, which is the newest that a "
            "suite ran against"
        )


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """A server's release, judged."""

    version: str
    basis: Basis
    detail: str
    hint: str = ""
    holes: tuple[str, ...] = ()
    """A sentence for each known hole, the most severe first."""

    @property
    def report(self) -> str:
        """The detail and the known holes; of many, the less severe ones by name only."""
        if not self.holes:
            return self.detail
        rest = [hole.partition(":")[0] for hole in self.holes[_EXPLAINED:]]
        told = [*self.holes[:_EXPLAINED], *([f"also {', '.join(rest)}"] if rest else [])]
        noun = "known hole" if len(self.holes) == 1 else "known holes"
        count = f"{len(self.holes)} {noun} (list of {known_holes().date})"
        return "; ".join((self.detail, f"{count}: {told[0]}", *told[1:]))


ARGO_CD = Neighbour(
    "Argo CD",
    (
        ReleaseSeries(
            "3.4.10", "3.4.15", "CRDs of 3.4.10 to 3.4.13, cannot be built here", "with 3.7"
        ),
        ReleaseSeries("3.5.4", "3.5.9", "CRDs of 3.5.4 to 3.5.7, cannot be built here", "with 3.8"),
        ReleaseSeries(
            "3.6.0",
            "3.6.3",
            "3.6.1: every suite of e2e, 27 November 2026",
            "with 3.9",
            ("3.6.1",),
        ),
    ),
    "images of its workloads in namespace argocd, else their label app.kubernetes.io/version, "
    "else spec.argocd.version of platform.yaml",
)
GITEA = Neighbour(
    "Gitea",
    (
        ReleaseSeries(
            "1.27.1",
            "1.27.3",
            "1.27.3: every suite of e2e, 1.27.1: make matrix, 27 November 2026",
            "ended with 28.0.0: Gitea fixes its newest major release only",
            ("1.27.1", "1.27.3"),
        ),
        ReleaseSeries("28.0.0", "28.4.0", "not run: its Go module is not served", "with 29.0.0"),
    ),
    "its API, /api/v1/version",
)
KUBERNETES = Neighbour(
    "Kubernetes",
    (
        ReleaseSeries(
            "1.35.0",
            "1.35.9",
            "1.35.4: make matrix, 27 November 2026",
            "about February 2027",
            ("1.35.4",),
        ),
        ReleaseSeries(
            "1.36.0",
            "1.36.5",
            "1.36.1: every suite of e2e, until November 2026",
            "about June 2027",
            ("1.36.1",),
        ),
        ReleaseSeries(
            "1.37.0",
            "1.37.2",
            "1.37.2: every suite of e2e, 27 November 2026",
            "about October 2027",
            ("1.37.2",),
        ),
    ),
    "its API server, /version",
)
CROSSPLANE = Neighbour(
    "Crossplane",
    (
        ReleaseSeries("2.3.0", "2.3.4", "2.3.4: answers of its own code, recorded", "with 2.6"),
        ReleaseSeries("2.4.0", "2.4.4", "read in its source", "with 2.7"),
        ReleaseSeries("2.5.0", "2.5.0", "not run", "with 2.8"),
    ),
    "the image of its Deployment, else its label app.kubernetes.io/version",
)
BACKSTAGE = Neighbour(
    "Backstage",
    (
        ReleaseSeries(
            "1.56.0",
            "1.56.0",
            "read in changelogs: its packages are not served",
            "about April 2027",
        ),
        ReleaseSeries(
            "1.57.0",
            "1.57.0",
            "dry runs, forms and the plugin in a browser, 27 November 2026",
            "about May 2027",
        ),
    ),
    "not checked: Backstage does not tell its release",
)
TOOLS = (
    Neighbour(
        "idpbuilder",
        (ReleaseSeries("0.10.1", "0.10.1", "read in its source, not run: it needs Docker", "-"),),
        "not learned: doctor judges the servers that it installed",
    ),
    Neighbour(
        "provider-kubernetes",
        (ReleaseSeries("1.2.1", "1.4.1", "its CRDs, not run", "not known"),),
        "not learned",
    ),
    Neighbour(
        "Python",
        (ReleaseSeries("3.11", "3.14", "every suite on 3.11", "3.11: October 2027"),),
        "this machine",
    ),
    Neighbour(
        "kubectl",
        (ReleaseSeries("1.20", "1.37", "Debian's, against the embedded cluster", "-"),),
        "not learned: only people use it",
    ),
)
NEIGHBOURS = (ARGO_CD, GITEA, KUBERNETES, CROSSPLANE, BACKSTAGE)


def judge_release(neighbour: Neighbour, text: str) -> ReleaseVerdict:
    """Return how a server with this version text is known, and its known holes."""
    if match := _EMBEDDED.fullmatch(text.removesuffix("-embedded")):
        detail = f"embedded: answers as {neighbour.name} {match[1]} does"
        return ReleaseVerdict(text, "embedded", detail)
    shown, release = text[:_SHOWN], read_release(text)
    if release is None:
        detail = f"the version of {neighbour.name} is not known" + (f": '{shown}'" if text else "")
        return ReleaseVerdict(text, "unknown", detail, f"look it up: {supported(neighbour)}")
    holes = tuple(known_holes().affecting(neighbour.name, release) if release.exact else ())
    series = _series_of(neighbour, release)
    if series is None or release < _limit(series, release):
        oldest = (series or neighbour.series[0]).oldest
        detail = f"{neighbour.name} {shown} is older than {oldest}"
        return ReleaseVerdict(
            text,
            "too old",
            detail,
            f"{neighbour.advice}; {supported(neighbour)}",
            _told(holes, release),
        )
    basis, reason = _basis(neighbour, series, release)
    hint = f"install {neighbour.name} {neighbour.newest}, which has the fixes" if holes else ""
    if basis == "unknown" and not holes:
        hint = "see docs/versions.md for the releases that were run"
    return ReleaseVerdict(
        text, basis, f"{neighbour.name} {shown}: {reason}", hint, _told(holes, release)
    )


def supported(neighbour: Neighbour) -> str:
    """Return the supported releases as a sentence."""
    *others, last = (f"{series.oldest} and newer" for series in neighbour.series)
    return f"supported are {', '.join((*others, last))}"


def _series_of(neighbour: Neighbour, release: ReleaseNumber) -> ReleaseSeries | None:
    """Return the newest supported line that does not begin above the release's own."""
    below = [
        series for series in neighbour.series if _number(series.oldest).series <= release.series
    ]
    return below[-1] if below else None


def _limit(series: ReleaseSeries, release: ReleaseNumber) -> ReleaseNumber:
    """Return the oldest supported number; of a text without a patch release, that of its line."""
    oldest = _number(series.oldest)
    return oldest if release.exact else ReleaseNumber((*oldest.series, 0))


def _basis(
    neighbour: Neighbour, series: ReleaseSeries, release: ReleaseNumber
) -> tuple[Basis, str]:
    if not release.exact:
        return "unknown", f"names no patch release; {supported(neighbour)}"
    if release.between:
        return "unknown", "a build between releases; its number does not tell which fixes it has"
    if release.plain and ".".join(map(str, release.numbers)) in series.observed:
        return "observed", f"observed, {series.proof}"
    newest = _number(series.newest)
    if newest < release and newest.series != release.series:
        return "unknown", f"newer than {series.newest}, the newest when Orderkit was published"
    ran = f"but against {', '.join(series.observed)}" if series.observed else "nor its line"
    return "supported", f"supported; no suite ran against this release, {ran}"


def _told(holes: Sequence[KnownHole], release: ReleaseNumber) -> tuple[str, ...]:
    return tuple(
        f"{hole.id} ({hole.severity}, fixed in {hole.fixed_in(release)}): {hole.means}"
        for hole in holes
    )


def _number(text: str) -> ReleaseNumber:
    number = read_release(text)
    if number is None:
        raise ValueError(f"'{text}' is no release")
    return number
