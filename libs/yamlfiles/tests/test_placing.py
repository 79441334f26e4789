"""Fields are found where they stand in a file."""

from __future__ import annotations

import pytest

from yamlfiles.manifests import ManifestError
from yamlfiles.positions import located_manifests

TEXT = """\
# a comment
apiVersion: example.org/v1
kind: XThing
metadata: {name: one, labels: {a.b/c: x}}
spec:
  size: small
  ports:
    - number: 1
    -   number: 2
---
---
apiVersion: v1
kind: List
items:
  - apiVersion: example.org/v1
    kind: XThing
    metadata:
      name: two
"""


@pytest.mark.parametrize(
    ("steps", "mark"),
    [
        ((), (2, 1)),
        (("metadata", "name"), (4, 12)),
        (("metadata", "labels", "a.b/c"), (4, 32)),
        (("spec", "size"), (6, 3)),
        (("spec", "ports", "1", "number"), (9, 9)),
        (("spec", "ports", "1", "absent"), (9, 9)),
        (("spec", "absent", "below"), (5, 1)),
    ],
)
def test_a_field_is_found_or_the_nearest_above_it(
    steps: tuple[str, ...], mark: tuple[int, int]
) -> None:
    assert located_manifests("a.yaml", TEXT.encode())[0].find(steps) == mark


def test_items_of_a_list_are_found_in_their_list() -> None:
    second = located_manifests("a.yaml", TEXT.encode())[1]

    assert second.manifest["metadata"]["name"] == "two"
    assert second.find(["metadata", "name"]) == (18, 7)


def test_json_has_places_too() -> None:
    (found,) = located_manifests(
        "a.json", b'{"apiVersion": "v1", "kind": "A",\n "metadata": {"name": "a"}}'
    )

    assert found.find(["metadata", "name"]) == (2, 15)


def test_merged_and_aliased_fields_fall_back_to_what_is_above() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nx: &x {b: 1}\ny: *x\nz:\n  <<: *x\n"
    (found,) = located_manifests("a.yaml", text.encode())

    assert found.find(["y", "b"]) == (5, 1)
    assert found.find(["z", "b"]) == (6, 1)


def test_hostile_files_are_refused_before_they_are_walked() -> None:
    with pytest.raises(ManifestError):
        located_manifests("a.yaml", b"[" * 100_000)


def test_json_that_is_no_yaml_has_objects_without_places() -> None:
    """YAML writes a character beyond 16 bits with one escape, JSON with two."""
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "x": "\\ud83d\\ude00"}}'

    (found,) = located_manifests("a.json", text.encode())

    assert found.manifest["kind"] == "Pod"
    assert found.find(("metadata", "name")) is None
