"""docs/kit-example.md: its example is a kit, and has every key there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from orderkit.core.kit.checked_kits import checked_kit, refusals
from orderkit.core.kit.kit_file import kit_schema
from orderkit_workshop.generate.kit_files import generate

PAGE = (Path(__file__).parents[4] / "docs" / "kit-example.md").read_text()
XRD, KIT = re.findall(r"```yaml\n(apiVersion.*?)```", PAGE, re.DOTALL)
FILES = {
    PurePosixPath("gitops/apis/cache/definition.yaml"): XRD.encode(),
    PurePosixPath("templates/cache/kit.yaml"): KIT.encode(),
}


def keys(schema: dict[str, Any]) -> Iterator[str]:
    """Yield every key that the schema of kit.yaml knows."""
    for name, inner in (schema.get("properties") or {}).items():
        yield name
        yield from keys(inner)
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from keys(part)


def test_the_example_is_a_kit_without_a_problem() -> None:
    assert tuple(refusals("cache", FILES)) == ()
    files = generate(FILES, checked_kit("cache", FILES))
    assert PurePosixPath("templates/cache/template.yaml") in files


def test_the_example_has_every_key() -> None:
    missing = [key for key in keys(kit_schema()) if not re.search(rf"\b{key}: ?", KIT)]

    assert missing == []


def test_the_example_can_be_ordered() -> None:
    """The values of its own example pass its own form."""
    from kitforms import BAKED

    from softwaretemplates.template import parse_template

    kit = checked_kit("cache", FILES)
    files = generate(FILES, kit)
    data = files[PurePosixPath("templates/cache/template.yaml")]
    template = parse_template(data, name="template.yaml")

    values = template.validate({**BAKED, "domain": "example.org", **kit.examples[0].values})

    assert kit.order_id(values) == "cache-cart-single"
