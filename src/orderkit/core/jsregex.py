r"""
Read a JavaScript regular expression as Python's, or refuse it.

The form in the browser and the portal's backend check ``pattern`` with JavaScript. Accepted is
what both languages read alike after a small translation (``$`` never matches before a final
newline, ``\d`` and ``\w`` are ASCII, ``[^]`` is any character); the rest is refused, because
a pattern that two engines read differently lets through what the other refuses.

Called by ``core.template``. No timeouts: patterns come from reviewed packs, not from users.
"""

from __future__ import annotations

import functools
import re

_PIECE = re.compile(
    r"\\u\{|\\[pP]\{|\\k<|\\[AZzGabQ]|\(\?P|\(\?[aiLmsux-]+[:)]|\(\?>|\(\?\(|\(\?#|[*+?}]\+"
    r"|\(\?<(?![=!])|\\.|\[\^\]|\[\]|\[\^?|\]|\$|.",
    re.DOTALL,
)
_REFUSED = re.compile(
    r"\\u\{|\\[pP]\{|\\k<|\\[AZzGaQ]|\(\?P|\(\?[aiLmsux-]+[:)]|\(\?>|\(\?\(|\(\?#|[*+?}]\+|\(\?<\Z"
    r"|\\c|\\B|\\N|\[\]"
)
_SPACE = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_IN_CLASS = {"\\s": _SPACE, "[": r"\["}
_OUTSIDE = {
    "\\s": f"[{_SPACE}]",
    "\\S": f"[^{_SPACE}]",
    "$": r"\Z",
    ".": r"[^\n\r\u2028\u2029]",
    "[^]": r"(?s:.)",
}


@functools.lru_cache(maxsize=256)
def compile_pattern(source: str) -> re.Pattern[str]:
    """
    Return the pattern for `re.search`.

    Raises:
        ValueError: Python and JavaScript would read it differently, or it is malformed.
    """
    out: list[str] = []
    inside = False
    for piece in _PIECE.findall(source):
        if not inside and _REFUSED.match(piece):
            raise ValueError(f"'{piece}' is read differently by Python and JavaScript")
        out.append(_translate(piece, inside=inside))
        inside = (inside or piece in {"[", "[^"}) and piece != "]"
    try:
        return re.compile("".join(out), re.ASCII)
    except re.error as error:
        raise ValueError(str(error)) from error


def _translate(piece: str, *, inside: bool) -> str:
    if not inside:
        return _OUTSIDE.get(piece, piece)
    if piece == "\\S" or piece in {"--", "&&", "||", "~~"}:
        raise ValueError(f"'{piece}' inside brackets is read differently")
    if piece in {"[", "[^", "[^]", "[]"}:
        return piece.replace("[", r"\[", 1)
    return _IN_CLASS.get(piece, piece)
