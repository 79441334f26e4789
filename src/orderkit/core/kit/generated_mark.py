"""The mark in generated files: their sources and the command. Only marked files are overwritten."""

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
    """Return the mark as YAML comment lines."""
    return "".join(f"# {sentence}\n" for sentence in sentences(kit))


def pack_comment() -> str:
    """Return the mark as YAML comment lines, for a file that is generated from all kits."""
    first = f"{_MARK} the definition.yaml of every kit by `orderkit kit generate`."
    return f"# {first}\n# {sentences('')[1]}\n"


def template_comment(kit: str) -> str:
    """Return the mark for a skeleton's file; the rendered file does not contain it."""
    return f"{{# {' '.join(sentences(kit))} -#}}\n"


def html_comment(kit: str) -> str:
    """Return the mark for Markdown."""
    return f"<!-- {' '.join(sentences(kit))} -->\n\n"


def is_generated(data: bytes) -> bool:
    """Say whether a file has the mark."""
    head = data[:_HEAD_BYTES]
    return _MARK.encode() in head and b"`orderkit kit generate" in head
