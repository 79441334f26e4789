"""
Write docs/versions.md from the tables of releases and known holes; with --check, compare.

The tables are ``orderkit.core.platform.neighbours`` and ``known_holes.yaml``: what doctor and
bootstrap say, and what the page says, cannot differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from orderkit.core.platform.neighbours import (
    NEIGHBOURS,
    SEVERITIES,
    TABLE_DATE,
    TOOLS,
    KnownHole,
    Neighbour,
    known_holes,
)

PAGE = Path(__file__).parents[1] / "docs" / "versions.md"
INTRODUCTION = f"""# Supported releases

For platform engineers: which releases of the servers beside Orderkit are supported, how that was proved, and which
holes are known in them. Written by `scripts/versions_docs.py` from the tables that `orderkit doctor` and
`orderkit bootstrap` use.

Ask your own platform:

```shell
orderkit doctor
```

The rows `gitea-release`, `kubernetes-release`, `argocd-release`, `crossplane-release` and `backstage-release` name each
server's release. A server older than the oldest supported release is a failing row, and `orderkit bootstrap` refuses it
with exit code 4 before it writes anything. A known hole of a supported release is a warning with what it means here.

## Releases

As of {TABLE_DATE}. A line ends on a date, or with the release that its row names. A release is called *observed* only
if a suite of this repository ran against exactly that release. Of the others of a line, `doctor` says that none did.
"Not served" and "cannot be built here" mean that the project could not get the code.
"""  # noqa: E501 - a page's lines
AFTER_RELEASES = """
Gitea was renumbered in autumn 2026: 28.0.0 follows 1.27.3. Gitea fixes its newest major release only, so 1.27 gets no
fixes any more, and holes stay open in 1.27.3 (below). The Go module of 28 is not served to the project, so no suite ran
against it. Decide which matters more to you: `doctor` names the holes of both.

idpbuilder 0.10.1 installs Argo CD 3.0.12 and Gitea 1.24.3, and its unreleased head Argo CD 3.1.7. All are older than the
oldest supported release: raise them ([bootstrap](idpbuilder.md#raise-the-servers-of-idpbuilder)).

Forgejo is another product than Gitea, and no suite ran against it ([facts](forge.md#forgejo)). `doctor` says so,
bootstrap goes on.

## How a release is learned

A version that no server tells is said to be not known. It is never derived from what a server can do. Of several images
of one server the oldest counts.
"""  # noqa: E501 - a page's lines
AFTER_LEARNED = """
| Text | Read as |
|---|---|
| `1.27.3`, `v3.6.1` | that release |
| `v1.37.2-eks-a1b2c3`, `v1.36.5+k3s1`, `1.24.3-rootless` | a vendor's build of that release: never *observed* |
| `3.6.0-rc2`, `1.28.0+dev-123-gabcdef0` | a build before that release. Its number does not tell which fixes it has |
| `1.27.3+12-gabcdef0` | a build after that release |
| `3.4` | no patch release is named: not known |
| `15.0.1+gitea-1.22.0` | Forgejo |
| `1.27.3+orderkit` | Orderkit's embedded server, which is not judged as the real one |

What a release can do is not derived from its number either: the client reads the forge's answers
([forge](forge.md#versions)), and `retry.refresh` is written where Argo CD's CRD has it. So no code depends on a release
number but this table.
"""  # noqa: E501 - a page's lines
HOLES = """
## Known holes

The list of {date}. It has holes of severity critical and high, and lesser ones that weaken what Orderkit relies on.
*Unrated* means that we found no rating. The list does not refresh itself: a newer Orderkit has a newer list. We found no
hole of Kubernetes 1.35 to 1.37 or of Crossplane 2 that belongs here.
"""  # noqa: E501 - a page's lines


def page() -> str:
    return (
        INTRODUCTION
        + _table(
            ("Server or tool", "Oldest", "Newest", "Proof", "End of life"),
            (
                (neighbour.name, line.oldest, line.newest, line.proof, line.ends)
                for neighbour in (*NEIGHBOURS, *TOOLS)
                for line in neighbour.series
            ),
        )
        + AFTER_RELEASES
        + _table(("Server", "From"), ((each.name, each.learned) for each in NEIGHBOURS))
        + AFTER_LEARNED
        + HOLES.format(date=known_holes().date)
        + "".join(_holes(neighbour) for neighbour in NEIGHBOURS)
    )


def _holes(neighbour: Neighbour) -> str:
    found = [hole for hole in known_holes().holes if hole.product == neighbour.name]
    if not found:
        return ""
    found.sort(key=lambda hole: SEVERITIES.index(hole.severity))
    rows = (
        (hole.id, hole.severity, _affected(hole), f"{hole.means} ({hole.source})") for hole in found
    )
    head = ("Hole", "Severity", "Affected", "What it means for a platform (source)")
    return f"\n### {neighbour.name}\n" + _table(head, rows)


def _affected(hole: KnownHole) -> str:
    return f"`{'; '.join(part.text for part in hole.affected)}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, tuple("---" for _ in head), *rows)
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str]) -> int:
    wanted = page()
    if "--check" in arguments:
        if PAGE.is_file() and PAGE.read_text() == wanted:
            return 0
        print(f"{PAGE.name} is out of date: run scripts/versions_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
