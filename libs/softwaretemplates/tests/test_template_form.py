"""template.yaml is read as the portal reads it, and its form answers as the browser's does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError, OrderkitError
from softwaretemplates.template import Template, parse_template

PAGES: list[dict[str, Any]] = [
    {
        "title": "First",
        "required": ["team_name"],
        "properties": {
            "team_name": {
                "type": "string",
                "pattern": "^[a-z][a-z0-9-]{2,28}$",
                "errorMessage": {"pattern": "lower-case letters, for example ae86"},
            },
            "stage": {"type": "string", "enum": ["stage1", "stage2"], "default": "stage1"},
        },
    },
    {
        "title": "Second",
        "properties": {
            "public": {"type": "boolean", "default": False},
            "nested": {"type": "object", "properties": {"size": {"type": "integer", "default": 2}}},
        },
        "dependencies": {
            "public": {
                "oneOf": [
                    {"properties": {"public": {"const": False}}},
                    {
                        "properties": {"public": {"const": True}, "host": {"type": "string"}},
                        "required": ["host"],
                    },
                ]
            }
        },
    },
]


def template(pages: Any = PAGES, **changes: Any) -> Template:
    entity = {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "t"},
        "spec": {"type": "service", "parameters": pages, "steps": [{"action": "debug:log"}]},
        **changes,
    }
    return parse_template(yaml.safe_dump(entity).encode(), name="template.yaml")


def test_defaults_are_applied_as_the_form_does() -> None:
    assert template().validate({"team_name": "ae86"}) == {
        "stage": "stage1",
        "public": False,
        "nested": {"size": 2},
        "team_name": "ae86",
    }


def test_what_is_passed_wins_over_defaults_and_is_not_changed() -> None:
    parameters = {"team_name": "ae86", "stage": "stage2"}

    assert template().validate(parameters)["stage"] == "stage2"
    assert parameters == {"team_name": "ae86", "stage": "stage2"}


@pytest.mark.parametrize(
    ("parameters", "message", "hint"),
    [
        ({}, "team_name is missing", ""),
        ({"team_name": "AE86"}, "team_name: 'AE86' does not match", "lower-case letters"),
        ({"team_name": "ae86\n"}, "team_name: 'ae86\\n' does not match", "lower-case"),
        ({"team_name": 1}, "team_name: 1 is not a string", ""),
        ({"team_name": "ae86", "stage": "stage9"}, "stage: 'stage9' is none of", "one of: stage1"),
        (
            {"team_name": "ae86", "stge": "x"},
            "stge: 'x' is not a parameter",
            "did you mean 'stage'?",
        ),
        ({"team_name": "ae86", "zzz": "x"}, "zzz: 'x' is not a parameter", "parameters: "),
        ({"team_name": "ae86", "public": True}, "is refused|is missing", ""),
        ({"team_name": "ae86", "nested": {"size": "x"}}, "nested.size: 'x' is not an integer", ""),
    ],
)
def test_a_bad_parameter_names_field_value_rule_and_way_out(
    parameters: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        template().validate(parameters)

    assert any(part in str(refused.value) for part in message.split("|"))
    assert hint in refused.value.hint


def test_a_conditional_parameter_is_known_and_checked() -> None:
    values = {"team_name": "ae86", "public": True, "host": "x"}

    assert template().validate(values)["host"] == "x"
    assert "host" in template().properties


def test_one_page_may_stand_without_a_list() -> None:
    assert template(PAGES[0]).validate({"team_name": "ae86"})["stage"] == "stage1"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"apiVersion": "scaffolder.backstage.io/v1beta2"}, "apiVersion"),
        ({"kind": "Component"}, "kind"),
        ({"metadata": {"name": "-x-"}}, "metadata.name"),
        ({"spec": {"type": "x"}}, "spec"),
        ({"spec": {"type": "x", "steps": [{"id": "a"}]}}, "spec.steps.0"),
        ({"spec": {"type": "x", "steps": [{"action": "a", "imput": {}}]}}, "spec.steps.0"),
        (
            {
                "spec": {
                    "type": "x",
                    "steps": [{"id": "a", "action": "b"}, {"id": "a", "action": "b"}],
                }
            },
            "spec.steps",
        ),
    ],
)
def test_a_broken_template_names_the_place(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field):
        template(**changes)


def test_a_pattern_read_differently_by_browsers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="pattern"):
        template({"properties": {"a": {"type": "string", "pattern": "\\p{L}+"}}})


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", "yes"), ("0o17", 15), ("017", 17), ("1e3", 1000.0), ("~", None), ("12:30", "12:30")],
)
def test_yaml_is_read_as_version_1_2(text: str, value: object) -> None:
    source = f"""
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {{name: t}}
spec: {{type: service, steps: [], output: {{x: {text}}}}}
"""
    assert parse_template(source.encode(), name="t").output["x"] == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a: [", "no YAML"),
        (b"\xff\xfe\xff", "no text"),
        (b"- a", "no map"),
        (b"a: 1\na: 2", "a key twice"),
        (b"a: 1\n---\nb: 2", "two documents, and none is a Template"),
        (b"[" * 5000, "deep nesting"),
        (b"a: &a [" + b"x, " * 10_000 + b"]\nb: [" + b"*a, " * 30 + b"]", "aliases"),
        (b"a: &a [*a]", "an alias inside its own node"),
        (b"a: !!python/object:os.system x", "a foreign tag"),
        (b"x" * (1 << 21), "too large"),
    ],
)
def test_hostile_yaml_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_template(data, name="t"), reason


def document(kind: str, name: str) -> str:
    spec = "{type: service, steps: []}"
    version = "scaffolder.backstage.io/v1beta3"
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


OTHER, ONE, TWO = (
    document("Location", "more"),
    document("Template", "one"),
    document("Template", "two"),
)


@pytest.mark.parametrize(
    ("documents", "choice", "read"),
    [
        ((ONE, OTHER), "", "one"),
        ((OTHER, "", ONE), "", "one"),
        ((ONE, OTHER, TWO), "two", "two"),
        ((ONE,), "one", "one"),
    ],
)
def test_the_template_of_several_documents_is_read(
    documents: tuple[str, ...], choice: str, read: str
) -> None:
    data = "---\n".join(documents).encode()

    assert parse_template(data, name="t", choice=choice).name == read


@pytest.mark.parametrize(
    ("documents", "choice", "says"),
    [
        ((ONE, TWO), "", "t: 2 Templates: one, two; one is run"),
        ((ONE, ONE), "one", "t: 'one' is the name of several Templates"),
        ((ONE, TWO), "three", "t: 'three' is none of its Templates: one, two"),
        ((ONE,), "two", "t: 'two' is none of its Templates: one"),
        ((OTHER, OTHER), "", "t: 0 Templates in 2 documents"),
    ],
)
def test_a_choice_that_is_missing_or_wrong_names_the_templates(
    documents: tuple[str, ...], choice: str, says: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_template("---\n".join(documents).encode(), name="t", choice=choice)

    assert str(refused.value) == says


CLOUD_PAGES = [
    {"properties": {"cloud": {"type": "string", "default": "aws"}}},
    {
        "when": "${{ parameters.cloud === 'gcp' }}",
        "required": ["project"],
        "properties": {"project": {"type": "string"}, "zones": {"type": "integer", "default": 3}},
    },
    {
        "when": "parameters.zones > 1",
        "properties": {"spread": {"type": "boolean", "default": True}},
    },
]


@pytest.mark.parametrize(
    ("parameters", "values", "reason"),
    [
        ({}, {"cloud": "aws"}, "nothing of a hidden page is required or filled in"),
        (
            {"cloud": "gcp", "project": "p"},
            {"cloud": "gcp", "project": "p", "zones": 3, "spread": True},
            "a page that is shown is, and its defaults decide about the next",
        ),
        ({"project": 1, "spread": False}, {"cloud": "aws"}, "values of hidden pages are removed"),
        (
            {"cloud": "gcp", "project": "p", "zones": 1, "spread": False},
            {"cloud": "gcp", "project": "p", "zones": 1},
            "and only those",
        ),
    ],
)
def test_pages_are_shown_by_their_conditions(
    parameters: dict[str, Any], values: dict[str, Any], reason: str
) -> None:
    assert template(CLOUD_PAGES).validate(parameters) == values, reason


@pytest.mark.parametrize(
    ("parameters", "shown"),
    [({}, [0]), ({"cloud": "gcp"}, [0, 1, 2]), ({"cloud": "gcp", "zones": 1}, [0, 1])],
)
def test_the_console_asks_for_the_pages_that_are_shown(
    parameters: dict[str, Any], shown: list[int]
) -> None:
    asked = template(CLOUD_PAGES).shown_pages(parameters)

    assert asked == [CLOUD_PAGES[at] for at in shown]


def test_a_page_that_is_shown_is_required_whatever_page_comes_first() -> None:
    last_first = [CLOUD_PAGES[1], {"properties": {"cloud": {"type": "string", "default": "gcp"}}}]

    with pytest.raises(InvalidInputError, match="project is missing: the form requires it"):
        template(last_first).validate({})


def test_a_single_page_may_have_a_condition() -> None:
    assert template({**PAGES[0], "when": False}).validate({"stage": "stage2"}) == {}


def test_the_parameters_of_hidden_pages_are_known() -> None:
    with pytest.raises(InvalidInputError) as caught:
        template(CLOUD_PAGES).validate({"projekt": "p"})

    assert "did you mean 'project'?" in caught.value.hint


@pytest.mark.parametrize(
    ("when", "message", "hint"),
    [
        (5, "parameters.1.when: 5 is refused", ""),
        (None, "parameters.1.when: None is refused", ""),
        ("${{ parameters.a = }}", "parameters[1].when:1:18: ", "Backstage would always show"),
        ("${{ parameters.a | pick('x') }}", "uses the filter 'pick', which", "compare the answers"),
        ("${{ parameters.a }}!", "is not one expression", "compare the answers"),
        ("{% if true %}x{% endif %}", "parameters[1].when:1:", "Backstage would always show"),
        ("${{ parameters.s | replace(r/a/, '') }}", "regular expression", ""),
    ],
)
def test_a_condition_that_backstage_reads_otherwise_is_refused(
    when: object, message: str, hint: str
) -> None:
    with pytest.raises(OrderkitError) as caught:
        template([PAGES[0], {"when": when, "properties": {}}])

    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_a_condition_that_fails_on_the_answers_is_an_error() -> None:
    pages = [{"properties": {"n": {}}}, {"when": "parameters.n | batch(0)", "properties": {}}]

    with pytest.raises(OrderkitError, match=r"^spec\.parameters\[1\]\.when:1:\d+: "):
        template(pages).validate({"n": [1]})


def _branch(key: str, value: Any, *required: str, **more: Any) -> dict[str, Any]:
    fields = {name: {"type": "string"} for name in required}
    return {"properties": {key: value, **fields}, "required": list(required), **more}


CI = {
    "properties": {"ci": {"type": "string", "enum": ["none", "tekton", "cloud", "other"]}},
    "required": ["ci"],
    "dependencies": {
        "ci": {
            "oneOf": [
                _branch("ci", {"const": "none"}),
                _branch("ci", {"enum": ["tekton"]}, "namespace", "secret"),
                {
                    "properties": {
                        "ci": {"const": "cloud"},
                        "region": {"type": "string", "enum": ["north", "south"]},
                        "kind": {"type": "string", "enum": ["a", "b"]},
                    },
                    "dependencies": {
                        "kind": {
                            "oneOf": [
                                _branch("kind", {"const": "a"}),
                                _branch("kind", {"const": "b"}, "bucket"),
                            ]
                        }
                    },
                },
            ]
        }
    },
}
EITHER = {"oneOf": [_branch("lorem", {"type": "string"}, "lorem"), _branch("x", {}, "ipsum", "x")]}


@pytest.mark.parametrize(
    ("page", "answers", "problems"),
    [
        (CI, {"ci": "tekton"}, ["namespace is missing", "secret is missing"]),
        (CI, {"ci": "tekton", "secret": "s"}, ["namespace is missing"]),
        (CI, {"ci": "cloud", "region": "west"}, ["region: 'west' is none of north, south"]),
        (CI, {"ci": "cloud", "kind": "b"}, ["bucket is missing"]),
        (CI, {"ci": "other"}, ["ci: 'other' is none of none, tekton, cloud"]),
        (CI, {"ci": "none"}, []),
        (EITHER, {}, ["lorem is missing"]),
        (EITHER, {"x": "1"}, ["ipsum is missing"]),
    ],
)
def test_the_branch_that_the_answers_select_is_judged(
    page: dict[str, Any], answers: dict[str, Any], problems: list[str]
) -> None:
    """In the form, only this branch is shown; the value that selects it is no problem."""
    found = template([page]).problems(answers, [])

    assert len(found) == len(problems)
    for problem, text in zip(found, problems, strict=True):
        assert text in str(problem)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("data:text/plain;name=a b.txt;base64,YWJj", 0),
        ("data:;base64,", 0),
        ("data:text/plain,abc", 1),
        ("abc", 1),
    ],
)
def test_a_file_that_a_form_takes_is_a_data_url(text: str, count: int) -> None:
    """The form knows this format; the backend does not."""
    page = {"properties": {"file": {"type": "string", "format": "data-url"}}}

    found = template([page]).problems({"file": text}, [])

    problems = [f"file: '{text}' is refused: is not a valid data-url"]
    assert [str(problem) for problem in found] == problems[:count]
