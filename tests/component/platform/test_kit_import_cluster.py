"""``kit import --from-cluster``: what a cluster shows becomes files as somebody wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.main import run
from orderkit_standins.serve_platform import Running

XRD = "xgarages.blog.opsbogus.dev"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    assert run(["init", str(tmp_path / "mine"), "--no-git"]) == 0
    return tmp_path / "mine"


def imported(pack: Path, platform: Running, xrd: str) -> int:
    kubeconfig = str(platform.settings.cluster.kubeconfig)
    return run(
        ["kit", "import", "--from-cluster", xrd, "--kubeconfig", kubeconfig, "--pack", str(pack)]
    )


def test_xrd_and_composition_come_back_as_they_were_written(pack: Path, platform: Running) -> None:
    assert imported(pack, platform, XRD) == 0

    for name in ("definition.yaml", "composition.yaml"):
        path = Path("gitops/apis/garage", name)
        theirs = yaml.safe_load((reference_pack() / path).read_text())
        found = yaml.safe_load((pack / path).read_text())
        defaults = {key: found["spec"].pop(key) for key in {*found["spec"]} - {*theirs["spec"]}}
        assert found == theirs
        assert defaults.keys() <= {"defaultCompositionUpdatePolicy"}


def test_an_xrd_that_is_not_there_is_told_with_those_that_are(
    pack: Path, platform: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(pack, platform, "xbuckets.example.org") == 1

    assert XRD in capsys.readouterr().err
    assert not (pack / "gitops/apis/garage").exists()
