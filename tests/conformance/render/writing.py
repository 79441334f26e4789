"""Writes random templates from `productions`, and counts which productions it used."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import accumulate

from tests.conformance.render.productions import PRODUCTIONS, VERBATIM, Patterns

_HOLE = re.compile(r"@([SNBLMAsivxTtR_-])")
_KINDS = "SNBLMA"
_EXPRESSIONS = frozenset(_KINDS)
_SIZES = [len(PRODUCTIONS[kind]) * (4 if kind == "B" else 1) for kind in _KINDS]
EXPRESSIONS_ONLY, ODD_TEMPLATES = 0.75, 0.45
ODD = 0.02
"""The greatest weight of what nobody writes."""
LEAF = 2
"""Length of a pattern that is one hole."""
_NAMES = ("x", "y", "item", "key")
_WORDS = {
    "i": ("0", "1", "2", "3", "5", "10"),
    "-": ("", "", "", "-"),
    "_": ("", " ", " ", "  ", "\n"),
}


class Writer:
    """
    A source of templates. `hits` counts each production taken.

    Args:
        lifelike: Take productions as often as people do; else all of a kind alike, but what
            nobody writes (most of it fails, and would hide the rest) only in templates of its own.
    """

    def __init__(self, choices: random.Random, *, lifelike: bool) -> None:
        self.hits: Counter[tuple[str, str]] = Counter()
        self._random, self._lifelike = choices, lifelike
        self._stray = 0.02 if lifelike else 0.05
        self._scope: list[str] = []
        self._all = self._tables(lambda _pattern, weight, _kind: lifelike or weight > ODD)
        self._short = self._tables(lambda pattern, _, kind: _leaf(pattern, kind), self._all)
        self._odd = self._tables(lambda _pattern, weight, _kind: weight <= ODD)

    def _tables(
        self, wanted: Callable[[str, float, str], bool], among: Mapping[str, Table] | None = None
    ) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        for kind, patterns in PRODUCTIONS.items():
            weights = among[kind].weights if among else patterns
            found = {p: weight for p, weight in weights.items() if wanted(p, weight, kind)}
            taken = among[kind].taken if among else Counter[str]()
            tables[kind] = Table(found, taken, even=not self._lifelike)
        return tables

    def template(self) -> str:
        """Return a template of one to five statements, or (where all is alike) of expressions."""
        self._scope = []
        choose = self._random.choice
        if self._lifelike:
            return self._body(choose((0, 1, 2, 3)), choose((1, 1, 2, 3, 5)))
        if self._random.random() < ODD_TEMPLATES:
            return "".join(self._odd_part() for _ in range(choose((1, 1, 2))))
        if self._random.random() < EXPRESSIONS_ONLY:
            kinds = self._random.choices(_KINDS, weights=_SIZES, k=choose((1, 1, 2, 3)))
            return "".join(
                f"{self._write('t', 0)}${{{{ {self._write(kind, 3)} }}}}" for kind in kinds
            )
        return self._body(choose((0, 1, 2)), choose((1, 2)))

    def expression(self) -> str:
        """Return a template that is one expression, as steps have them."""
        self._scope = []
        kind = self._random.choice(_KINDS)
        return f"${{{{ {self._write(kind, self._random.choice((0, 1, 2)))} }}}}"

    def _body(self, depth: int, statements: int) -> str:
        outer = len(self._scope)
        written = "".join(self._write("T", depth) for _ in range(statements))
        del self._scope[outer:]
        return written

    def _odd_part(self) -> str:
        sizes = [len(table.weights) for table in self._odd.values()]
        (kind,) = self._random.choices(list(self._odd), weights=sizes)
        written = self._expand(kind, self._odd[kind], 2)
        return f"${{{{ {written} }}}}" if kind in _EXPRESSIONS else written

    def _write(self, kind: str, depth: int) -> str:
        if kind in _EXPRESSIONS and self._random.random() < self._stray:
            kind = "A"
        return self._expand(kind, (self._all if depth > 0 else self._short)[kind], depth)

    def _expand(self, kind: str, table: Table, depth: int) -> str:
        pattern = table.pick(self._random)
        self.hits[kind, pattern] += 1
        if kind in VERBATIM:
            return pattern
        return _HOLE.sub(lambda hole: self._fill(hole[1], depth - 1), pattern)

    def _fill(self, hole: str, depth: int) -> str:
        if hole in _WORDS:
            return self._random.choice(_WORDS[hole])
        if hole == "T":
            return self._body(depth, self._random.choice((1, 1, 2)))
        if hole == "v":
            self._scope.append(self._random.choice(_NAMES))
        if hole in "vx":
            return self._scope[-1] if self._scope else "values.name"
        return self._write(hole, depth)


class Table:
    """Patterns of one kind, taken by weight or evenly: of some, the one taken least so far."""

    def __init__(self, weights: Patterns, taken: Counter[str], *, even: bool) -> None:
        self.weights, self.taken, self._even = weights, taken, even
        self._patterns, self._sums = list(weights), list(accumulate(weights.values()))

    def pick(self, choices: random.Random) -> str:
        if self._even:
            found = min(choices.choices(self._patterns, k=8), key=self.taken.__getitem__)
        else:
            (found,) = choices.choices(self._patterns, cum_weights=self._sums)
        self.taken[found] += 1
        return found


def _leaf(pattern: str, kind: str) -> bool:
    """Say whether the pattern needs nothing deeper, or at most leaves of another kind."""
    holes = _HOLE.findall(pattern)
    if kind == "T":
        return "T" not in holes and not {"m(", "for"} & set(pattern.split())
    return (
        kind in VERBATIM
        or not (_EXPRESSIONS & set(holes))
        or (kind == "A" and len(pattern) == LEAF)
    )
