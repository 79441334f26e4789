"""
Find patterns on which JavaScript's regular expressions backtrack beyond measure.

The browser and the portal's backend try one way after another to match a value. If a text can be
read in exponentially many ways and then does not match, they hang: ``^([a-z0-9]+-?)+$`` on 29
characters takes 46 s. The search runs on the pattern's position automaton (Glushkov): the ways are
exponential if two paths leave a position, read the same text, and meet again, and all this can be
repeated. Ways that grow like a power are counted for a text of one repeated character.

Not reported: patterns that a value of `LENGTH` characters cannot slow down. Counts above
`COPIES_MAX` are taken as unlimited.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from ground.regular_expressions import END, LOOKING, Token, TokenKind, tokens

__all__ = ["backtracks"]

LENGTH, WAYS_MAX = 60, 100_000
COPIES_MAX = 30
_POSITIONS_MAX = 400
_SAMPLES = "\b\t\n\v\f\r\x0e /09:@AZ[_`az{\xe9"
"""Characters around the borders of \\d, \\w and the escapes, and one beyond ASCII."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a pattern: an atom, a sequence, alternatives, a repetition, or nothing."""

    kind: str
    parts: tuple[Node, ...] = ()
    text: str = ""
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """The positions at which a part begins and ends, and in how many ways it matches nothing."""

    first: Counter[int]
    last: Counter[int]
    empty: int


_EMPTY = Node("sequence")


@dataclass(slots=True)
class _Automaton:
    copies_max: int
    atoms: list[str] = field(default_factory=list)
    follow: list[Counter[int]] = field(default_factory=list)

    def build(self, node: Node) -> _Part:
        if node.kind == "atom":
            self.atoms.append(node.text)
            self.follow.append(Counter())
            position = Counter([len(self.atoms) - 1])
            return _Part(position, position, 0)
        if node.kind == "either":
            parts = [self.build(part) for part in node.parts]
            first, last = Counter[int](), Counter[int]()
            for part in parts:
                first.update(part.first)
                last.update(part.last)
            return _Part(first, last, sum(part.empty for part in parts))
        if node.kind == "repeat":
            return self._repeat(node)
        sequence = _Part(Counter(), Counter(), 1)
        for inner in node.parts:
            sequence = self._then(sequence, self.build(inner))
        return sequence

    def _repeat(self, node: Node) -> _Part:
        (body,) = node.parts
        least = min(node.least, self.copies_max)
        optional = None if node.most is None else node.most - node.least
        tail = _Part(Counter(), Counter(), 1)
        if optional is None or optional > self.copies_max:
            part = self.build(body)
            self._link(part, part)
            tail = _Part(part.first, part.last, 1)
        else:
            for _ in range(optional):
                part = self._then(self.build(body), tail)
                tail = _Part(part.first, part.last, 1)
        head = _Part(Counter(), Counter(), 1)
        for _ in range(least):
            head = self._then(head, self.build(body))
        return self._then(head, tail)

    def _link(self, left: _Part, right: _Part) -> None:
        for position, ways in left.last.items():
            self.follow[position].update(_times(right.first, ways))

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._link(left, right)
        return _Part(
            left.first + _times(right.first, left.empty),
            right.last + _times(left.last, right.empty),
            left.empty * right.empty,
        )


def _times(counts: Mapping[int, int], factor: int) -> Counter[int]:
    return Counter({position: ways * factor for position, ways in counts.items() if factor})


@lru_cache(1024)  # forms repeat a few patterns
def backtracks(source: str) -> bool:
    """
    Return whether some short text makes a backtracking engine try too many ways.

    Raises:
        ValueError: It is not a pattern that `regular_expressions` accepts.
    """
    parser = _Parser(list(tokens(source)))
    trees = [parser.either(), *parser.looked_around]
    return any(_is_slow(tree, may_succeed=not parser.has_conditions) for tree in trees)


class _Parser:
    def __init__(self, parts: list[Token]) -> None:
        self._tokens, self._at = parts, 0
        self.looked_around: list[Node] = []
        self.has_conditions = False
        """Something besides ``$`` can still refuse a text whose characters all matched."""

    def either(self) -> Node:
        branches = [self._sequence()]
        while self._peek() is TokenKind.OR:
            self._at += 1
            branches.append(self._sequence())
        return Node("either", tuple(branches)) if len(branches) > 1 else branches[0]

    def _peek(self) -> TokenKind | None:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else None

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in {None, TokenKind.OR, TokenKind.CLOSE}:
            part = self._item()
            if self._peek() is TokenKind.COUNT:
                part = _repetition(part, self._tokens[self._at].text)
                self._at += 1
            parts.append(part)
        return Node("sequence", tuple(parts))

    def _item(self) -> Node:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind is TokenKind.GROUP:
            inner = self.either()
            self._at += 1
            if token.text not in LOOKING:
                return inner
            self.looked_around.append(inner)
        elif token.kind is TokenKind.ATOM or token.text == END:
            return Node("atom", text=token.text)
        if token.text != "^":
            self.has_conditions = True
        return _EMPTY


def _repetition(part: Node, text: str) -> Node:
    count = text.rstrip("?") or "?"
    if count.startswith("{"):
        least, comma, most = count.strip("{}").partition(",")
        upper = int(most) if most else None if comma else int(least)
        return Node("repeat", (part,), least=int(least), most=upper)
    return Node("repeat", (part,), least=int(count == "+"), most=1 if count == "?" else None)


def _is_slow(tree: Node, *, may_succeed: bool) -> bool:
    for copies_max in (COPIES_MAX, 5, 1):
        automaton = _Automaton(copies_max)
        whole = automaton.build(tree)
        if len(automaton.atoms) <= _POSITIONS_MAX:
            break
    letters = _letters(automaton.atoms)
    accepting = set(whole.last) if may_succeed else set[int]()
    return _is_exponential(automaton.follow, letters, accepting) or any(
        _ways(whole.first, automaton.follow, letters, accepting, letter) > WAYS_MAX
        for letter in frozenset[str]().union(*letters)
    )


def _letters(atoms: list[str]) -> list[frozenset[str]]:
    """Return the characters that each position reads, of those that tell all positions apart."""
    codes = {ord(char) + step for char in {*"".join(atoms), *_SAMPLES} for step in (-1, 0, 1)}
    alphabet = [chr(code) for code in codes if 0 <= code <= sys.maxunicode]
    by_atom = {
        atom: frozenset(
            char for char in alphabet if atom != END and re.fullmatch(atom, char, re.ASCII)
        )
        for atom in set(atoms)
    }
    return [by_atom[atom] for atom in atoms]


def _is_exponential(
    follow: list[Counter[int]], letters: list[frozenset[str]], accepting: Collection[int]
) -> bool:
    for loop in _loops(follow):
        if loop.isdisjoint(accepting) and _splits_and_meets(loop, follow, letters):
            return True
    return False


def _loops(follow: list[Counter[int]]) -> Iterator[frozenset[int]]:
    """Yield each largest set of positions that all reach each other."""
    reachable = [_reachable(position, follow) for position in range(len(follow))]
    for position, reached in enumerate(reachable):
        loop = frozenset(target for target in reached if position in reachable[target])
        if position in reached and position == min(loop):
            yield loop


def _reachable(position: int, follow: list[Counter[int]]) -> set[int]:
    reached: set[int] = set()
    waiting = [position]
    while waiting:
        for successor in follow[waiting.pop()]:
            if successor not in reached:
                reached.add(successor)
                waiting.append(successor)
    return reached


def _splits_and_meets(
    loop: frozenset[int], follow: list[Counter[int]], letters: list[frozenset[str]]
) -> bool:
    """Say whether two paths in a loop leave one position, read the same text, and meet again."""
    pairs: set[tuple[int, int]] = set()
    waiting = [(position, position) for position in loop]
    while waiting:
        left, right = waiting.pop()
        for pair in product(follow[left].keys() & loop, follow[right].keys() & loop):
            left_next, right_next = pair
            if left_next == right_next:
                if left != right or follow[left][left_next] > 1:
                    return True
            elif letters[left_next] & letters[right_next] and pair not in pairs:
                pairs.add(pair)
                waiting.append(pair)
    return False


def _ways(
    first: Mapping[int, int],
    follow: list[Counter[int]],
    letters: list[frozenset[str]],
    accepting: Collection[int],
    letter: str,
) -> int:
    """Count the ways to begin to read one repeated character, until one of them succeeds."""
    ways = Counter({position: n for position, n in first.items() if letter in letters[position]})
    total = 0
    for _ in range(LENGTH):
        if not ways.keys().isdisjoint(accepting):
            return 0
        total += ways.total()
        following = Counter[int]()
        for position, count in ways.items():
            for successor, edges in follow[position].items():
                if letter in letters[successor]:
                    following[successor] += count * edges
        ways = following
    return total
