"""
Tell binary files from text as Backstage does (npm isbinaryfile 5.0.7, first 512 bytes).

A byte order mark means text; ``%PDF-``, a NUL or more than ten per cent of suspicious bytes mean
binary. Left out: the final guess at Protocol Buffers, which matters only for files that are not
valid UTF-8, and those are refused as templates anyway.
"""

from __future__ import annotations

CHECKED_BYTES = 512
_RESERVE = 3
HEAD_BYTES = CHECKED_BYTES + _RESERVE
_MARKS = (b"\xef\xbb\xbf", b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00", b"\x84\x31\x95\x33")
_UTF16_MARKS = (b"\xfe\xff", b"\xff\xfe")
_ORDINARY = bytes((*range(7, 15), *range(32, 128)))
_LEADS = ((0xC0, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF7, 3))


def is_binary(data: bytes) -> bool:
    """Return whether Backstage would copy the file unchanged."""
    head = data[:HEAD_BYTES]
    if not head or head.startswith(_MARKS):
        return False
    if head.startswith(b"%PDF-"):
        return True
    if head.startswith(_UTF16_MARKS):
        return False
    return _suspicious(head)


def _suspicious(head: bytes) -> bool:
    if not head.translate(None, _ORDINARY):
        return False
    checked = min(len(head), CHECKED_BYTES)
    suspicious, at = 0, 0
    while at < checked:
        byte = head[at]
        if byte == 0:
            return True
        if not (7 <= byte <= 14 or 32 <= byte <= 127):  # noqa: PLR2004 - ASCII text
            step, valid = _sequence(head, at)
            at += step
            if not valid:
                suspicious += 1
                if at >= 32 and suspicious * 100 / checked > 10:  # noqa: PLR2004 - isbinaryfile's
                    return True
        at += 1
    return suspicious * 100 / checked > 10  # noqa: PLR2004


def _sequence(head: bytes, at: int) -> tuple[int, bool]:
    """Return how many bytes to skip inside a UTF-8 sequence, and whether it is one."""
    for low, high, size in _LEADS:
        if low <= head[at] <= high and at + size < len(head):
            following = head[at + 1 : at + 1 + size]
            valid = all(0x80 <= byte <= 0xBF for byte in following)  # noqa: PLR2004
            return (size if valid else 1), valid
    return 0, False
