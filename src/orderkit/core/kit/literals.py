"""
Texts and names that kits and the files made from them share.

``core.kit.consistency`` refuses what they cannot say.
"""

from __future__ import annotations

FORGE_HOST, PACK_COMMIT = "forge_host", "pack_commit"
"""Parameters of every form, baked when the pack is published."""
YAML_PARAMETER = "more_settings"
"""The parameter for the fields that a person writes as YAML, if the kit has such fields."""
RESERVED = (FORGE_HOST, PACK_COMMIT)


def quoted(text: str) -> str:
    """
    Return a text as a literal of the template language.

    Raises:
        ValueError: It has control characters, which the language cannot say.
    """
    if any(ord(character) < ord(" ") for character in text):
        raise ValueError(f"{text!r} has control characters")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
