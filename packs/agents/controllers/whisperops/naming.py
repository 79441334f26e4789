"""
Give each blob a name that the cluster and the portal accept, and never change it.

A name is an RFC 1123 label made from the blob's path. If two paths give the same label, the one
that is registered first keeps it, and the other gets the label with a digest of its path. New
paths are named in alphabetical order, so equal registries give equal names.

Pure; called by ``comparing``.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from orderkit.controllers import LABEL_MAX

SUFFIX = ".csv"
TITLE_MAX = 128
PATH_MAX = 1024
"""What Google and Amazon allow for a blob's name, in bytes of UTF-8."""
_DIGEST = 8
_FALLBACK = "dataset"
_CACHE_SIZE = 100_000
_OTHER = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=_CACHE_SIZE)
def refusal(path: str) -> str:
    """Return why a blob of this path cannot be registered; empty if it can."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if size > PATH_MAX:
        return f"its name is longer than {PATH_MAX} bytes"
    if any(unicodedata.category(char) == "Cc" for char in path):
        return "its name contains control characters"
    if not path.removesuffix(SUFFIX).rpartition("/")[2]:
        return "its name is only an ending"
    return ""


def label(path: str) -> str:
    """
    Return the label of a path: ``Athlete_Recovery.csv`` is ``athlete-recovery``.

    Accents are dropped; every other character that is not an ASCII letter or digit becomes a dash.
    A label that would be empty or too long gets a digest of the path.
    """
    plain = unicodedata.normalize("NFKD", path.removesuffix(SUFFIX).casefold())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    dashed = _OTHER.sub("-", plain).strip("-")
    if not dashed:
        return f"{_FALLBACK}-{_digest(path)[:_DIGEST]}"
    return dashed if len(dashed) <= LABEL_MAX else _with_digest(dashed, path, _DIGEST)


def allot(paths: Iterable[str], taken: Collection[str]) -> Mapping[str, str]:
    """Return a name for each new path, all different and none of `taken`."""
    used = set(taken)
    names = {}
    for path in sorted(paths):
        names[path] = _unused_name(path, used)
        used.add(names[path])
    return names


def title(path: str) -> str:
    """Return the title for people: ``2024/athlete_recovery.csv`` is ``2024 / Athlete Recovery``."""
    folders = path.removesuffix(SUFFIX).split("/")
    shown = " / ".join(filter(None, (_words(folder) for folder in folders)))
    return shown[:TITLE_MAX].strip() or label(path)


def _words(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(word[:1].upper() + word[1:] for word in re.split(r"[\s_-]+", plain) if word)


def _unused_name(path: str, used: Collection[str]) -> str:
    name = label(path)
    length = _DIGEST
    while name in used:
        name = _with_digest(label(path), path, length)
        length += 4
    return name


def _with_digest(long_label: str, path: str, length: int) -> str:
    kept = long_label[: LABEL_MAX - length - 1].rstrip("-")
    return f"{kept}-{_digest(path)[:length]}"


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
