"""Print which dependencies of the three pyproject.toml the lock files lack; exit 1 if any."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_CONTROLLERS = Path("packs/agents/controllers")
_TOOLS = Path("packs/environments/tools")


def main() -> int:
    project = tomllib.loads(Path("pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    pack = tomllib.loads((_CONTROLLERS / "pyproject.toml").read_text())["project"]["dependencies"]
    controllers = [name for name in pack if _name(name) != project["project"]["name"]]
    tool = project["project"]["dependencies"]
    runtime = [*tool, *(name for extra in extras for name in extra), *controllers]
    sync = tomllib.loads((_TOOLS / "pyproject.toml").read_text())
    missing = [
        f"{name} is not in {lock}: run scripts/lock.sh"
        for lock, requirements in (
            ("requirements.lock", runtime),
            ("requirements-dev.lock", [*runtime, *project["dependency-groups"]["dev"]]),
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


def _name(requirement: str) -> str:
    return re.split(r"[\s<>=!~\[;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _locked(path: Path) -> set[str]:
    return {_name(line) for line in path.read_text().splitlines() if re.match(r"[a-zA-Z]", line)}


if __name__ == "__main__":
    sys.exit(main())
