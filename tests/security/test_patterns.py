"""Values made for patterns: one value must not stop the service, nor pass what a server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from attackedservice import AttackedService, attacked_service

from ground.errors import InvalidInputError
from ground.regular_expressions import compile_pattern
from kubeschema.re2_patterns import compile_pattern as compile_re2
from orderkit.core.platform.service_access import AccessSettings
from orderkit.ports.revisions import FileChange, Operation
from orderkit_standins.serve_platform import Running
from softwaretemplates.render import compile_template
from softwaretemplates.render.tree_files import matching

LONG = "a" * 50_000 + "!"
SHORT = "a" * 60 + "!"
NESTED, OVERLAPPING = "^([a-z0-9]+-?)+$", "^(?!z)((a|a)+)+$"
TEMPLATE = """\
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: slow}
spec:
  type: service
  owner: group:default/platform
  parameters:
    - title: One page
      properties:
        nested: {type: string, pattern: '%s'}
        overlapping: {type: string, pattern: '%s'}
  secrets:
    schema: {type: object, properties: {token: {type: string, pattern: '%s'}}}
  steps: [{id: say, name: Say, action: 'debug:log', input: {message: hello}}]
"""


@pytest.fixture(scope="module")
def service(
    platform: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AttackedService]:
    """A platform whose pack has a form with patterns that make backtracking engines hang."""
    path = PurePosixPath("templates/slow/template.yaml")
    text = TEMPLATE % (NESTED, OVERLAPPING, NESTED)
    platform.platform.forge.write(
        platform.platform.pack_repo,
        [FileChange(path, text.encode(), None)],
        Operation("slow-form", "user:default/test", "Add a form"),
    )
    with attacked_service(platform, tmp_path_factory.mktemp("slow"), AccessSettings()) as running:
        yield running


@pytest.mark.parametrize("name", ["nested", "overlapping"])
def test_a_value_made_for_a_forms_pattern_is_answered(name: str, service: AttackedService) -> None:
    """The pattern of the first needs 46 s for 29 characters where it is matched by backtracking."""
    body = {"template": "slow", "values": {name: SHORT}}
    answer = service.as_portal("POST", "/v1/tasks", json=body)

    assert answer.status_code == 400, answer.text
    assert service.send("GET", "/healthz").status_code == 200


@pytest.mark.parametrize(
    "pattern", [NESTED, "^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(a?){60}a{60}$", "(x+x+)+y"]
)
def test_linear_engines_judge_long_values(pattern: str) -> None:
    """Forms, XRDs and the regexp transforms of Compositions; CEL's own library uses RE2 as well."""
    assert not compile_pattern(pattern).search(LONG)
    assert not compile_re2(pattern).search(LONG)


@pytest.mark.parametrize("pattern", [OVERLAPPING, "^(?=a)((a|a)+)+$"])
def test_what_only_backtracking_can_match_has_a_time_limit(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="needs more than"):
        compile_pattern(pattern).search(SHORT)


def test_a_glob_of_a_template_takes_linear_time() -> None:
    path = PurePosixPath("a" * 10_000)

    assert not matching(["*a" * 30 + "b"], [path])


def test_tags_are_stripped_from_a_value_in_linear_time() -> None:
    """80 KB of opened comments took 116 s."""
    text = "<!--" * 20_000

    template = compile_template("${{ values.text | striptags }}")

    assert template.render({"values": {"text": text}}) == text


def test_a_newline_at_the_end_passes_no_pattern(service: AttackedService) -> None:
    """Python's ``$`` also stands before a final newline."""
    task = {"template": "slow", "values": {}, "id": "task-1\n"}
    registration = {"order": "garage-x", "kit": "garage", "team": "ae86\n"}
    answers = [
        service.as_portal("POST", "/v1/tasks", json=task),
        service.as_portal("POST", "/v1/orders", json=registration),
        service.as_portal("GET", "/v1/orders/garage-x%0A"),
        service.as_portal("GET", "/v1/orders?team=ae86%0A"),
    ]

    assert [answer.status_code for answer in answers] == [400] * 4
