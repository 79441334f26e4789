"""The papers of an image: what its SBOM lists, and what its provenance binds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from scripts import image_papers

ROOT = Path(__file__).parents[2]
DEBIAN = "zlib1g 1:1.2.13.dfsg-1 amd64\nbase-files 12.4+deb12u11 amd64\n"


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    info = tmp_path / "python" / "orderkit-0.2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Orderkit\nVersion: 0.2.0\n")
    (tmp_path / "debs").write_text(DEBIAN)
    image_papers.main(str(info.parent), str(tmp_path / "debs"), "c" * 40, str(tmp_path))
    return tmp_path


def test_the_bill_lists_debians_packages_and_pythons_in_order(papers: Path) -> None:
    bill = json.loads((papers / "sbom.cdx.json").read_text())

    assert [one["purl"] for one in bill["components"]] == [
        "pkg:deb/debian/base-files@12.4%2Bdeb12u11?arch=amd64",
        "pkg:deb/debian/zlib1g@1:1.2.13.dfsg-1?arch=amd64",
        "pkg:pypi/orderkit@0.2.0",
    ]


def test_the_provenance_binds_the_bill_the_commit_and_the_lock(papers: Path) -> None:
    statement = json.loads((papers / "provenance.json").read_text())

    bill = hashlib.sha256((papers / "sbom.cdx.json").read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": "sbom.cdx.json", "digest": {"sha256": bill}}]
    built = statement["predicate"]["buildDefinition"]
    assert built["externalParameters"] == {"commit": "c" * 40}
    digests = {one["uri"]: one["digest"]["sha256"] for one in built["resolvedDependencies"]}
    lock = (ROOT / "requirements.lock").read_bytes()
    assert digests["requirements.lock"] == hashlib.sha256(lock).hexdigest()
