"""Print which dependencies of the pyproject.toml files the lock files lack; exit 1 if any."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_CONTROLLERS = Path("packs/agents/controllers")
_TOOLS = Path("packs/environments/tools")


def main() -> int:
    project = tomllib.loads(Path("pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"].values()
    controllers = _foreign(_CONTROLLERS)
    tool = [*_foreign(Path()), *(name for house in _houses("libs") for name in _foreign(house))]
    extras = [name for house in _houses("extras") for name in _foreign(house)]
    options = [name for extra in optional for name in extra if not _is_ours(name)]
    runtime = [*tool, *extras, *options, *controllers]
    sync = tomllib.loads((_TOOLS / "pyproject.toml").read_text())
    missing = [
        f"{name} is not in {lock}: run scripts/lock.sh"
        for lock, requirements in (
            ("requirements.lock", runtime),
            ("requirements-dev.lock", [*runtime, *project["dependency-groups"]["dev"]]),
            ("requirements-build.lock", project["dependency-groups"]["build"]),
            ("requirements-docs.lock", project["dependency-groups"]["docs"]),
            (_CONTROLLERS / "requirements.lock", [*tool, *controllers]),
            (
                _TOOLS / "requirements-test.lock",
                [*sync["project"]["dependencies"], *sync["dependency-groups"]["test"]],
            ),
        )
        for name in map(_name, requirements)
        if name not in _locked(Path(lock))
    ]
    print("\n".join(missing))
    return int(bool(missing))


def _houses(folder: str) -> list[Path]:
    return sorted(path.parent for path in Path(folder).glob("*/pyproject.toml"))


def _foreign(folder: Path) -> list[str]:
    """Return what a distribution depends on, without the houses of this checkout."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return [name for name in project["dependencies"] if not _is_ours(name)]


def _is_ours(requirement: str) -> bool:
    return _name(requirement).startswith("orderkit")


def _name(requirement: str) -> str:
    return re.split(r"[\s<>=!~\[;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _locked(path: Path) -> set[str]:
    return {_name(line) for line in path.read_text().splitlines() if re.match(r"[a-zA-Z]", line)}


if __name__ == "__main__":
    sys.exit(main())
