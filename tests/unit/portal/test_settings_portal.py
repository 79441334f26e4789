"""platform.yaml: how the portal runs templates, and who signs for its users."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from platformsettings import settings_with

from ground.errors import InvalidInputError
from orderkit.core.platform import settings
from orderkit.core.portal.profile import Profile

TEXT = """apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {{name: x}}
spec:
  forge: {{url: "http://127.0.0.1:1", tokenFile: f}}
  portal: {{url: "http://127.0.0.1:2", tokenFile: p{portal}}}
  service: {{url: "http://127.0.0.1:3", tokenFile: s}}
  cluster: {{kubeconfig: k}}
"""


def read(portal: str = "") -> settings.PlatformSettings:
    return settings.parse(TEXT.format(portal=portal), folder=PurePosixPath("/etc/orderkit"))


def test_the_service_profile_and_claimed_requesters_are_the_default() -> None:
    found = read()

    assert found.portal.profile is Profile.SERVICE
    assert found.portal.signed_by == ""


def test_what_is_written_is_read_again() -> None:
    found = read(', profile: natural, signedBy: "https://backstage.example.com"')

    again = settings.parse(found.to_yaml(), folder=PurePosixPath("/"))

    assert again == found
    assert again.portal.profile is Profile.NATURAL
    assert again.portal.signed_by == "https://backstage.example.com"


def test_the_key_that_signs_commits_is_read_and_written() -> None:
    file = PurePosixPath("/keys/signing-key.pem")
    platform = settings_with(read(), service__signing_key_file=file)

    again = settings.parse(platform.to_yaml(), folder=PurePosixPath("/state"))

    assert again.service.signing_key_file == file
    assert read().service.signing_key_file is None


def test_a_service_that_registers_orders_is_read_and_written() -> None:
    platform = settings_with(read(), service__registers=True)

    again = settings.parse(platform.to_yaml(), folder=PurePosixPath("/"))

    assert again == platform
    assert not read().service.registers


@pytest.mark.parametrize(
    ("portal", "says"),
    [
        (", profile: fancy", "not one of"),
        (", signedBy: backstage.example.com", "signedBy"),
        (", signedby: x", "is not a known key"),
    ],
)
def test_what_cannot_be_is_refused(portal: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        read(portal)


def test_values_for_hidden_fields_are_read_and_written() -> None:
    text = TEXT.format(portal="") + "  values: {BASE_DOMAIN: apps.example.org, VLAN: '12'}\n"

    found = settings.parse(text, folder=PurePosixPath("/"))

    assert found.values == {"BASE_DOMAIN": "apps.example.org", "VLAN": "12"}
    assert settings.parse(found.to_yaml(), folder=PurePosixPath("/")) == found


@pytest.mark.parametrize("value", ["baseDomain: x", "FORGE_URL: x", "A: 'a b'", "A: 12", "A__B: x"])
def test_a_value_that_cannot_be_baked_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.values"):
        settings.parse(TEXT.format(portal="") + f"  values: {{{value}}}\n", folder=PurePosixPath())


def test_values_of_the_command_line_are_read() -> None:
    assert settings.read_values(("A=b", "C_D=e.f:1")) == {"A": "b", "C_D": "e.f:1"}
    for wrong in ("a=b", "A", "PACK_COMMIT=x", "A=b c", "A="):
        with pytest.raises(InvalidInputError):
            settings.read_values((wrong,))
