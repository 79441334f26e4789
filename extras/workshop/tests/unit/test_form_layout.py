"""Which page of a form a field is on, and which fields no form asks for."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from kitforms import BAKED, Made, kit_files

from ground.errors import InvalidInputError, RefusedError
from ground.objects.values import ABSENT
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.order.change import FieldDifference, judge_rules

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}


def group(*required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def texts(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, TEXT)


def pages(made: Made) -> dict[str, list[str]]:
    """The form's own fields by the title of their page."""
    own = {"name", "team", *BAKED}
    return {p["title"]: [n for n in p["properties"] if n not in own] for p in made.template.pages}


def test_twelve_fields_are_one_page_and_thirteen_are_not() -> None:
    twelve = group(**texts(*"abcdefghijkl"))
    thirteen = group("m", **texts(*"abcdefghijklm"))

    assert list(pages(Made(twelve))) == ["Order"]
    assert pages(Made(thirteen)) == {"Order": ["m"], "Options": [*"abcdefghijkl"]}


def test_what_is_required_comes_first_then_groups_then_advanced_fields() -> None:
    made = Made(
        group(
            "region",
            "database",
            backup=group(**texts("window", "vault", "plan", "copies")),
            deletionPolicy=TEXT,
            network=group(**texts("cidr", "zone", "mtu", "vpcId", "peers")),
            zones={"type": "array", "items": TEXT},
            region=TEXT,
            database=group("engine", **texts("engine", "version", "size", "charset")),
        )
    )

    assert pages(made) == {
        "Order": ["region", "zones"],
        "Database and Backup": ["database", "backup"],
        "Network": ["network"],
        "Advanced settings": ["deletionPolicy"],
    }


def test_a_page_of_one_group_does_not_say_its_title_twice() -> None:
    network = {**group(**texts(*"abcdefghijklm")), "description": "How it is reached."}

    first, page = Made(group(region=TEXT, network=network)).template.pages

    assert (first["title"], page["title"]) == ("Order", "Network")
    assert page["description"] == "How it is reached."
    assert page["properties"]["network"]["ui:options"] == {"label": False}
    assert "description" not in page["properties"]["network"]


def test_a_large_form_has_few_pages() -> None:
    groups = {f"g{n}": group(**texts(*"abcdefghijkl")) for n in range(30)}

    assert len(pages(Made(group(**groups, deletionPolicy=TEXT)))) <= 10


def test_fields_that_depend_on_an_answer_stay_with_it() -> None:
    kit = {"fields": {"z": {"when": {"a": "x"}}}}

    form = Made(group("q", q=TEXT, **texts(*"abcdefghijklmnop"), z=TEXT), kit).template.pages

    page = next(page for page in form if "a" in page["properties"])
    assert "z" in page["ui:order"]
    assert not any("z" in other["properties"] for other in form)


def test_pages_of_the_author_keep_advanced_fields_apart() -> None:
    kit = {"pages": [{"title": "All", "fields": ["b"]}, {"title": "Rest", "fields": ["claimRef"]}]}

    made = Made(group(**texts("a", "b", "claimRef", "providerConfigRef")), kit)

    assert pages(made) == {
        "All": ["b"],
        "Rest": ["claimRef", "a"],
        "Advanced settings": ["providerConfigRef"],
    }


@pytest.mark.parametrize(
    ("reason", "schema", "kit", "advanced"),
    [
        ("by its name", group(managementPolicies=TEXT), {}, ["managementPolicies"]),
        ("not if it is required", group("deletionPolicy", deletionPolicy=TEXT), {}, []),
        ("a group of such fields", group(cloud=group(**texts("claimRef"))), {}, ["cloud"]),
        (
            "kit.yaml shows it",
            group(deletionPolicy=TEXT),
            {"fields": {"deletionPolicy": {"advanced": False}}},
            [],
        ),
        ("kit.yaml hides it", group(a=TEXT), {"fields": {"a": {"advanced": True}}}, ["a"]),
        ("the XRD shows it", group(claimRef={**TEXT, "x-ui-advanced": False}), {}, []),
    ],
)
def test_infrastructure_is_advanced(
    reason: str, schema: Schema, kit: dict[str, Any], advanced: list[str]
) -> None:
    assert pages(Made(schema, kit)).get("Advanced settings", []) == advanced, reason


def test_infrastructure_inside_a_group_comes_last() -> None:
    made = Made(group(db=group(deletionPolicy=TEXT, size=TEXT)))

    assert list(made.properties["db"]["properties"]) == ["size", "deletionPolicy"]


def test_bounds_of_machine_integers_are_not_shown() -> None:
    made = Made(
        group(
            a={**NUMBER, "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
            b={**NUMBER, "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
            c={**NUMBER, "minimum": 1, "maximum": 5},
        )
    )
    page = made.files[PurePosixPath("docs/kits/thing.md")].decode()

    assert "at least 1" in page
    assert "at most 5" in page
    assert not any(text in page for text in ("9223372036854775807", "2147483647", "int64"))
    with pytest.raises(InvalidInputError) as caught:
        made.xr({"b": 2**31})
    assert caught.value.hint == "is too large"
    assert made.properties["c"].get("errorMessage") is None


# --- unfolding

UNFOLD = {"unfold": "parameters"}


def test_an_unfolded_group_is_no_group_in_the_form_but_one_in_the_xr() -> None:
    parameters = group("region", region=TEXT, tags={"type": "array", "items": TEXT}, size=NUMBER)
    made = Made(group("parameters", parameters=parameters), UNFOLD)

    assert pages(made) == {"Order": ["region", "tags", "size"]}
    assert made.xr({"region": "eu"})["spec"] == {"parameters": {"region": "eu"}}
    assert made.xr({"region": "eu", "tags": ["a"], "size": 0})["spec"] == {
        "parameters": {"region": "eu", "tags": ["a"], "size": 0}
    }


def test_an_unfolded_group_that_nobody_fills_in_is_not_ordered() -> None:
    made = Made(group(parameters=group(**texts("a"))), UNFOLD)

    assert made.xr({})["spec"] == {}


def test_the_forms_own_name_makes_way_for_an_unfolded_one() -> None:
    made = Made(group("parameters", parameters=group("name", name=TEXT)), UNFOLD)

    assert made.xr({"name": "x"})["spec"] == {"parameters": {"name": "x"}}
    assert "order_name" in made.properties


def test_an_unfolded_field_names_the_order_and_has_a_page() -> None:
    kit = {
        **UNFOLD,
        "nameFrom": "parameters.id",
        "pages": [{"title": "What", "fields": ["parameters.id"]}],
    }
    made = Made(group("parameters", parameters=group("id", id=TEXT, size=TEXT)), kit)

    assert pages(made) == {"What": ["id", "size"]}
    assert made.xr({"id": "a"})["metadata"]["name"] == "thing-a"


@pytest.mark.parametrize(
    ("reason", "schema", "kit", "says"),
    [
        ("no group", group(a=TEXT), {"unfold": "a"}, "is not a group directly below spec"),
        (
            "optional with required fields",
            group(a=group("b", b=TEXT)),
            {"unfold": "a"},
            "is optional and has required fields",
        ),
        (
            "a name that is taken",
            group(a=group(b=TEXT), b=TEXT),
            {"unfold": "a"},
            "is the parameter of",
        ),
        (
            "a page with the group",
            group(a=group(b=TEXT)),
            {"unfold": "a", "pages": [{"title": "P", "fields": ["a"]}]},
            "is unfolded",
        ),
        ("unknown", group(a=TEXT), {"unfold": "x"}, "is not a field of the XRD"),
        ("YAML for what is required", group("a", a=TEXT), {"yamlFields": ["a"]}, "is required"),
        (
            "YAML twice",
            group(a=group(b=TEXT)),
            {"yamlFields": ["a", "a.b"]},
            "is inside 'a'",
        ),
        (
            "YAML for the platform's value",
            group(a=NUMBER),
            {"yamlFields": ["a"], "hidden": {"a": {"from": "A"}}},
            "cannot be entered as YAML",
        ),
    ],
)
def test_what_kit_yaml_cannot_lay_out_is_refused(
    reason: str, schema: Schema, kit: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked_kit("thing", kit_files(schema, kit))

    assert f" {says}" in f" {caught.value}", reason


# --- secrets


def test_no_form_asks_for_an_optional_secret_at_any_depth() -> None:
    user = group("name", name=TEXT, password=TEXT)
    made = Made(
        group(
            adminPassword=TEXT,
            passwordSecretRef=group(**texts("name", "key")),
            db=group(size=TEXT, apiKey=TEXT),
            users={"type": "array", "items": user},
            login=group("token", **texts("user", "token")),
        )
    )

    assert pages(made)["Order"] == ["passwordSecretRef", "db", "users"]
    assert list(made.properties["db"]["properties"]) == ["size"]
    assert list(made.properties["users"]["items"]["properties"]) == ["name"]
    template = next(d.decode() for p, d in made.files.items() if p.name == "template.yaml")
    assert not any(name in template for name in ("adminPassword", "apiKey", "token"))


@pytest.mark.parametrize(
    ("reason", "schema"),
    [
        ("directly", group("password", password=TEXT)),
        ("in a required group", group("db", db=group("password", password=TEXT))),
        (
            "in a required list",
            group("users", users={"type": "array", "items": group("password", password=TEXT)}),
        ),
    ],
)
def test_a_kit_whose_orders_need_a_secret_is_refused(reason: str, schema: Schema) -> None:
    with pytest.raises(InvalidInputError, match="would be a secret in plain text") as caught:
        checked_kit("thing", kit_files(schema))

    assert "passwordSecretRef" in caught.value.hint, reason
    assert "secret: false" in caught.value.hint


def test_the_author_may_insist_that_it_is_no_secret() -> None:
    kit = {"fields": {"token": {"secret": False}, "pin": {"secret": True}}}
    made = Made(group("token", token=TEXT, pin=TEXT), kit)

    assert pages(made) == {"Order": ["token"]}
    assert made.xr({"token": "any"})["spec"] == {"token": "any"}


@pytest.mark.parametrize(
    ("steps", "new"),
    [
        (("password",), "hunter2-hunter2"),
        (("db",), {"login": {"token": "hunter2-hunter2"}}),
        (("users",), [{"password": "hunter2-hunter2"}]),
        (("db", "login", "token"), "hunter2-hunter2"),
    ],
)
def test_a_change_does_not_write_a_secret_and_does_not_quote_it(
    steps: tuple[str, ...], new: Any
) -> None:
    users = {"type": "array", "items": group(password=TEXT)}
    db = group(login=group(token=TEXT))
    kit = Made(group(password=TEXT, db=db, users=users)).kit

    with pytest.raises(RefusedError, match="looks like a secret") as caught:
        judge_rules(kit, [FieldDifference(steps, ABSENT, new)])

    assert "hunter2" not in f"{caught.value}{caught.value.hint}"
    judge_rules(kit, [FieldDifference(steps, new, ABSENT)])


# --- approvals


def test_a_form_says_beforehand_that_an_approval_may_be_asked() -> None:
    rules = [
        {"when": "has(new.a)", "by": ["group:default/finance"], "because": "it is dear"},
        {"when": "order.isNew", "by": ["team", "platform"], "count": 2, "because": "it is new"},
    ]
    made = Made(group(**texts("a", "b")), {"approval": {"rules": rules}})

    assert made.template.pages[-1]["description"].endswith(
        "It may need an approval before it is delivered: by group finance, because it is dear; "
        "by 2 people of the team or the platform team, because it is new."
    )
    assert "approval" not in str(Made(group(**texts("a", "b")), {}).template.pages)
