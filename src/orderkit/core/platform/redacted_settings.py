"""
``platform.yaml`` for people outside of the platform: without what may be a secret. Pure.

platform.yaml names files of secrets and has none itself, but addresses may: of a webhook, or with a
password before the host.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from ground.secrets import MASK
from yamlfiles import yaml11

_SECRET_KEY = re.compile(r"(token|secret|password|key|credential)s?\Z", re.IGNORECASE)
_CHANNEL = ("spec", "notifications")


def redacted(text: str, *, name: str) -> str:
    """
    Return the file with addresses cut to scheme and host where they may be secret.

    Raises:
        InvalidInputError: It is no YAML.
    """
    return yaml11.dump(_cut(yaml11.load(text, name=name, schema={"type": "object"}), ()))


def _cut(value: Any, steps: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK
            if _SECRET_KEY.search(str(key)) and isinstance(part, str)
            else _cut(part, (*steps, str(key)))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_cut(part, steps) for part in value]
    return _address(value, steps) if isinstance(value, str) and "://" in value else value


def _address(text: str, steps: tuple[str, ...]) -> str:
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    hides = steps[:2] == _CHANNEL or parts.query or "@" in parts.netloc
    rest = f"/{MASK}" if hides and (parts.path.strip("/") or parts.query) else parts.path
    return f"{parts.scheme}://{host}{rest}"
