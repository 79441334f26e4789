"""The portal's copy of a template: the same form, one request instead of the natural steps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yamllint import linter
from yamllint.config import YamlLintConfig

from ground.errors import InvalidInputError, OrderkitError
from orderkit.core.platform.baking import bake
from orderkit.core.portal.job_copy import refusal_step
from orderkit.core.portal.profile import Profile, apply_profile, natural_path, read_profile
from orderkit.core.portal.service_copy import ANSWERED, plugin_copy, service_copy
from orderkit.flows.template.actions import ACTIONS
from softwaretemplates.template import parse_template
from yamlfiles import yaml11, yaml12

ROOT = Path(__file__).parents[3]
GARAGE = (ROOT / "templates/garage/template.yaml").read_bytes()
VALUES = {
    "FORGE_HOST": "127.0.0.1:7300",
    "PACK_COMMIT": "1" * 40,
    "FORGE_URL": "http://127.0.0.1:7300",
    "REGISTRY": "registry.local",
}


def copied(data: bytes | str, folder: str = "kit") -> dict[str, Any]:
    raw = data.encode() if isinstance(data, str) else data
    found: dict[str, Any] = yaml12.load(
        service_copy(raw, name="t.yaml", folder=folder, actions=ACTIONS), name="copy"
    )
    return found


def template(*steps: str, parameters: str = "{}", rest: str = "") -> str:
    """Write a template with these steps, one flow map each."""
    listed = "".join(f"    - {step}\n" for step in steps)
    return (
        "apiVersion: scaffolder.backstage.io/v1beta3\nkind: Template\nmetadata: {name: t}\n"
        f"spec:\n  type: service\n  parameters: {parameters}\n  steps:\n{listed}{rest}"
    )


def test_a_copy_knows_the_steps_that_placeholders_bring_and_keeps_those_of_the_form() -> None:
    form = "{$yaml: ./form.yaml}"
    files = {
        PurePosixPath("templates/t/template.yaml"): template(
            "{$yaml: ../steps/log.yaml}", "{$yaml: /templates/steps/register.yaml}", parameters=form
        ).encode(),
        PurePosixPath("templates/t/form.yaml"): b"properties: {size: {type: integer}}\n",
        PurePosixPath("templates/steps/log.yaml"): b"{id: l, action: debug:log, input: {}}\n",
        PurePosixPath("templates/steps/register.yaml"): (
            b"{id: r, action: catalog:register, input: {catalogInfoUrl: x}}\n"
        ),
    }

    published = apply_profile(files, Profile.SERVICE, actions=ACTIONS)

    spec = yaml12.load(published[PurePosixPath("templates/t/template.yaml")], name="copy")["spec"]
    assert spec["parameters"] == {"$yaml": "./form.yaml"}
    assert spec["steps"][0]["input"]["body"]["values"] == {"size": "${{ parameters.size }}"}
    assert [step["action"] for step in spec["steps"][2:]] == ["catalog:register"]
    files[PurePosixPath("templates/t/template.yaml")] = template("{$yaml: /../a}").encode()
    with pytest.raises(InvalidInputError, match=r"steps\[0\].\$yaml: '/../a' is not a file"):
        apply_profile(files, Profile.SERVICE, actions=ACTIONS)


def test_the_garage_kits_copy_asks_the_service_and_registers() -> None:
    spec = copied(GARAGE, "garage")["spec"]

    service, refused, register = spec["steps"]
    assert refused == refusal_step("service")
    assert service["action"] == "http:backstage:request"
    assert service["input"]["path"] == "/proxy/orderkit/v1/tasks"
    assert service["input"]["body"] == {
        "template": "garage",
        "id": "${{ context.task.id }}",
        "requester": "${{ user.ref }}",
        "values": {
            "team_name": "${{ parameters.team_name }}",
            "stage": "${{ parameters.stage }}",
        },
    }
    assert register["action"] == "catalog:register"
    assert register["input"]["optional"] is True


def test_baked_values_stay_in_the_form_and_are_not_sent() -> None:
    found = copied(GARAGE, "garage")["spec"]

    assert {"forge_host", "pack_commit"} <= set(found["parameters"][0]["properties"])
    assert not {"forge_host", "pack_commit"} & set(found["steps"][0]["input"]["body"]["values"])


def test_everything_outside_steps_and_output_stays_byte_for_byte() -> None:
    copy = service_copy(GARAGE, name="t", folder="garage", actions=ACTIONS).decode()
    natural = GARAGE.decode()

    form = natural[natural.index("apiVersion:") : natural.index("  steps:\n")]

    assert form in copy
    assert copy.startswith("---\n# Written from natural.yaml")


def test_outputs_find_the_natural_steps_in_the_services_answer() -> None:
    output = copied(GARAGE, "garage")["spec"]["output"]

    remote, entity = output["links"]
    assert remote["url"] == "${{ " + f"{ANSWERED}.publish.output.remoteUrl" + " }}"
    assert entity["entityRef"] == "${{ " + f"{ANSWERED}.register.output.entityRef" + " }}"
    assert output["text"] == yaml12.load(GARAGE, name="t")["spec"]["output"]["text"]


def test_the_copy_is_deterministic_and_passes_yamllint() -> None:
    files = {PurePosixPath("templates/garage/template.yaml"): GARAGE}
    config = YamlLintConfig((ROOT / ".yamllint.yaml").read_text())

    first, again = (
        bake(apply_profile(files, Profile.SERVICE, actions=ACTIONS), VALUES) for _ in range(2)
    )

    assert first == again
    for path, data in first.items():
        assert not list(linter.run(data.decode(), config, str(path)))
        assert b"__ORDERKIT_" not in data


def test_the_natural_template_stands_beside_the_copy() -> None:
    path = PurePosixPath("templates/garage/template.yaml")
    found = apply_profile({path: GARAGE}, Profile.SERVICE, actions=ACTIONS)

    assert found[path.with_name("natural.yaml")] == GARAGE
    assert natural_path(path.parent, found) == path.with_name("natural.yaml")


def test_the_natural_profile_changes_nothing() -> None:
    path = PurePosixPath("templates/garage/template.yaml")

    found = apply_profile({path: GARAGE}, Profile.NATURAL, actions=ACTIONS)

    assert found == {path: GARAGE}
    assert natural_path(path.parent, found) == path


def test_the_plugins_copy_is_one_action_that_registers_nothing() -> None:
    data = service_copy(GARAGE, name="t", folder="garage", actions=ACTIONS, plugin=True)
    copy, service = yaml12.load(data, name="t")["spec"], copied(GARAGE, "garage")["spec"]

    assert copy["steps"] == [
        {
            "id": "service",
            "name": "Place the order",
            "action": "orderkit:order",
            "input": {"kit": "garage", "values": service["steps"][0]["input"]["body"]["values"]},
        }
    ]
    assert copy["parameters"] == service["parameters"]
    assert copy["output"] == service["output"]


def test_the_plugins_form_offers_teams_that_may_order_and_shows_the_plan() -> None:
    path = PurePosixPath("templates/garage/template.yaml")
    teams = {"garage": "team_name"}

    found = apply_profile({path: GARAGE}, Profile.PLUGIN, actions=ACTIONS, team_parameters=teams)

    natural, copy = (yaml12.load(data, name="t")["spec"] for data in (GARAGE, found[path]))
    first, plan = copy["parameters"]
    team, before = first["properties"].pop("team_name"), natural["parameters"][0]["properties"]
    asked = {"ui:field": "OrderkitTeam", "ui:options": {"kit": "garage"}}
    assert team == {**before.pop("team_name"), **asked}
    assert first == natural["parameters"][0]
    assert plan["properties"]["orderkit_plan"] == {
        "type": "null",
        "ui:field": "OrderkitPlan",
        "ui:options": {"kit": "garage", "parameters": ["team_name", "stage"]},
        "ui:backstage": {"review": {"show": False}},
    }
    assert "orderkit_plan" not in copy["steps"][0]["input"]["values"]
    (text,) = copy["output"]["text"]
    assert text == {"title": "How it is", "content": "${{ steps.service.output.message }}"}
    assert found[path.with_name("natural.yaml")] == GARAGE


@pytest.mark.parametrize("profile", [Profile.SERVICE, Profile.JOB, Profile.NATURAL])
def test_an_unmodified_backstage_gets_no_field_of_the_plugin(profile: Profile) -> None:
    path = PurePosixPath("templates/garage/template.yaml")
    teams = {"garage": "team_name"}

    found = apply_profile({path: GARAGE}, profile, actions=ACTIONS, team_parameters=teams)

    assert b"OrderkitTeam" not in found[path]
    assert b"OrderkitPlan" not in found[path]


def test_a_form_of_placeholders_stays_as_it_is() -> None:
    data = template(
        "{id: l, action: debug:log, input: {}}", parameters="[{$yaml: ./page.yaml}]"
    ).encode()
    copy = service_copy(
        data,
        name="t",
        folder="t",
        actions=ACTIONS,
        plugin=True,
        team_parameter="team",
        read=lambda _: b"{properties: {team: {type: string}}}",
    )

    assert yaml12.load(copy, name="t")["spec"]["parameters"][0] == {"$yaml": "./page.yaml"}


DAY2 = {PurePosixPath(f"day2/garage/{name}.yaml"): name for name in ("stage", "end")}


def test_the_plugins_forms_of_changes_and_ends_are_actions() -> None:
    files = {path: (ROOT / path).read_bytes() for path in DAY2}

    found = apply_profile(files, Profile.PLUGIN, actions=ACTIONS)

    copies = {name: yaml12.load(found[path], name=name)["spec"] for path, name in DAY2.items()}
    for path, name in DAY2.items():
        natural = yaml12.load(files[path], name=name)["spec"]
        assert {**copies[name], "steps": []} == {**natural, "steps": []}
    look, change, refused = copies["stage"]["steps"]
    (end,) = copies["end"]["steps"]
    assert (
        look
        == yaml12.load((ROOT / "day2/garage/stage.yaml").read_bytes(), name="t")["spec"]["steps"][0]
    )
    assert refused == refusal_step("look")
    assert (change["action"], end["action"]) == ("orderkit:change", "orderkit:end")
    order = (
        '${{ (parameters.order_id or parameters.order_ref) | replace("component:default/", "") }}'
    )
    assert change["input"] == {
        "order": order,
        "change": "stage",
        "values": {"stage": "${{ parameters.stage }}"},
        "base": "${{ parameters.base_commit }}",
        "whole": True,
        "resend": True,
        "reason": "${{ parameters.change_reason }}",
    }
    assert end["input"] == {
        "order": order,
        "confirm": "${{ parameters.confirm }}",
        "reason": "${{ parameters.change_reason }}",
    }


@pytest.mark.parametrize(
    ("reason", "path", "body"),
    [
        ("another operation", "/proxy/orderkit/v1/orders/x/reverts", "{commit: x}"),
        ("another proxy", "/proxy/other/v1/orders/x/changes", "{values: {}}"),
        ("a field that the action does not have", "/proxy/orderkit/v1/orders/x/end", "{now: true}"),
    ],
)
def test_a_request_that_no_action_makes_stays(reason: str, path: str, body: str) -> None:
    inputs = f"{{method: POST, path: {path}, body: {body}}}"
    data = template(f"{{id: a, action: 'http:backstage:request', input: {inputs}}}").encode()

    assert plugin_copy(data, name="t") == data, reason


def test_a_template_may_insist_on_its_natural_steps() -> None:
    path = PurePosixPath("templates/x/template.yaml")
    own = template("{id: a, action: 'publish:github'}").replace(
        "{name: t}", "{name: t, annotations: {orderkit.dev/profile: natural}}"
    )

    assert apply_profile({path: own.encode()}, Profile.SERVICE, actions=ACTIONS) == {
        path: own.encode()
    }


@dataclass(frozen=True)
class Refused:
    reason: str
    text: str
    says: str


REFUSED = [
    Refused(
        "an action the service does not know",
        template("{id: pub, action: 'publish:bitbucketCloud'}"),
        "t.yaml: steps.pub",
    ),
    Refused(
        "a secret of the form",
        template("{id: a, action: 'debug:log', input: {message: '${{ secrets.key }}'}}"),
        "t.yaml: steps.a",
    ),
    Refused(
        "a secret field",
        template(
            "{id: a, action: 'debug:log'}",
            parameters="{properties: {key: {type: string, 'ui:field': Secret}}}",
        ),
        "parameters.key",
    ),
    Refused(
        "the portal's environment",
        template("{id: env, action: 'debug:log', if: '${{ environment.parameters.x }}'}"),
        "steps.env",
    ),
    Refused(
        "permissions of a step",
        template("{id: p, action: 'debug:log', 'backstage:permissions': {tags: [a]}}"),
        "steps.p",
    ),
    Refused(
        "registering after a failure",
        template(
            "{id: r, action: 'catalog:register', if: '${{ failure() }}', "
            "input: {catalogInfoUrl: x}}"
        ),
        "steps.r",
    ),
    Refused(
        "a step that has the copy's own id",
        template("{id: service, action: 'catalog:register', input: {catalogInfoUrl: x}}"),
        "steps.service.id",
    ),
    Refused(
        "a specification in braces",
        "apiVersion: scaffolder.backstage.io/v1beta3\nkind: Template\nmetadata: {name: t}\n"
        "spec: {type: service, steps: [{id: a, action: 'debug:log'}]}\n",
        "spec",
    ),
    Refused(
        "an anchor of the steps that the form uses",
        template("{id: a, action: 'debug:log', input: &x {message: hi}}", rest="  extra: *x\n"),
        "cannot be rewritten safely",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_a_template_that_cannot_run_in_the_service_is_refused(case: Refused) -> None:
    with pytest.raises(InvalidInputError) as error:
        copied(case.text)

    assert f" {case.says}" in f" {error.value}"


@pytest.mark.parametrize(
    ("reason", "written", "wanted"),
    [
        ("a member", "${{ steps.a.output.x }}", "${{ S.a.output.x }}"),
        ("by brackets", "${{ steps['a'].output.x }}", "${{ S['a'].output.x }}"),
        ("within text", "at ${{ steps.a.output.x }}!", "at ${{ S.a.output.x }}!"),
        ("a member of that name", "${{ parameters.steps.a }}", "${{ parameters.steps.a }}"),
        ("a text of that name", "${{ 'steps.a' ~ steps.a }}", "${{ 'steps.a' ~ S.a }}"),
        ("a key of that name", "${{ {steps: steps.a} | dump }}", "${{ {steps: S.a} | dump }}"),
        ("plain text", "steps.a.output", "steps.a.output"),
        (
            "in blocks",
            "{% if steps.a %}${{ steps.a }}{% endif %}",
            "{% if S.a %}${{ S.a }}{% endif %}",
        ),
        ("raw", "{% raw %}${{ steps.a }}{% endraw %}", "{% raw %}${{ steps.a }}{% endraw %}"),
    ],
)
def test_only_the_name_steps_is_readdressed(reason: str, written: str, wanted: str) -> None:
    text = template(
        "{id: a, action: 'debug:log'}", rest=f"  output: {json.dumps({'x': written})}\n"
    )

    assert copied(text)["spec"]["output"]["x"] == wanted.replace("S.", f"{ANSWERED}.").replace(
        "S[", f"{ANSWERED}["
    ), reason


def test_lines_around_the_steps_stay() -> None:
    text = template("{id: a, action: 'debug:log'}  # one", rest="\n  # owned by\n  owner: me\n")

    copy = service_copy(text.encode(), name="t", folder="t", actions=ACTIONS).decode()

    assert "\n\n  # owned by\n  owner: me\n" in copy
    assert "# one" not in copy


def test_line_ends_stay_as_they_are() -> None:
    text = template("{id: a, action: 'debug:log'}").replace("\n", "\r\n")

    copy = service_copy(text.encode(), name="t", folder="t", actions=ACTIONS)

    assert copy.count(b"\n") == copy.count(b"\r\n")


def test_names_that_are_no_identifiers_are_reached_by_brackets() -> None:
    names = ["a-b", "with blank", 'quo"te', "ünï", "plain"]
    text = template(
        "{id: a, action: 'debug:log'}",
        parameters=json.dumps({"properties": {name: {} for name in names}}),
    )

    values = copied(text)["spec"]["steps"][0]["input"]["body"]["values"]

    assert values["plain"] == "${{ parameters.plain }}"
    assert values["a-b"] == '${{ parameters["a-b"] }}'
    assert set(values) == set(names)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(first=PLAIN, last=PLAIN, title=TEXTS)
def test_whatever_stands_in_the_form_means_the_same_in_the_copy(
    first: object, last: object, title: str
) -> None:
    entity = {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "t"},
        "spec": {
            "type": "service",
            "x-first": first,
            "parameters": {"title": title, "properties": {"a": {"default": last}}},
            "steps": [{"id": "a", "action": "debug:log", "input": {"message": "${{ user.ref }}"}}],
            "x-last": last,
        },
    }
    data = yaml11.dump(entity).encode()
    try:
        parse_template(data, name="t")
    except OrderkitError:
        return
    natural, copy = yaml12.load(data, name="t"), copied(data)

    natural["spec"].pop("steps"), copy["spec"].pop("steps")
    assert json.dumps(natural) == json.dumps(copy)


@settings(deadline=None)
@given(
    order=st.permutations(["type", "owner", "parameters", "steps", "output", "lifecycle"]),
    notes=st.lists(
        st.sampled_from(["", "# note", "  # note", "    # deep"]), min_size=6, max_size=6
    ),
    step=st.sampled_from([1, 2, 4, 8]),
)
def test_keys_of_spec_may_stand_in_any_order_with_notes_between(
    order: list[str], notes: list[str], step: int
) -> None:
    """Whatever stands around steps and output stays; a note deeper than its key is part of it."""
    written = {
        "type": ["type: service"],
        "owner": ["owner: me  # us"],
        "parameters": ["parameters:", "  properties:", "    a: {type: string}  # a"],
        "steps": ["steps:", "  - id: a  # gone", "    action: debug:log", "    # gone"],
        "output": ["output:", "  text:", "    - content: |", "        # a title", "", "        x"],
        "lifecycle": ["lifecycle: x"],
    }
    head = ["apiVersion: scaffolder.backstage.io/v1beta3", "kind: Template", "metadata: {name: t}"]
    lines = [*head, "spec:"]
    for key, note in zip(order, notes, strict=True):
        lines += [" " * step + line for line in written[key]] + [note]
    data = ("\n".join(lines) + "\n").encode()
    natural = yaml12.load(data, name="t")

    text = service_copy(data, name="t", folder="t", actions=ACTIONS).decode()

    copy = yaml12.load(text.encode(), name="t")
    assert list(copy["spec"]) == list(natural["spec"])
    assert copy["spec"]["output"] == natural["spec"]["output"]
    assert {"# us", "# a"} <= {
        line[line.index("# ") :] for line in text.split("\n") if "# " in line
    }
    assert "gone" not in text
    assert parse_template(data, name="t").pages == parse_template(text.encode(), name="t").pages


@pytest.mark.parametrize("indent", [2, 4])
def test_a_copy_with_wide_lines_or_other_indentation_passes_yamllint(indent: int) -> None:
    pad = " " * indent
    text = (
        "apiVersion: scaffolder.backstage.io/v1beta3\nkind: Template\nmetadata: {name: t}\n"
        f"spec:\n{pad}type: service\n{pad}steps:\n"
        f"{pad}{pad}- id: a\n{pad}{pad}  action: debug:log\n"
        f"{pad}output:\n{pad}{pad}x: ${{{{ steps.a.output.{'long' * 40} }}}}\n"
    )
    config = YamlLintConfig((ROOT / ".yamllint.yaml").read_text())

    copy = service_copy(text.encode(), name="t", folder="t", actions=ACTIONS).decode()

    assert not list(linter.run(copy, config, "t.yaml"))


def test_an_unknown_profile_is_refused_in_words() -> None:
    with pytest.raises(InvalidInputError, match="is not a profile"):
        read_profile("--profile", "jobs")


def test_a_file_in_the_natural_templates_place_is_refused() -> None:
    files = {
        PurePosixPath("templates/garage/template.yaml"): GARAGE,
        PurePosixPath("templates/garage/natural.yaml"): b"",
    }

    with pytest.raises(InvalidInputError, match=r"natural\.yaml"):
        apply_profile(files, Profile.SERVICE, actions=ACTIONS)


def test_what_only_looks_like_a_sentinel_is_refused_where_values_are_baked() -> None:
    with pytest.raises(InvalidInputError, match="looks like a sentinel"):
        bake({PurePosixPath("gitops/a.yaml"): b"x: __ORDERKIT_forge_url__"}, VALUES)
