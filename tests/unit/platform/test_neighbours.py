"""How a server's release is judged, and that the table and the list of holes fit each other."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest

from orderkit.core.platform.neighbours import (
    ARGO_CD,
    CROSSPLANE,
    GITEA,
    KUBERNETES,
    NEIGHBOURS,
    SEVERITIES,
    TABLE_DATE,
    Neighbour,
    ReleaseNumber,
    judge_release,
    known_holes,
    read_release,
    supported,
)


@dataclass(frozen=True)
class Case:
    """A version text, its basis, words of the report and ids of holes that it must name."""

    reason: str
    neighbour: Neighbour
    text: str
    basis: str
    words: str
    holes: tuple[str, ...] = ()


HOOKS, CRASH = "CVE-2026-77459", "GHSA-w7rw-fg89-2cjf"
CASES = [
    Case("the suite's Gitea", GITEA, "1.27.3", "observed", "every suite of e2e"),
    Case("the oldest Gitea", GITEA, "1.27.1", "observed", "make matrix", ("CVE-2026-70407",)),
    Case("a supported Gitea", GITEA, "1.27.2", "supported", "against 1.27.1, 1.27.3"),
    Case("code execution by a pusher", GITEA, "1.27.0", "too old", "1.27.1", ("CVE-2026-60004",)),
    Case(
        "the lab's Gitea until November",
        GITEA,
        "1.26.0",
        "too old",
        "older than 1.27.1",
        ("CVE-2026-60004", "CVE-2026-59774", "CVE-2026-28744", "CVE-2026-28699"),
    ),
    Case("idpbuilder's Gitea", GITEA, "1.24.3", "too old", "older than 1.27.1"),
    Case("after the renumbering", GITEA, "28.4.0", "supported", "nor its line"),
    Case("it shows hashes", GITEA, "28.3.0", "supported", "28.4.0", ("CVE-2026-123006",)),
    Case("a Gitea of next year", GITEA, "29.0.0", "unknown", "newer than 28.4.0"),
    Case("Gitea's main in July", GITEA, "1.28.0+dev-3-gabcdef", "unknown", "between releases"),
    Case("a candidate of the fix", GITEA, "1.27.1-rc1", "too old", "older than 1.27.1"),
    Case("our own forge", GITEA, "1.27.3+orderkit", "embedded", "answers as Gitea 1.27.3"),
    Case("no version", GITEA, "", "unknown", "is not known"),
    Case("a page instead", GITEA, "<html>", "unknown", "is not known: '<html>'"),
    Case("ended Argo CD", ARGO_CD, "3.2.11", "too old", "older than 3.4.10", (HOOKS,)),
    Case("the last of 3.3", ARGO_CD, "v3.3.19", "too old", "older than 3.4.10", (CRASH,)),
    Case("idpbuilder's Argo CD", ARGO_CD, "v3.0.12", "too old", "older than 3.4.10", (HOOKS,)),
    Case("3.4 with the hole", ARGO_CD, "v3.4.9", "too old", "older than 3.4.10", (HOOKS,)),
    Case("3.4 without", ARGO_CD, "v3.4.10", "supported", "no suite ran", (CRASH,)),
    Case("3.4 of today", ARGO_CD, "v3.4.15", "supported", "no suite ran"),
    Case("3.5 with the hole", ARGO_CD, "v3.5.3", "too old", "older than 3.5.4", (HOOKS,)),
    Case("a candidate of 3.6", ARGO_CD, "v3.6.0-rc1", "too old", "older than 3.6.0", (HOOKS,)),
    Case("the suite's Argo CD", ARGO_CD, "v3.6.1", "observed", "every suite of e2e", (CRASH,)),
    Case("3.6 of today", ARGO_CD, "v3.6.3", "supported", "against 3.6.1"),
    Case("a later patch of 3.6", ARGO_CD, "v3.6.9", "supported", "against 3.6.1"),
    Case("an unknown line", ARGO_CD, "v3.7.0", "unknown", "newer than 3.6.3"),
    Case("platform.yaml names no patch", ARGO_CD, "3.4", "unknown", "names no patch release"),
    Case("nor here, but the line ended", ARGO_CD, "3.2", "too old", "older than 3.4.10"),
    Case("Argo CD 2", ARGO_CD, "v2.14.20", "too old", "older than 3.4.10", (HOOKS,)),
    Case("the suite's API server", KUBERNETES, "v1.37.2", "observed", "every suite of e2e"),
    Case("a vendor's build of it", KUBERNETES, "v1.37.2-eks-a1b2c3", "supported", "1.37.2"),
    Case("the oldest API server", KUBERNETES, "v1.35.4", "observed", "make matrix"),
    Case("an ended Kubernetes", KUBERNETES, "v1.34.4", "too old", "older than 1.35.0"),
    Case("the embedded API server", KUBERNETES, "v1.36.1+orderkit-embedded", "embedded", "1.36.1"),
    Case("Crossplane 1", CROSSPLANE, "v1.20.9", "too old", "older than 2.3.0"),
    Case("recorded is not observed", CROSSPLANE, "v2.3.4", "supported", "no suite ran"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.reason}: {case.text}")
def test_a_release_is_judged(case: Case) -> None:
    found = judge_release(case.neighbour, case.text)

    assert (found.basis, found.version) == (case.basis, case.text)
    assert case.words in found.report
    for hole in case.holes:
        assert hole in found.report
    assert bool(found.hint) == (case.basis in {"too old", "unknown"} or bool(found.holes))


def test_a_report_explains_a_hole_and_dates_the_list() -> None:
    found = judge_release(GITEA, "28.3.0")

    assert (
        "CVE-2026-123006 (unrated, fixed in 28.4.0): any signed-in user reads the password hash"
    ) in found.report
    assert "known holes (list of 2026-11-27)" in found.report
    assert found.hint == "install Gitea 28.4.0, which has the fixes"


def test_many_holes_are_all_named_and_the_worst_explained() -> None:
    found = judge_release(ARGO_CD, "3.2.11")

    assert len(found.holes) > 10
    explained = [hole for hole in found.holes if hole in found.report]
    assert explained == list(found.holes[:4])
    for hole in found.holes:
        assert hole.partition(":")[0] in found.report
    assert "anyone who can push into an order's repository" in found.report
    assert found.hint.startswith("install Argo CD 3.6.3; supported are 3.4.10 and newer, 3.5.4")


def test_a_long_text_of_a_server_is_not_repeated() -> None:
    found = judge_release(GITEA, "1.27.3-" + "x" * 10_000)

    assert len(found.report) < 1_000


def release(text: str) -> ReleaseNumber:
    number = read_release(text)
    assert number is not None
    assert number.exact, text
    return number


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=lambda neighbour: neighbour.name)
def test_no_supported_release_has_a_critical_hole(neighbour: Neighbour) -> None:
    """The oldest supported releases follow from the list: a new critical hole moves them."""
    for series in neighbour.series:
        for text in (series.oldest, series.newest, *series.observed):
            holes = known_holes().affecting(neighbour.name, release(text))
            assert [hole.id for hole in holes if hole.severity == "critical"] == []


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=lambda neighbour: neighbour.name)
def test_observed_releases_lie_in_their_line_and_lines_are_in_order(neighbour: Neighbour) -> None:
    last = release("0.0.0")
    for series in neighbour.series:
        assert last < release(series.oldest) <= release(series.newest)
        for text in series.observed:
            assert release(series.oldest) <= release(text) <= release(series.newest)
            assert text in series.proof
        last = release(series.newest)


def test_the_newest_release_has_no_known_hole() -> None:
    for neighbour in NEIGHBOURS:
        assert judge_release(neighbour, neighbour.newest).holes == ()


def test_advice_names_the_release_that_was_run_beside_a_newer_line() -> None:
    assert GITEA.advice == (
        "install Gitea 28.4.0, or 1.27.3, which is the newest that a suite ran against"
    )
    assert ARGO_CD.advice == "install Argo CD 3.6.3"


def test_the_list_is_dated_sound_and_of_known_products() -> None:
    held = known_holes()

    assert dt.date.fromisoformat(held.date) >= dt.date.fromisoformat(TABLE_DATE)
    assert len({hole.id for hole in held.holes}) == len(held.holes)
    for hole in held.holes:
        assert hole.severity in SEVERITIES
        assert hole.product in {neighbour.name for neighbour in NEIGHBOURS}
        assert hole.affected
        assert hole.means[-1] != "."
        assert hole.source
        for part in hole.affected:
            assert part.first.numbers <= part.fixed.numbers, f"{hole.id}: {part}"


def test_the_supported_releases_are_a_sentence() -> None:
    assert supported(ARGO_CD) == (
        "supported are 3.4.10 and newer, 3.5.4 and newer, 3.6.0 and newer"
    )
