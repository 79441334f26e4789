"""How fields of an XRD look in the generated form, and what the XR then has."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from kitforms import BAKED, Made, kit_files

from ground.errors import InvalidInputError
from orderkit.core.kit.checked_kits import checked_kit

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}


def spec(*required: str, **properties: Schema) -> Schema:
    found: Schema = {"properties": properties}
    return {**found, "required": list(required)} if required else found


def shown(field: Schema, **kit: Any) -> Schema:
    """Return the form's property of one optional field ``a``."""
    found: Schema = Made(spec(a=field), kit or None).properties["a"]
    return found


def refuses(made: Made, **values: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        made.xr(values)
    return f"{caught.value} {caught.value.hint}"


def test_bounds_become_the_forms() -> None:
    found = shown({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "format": "int32"})

    assert found["exclusiveMinimum"] == 1
    assert "minimum" not in found
    assert found["maximum"] == 2**31 - 1


def test_a_whole_number_is_kept_to_what_javascript_keeps() -> None:
    made = Made(spec(a={"type": "integer"}))

    assert made.xr({"a": 2**53 - 1})["spec"]["a"] == 2**53 - 1
    assert "9007199254740991" in refuses(made, a=2**53)


def test_a_pattern_is_told_in_words_where_words_are_known() -> None:
    found = shown({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"})

    assert found["errorMessage"]["pattern"].startswith("must be lower-case letters")


def test_a_label_is_shown_for_a_value_of_an_enum() -> None:
    kit = {"fields": {"a": {"labels": {"s": "Small"}}}}

    found = shown({"type": "string", "enum": ["s", "m"]}, **kit)

    assert (found["enum"], found["enumNames"]) == (["s", "m"], ["Small", "m"])


def test_a_required_yes_or_no_can_be_answered_with_no() -> None:
    """A box that was never touched sends nothing."""
    assert Made(spec("a", a={"type": "boolean"})).properties["a"]["ui:widget"] == "radio"
    assert "ui:widget" not in shown({"type": "boolean"})


def test_a_set_of_choices_is_boxes_to_tick() -> None:
    items = {"type": "string", "enum": ["x", "y"]}

    found = shown({"type": "array", "items": items, "x-kubernetes-list-type": "set"})

    assert (found["uniqueItems"], found["ui:widget"]) == (True, "checkboxes")


def test_a_number_or_text_keeps_its_kind() -> None:
    made = Made(spec(a={"x-kubernetes-int-or-string": True}))

    assert [option["type"] for option in made.properties["a"]["anyOf"]] == ["integer", "string"]
    assert made.xr({"a": 80})["spec"] == {"a": 80}
    assert made.xr({"a": "80"})["spec"] == {"a": "80"}


def test_null_is_not_offered() -> None:
    found = shown({"type": "string", "nullable": True, "enum": ["x", None], "default": None})

    assert found == {"title": "A", "type": "string", "enum": ["x"]}


def test_formats_that_form_and_server_share_are_kept_and_others_told() -> None:
    assert shown({"type": "string", "format": "uuid"})["format"] == "uuid"
    found = shown({"type": "string", "format": "ipv6", "description": "Where it is"})
    assert "format" not in found
    assert found["description"] == "Where it is Format: ipv6."


def test_a_list_that_may_be_left_out_may_be_empty_in_the_form() -> None:
    made = Made(spec(a={"type": "array", "items": TEXT, "minItems": 2}))

    assert made.xr({})["spec"] == {}
    assert made.xr({"a": []})["spec"] == {}
    assert "at least 2 entries" in refuses(made, a=["x"])


def test_a_group_that_may_be_left_out_asks_only_once_something_is_entered() -> None:
    group = spec("gb", gb={"type": "integer"}, tags={"type": "array", "items": TEXT})
    made = Made(spec(a={"type": "object", **group}))

    assert made.xr({})["spec"] == {}
    assert made.xr({"a": {"tags": []}})["spec"] == {}
    assert made.xr({"a": {"gb": 0}})["spec"] == {"a": {"gb": 0}}
    assert "a.gb" in refuses(made, a={"tags": ["x"]})


def test_a_default_inside_a_group_is_only_told_unless_the_group_is_always_there() -> None:
    group = {"type": "object", "properties": {"cls": {"type": "string", "default": "std"}}}

    optional = shown(group)["properties"]["cls"]
    always = shown({**group, "default": {}})["properties"]["cls"]

    assert "default" not in optional
    assert optional["description"] == "Default: std."
    assert always["default"] == "std"


def test_a_groups_default_wins_over_those_inside() -> None:
    inner = {"cls": {"type": "string", "default": "std"}}
    found = shown({"type": "object", "properties": inner, "default": {"cls": "fast"}})

    assert found["properties"]["cls"]["default"] == "fast"


def test_a_field_is_shown_only_with_the_answers_of_its_condition() -> None:
    fields = {"replicas": {"when": {"mode": ["ha", "geo"]}}, "zone": {"when": {"mode": "geo"}}}
    made = Made(
        spec(
            mode={"type": "string", "enum": ["single", "ha", "geo"]},
            replicas={"type": "integer"},
            zone=TEXT,
        ),
        {"fields": fields},
    )

    (page,) = made.template.pages
    branches = page["dependencies"]["mode"]["oneOf"]
    assert [list(branch["properties"]) for branch in branches] == [
        ["mode"],
        ["mode", "replicas"],
        ["mode", "replicas", "zone"],
    ]
    assert page["ui:order"] == ["name", "team", "mode", "replicas", "zone", "*"]
    assert made.xr({"mode": "ha", "replicas": 3})["spec"] == {"mode": "ha", "replicas": 3}


def test_what_was_entered_before_the_answer_changed_is_not_ordered() -> None:
    """The form keeps sending it."""
    kit = {"fields": {"key": {"when": {"own": True}}}}
    made = Made(spec(own={"type": "boolean"}, key=TEXT), kit)

    assert made.xr({"own": True, "key": "k"})["spec"] == {"own": True, "key": "k"}
    assert made.xr({"own": False, "key": "k"})["spec"] == {"own": False}


def test_a_field_behind_an_answer_that_is_hidden_now_is_not_ordered() -> None:
    kit = {"fields": {"own": {"when": {"mode": "ha"}}, "key": {"when": {"own": True}}}}
    mode = {"type": "string", "enum": ["single", "ha"]}
    made = Made(spec(mode=mode, own={"type": "boolean"}, key=TEXT), kit)
    entered = {"own": True, "key": "k"}

    assert made.xr({"mode": "ha", **entered})["spec"] == {"mode": "ha", **entered}
    assert made.xr({"mode": "single", **entered})["spec"] == {"mode": "single"}


def test_a_condition_on_an_open_answer_has_a_branch_for_all_others() -> None:
    kit = {"fields": {"b": {"when": {"a": "x"}}}}
    made = Made(spec(a=TEXT, b=TEXT), kit)

    assert made.xr({"a": "other"})["spec"] == {"a": "other"}
    assert made.xr({"a": "x", "b": "1"})["spec"] == {"a": "x", "b": "1"}


def test_pages_have_their_fields_and_the_last_one_the_rest() -> None:
    pages = [
        {"title": "Size", "description": "How large.", "fields": ["b"]},
        {"title": "Rest", "fields": ["c"]},
    ]
    made = Made(spec(a=TEXT, b=TEXT, c=TEXT), {"pages": pages})

    first, last = made.template.pages
    assert (first["title"], first["description"]) == ("Size", "How large.")
    assert list(first["properties"]) == ["name", "team", "b", "forge_host", "pack_commit"]
    assert list(last["properties"]) == ["c", "a"]


def test_without_pages_what_is_required_comes_first() -> None:
    made = Made(spec("b", a=TEXT, b=TEXT))

    assert list(made.properties) == ["name", "team", "b", "a", "forge_host", "pack_commit"]


def test_a_picker_shows_the_catalog() -> None:
    kit = {"fields": {"a": {"picker": {"kind": "entity", "filter": {"kind": "Resource"}}}}}

    found = shown(TEXT, **kit)

    assert found["ui:field"] == "EntityPicker"
    assert found["ui:options"] == {"catalogFilter": [{"kind": "Resource"}]}


def test_a_hidden_value_is_baked_and_refused_unbaked() -> None:
    kit = {"hidden": {"domain": {"from": "BASE_DOMAIN", "pattern": r"^[a-z0-9.]+\.org$"}}}
    made = Made(spec("domain", domain=TEXT), kit)

    assert made.properties["domain"]["default"] == "__ORDERKIT_BASE_DOMAIN__"
    assert made.properties["domain"]["ui:widget"] == "hidden"
    assert "is not set" in refuses(made)
    assert made.xr({"domain": "example.org"})["spec"] == {"domain": "example.org"}


def test_a_hidden_number_arrives_as_a_number() -> None:
    kit = {"hidden": {"vlan": {"from": "VLAN"}, "on": {"from": "ON"}}}
    made = Made(spec(vlan={"type": "integer"}, on={"type": "boolean"}), kit)

    assert made.xr({"vlan": "12", "on": "true"})["spec"] == {"vlan": 12, "on": True}
    assert "leave vlan out" in refuses(made, vlan="012", on="true")


def test_a_hidden_value_inside_a_group_is_in_every_order() -> None:
    inner = {"type": "object", "properties": {"cidr": TEXT, "name": TEXT}}
    kit = {"hidden": {"net.cidr": {"from": "CIDR", "pattern": "^[0-9./]+$"}}}
    made = Made(spec(net=inner), kit)

    assert made.xr({"net": {"cidr": "10.0.0.0/8"}})["spec"] == {"net": {"cidr": "10.0.0.0/8"}}


def test_hidden_values_are_no_part_of_what_was_ordered() -> None:
    """Another value of the platform does not make it another order."""
    kit = {"hidden": {"domain": {"from": "BASE_DOMAIN", "pattern": "^[a-z.]+$"}}}
    made = Made(spec(domain=TEXT, a=TEXT), kit)

    record = made.render({"domain": "x.org", "a": "1"})[".orderkit/order.yaml"].decode()

    assert "x.org" not in record


def test_rules_that_a_form_can_check_are_in_the_form() -> None:
    def ruled(field: Schema, rule: str, message: str = "") -> Schema:
        told = {"rule": rule, **({"message": message} if message else {})}
        return shown({**field, "x-kubernetes-validations": [told]})

    assert ruled(TEXT, "self != ''")["minLength"] == 1
    assert ruled(TEXT, "self.matches('^a+$')")["pattern"] == "^a+$"
    assert ruled(TEXT, "size(self) <= 5 && self.size() > 1")["maxLength"] == 5
    assert ruled({"type": "integer"}, "self >= 3 && self < 9")["maximum"] == 8
    assert ruled({"type": "integer"}, "3 <= self")["minimum"] == 3
    assert ruled(TEXT, "self in ['a', \"b\"]")["enum"] == ["a", "b"]
    found = ruled({"type": "integer"}, "self <= 3", "at most three")
    assert found["errorMessage"]["maximum"] == "at most three"


def test_a_rule_of_the_whole_about_one_field_is_checked_there_if_that_is_exact() -> None:
    rules = [
        {"rule": "self.size <= 4"},
        {"rule": "!has(self.more) || self.more > 1"},
        {"rule": "self.maybe < 3", "message": "maybe fewer"},
    ]
    number = {"type": "integer"}
    fields = spec("size", size=number, more=number, maybe=number)
    made = Made({**fields, "x-kubernetes-validations": rules})

    assert made.properties["size"]["maximum"] == 4
    assert made.properties["more"]["minimum"] == 2
    assert made.properties["maybe"]["maximum"] == 2**53 - 1, "an absent value fails the rule"
    assert made.template.pages[0]["description"] == "Checked when it is ordered: maybe fewer."


def test_rules_of_changes_are_told() -> None:
    rule = {"rule": "self == oldSelf"}
    assert shown({**TEXT, "x-kubernetes-validations": [rule]})["description"] == (
        "It cannot be changed later."
    )
    grows = {"rule": "self >= oldSelf", "message": "disks only grow"}
    found = shown({"type": "integer", "x-kubernetes-validations": [grows]})
    assert found["description"] == "When it is changed: disks only grow."


def test_what_kit_yaml_allows_to_change_is_told() -> None:
    changes = [
        {"name": "grow", "fields": ["disk"], "direction": "grow"},
        {"name": "tune", "fields": ["stage"], "direction": "step"},
        {"name": "rename", "fields": ["label"]},
    ]
    number = {"type": "integer"}
    made = Made(spec(disk=number, stage=number, label=TEXT, other=TEXT), {"changes": changes})

    told = {name: found.get("description") for name, found in made.properties.items()}
    assert told["disk"] == "Later it can only grow."
    assert told["stage"] == "Later it changes by one step at a time."
    assert told["label"] is None
    assert told["other"] == "It cannot be changed later."


def test_one_of_several_is_told() -> None:
    either = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    made = Made({**spec(a=TEXT, b=TEXT), **either})

    assert made.template.pages[0]["description"] == "Exactly one of a and b is needed."


def test_hints_of_the_xrd_are_understood() -> None:
    made = Made(
        spec(
            late={**TEXT, "x-ui-order": 2},
            early={**TEXT, "x-ui-order": 1},
            rare={**TEXT, "x-ui-advanced": True},
            never={**TEXT, "x-ui-hidden": True},
        )
    )

    first, advanced = made.template.pages
    assert list(first["properties"])[2:4] == ["early", "late"]
    assert (advanced["title"], list(advanced["properties"])) == ("Advanced settings", ["rare"])
    assert "never" not in made.properties


def test_annotations_of_the_xrd_are_defaults_of_kit_yaml() -> None:
    annotations = {
        "terasky.backstage.io/title": "A disk",
        "terasky.backstage.io/owner": "group:default/storage",
        "terasky.backstage.io/backstage-tags": "disk, block",
    }
    kit = Made(spec(a=TEXT), annotations=annotations).kit

    assert (kit.title, kit.owner, kit.tags) == (
        "A disk",
        "group:default/storage",
        ("disk", "block"),
    )


def test_crossplanes_own_fields_are_not_asked_for() -> None:
    assert "crossplane" not in Made(spec(a=TEXT, crossplane={"type": "object"})).properties


def test_an_order_is_named_by_fields_and_its_team_by_another() -> None:
    kit = {"nameFrom": ["app", "size"], "teamFrom": "team", "aliases": {"app": "app_name"}}
    fields = spec("app", "size", "team", app=TEXT, size={"type": "integer"}, team=TEXT)
    made = Made(fields, kit)

    xr = made.xr({"app_name": "cart", "size": 2, "team": "ae86"})

    assert xr["metadata"]["name"] == "thing-cart-2"
    assert made.kit.order_id({"app_name": "cart", "size": 2}) == "thing-cart-2"
    assert xr["spec"] == {"app": "cart", "size": 2, "team": "ae86"}
    assert "lower-case letters" in refuses(made, app_name="My App", size=2, team="a")


def test_the_team_of_the_picker_is_a_plain_name() -> None:
    made = Made(spec(a=TEXT))
    values = {"name": "n1", "team": "group:default/ae86"}

    record = made.render(values)[".orderkit/order.yaml"].decode()

    assert '  team: "ae86"\n' in record
    assert made.kit.team(values) == "ae86"


def test_the_xr_may_have_a_fields_name() -> None:
    made = Made(spec("agent", agent=TEXT), {"xrName": "agent", "nameFrom": "agent"})

    assert made.xr({"agent": "bob"})["metadata"]["name"] == "bob"


def test_links_and_lease_reach_template_and_record() -> None:
    kit = {
        "links": [{"title": "Dashboard", "url": "https://grafana.example.org"}],
        "lease": {"default": "30d", "maximum": "365d"},
    }
    made = Made(spec(a=TEXT), kit)

    assert kit["links"][0] in made.template.output["links"]  # type: ignore[index]  # a list
    record = made.render({})[".orderkit/order.yaml"].decode()
    assert "  lease:\n    duration: 30d\n    maximum: 365d\n" in record


def test_texts_of_kit_yaml_are_no_templates() -> None:
    made = Made(spec(a=TEXT), {"title": 'The "{% if %}" ${{ kit }} {# one'})

    files = made.render({})

    assert files["README.md"].decode().startswith('# thing-n1\n\nThe The "{% if %}" ${{ kit }} {#')
    assert (
        b'description: "The \\"{% if %}\\" ${{ kit }} {# one of team ae86"'
        in (files["catalog-info.yaml"])
    )


def test_a_field_named_as_the_forms_own_parameter_keeps_its_name() -> None:
    made = Made(spec("name", name=TEXT, team=TEXT))

    assert {"name", "order_name", "team", "order_team"} <= set(made.properties)


def test_a_field_named_as_a_baked_parameter_needs_an_alias() -> None:
    with pytest.raises(InvalidInputError, match="is a parameter of every form"):
        checked_kit("thing", kit_files(spec(pack_commit=TEXT)))


def test_the_page_shows_fields_changes_and_how_to_order() -> None:
    kit = {
        "changes": [{"name": "grow", "fields": ["gb"], "direction": "grow", "how": "review",
                     "warning": "takes an hour"}],
        "end": {"repository": "delete", "survives": ["the last backup"]},
        "examples": [{"name": "small", "values": {"name": "a", "team": "ae86", "gb": 3}}],
        "composes": [{"apiVersion": "v1", "kind": "Namespace"}],
    }  # fmt: skip
    page = (
        Made(spec("gb", gb={"type": "integer", "maximum": 9, "description": "a|b"}), kit)
        .files[PurePosixPath("docs/kits/thing.md")]
        .decode()
    )

    for told in (
        "| `gb` | whole number, at most 9 | required | a\\|b. |",
        "| Grow | `gb` | only up | team | by review |",
        "- Grow: takes an hour.",
        "orderkit order thing name=a team=ae86 gb=3",
        "repository is deleted",
        "- the last backup.",
        "- composes `Namespace` (`v1`)",
    ):
        assert told in page, page


def test_baked_parameters_are_named_here_too() -> None:
    assert set(BAKED) <= set(Made(spec(a=TEXT)).properties)
