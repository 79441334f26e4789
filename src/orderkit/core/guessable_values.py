"""
Judge whether a value of a Secret is long and random enough to be searched for in texts.

A Secret also has values that everyone knows: ``username: postgres``, ``port: 5432``. Whoever
searches for such a value finds images, names and keys. A value is searched for only if

- it has at least `SHORTEST_SEARCHED` characters, and
- a guess has to decide at least `BITS_MIN` bits, by `guess_bits`.

A letter that usually follows the letter before counts 1.5 bits, as in English words. Any other
letter counts 4.7, a digit 3.3, a change of case 1, a separator 1, any other character 4.

So ``postgres`` has 15 bits, ``administrator`` 22, ``hunter2-hunter2`` 38, eight random letters and
digits 33 on average. Of 20,000 random values each, these had too few bits: none with 12 letters and
digits, 1 with 12 hexadecimal digits, 2 % with 8 letters and digits, 13 % with 8 hexadecimal digits.

Under a key that names something public (`PUBLIC_NAME`), a long value may be just an address. There,
only a random word counts, and none in a host name.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

SHORTEST_SEARCHED = 8
"""Characters."""
BITS_MIN = 24.0
_WORD_BITS_MIN = 2.5
"""Per character, of a random word."""
_JUDGED_MAX = 200
"""Characters of a long value that are judged."""
PUBLIC_NAME = re.compile(
    r"(?:^|[^a-z])(?:user|user-?name|host|host-?name|address|end-?point|port|data-?base|db|db-?name"
    r"|region|zone|bucket|engine|protocol|scheme|ssl-?mode|name|namespace|type|version)$"
)
"""Last word of a key, in lower case with dashes, whose value is usually known to everyone."""
SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|api[-_]?key|private[-_]?key|credential|access[-_]?key",
    re.IGNORECASE,
)
"""Part of a key whose value is usually a secret."""
_SEPARATORS = frozenset("-_./:@,= \t\n")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[._ ]")
_HOST = re.compile(r"(?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}(?::\d{1,5})?/?")
_FOLLOWING = {
    "a": "bcdgiklmnprstuvy", "b": "abeiloy", "c": "aehklort", "d": "adeimosuy",
    "e": "acdeflmnpqrstvxy", "f": "aioru", "g": "aeior", "h": "aeio", "i": "cdefglmnorstv",
    "k": "eisu", "l": "adeilosuy", "m": "adeilmopq", "n": "acdegiost", "o": "bcdefklmnoprstuvw",
    "p": "aeiloprstu", "q": "lu", "r": "acdegikmnostuvy", "s": "acehikopqst", "t": "aefghiorstu",
    "u": "belnprst", "v": "aei", "w": "aehinor", "x": "rt", "y": "as",
}  # fmt: skip
"""The letters that often follow a letter in English and in names of programs."""


def is_searched(value: str, key: str = "") -> bool:
    """
    Return whether texts are searched for a value.

    Args:
        key: Of the Secret, or of a part of its value; empty: not known.
    """
    if len(value) < SHORTEST_SEARCHED or guess_bits(value) < BITS_MIN:
        return False
    return not names_public(key) or has_random_word(value)


def names_public(key: str) -> bool:
    """Return whether a key of a Secret names something that everyone may know."""
    words = _HUMP.sub("-", key).lower()
    return bool(PUBLIC_NAME.search(words)) and not SECRET_NAME.search(words)


def has_random_word(value: str) -> bool:
    """Return whether a word of a value is random; words of a host name are not judged."""
    plain = _HOST.sub("", value.strip()) if "://" not in value else _without_host(value)
    words = re.split(r"[^A-Za-z0-9+!#$%&*^~]+", plain[:_JUDGED_MAX])
    return any(
        len(word) >= SHORTEST_SEARCHED
        and not word.isdigit()
        and guess_bits(word) >= max(BITS_MIN, len(word) * _WORD_BITS_MIN)
        for word in words
    )


def _without_host(address: str) -> str:
    """Return the parts of an address that may be secret: user, password, path and query."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address
    user, at, _host = parts.netloc.rpartition("@")
    return f"{user}{at} {parts.path} {parts.query} {parts.fragment}"


def guess_bits(value: str) -> float:
    """Estimate how many bits a guess of a value has to decide."""
    bits, previous = 0.0, ""
    for character in value[:_JUDGED_MAX]:
        bits += _bits_after(previous, character)
        previous = character
    return bits


def _bits_after(previous: str, character: str) -> float:
    if character.isdigit():
        return 3.3
    if not character.isalpha():
        return 1.0 if character in _SEPARATORS else 4.0
    is_usual = character.lower() in _FOLLOWING.get(previous.lower(), "")
    is_other_case = previous.isalpha() and previous.isupper() != character.isupper()
    return (1.5 if is_usual else 4.7) + is_other_case
