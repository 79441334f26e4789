"""
Awkward YAML texts, an edit of each, and what must come out: a text, or a refusal with its code.

Judged by ``test_yamledit_awkward``; ``scripts/editing_docs.py`` publishes them
with what other tools make of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from yamlfiles.edit import EditRefusal


@dataclass(frozen=True)
class Case:
    """A text and an edit of it, as ``orderkit edit`` takes it."""

    reason: str
    text: str
    edit: str
    after: str | EditRefusal


CASES = (
    # what stands around a value
    Case("comment behind the value", "a: 1   # why\nb: 2\n", "a=3", "a: 3   # why\nb: 2\n"),
    Case("values in a column", "a:    1\nbcd:  2\n", "a=3", "a:    3\nbcd:  2\n"),
    Case("blank before the colon", "a : 1\nb: 2\n", "a=3", "a : 3\nb: 2\n"),
    Case("value on the next line", "a:\n  1\nb: 2\n", "a=3", "a:\n  3\nb: 2\n"),
    Case("tab before the value", "a:\t1\nb: 2\n", "a=3", "a:\t3\nb: 2\n"),
    Case("blanks at line ends", "a: 1  \nb: 2 \n", "a=3", "a: 3  \nb: 2 \n"),
    Case("no line break at the end", "b: 2\na: 1", "a=3", "b: 2\na: 3"),
    Case("CRLF", "a: 1\r\nb: 2\r\n", "a=3", "a: 3\r\nb: 2\r\n"),
    Case("byte order mark", "\ufeffa: 1\nb: 2\n", "a=3", "\ufeffa: 3\nb: 2\n"),
    Case("comments before ---", "# head\n---\na: 1\n", "a=3", "# head\n---\na: 3\n"),
    Case("end mark and comment", "a: 1\n...\n# end\n", "a=3", "a: 3\n...\n# end\n"),
    Case("directive", "%YAML 1.1\n---\na: 1\n", "a=3", "%YAML 1.1\n---\na: 3\n"),
    Case("value beside ---", "--- {a: 1}\n", "a=3", "--- {a: 3}\n"),
    Case("letters beyond ASCII before it", "ü: ☺🚀\na: 1\n", "a=3", "ü: ☺🚀\na: 3\n"),
    Case("dashes with many blanks", "a:\n-   x\n-   z\n", "a[0]=w", "a:\n-   w\n-   z\n"),
    Case("maps of two indentations", "a:\n    b: 1\nc:\n  d: 2\n", "a.b=3",
         "a:\n    b: 3\nc:\n  d: 2\n"),
    Case("lists of two indentations", "a:\n- x\nb:\n  - z\n", "b[0]=w", "a:\n- x\nb:\n  - w\n"),
    # how a value is written
    Case("single quotes", "a: 'x'\nb: 2\n", "a=z", "a: 'z'\nb: 2\n"),
    Case("double quotes with escapes", 'a: "\\u263a"\nb: "\\x41"\n', "a=z", 'a: "z"\nb: "\\x41"\n'),
    Case("plain text over lines", "a: one\n  two\nb: 2\n", "a=z", "a: z\nb: 2\n"),
    Case("quoted text over lines", 'a: "one\n  two"\nb: 2\n', "a=z", 'a: "z"\nb: 2\n'),
    Case("a line of more than 80 columns", "a: 1\nb: " + "long text " * 9 + "\n", "a=3",
         "a: 3\nb: " + "long text " * 9 + "\n"),
    Case("nulls spelt out", "a: 1\nb: ~\nc: null\nd:\n", "a=3", "a: 3\nb: ~\nc: null\nd:\n"),
    Case("booleans of YAML 1.1", "a: 1\nb: yes\nc: True\n", "a=3", "a: 3\nb: yes\nc: True\n"),
    Case("numbers spelt in other ways", "a: 1\nb: 0o17\nc: 1_000\n", "a=3",
         "a: 3\nb: 0o17\nc: 1_000\n"),
    Case("literal block", "a: |\n  x\n  y\nb: 2\n", 'a="z\\nw\\n"', "a: |\n  z\n  w\nb: 2\n"),
    Case("folded block with a comment", "a: >- # why\n  x\n  y\nb: 2\n", "a=z",
         "a: >- # why\n  z\nb: 2\n"),
    Case("block that says its indentation", "a: 1\nb: |1\n   x\n", "a=3", "a: 3\nb: |1\n   x\n"),
    Case("block that keeps blank lines", "b: |+\n  x\n\n\na: 1\n", "a=3", "b: |+\n  x\n\n\na: 3\n"),
    Case("block for a number", "a: |\n  x\nb: 2\n", "a=3", "a: 3\nb: 2\n"),
    Case("empty value", "a:\nb: 2\n", "a=3", "a: 3\nb: 2\n"),
    Case("empty value before a comment", "a: # why\nb: 2\n", "a=3", "a: 3 # why\nb: 2\n"),
    Case("flow with odd blanks", "a: [ 1,2 ,3 ]\n", "a[1]=5", "a: [ 1,5 ,3 ]\n"),
    Case("flow over lines, with comments", "a: [\n  1, # one\n  2,\n]\n", "a[0]=5",
         "a: [\n  5, # one\n  2,\n]\n"),
    Case("flow map without values", "a: {b, c: 1}\n", "a.b=5", "a: {b: 5, c: 1}\n"),
    Case("JSON", '{\n  "a": 1,\n  "b": "x"\n}\n', "b=z", '{\n  "a": 1,\n  "b": "z"\n}\n'),
    Case("key of several words, quoted", "'a b': 1\n'c': 2\n", '["a b"]=3', "'a b': 3\n'c': 2\n"),
    Case("key with ?", "? a\n: 1\n", "a=3", "? a\n: 3\n"),
    Case("the same key in another map", "b:\n  a: 1\na: 1\n", "a=3", "b:\n  a: 1\na: 3\n"),
    Case("the same key in a comment", "# a: 0\na: 1\n", "a=3", "# a: 0\na: 3\n"),
    Case("the same key in a block of text", "b: |\n  a: 1\na: 1\n", "a=3", "b: |\n  a: 1\na: 3\n"),
    Case("key of a map in a list", "a:\n  - n: x\n    v: 1\n  - n: y\n    v: 1\n", "a[1].v=3",
         "a:\n  - n: x\n    v: 1\n  - n: y\n    v: 3\n"),
    # what a value is taken for
    Case("yes is text", "a: x\n", "a=yes", "a: 'yes'\n"),
    Case("0644 is text", "a: x\n", 'a="0644"', "a: '0644'\n"),
    Case("1:20 is text", "a: x\n", "a=1:20", "a: '1:20'\n"),
    Case("a date is text", "a: x\n", "a=2026-11-21", "a: '2026-11-21'\n"),
    Case("1_000 is text", "a: x\n", "a=1_000", "a: '1_000'\n"),
    Case("a number as text", "a: x\n", 'a="1e3"', "a: '1e3'\n"),
    Case("text like a comment", "a: x\n", 'a="b #c"', "a: 'b #c'\n"),
    Case("text like a map", "a: x\n", "a=b: c", "a: 'b: c'\n"),
    Case("empty text", "a: x\n", "a=", "a: ''\n"),
    Case("text with a comma in flow", "a: [x]\n", "a[0]=b,c", "a: ['b,c']\n"),
    # entries that come and go
    Case("new key behind a block of text", "a:\n  b: |\n    x\n\nc: 2\n", "a.d=3",
         "a:\n  b: |\n    x\n  d: 3\n\nc: 2\n"),
    Case("new key behind a comment", "a:\n  b: 1   # why\n# c is next\nc: 2\n", "a.d=3",
         "a:\n  b: 1   # why\n  d: 3\n# c is next\nc: 2\n"),
    Case("new item, dashes under the key", "a:\n- x\nb: 2\n", "a+=z", "a:\n- x\n- z\nb: 2\n"),
    Case("new item of an empty flow list", "a: []   # why\n", "a+=z", "a: [z]   # why\n"),
    Case("removed key and its comment", "a: 1   # why\nb: 2\n", "a-", "b: 2\n"),
    Case("removed first key of an item", "- a: 1\n  b: 2\n", "[0].a-", "- b: 2\n"),
    Case("removed item of a flow list", "a: [x, y, z]\n", "a-=y", "a: [x, z]\n"),
    Case("removed only item", "a:\n  - x   # why\nb: 2\n", "a-=x", "a: []   # why\nb: 2\n"),
    # refused
    Case("anchor that is used", "a: &v 1\nb: *v\n", "a=3", EditRefusal.ANCHOR_IN_USE),
    Case("inside an anchor that is used", "a: &v {c: 1}\nb: *v\n", "a.c=3",
         EditRefusal.ANCHOR_IN_USE),
    Case("alias", "a: &v 1\nb: *v\n", "b=3", EditRefusal.ALIAS),
    Case("inherited key", "a: &v {c: 1}\nb:\n  <<: *v\n", "b.c=3", EditRefusal.MERGE_KEY),
    Case("tag", "a: !!str 1\nb: 2\n", "a=3", EditRefusal.TAG),
    Case("application's own tag", "a: !Ref x\nb: 2\n", "a=z", EditRefusal.TAG),
    Case("key given twice", "a: 1\na: 2\n", "a=3", EditRefusal.DUPLICATE_KEY),
    Case("two documents", "a: 1\n---\na: 2\n", "a=3", EditRefusal.DOCUMENT),
    Case("a value above", "a: 1\n", "a.b=3", EditRefusal.WRONG_KIND),
    Case("item that is not there", "a: [x]\n", "a[1]=3", EditRefusal.MISSING),
    Case("item that is there twice", "a: [x, x]\n", "a-=x", EditRefusal.NOT_UNIQUE),
    Case("text that begins with a blank", "a: |\n  x\nb: 2\n", 'a=" z\\n"', "a: |2\n   z\nb: 2\n"),
    Case("line that only YAML 1.1 breaks", "a: 1 # x\u2028b: 2\n", "a=3", EditRefusal.LINE_BREAK),
)  # fmt: skip
