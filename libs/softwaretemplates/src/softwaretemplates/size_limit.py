"""
How much of its files a rendering may hold in memory.

Apart from ``render``, because settings need the number and must not import a template engine.
"""

from __future__ import annotations

__all__ = ["MIB", "SIZE_LIMIT"]

MIB = 1 << 20
SIZE_LIMIT = 32 * MIB
"""
Default bytes that are held in memory: of one folder, half as many may be rendered, and of one file
an eighth, which is the longest template that Nunjitsu takes.
"""
