"""
Print how many bindings in the houses have a name that does not say what the value is.

A binding is a parameter, an assignment, a loop variable, or a ``with``, ``except`` or match
target. Information, not a limit: `make check` prints it beside the sizes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.houses import HOUSES

VAGUE = re.compile(
    r"_*("
    r"allowed|another|answered|asked|begun|both|called|chosen|coming|done|"
    r"each|either|element|entered|fitting|found|given|gone|got|had|held|"
    r"here|into|it|known|left|less|listed|looked|lost|made|many|meant|"
    r"more|most|much|named|needed|none|noted|one|ones|others|out|own|part|"
    r"passed|past|place|placed|put|rest|said|same|seen|sent|several|shown|"
    r"some|something|standing|stands|stated|such|taken|that|them|then|there|"
    r"these|thing|things|this|those|told|tried|used|wanted|what|where|"
    r"which|whole|whose|written"
    r")_*"
)
"""Words that leave open what they stand for."""
ROOTS = [house.source for house in HOUSES]


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that the code of a module binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def main() -> None:
    names: Counter[str] = Counter()
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        names.update(name for name, _ in bindings(ast.parse(path.read_text())))
    vague = Counter({name: count for name, count in names.items() if VAGUE.fullmatch(name)})
    share = 100 * vague.total() / names.total()
    print(f"vague names {share:.1f} % of {names.total()} bindings", end="")
    print("".join(f", {name} {count}" for name, count in vague.most_common(5)))


if __name__ == "__main__":
    main()
