"""A platform's values for hidden fields: baked when they fit, told when they do not."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from kitforms import kit_files

from ground.errors import InvalidInputError
from orderkit.core.kit.pack import read_kit
from orderkit.core.platform.baking import BUILT_IN
from orderkit.core.platform.installation import CrossplaneSettings, Installation
from orderkit.core.portal.profile import Profile
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack
from orderkit_workshop.generate.kit_files import generate

SPEC = {"required": ["domain"], "properties": {"domain": {"type": "string"}}}
KIT = {"hidden": {"domain": {"from": "BASE_DOMAIN", "pattern": r"^[a-z.]+\.org$"}}}
PACK = (
    b"apiVersion: orderkit.dev/v1alpha1\nkind: Pack\nmetadata: {name: p}\nspec: {kits: [thing]}\n"
)


CHARTS = Installation(crossplane=CrossplaneSettings(chart_repository="https://charts.example.org"))


def pack_files() -> dict[PurePosixPath, bytes]:
    files = {**kit_files(SPEC, KIT), PurePosixPath("pack.yaml"): PACK}
    return files | generate(files, read_kit("thing", files))


def published(profile: Profile, **values: str) -> str:
    files = pack_files()
    known = PlatformValues("http://127.0.0.1:1", "a" * 40, "registry.local", profile, values)
    return render_pack(files, known)[PurePosixPath("templates/thing/template.yaml")].decode()


@pytest.mark.parametrize("profile", list(Profile))
def test_a_value_is_baked_into_the_form(profile: Profile) -> None:
    text = published(profile, BASE_DOMAIN="apps.example.org")

    assert "default: 'apps.example.org'" in text
    assert "__ORDERKIT_" not in text


def test_a_missing_value_names_kit_field_and_the_way_out() -> None:
    with pytest.raises(InvalidInputError, match="kit 'thing' needs it for 'domain'") as caught:
        published(Profile.NATURAL)

    assert "platform.yaml" in caught.value.hint


def test_a_value_that_the_guard_refuses_stops_the_publishing() -> None:
    with pytest.raises(InvalidInputError, match="the guard of 'domain' in kit 'thing'"):
        published(Profile.NATURAL, BASE_DOMAIN="example.com")


def test_an_xrd_that_the_api_server_refuses_stops_the_publishing() -> None:
    definition = PurePosixPath("gitops/apis/thing/definition.yaml")
    files = pack_files()
    files[definition] = files[definition].replace(b"plural: xthings", b"plural: things")
    domain = {"BASE_DOMAIN": "apps.example.org"}
    values = PlatformValues(
        "http://127.0.0.1:1", "a" * 40, "registry.local", Profile.NATURAL, domain
    )

    with pytest.raises(InvalidInputError, match=f"^{definition}: 'xthings.example.org' is refused"):
        render_pack(files, values)


def test_a_platform_has_a_value_for_each_built_in_name() -> None:
    values = PlatformValues("http://127.0.0.1:1", "a" * 40, "registry.local", installation=CHARTS)

    assert set(values.baked({})) == set(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_about_kits_lists_each_built_in_value(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs/kits.md").read_text()

    assert f"| `{name}` | {BUILT_IN[name]} |" in page
