r"""
The glob patterns of branch filters, protection rules and AppProjects, as regular expressions.

Gitea and Argo CD share a library for them.

``*`` and ``?`` stop at a separator if one is given, ``**`` never does; ``[a-z]``, ``[!a-z]``,
``{one,two}`` and ``\`` work as usual. Matching is by the whole text and minds the case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from ground.errors import InvalidInputError


@lru_cache(maxsize=1024)
def compile_glob(pattern: str, separator: str = "") -> re.Pattern[str]:
    """
    Return the expression that a pattern stands for.

    Raises:
        InvalidInputError: An open bracket or brace, or nothing after the last backslash.
    """
    return re.compile(_Translation(pattern, separator).run(), re.DOTALL)


@dataclass(slots=True)
class _Translation:
    pattern: str
    separator: str
    at: int = 0
    depth: int = 0
    output: list[str] = field(default_factory=list)

    def run(self) -> str:
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            self.at += 1
            self.output.append(self._pattern_part(char))
        if self.depth:
            raise self._bad("the brace is not closed")
        return "".join(self.output) + r"\Z"

    def _pattern_part(self, char: str) -> str:
        handlers = {"*": self._star, "?": self._single_char, "[": self._range, "\\": self._escaped}
        if char in handlers:
            return handlers[char]()
        if char == "{":
            self.depth += 1
            return "(?:"
        if not self.depth or char not in "},":
            return re.escape(char)
        self.depth -= char == "}"
        return ")" if char == "}" else "|"

    def _single_char(self) -> str:
        return f"[^{re.escape(self.separator)}]" if self.separator else "."

    def _star(self) -> str:
        if self.pattern.startswith("*", self.at):
            self.at += 1
            return ".*"
        return f"{self._single_char()}*"

    def _range(self) -> str:
        end = self.pattern.find("]", self.at + 1)
        if end < 0:
            raise self._bad("the character class is not closed")
        inside = self.pattern[self.at : end]
        self.at = end + 1
        negated = inside[:1] in ("!", "^")
        body = "-".join(re.escape(range_part) for range_part in inside[negated:].split("-"))
        try:
            re.compile(f"[{body}]")
        except re.error as error:
            raise self._bad(str(error)) from error
        return f"[{'^' if negated else ''}{body}]"

    def _escaped(self) -> str:
        if self.at >= len(self.pattern):
            raise self._bad("nothing follows the last backslash")
        self.at += 1
        return re.escape(self.pattern[self.at - 1])

    def _bad(self, why: str) -> InvalidInputError:
        return InvalidInputError("pattern", self.pattern, f"is not a glob: {why}")
