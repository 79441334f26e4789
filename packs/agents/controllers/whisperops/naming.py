"""
Give each blob a name that the cluster and the portal accept, and never take one away again.

A name is an RFC 1123 label made from the blob's path. Two paths may come to the same label: who
has it keeps it, whoever comes later gets the label with a digest of its path. New paths are
served in the order of their text, so equal registries give equal names.

Pure; called by ``planning``.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from orderkit.core.names import LABEL_MAX

SUFFIX = ".csv"
TITLE_MAX = 128
PATH_MAX = 1024
"""What Google and Amazon allow for a blob's name, in bytes of UTF-8."""
_DIGEST = 8
_FALLBACK = "dataset"
_REMEMBERED = 100_000
_OTHER = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=_REMEMBERED)
def refusal(path: str) -> str:
    """Say why a blob of this name cannot be registered; empty if it can."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if size > PATH_MAX:
        return f"its name is longer than {PATH_MAX} bytes"
    if any(unicodedata.category(char) == "Cc" for char in path):
        return "its name holds control characters"
    if not path.removesuffix(SUFFIX).rpartition("/")[2]:
        return "its name is only an ending"
    return ""


def label(path: str) -> str:
    """
    Return the label of a path: ``Athlete_Recovery.csv`` is ``athlete-recovery``.

    Accents are dropped, everything else that is no letter or digit of ASCII becomes a dash. What is
    left with nothing, or is too long, carries a digest of the path.
    """
    plain = unicodedata.normalize("NFKD", path.removesuffix(SUFFIX).casefold())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    found = _OTHER.sub("-", plain).strip("-")
    if not found:
        return f"{_FALLBACK}-{_digest(path)[:_DIGEST]}"
    return found if len(found) <= LABEL_MAX else _with_digest(found, path, _DIGEST)


def allot(paths: Iterable[str], taken: Collection[str]) -> Mapping[str, str]:
    """Return a name for each new path, all different and none of `taken`."""
    used = set(taken)
    found = {}
    for path in sorted(paths):
        found[path] = _free(path, used)
        used.add(found[path])
    return found


def title(path: str) -> str:
    """Return what a person reads: ``2024/athlete_recovery.csv`` is ``2024 / Athlete Recovery``."""
    folders = path.removesuffix(SUFFIX).split("/")
    shown = " / ".join(filter(None, (_words(folder) for folder in folders)))
    return shown[:TITLE_MAX].strip() or label(path)


def _words(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(word[:1].upper() + word[1:] for word in re.split(r"[\s_-]+", plain) if word)


def _free(path: str, used: Collection[str]) -> str:
    wanted = label(path)
    length = _DIGEST
    while wanted in used:
        wanted = _with_digest(label(path), path, length)
        length += 4
    return wanted


def _with_digest(found: str, path: str, length: int) -> str:
    kept = found[: LABEL_MAX - length - 1].rstrip("-")
    return f"{kept}-{_digest(path)[:length]}"


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
