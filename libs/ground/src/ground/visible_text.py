"""
Characters of strangers that hide or reorder text, or that terminals obey: shown as code points.

These are control characters, bidirectional overrides, invisible spaces and tag characters. Joiners
stay where scripts and emoji need them: between characters that are no ASCII.
"""

from __future__ import annotations

import re

__all__ = ["HIDDEN", "visible"]

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
    "|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f]|\\Z)"
)

_HIDDEN_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
"""The same in a text of ASCII only: a tenth of the time in a long one."""


def visible(text: str) -> str:
    r"""Return a text with such characters as JSON would write them: ``\u001b``. Lines stay."""
    hidden = _HIDDEN_ASCII if text.isascii() else HIDDEN
    return hidden.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
