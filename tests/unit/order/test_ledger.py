"""The ledger's file names and contents."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import OrderkitError
from ground.names import OrderId, RepoId, TeamName
from ground.objects.kube_objects import Kind, ObjectKey
from ground.shapes import ObjectReference
from orderkit.core.kit.order_kinds import OrderKinds
from orderkit.core.order import end_record, ledger, ledger_applications
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.registration_check import check_free
from yamlfiles.format_versions import API_VERSION

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-ae86"))
PATHS = [
    PurePosixPath(p)
    for p in (
        "README.md",
        "apps/ae86/.gitkeep",
        "apps/ae86/garage-ae86.yaml",
        "apps/rx7/garage-rx7.yaml",
        "data/ae86/garage-old/tombstone-20260101T000000.yaml",
        "data/rx7/garage-rx7/end.yaml",
        "teams/ae86.yaml",
        "teams/.gitkeep",
    )
]


def test_orders_and_teams_are_found_by_their_paths() -> None:
    assert [e.order for e in ledger.entries(PATHS)] == ["garage-ae86", "garage-rx7"]
    assert list(ledger.teams(PATHS)) == ["ae86"]
    assert ledger.ending_order(PATHS, "garage-rx7") == OrderEntry(
        TeamName("rx7"), OrderId("garage-rx7")
    )
    assert ledger.ending_order(PATHS, "garage-ae86") is None
    assert len(ledger.tombstones(PATHS, "garage-old")) == 1


def test_every_file_but_those_of_the_platform_is_a_teams() -> None:
    teams = [ledger.team_of(path) for path in PATHS if path.name != ".gitkeep"]

    assert teams == ["", "ae86", "rx7", "ae86", "rx7", "ae86"]


@pytest.mark.parametrize(
    ("order", "team", "reason"),
    [
        ("garage-ae86", "ae86", "its Application is there"),
        ("ae86", None, "the end of a name is not a name, and a team's file no order"),
        ("ae86/garage-ae86", None, "a path is not a name"),
        ("garage-old", None, "only its tombstone is there"),
        ("", None, "nothing is not a name"),
    ],
)
def test_the_holder_of_an_order_is_found_by_its_whole_name(
    order: str, team: str | None, reason: str
) -> None:
    found = ledger.living_order(PATHS, order)
    assert (found.team if found else None) == team, reason


def place(kinds: OrderKinds, *namespaces: str) -> ledger_applications.TeamPlace:
    home = RepoId("platform", "ledger")
    return ledger_applications.TeamPlace(TeamName("ae86"), "http://forge", home, kinds, namespaces)


def test_a_team_may_deliver_its_own_repositories_and_listed_kinds_only() -> None:
    text = ledger_applications.team_file(
        place(OrderKinds(cluster=(("blog.opsbogus.dev", "XGarage"),)))
    )
    project, application = yaml.safe_load_all(text)

    assert project["spec"]["sourceRepos"] == ["http://forge/ae86/*"]
    assert project["spec"]["clusterResourceWhitelist"] == [
        {"group": "blog.opsbogus.dev", "kind": "XGarage"}
    ]
    assert project["spec"]["namespaceResourceWhitelist"] == []
    assert project["spec"]["destinations"] == [
        {"server": ledger_applications.IN_CLUSTER, "namespace": "team-ae86"}
    ]
    assert application["spec"]["source"]["path"] == "apps/ae86"


def test_a_team_with_namespaced_kits_gets_a_namespace_and_delivers_nowhere_else() -> None:
    kinds = OrderKinds(namespaced=(("lab.example.org", "XC"),))
    namespace, project, _ = yaml.safe_load_all(ledger_applications.team_file(place(kinds, "shop")))
    order = ledger_applications.order_application(ENTRY, kit="c", forge_url="http://forge")

    assert namespace["metadata"]["name"] == "team-ae86"
    allowed = [each["namespace"] for each in project["spec"]["destinations"]]
    assert allowed == ["team-ae86", "shop"]
    assert order["spec"]["destination"]["namespace"] in allowed
    assert project["spec"]["clusterResourceWhitelist"] == []


def test_an_ending_order_may_become_empty_and_is_not_healed() -> None:
    living = ledger_applications.order_application(ENTRY, kit="garage", forge_url="http://forge")
    ending = ledger_applications.order_application(
        ENTRY, kit="garage", forge_url="http://forge", stage="ending"
    )

    assert living["spec"]["syncPolicy"]["automated"] == {"prune": False, "selfHeal": True}
    assert ending["spec"]["syncPolicy"]["automated"] == {
        "prune": True,
        "selfHeal": False,
        "allowEmpty": True,
    }


FORMAT = {ledger.FORMAT_ANNOTATION: API_VERSION}


def test_who_ordered_first_stays_in_the_application() -> None:
    """Whatever writes it again, and whoever asks for that, up to the end of the order."""
    make = partial(
        ledger_applications.order_application, ENTRY, kit="garage", forge_url="http://forge"
    )
    first = make(stage="entering", requester="user:default/eve")
    first["metadata"]["annotations"] |= {"orderkit.dev/note": "stays", "example.org/other": "goes"}

    again = make(recorded=first, requester="user:default/mallory")
    ending = make(recorded=again, stage="ending")

    for application in (first, again, ending):
        assert ledger.requester_of(application) == "user:default/eve"
    ours = {
        **FORMAT, "orderkit.dev/requester": "user:default/eve", "orderkit.dev/note": "stays",
    }  # fmt: skip
    assert again["metadata"]["annotations"] == {**ours, **ledger_applications.KEPT}
    assert ending["metadata"]["annotations"] == ours
    assert ledger.requester_of(None) == ledger.requester_of(make()) == ""


def test_only_an_end_deletes_what_an_order_delivered() -> None:
    """Neither a push, nor a deleted Application, nor a file that the ledger loses."""
    stages: tuple[ledger_applications.Stage, ...] = ("entering", "living", "ending")
    entering, living, ending = (
        ledger_applications.order_application(
            ENTRY, kit="garage", forge_url="http://forge", stage=stage
        )
        for stage in stages
    )

    assert not ledger_applications.is_safe(entering), (
        "it is taken back if the team got its last order meanwhile"
    )
    assert ledger_applications.is_safe(living)
    assert living["metadata"]["annotations"] == {**FORMAT, **ledger_applications.KEPT}
    assert "finalizers" not in living["metadata"]
    assert ledger_applications.is_safe(ending)
    assert ending["metadata"]["annotations"] == FORMAT
    *_, team = yaml.safe_load_all(ledger_applications.team_file(place(OrderKinds())))
    assert ledger_applications.is_safe(team)


def test_a_retry_takes_the_newest_commit_where_argo_cd_knows_how() -> None:
    retries = [
        ledger_applications.order_application(
            ENTRY, kit="garage", forge_url="http://forge", refreshes=refreshes
        )
        for refreshes in (False, True)
    ]

    assert [retry["spec"]["syncPolicy"]["retry"].get("refresh") for retry in retries] == [
        None,
        True,
    ]


names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=30)
keys = st.builds(
    ObjectKey,
    st.builds(Kind, st.sampled_from(["", "blog.opsbogus.dev"]), st.just("v1"), st.just("Thing")),
    names,
    st.one_of(st.just(""), names),
)


@given(
    step=st.sampled_from(end_record.STEPS),
    requester=st.text(max_size=40).filter(lambda t: t.isprintable()),
    gone=st.lists(keys, max_size=5),
    ended=st.sampled_from(["", "2026-11-21T06:00:00+00:00"]),
)
def test_an_end_record_reads_back_as_it_was_written(
    step: end_record.Step, requester: str, gone: list[ObjectKey], ended: str
) -> None:
    record = EndRecord(
        order=OrderId("garage-ae86"),
        kit="garage",
        requester=requester or "x",
        repository="archive",
        step=step,
        started_at="2026-11-21T05:59:00+00:00",
        must_be_gone=tuple(map(ObjectReference.to, gone)),
        emptied_at="d" * 40,
        ended_at=ended,
    )

    assert end_record.parse(record.to_yaml(), name="end.yaml") == record


@pytest.mark.parametrize(
    ("team", "order", "refusal"),
    [
        ("ae86", "garage-new", ""),
        ("ae86", "garage-ae86", ""),
        ("ae86", "garage-old", ""),
        ("ae86", "garage-waits", ""),
        ("ae86", "garage-rx7", "garage-rx7 is taken (order another name)"),
        (
            "ae86",
            "garage-ends",
            "garage-ends is ending (finish that first: orderkit destroy garage-ends)",
        ),
        (
            "none",
            "garage-new",
            (
                "team 'none' is not in the ledger "
                "('orderkit team list' shows teams; add one: orderkit team add none)"
            ),
        ),
    ],
)
def test_an_id_is_free_unless_another_order_has_it(team: str, order: str, refusal: str) -> None:
    more = ("data/ae86/garage-ends/end.yaml", "data/ae86/garage-waits/waiting.yaml")
    paths = [*PATHS, *map(PurePosixPath, more)]
    told = ""
    try:
        check_free(OrderEntry(TeamName(team), OrderId(order)), paths)
    except OrderkitError as error:
        told = f"{error} ({error.hint})"

    assert told == refusal
