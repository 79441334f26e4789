"""Shapes: what is read is what was written, and the schema says what is read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath, PurePosixPath
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from ground.objects.kube_objects import Kind, ObjectKey
from ground.shapes import (
    COMPONENTS,
    Answer,
    Known,
    LocatedAnswer,
    ObjectReference,
    Shape,
    StrictShape,
    answer_schemas,
    changed,
    json_schema,
    located,
    plain,
    read_shape,
)


class Limits(StrictShape, frozen=True):
    """Inside."""

    orders_of: Mapping[str, Annotated[int, Meta(ge=0)]] = {}
    over: Literal["refuse", "ask"] = "refuse"


class Team(StrictShape, frozen=True):
    """Outside."""

    name: Annotated[str, Meta(pattern="^[a-z]+$", description="letters")]
    ca_file: PurePath | None = None
    members: Annotated[tuple[str, ...], Meta(extra_json_schema={"uniqueItems": True})] = ()
    limits: Limits | None = None
    gone: tuple[ObjectReference, ...] = ()


TEAMS = st.builds(
    Team,
    name=st.from_regex(r"\A[a-z]+\Z"),
    ca_file=st.none() | st.just(PurePosixPath("/etc/ca.pem")),
    members=st.lists(st.text(), unique=True).map(tuple),
    limits=st.none()
    | st.builds(
        Limits,
        orders_of=st.dictionaries(st.text(), st.integers(0, 2**60)),
        over=st.sampled_from(["refuse", "ask"]),
    ),
    gone=st.lists(
        st.builds(ObjectReference, st.just("apps/v1"), st.text(), st.text(), st.text())
    ).map(tuple),
)


@given(TEAMS)
def test_what_is_written_is_accepted_and_read_again(team: Team) -> None:
    data = plain(team)

    jsonschema.validate(data, json_schema(Team))
    assert read_shape(Team, data) == team


def test_what_is_as_usual_is_not_written() -> None:
    assert plain(Team("a", limits=Limits({"b": 1, "a": 2}))) == {
        "name": "a",
        "limits": {"ordersOf": {"a": 2, "b": 1}},
    }


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("a key that is not known", {"name": "a", "mebmers": []}),
        ("a key that is missing", {}),
        ("a pattern", {"name": "A"}),
        ("null where a key may be left out", {"name": "a", "caFile": None}),
        ("a number below the least", {"name": "a", "limits": {"ordersOf": {"a": -1}}}),
        ("twice the same", {"name": "a", "members": ["x", "x"]}),
        ("no known word", {"name": "a", "limits": {"over": "perhaps"}}),
    ],
)
def test_the_schema_refuses_what_a_person_may_write(reason: str, data: dict[str, Any]) -> None:  # noqa: ARG001 - it names the case
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema(Team))


def test_hints_stand_where_a_shape_has_them_and_nowhere_else() -> None:
    schema = json_schema(Team)

    assert schema["properties"]["name"]["description"] == "letters"
    assert "description" not in schema["properties"]["limits"]
    assert "$ref" not in str(schema)


def test_a_record_of_a_later_version_is_read() -> None:
    class Record(Shape, frozen=True):
        """Ours."""

        step: str

    assert read_shape(Record, {"step": "a", "news": 1}) == Record("a")


def test_paths_mean_what_the_reader_says() -> None:
    found = read_shape(Team, {"name": "a", "caFile": "b"}, path_of=PurePosixPath("/etc").joinpath)

    assert found.ca_file == PurePosixPath("/etc/b")
    assert changed(found, ca_file=None) == Team("a")


def test_what_is_not_checked_first_is_refused_by_reading() -> None:
    with pytest.raises(msgspec.ValidationError, match="name"):
        read_shape(Team, {"name": 3})


FIRST_READERS = """
import sys, threading
from ground.shapes import Shape, read_shape

def read_at_once():
    names = {"__annotations__": {"a": int, "b": dict[str, str], "c": tuple[str, ...]}}
    inner = type(Shape)("Inner", (Shape,), names)
    outer = type(Shape)("Outer", (Shape,), {"__annotations__": {"one": inner, "two": inner}})
    data = {"one": (values := {"a": 1, "b": {}, "c": []}), "two": values}
    barrier = threading.Barrier(8)

    def read():
        barrier.wait()
        read_shape(outer, data)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

sys.setswitchinterval(1e-6)
for _ in range(100):
    read_at_once()
"""


def test_threads_may_be_the_first_readers_of_a_shape_at_once() -> None:
    """Else msgspec ends the process (SIGSEGV)."""
    assert subprocess.run([sys.executable, "-c", FIRST_READERS], check=False).returncode == 0


class Cost(Answer, frozen=True):
    """Within."""

    currency: Known = ""
    monthly: Decimal | None = None


class Row(LocatedAnswer, frozen=True, kw_only=True):
    """Around."""

    is_ready: bool = msgspec.field(name="ready")
    owner: Known = ""
    reason: str = ""
    costs: tuple[Cost, ...] = ()
    values: Mapping[str, Any] = {}


ROW_SCHEMA = {
    "$ref": f"{COMPONENTS}Row",
    "components": {"schemas": answer_schemas([Row])},
}
SHOP = located(ObjectKey(Kind("apps", "v1", "Deployment"), "shop", "team-a"))


def test_an_answer_has_every_key_and_null_for_what_nobody_knows() -> None:
    row = Row(**SHOP, is_ready=True, costs=(Cost("EUR", Decimal("12.50")),), values={"a": [""]})

    assert row.to_json() == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "shop",
        "namespace": "team-a",
        "ready": True,
        "owner": None,
        "reason": "",
        "costs": [{"currency": "EUR", "monthly": "12.5"}],
        "values": {"a": [""]},
    }
    assert "namespace" not in changed(row, namespace="").to_json()


@given(st.text(), st.text(), st.decimals(0, 10**12, places=9) | st.none())
def test_an_answer_is_what_its_schema_says(owner: str, namespace: str, monthly: Decimal) -> None:
    row = Row(
        **{**SHOP, "namespace": namespace},
        is_ready=False,
        owner=owner,
        costs=(Cost(owner, monthly),),
    )

    jsonschema.validate(row.to_json(), ROW_SCHEMA)


@pytest.mark.parametrize("wrong", [{"owner": 3}, {"more": ""}, {"costs": [{}]}, {"ready": None}])
def test_the_schema_of_an_answer_allows_nothing_else(wrong: dict[str, Any]) -> None:
    row = Row(**SHOP, is_ready=True).to_json()

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**row, **wrong}, ROW_SCHEMA)


def test_a_reference_leads_to_its_object() -> None:
    key = ObjectKey(Kind("apps", "v1", "Deployment"), "shop", "team-a")

    assert ObjectReference.to(key).key == key
    assert plain(ObjectReference.to(key)) == key.to_json()
