"""A portal has one copy of each package of Backstage's framework, also with ours added."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "portal" / "plugins"
LOCKS = (
    "lab/backstage/package-lock.json",
    "lab/backstage/frontend/package-lock.json",
    "portal/plugins/package-lock.json",
)
OURS = ("orderkit", "orderkit-catalog-module", "orderkit-scaffolder-module")
OF_1_56 = {
    "@backstage/backend-plugin-api": "1.11.0",
    "@backstage/catalog-model": "1.10.2",
    "@backstage/frontend-plugin-api": "0.18.2",
    "@backstage/plugin-catalog-node": "2.2.6",
    "@backstage/plugin-catalog-react": "3.3.0",
    "@backstage/plugin-scaffolder-node": "0.13.8",
    "@backstage/plugin-scaffolder-react": "2.1.1",
    "@backstage/ui": "0.19.0",
    "react": "18.3.1",
    "react-dom": "18.3.1",
}
"""What Backstage 1.56 consists of, by the changelogs in the packages of 1.57."""
OF_1_57 = {
    **OF_1_56,
    "@backstage/backend-plugin-api": "1.12.0",
    "@backstage/catalog-model": "1.10.3",
    "@backstage/frontend-plugin-api": "1.0.0",
    "@backstage/plugin-catalog-node": "3.0.0",
    "@backstage/plugin-catalog-react": "4.0.0",
    "@backstage/plugin-scaffolder-node": "1.0.0",
    "@backstage/plugin-scaffolder-react": "3.0.0",
    "@backstage/ui": "0.20.0",
}


def _read(path: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / path).read_text())
    return found


def _is_framework(name: str) -> bool:
    return name.startswith("@backstage/") or name in {"react", "react-dom", "react-router-dom"}


def _admits(range_: str, version: str) -> bool:
    """Judge ``^a || ^b``, the only form that our ranges have."""
    assert re.fullmatch(r"\^\d+\.\d+\.\d+(?: \|\| \^\d+\.\d+\.\d+)*", range_), range_
    found = tuple(map(int, version.split(".")))
    for lowest in re.findall(r"(\d+)\.(\d+)\.(\d+)", range_):
        low = tuple(map(int, lowest))
        same = found[: 1 if low[0] else 2] == low[: 1 if low[0] else 2]
        if same and found >= low:
            return True
    return False


@pytest.mark.parametrize("lock", LOCKS)
def test_an_installation_has_each_package_of_backstage_once(lock: str) -> None:
    places: dict[str, list[str]] = {}
    for path, entry in _read(lock)["packages"].items():
        name = path.rpartition("node_modules/")[2]
        if "node_modules/" in path and _is_framework(name) and not entry.get("link"):
            places.setdefault(name, []).append(f"{path} {entry['version']}")

    assert len(places) > 30
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_name_no_registry(lock: str) -> None:
    addresses = [entry.get("resolved", "") for entry in _read(lock)["packages"].values()]

    assert not [address for address in addresses if ":" in address]


@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_installed_is_backstage_1_57(lock: str) -> None:
    installed = {
        path.removeprefix("node_modules/"): entry["version"]
        for path, entry in _read(lock)["packages"].items()
        if path.removeprefix("node_modules/") in OF_1_57
    }

    assert installed.items() <= OF_1_57.items()
    assert len(installed) >= 5


@pytest.mark.parametrize("package", OURS)
def test_our_packages_use_the_copies_that_the_portal_has(package: str) -> None:
    manifest = _read(PLUGINS / package / "package.json")

    # Types are erased. Of a range among `dependencies`, Yarn installs the newest version that fits.
    assert {*manifest.get("dependencies", {})} <= {"@backstage/types"}
    for name, range_ in manifest["peerDependencies"].items():
        for release in (OF_1_56, OF_1_57):
            assert _admits(range_, release[name]), (name, release[name])
        assert not _admits(range_, "99.0.0")


@pytest.mark.parametrize("package", OURS)
def test_our_packages_say_what_a_portal_looks_for(package: str) -> None:
    manifest = _read(PLUGINS / package / "package.json")

    about = manifest["backstage"]
    assert about["pluginId"] in {"orderkit", "catalog", "scaffolder"}
    assert about.get("pluginPackages") == [manifest["name"]] or about["pluginPackage"]
    assert manifest["exports"]["./package.json"] == "./package.json"


@pytest.mark.parametrize(
    ("range_", "version", "admits"),
    [
        ("^1.10.1", "1.12.0", True),
        ("^1.10.1", "1.10.0", False),
        ("^1.10.1", "2.0.0", False),
        ("^0.18.1 || ^1.0.0", "0.18.2", True),
        ("^0.18.1 || ^1.0.0", "0.19.0", False),
        ("^0.18.1 || ^1.0.0", "1.3.0", True),
    ],
)
def test_ranges_are_read_as_npm_reads_them(range_: str, version: str, *, admits: bool) -> None:
    assert _admits(range_, version) is admits
