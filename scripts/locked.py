"""Say which dependencies of pyproject.toml the lock files lack; exit 1 if any."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def main() -> int:
    project = tomllib.loads(Path("pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    runtime = [*project["project"]["dependencies"], *(name for extra in extras for name in extra)]
    missing = [
        f"{name} is not in {lock}: run scripts/lock.sh"
        for lock, wanted in (
            ("requirements.lock", runtime),
            ("requirements-dev.lock", [*runtime, *project["dependency-groups"]["dev"]]),
        )
        for name in map(_name, wanted)
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
