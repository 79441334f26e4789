"""``field=value`` texts get the types of a form's fields, also inside groups."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError
from softwaretemplates.template import API_VERSION, Template, parse_template, read_assignments
from yamlfiles import yaml11

STORAGE = {
    "type": "object",
    "properties": {"sizeGb": {"type": "integer"}, "class": {"type": "string"}},
}


@pytest.fixture(scope="module")
def template() -> Template:
    page = {"title": "Order", "properties": {"app": {"type": "string"}, "storage": STORAGE}}
    entity: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Template",
        "metadata": {"name": "disk"},
        "spec": {"owner": "me", "type": "service", "parameters": [page], "steps": []},
    }
    return parse_template(yaml11.dump_block(entity).encode(), name="template.yaml")


def test_fields_of_a_group_are_read_by_their_own_types(template: Template) -> None:
    texts = {"app": "yes", "storage.sizeGb": "20", "storage.class": "5"}

    assert read_assignments(template, texts, {"storage": {"sizeGb": 1}}) == {
        "app": "yes",
        "storage": {"sizeGb": 20, "class": "5"},
    }


@pytest.mark.parametrize(
    ("texts", "refusal"),
    [
        ({"storage.size": "2"}, "is not a field of this form"),
        ({"app.size": "2"}, "is not a field of this form"),
        ({"storage.sizeGb": "many"}, "is not an integer"),
    ],
)
def test_what_a_group_has_no_place_for_is_refused(
    template: Template, texts: dict[str, str], refusal: str
) -> None:
    with pytest.raises(InvalidInputError, match=refusal):
        read_assignments(template, texts, {})


def test_a_group_that_is_no_group_is_refused(template: Template) -> None:
    with pytest.raises(InvalidInputError, match="is in a group that has another value"):
        read_assignments(template, {"storage.class": "fast"}, {"storage": "all"})
