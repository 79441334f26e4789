"""
The mark in generated files: from what, by which command. It says which files are ours to write.

Called by whatever writes or checks a generated file.
"""

from __future__ import annotations

_MARK = "Generated from"
_HEAD_BYTES = 400


def sentences(kit: str) -> tuple[str, str]:
    """Return the two sentences of the mark."""
    return (
        f"{_MARK} kit.yaml and definition.yaml by `orderkit kit generate {kit}`.",
        "What is edited here is lost.",
    )


def comment(kit: str) -> str:
    """Return the mark as comment lines of YAML."""
    return "".join(f"# {sentence}\n" for sentence in sentences(kit))


def pack_comment() -> str:
    """Return the mark as comment lines of YAML, in a file that is made of all kits."""
    first = f"{_MARK} the definition.yaml of every kit by `orderkit kit generate`."
    return f"# {first}\n# {sentences('')[1]}\n"


def template_comment(kit: str) -> str:
    """Return the mark for a skeleton's file: the order's own file does not have it."""
    return f"{{# {' '.join(sentences(kit))} -#}}\n"


def html_comment(kit: str) -> str:
    """Return the mark for Markdown."""
    return f"<!-- {' '.join(sentences(kit))} -->\n\n"


def is_generated(data: bytes) -> bool:
    """Say whether a file bears the mark."""
    head = data[:_HEAD_BYTES]
    return _MARK.encode() in head and b"`orderkit kit generate" in head
