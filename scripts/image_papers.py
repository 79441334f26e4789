"""
Write the papers of an image: its SBOM (CycloneDX) and its provenance (SLSA), sorted, without times.

image_papers.py PYTHON-FOLDER DEBIAN-PACKAGES COMMIT FOLDER, as ``scripts/image.sh`` calls it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = ("requirements.lock", "scripts/image.sh", "scripts/image_papers.py")


def bill(python: Path, debian: str) -> dict[str, Any]:
    """Return what is in the image: Debian's packages, and Python's."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}",
        }
        for name, version, architecture in map(str.split, debian.splitlines())
    ]
    for found in distributions(path=[str(python)]):
        name = str(found.metadata["Name"]).lower()
        components.append(
            {
                "type": "library",
                "name": name,
                "version": found.version,
                "purl": f"pkg:pypi/{name}@{found.version}",
            }
        )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "orderkit"}},
        "components": sorted(components, key=lambda one: str(one["purl"])),
    }


def provenance(commit: str, sbom: bytes) -> dict[str, Any]:
    """Return from what the image was built."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "sbom.cdx.json", "digest": {"sha256": _digest(sbom)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://orderkit.dev/image/v1",
                "externalParameters": {"commit": commit},
                "resolvedDependencies": [
                    {"uri": name, "digest": {"sha256": _digest((ROOT / name).read_bytes())}}
                    for name in SOURCES
                ],
            },
            "runDetails": {"builder": {"id": "scripts/image.sh"}},
        },
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main(python: str, debian: str, commit: str, folder: str) -> int:
    sbom = (json.dumps(bill(Path(python), Path(debian).read_text()), indent=1) + "\n").encode()
    Path(folder, "sbom.cdx.json").write_bytes(sbom)
    papers = json.dumps(provenance(commit, sbom), indent=1) + "\n"
    Path(folder, "provenance.json").write_text(papers)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
