"""The examples of platform.yaml in ``bootstrap/`` can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderkit.cli.connecting import load_settings
from orderkit.core.platform import idpbuilder
from orderkit.core.platform.installation import PlatformTarget

HERE = Path(__file__).parents[2]
EXAMPLES = sorted((HERE / "bootstrap").glob("*/*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_each_example_can_be_read(file: Path) -> None:
    found = load_settings(str(file))

    assert found.target is PlatformTarget(file.parent.name)
    assert str(found.cluster.kubeconfig) == str(Path.home() / ".kube" / "config")
    if found.target is PlatformTarget.IDPBUILDER:
        assert idpbuilder.cluster_name(found.pack) == "localdev"
        where = idpbuilder.addresses(found.forge.url)
        assert where.path_routing is (file.name == "platform.yaml")
