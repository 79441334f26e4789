"""Texts of real repositories that an editor can easily break: blocks, sets, maps in braces."""

from __future__ import annotations

# reason, text, edit as people write it, text afterwards
POSSIBLE = (
    ("a tab in a block", "a: |\n  x\n  \ty\nb: 1\n", 'a="x\\n\\tz\\n"', "a: |\n  x\n  \tz\nb: 1\n"),
    ("trailing blanks", "a: |\n  x  \n  y\nb: 1\n", 'a="x  \\nz \\n"', "a: |\n  x  \n  z \nb: 1\n"),
    (
        "a line of blanks",
        "a: |\n  x\n   \n  y\nb: 1\n",
        'a="x\\n \\nz\\n"',
        "a: |\n  x\n   \n  z\nb: 1\n",
    ),
    ("|2", "a: |2\n    x\n  y\nb: 1\n", 'a="  x\\nz\\n"', "a: |2\n    x\n  z\nb: 1\n"),
    (
        "|2- in a list",
        "a:\n- |2-\n    x\n  y\nb: 1\n",
        'a[0]="  x\\nz"',
        "a:\n- |2-\n    x\n  z\nb: 1\n",
    ),
    (
        "an indentation that is needed",
        "a:\n  - |\n    x\nb: 1\n",
        'a[0]="  x\\nz\\n"',
        "a:\n  - |2\n      x\n    z\nb: 1\n",
    ),
    ("blank lines that are kept", "a: |+\n  x\n\nb: 1\n", 'a="y\\n\\n"', "a: |+\n  y\n\nb: 1\n"),
    (
        "a deeper line in >",
        "a: >\n  x y\n    z\n  w\nb: 1\n",
        'a="x q\\n  z\\nw\\n"',
        "a: >\n  x q\n    z\n  w\nb: 1\n",
    ),
    (
        "deeper lines and a paragraph in >-",
        "a: >-\n  x y\n    z\n    t\n  w\nb: 1\n",
        'a="x q\\n  z\\n  k\\n\\nw"',
        "a: >-\n  x q\n    z\n    k\n\n  w\nb: 1\n",
    ),
    (
        "paragraphs in >",
        "a: >\n  x y\n  z\nb: 1\n",
        'a="x q\\nw\\n\\nv\\n"',
        "a: >\n  x q\n\n  w\n\n\n  v\nb: 1\n",
    ),
    (
        "a member more",
        "a:\n  ? x\n  ? why\nb: 1\n",
        "a.z=null",
        "a:\n  ? x\n  ? why\n  ? z\nb: 1\n",
    ),
    ("a member less", "a:\n  ? x\n  ? why  # c\nb: 1\n", "a.why-", "a:\n  ? x\nb: 1\n"),
    (
        "a value for a member",
        "a:\n  ? x\n  ? why\nb: 1\n",
        "a.x=5",
        "a:\n  ? x\n  : 5\n  ? why\nb: 1\n",
    ),
    ("a pair with ? more", "a:\n  ? x\n  : 1\n", "a.z=3", "a:\n  ? x\n  : 1\n  z: 3\n"),
    (
        "a pair with ? less",
        "a:\n  ? x\n  : 1\n  ? why\n  : 2\nb: 1\n",
        "a.x-",
        "a:\n  ? why\n  : 2\nb: 1\n",
    ),
    (
        "a line of braces with a comment",
        "a: {\n  x: 1, # one\n  why: 2\n}\n",
        "a.x-",
        "a: {\n  why: 2\n}\n",
    ),
    (
        "the last line of braces",
        "a: {\n  x: 1, # one\n  why: 2 # two\n}\n",
        "a.why-",
        "a: {\n  x: 1 # one\n}\n",
    ),
    (
        "the last line with a comma",
        "a: {\n  x: 1,\n  why: 2, # two\n}\n",
        "a.why-",
        "a: {\n  x: 1,\n}\n",
    ),
    (
        "a comma in a comment above",
        "a: {\n  x: 1 # b, c\n  , why: 2\n}\n",
        "a.x=3",
        "a: {\n  x: 3 # b, c\n  , why: 2\n}\n",
    ),
)
