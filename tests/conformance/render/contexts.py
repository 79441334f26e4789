"""Random values for templates: names that forms have, texts and numbers that break things."""

from __future__ import annotations

import random
from typing import Any

_TEXTS = (
    "cart", "Team A", "hello world", "a", "Bucket", "x,y,z", "l", "", "é", "naïve ß ǆ", "日本語",
    "😀 emoji",
    'say "hi"', "it's", "back\\slash", "tab\there", "line one\nline two", "\n", "  padded\t ", "12",
    "-3.5", "0x1f",
    "true", "null", "${{ values.name }}", "{{ 7 * 7 }}", "{% raw %}", "<b>bold</b> & co", "a/b/c",
    "foo-bar_baz",
    "ends with newline\n", "\r\n", "a.b.c", "1e3", "NaN", "Infinity", "\u00a0nbsp\u00a0",
    "ALL CAPS", "$& $1",
    "http://example.com/x?y=1", "mail@example.com www.example.com", "\u2028", "İstanbul", "ﬁ",
    "e\u0301",
)  # fmt: skip
_NUMBERS = (
    0, 1, 2, 3, 7, 10, 42, -1, -7, 1.5, 0.1, 0.30000000000000004, -0.5, 2.5, 1e21, 1e-7,
    123456789.125, 2**53,
    9007199254740993, 100000, 1e300, 5e-324, 3.0, 1.005,
)  # fmt: skip
_URLS = (
    "github.com?owner=team-a&repo=cart", "gitea.example.com?repo=x",
    "127.0.0.1:7300?owner=o&repo=r",
    "github.com?repo=r&owner=o%20p", "gitea.example.com?owner=/a/&repo=/b/&project=p",
    "github.com?owner=a+b&repo=c",
)  # fmt: skip
_BAD_URLS = ("", "github.com?repo=x", "github.com", "://", "a b?repo=x")
_REFS = ("component:default/cart", "group:team-a", "user:ns/jane", "component:a/b:c", "Kind:x")
_BAD_REFS = ("", "cart", ":x", "a:/b", "a:b/", "ns/name")


def context(choices: random.Random, *, lifelike: bool) -> dict[str, Any]:
    """Return what a template may use: values, parameters, steps, user."""

    def text() -> str:
        return choices.choice(_TEXTS)

    def number() -> float:
        return choices.choice(_NUMBERS)

    bad = 0.0 if lifelike else 0.2
    values = {
        "name": choices.choice(("cart", "Team A", "foo-bar", text())), "owner": text(),
        "title": text(),
        "description": text(), "csv": choices.choice(("a,b,c", "dev,prod", "", text())),
        "empty": "",
        "lines": choices.choice(("one\ntwo\nthree", "a\r\nb", "\n\nx", text())),
        "quoted": 'a "b" \'c\' \\ d',
        "padded": "  in the middle \n",
        "unicode": choices.choice(("é", "日本", "😀a", "ßǆ", text())),
        "d-k": text(), "url": choices.choice(_URLS), "ref": choices.choice(_REFS),
        "count": choices.choice((0, 1, 3, 5, number())), "zero": 0, "negative": -7, "fraction": 1.5,
        "big": choices.choice((1e21, 2**53, number())), "yes": True, "no": False, "nothing": None,
        "tags": [text() for _ in range(choices.randint(0, 4))], "nobody": [],
        "numbers": [choices.choice((1, 2, 3, 10, number())) for _ in range(choices.randint(0, 4))],
        "people": [{"n": text(), "v": choices.randint(0, 2),
        "on": choices.random() < 0.5} for _ in range(choices.randint(1, 3))],
        "nested": [[1, [2, 3]], [], ["x", None]], "mixed": [1, "1", None, True, text(), number()],
        "labels": {"team": text(), "B": "2", "a": number(), "c": None}, "blank": {},
        "deep": {"a": {"b": text(), "list": [1]}, "list": [text(), text()]}, "digits": {"10": "x",
        "2": "y", "k": 1},
    }  # fmt: skip
    if choices.random() < bad:
        values |= {"url": choices.choice(_BAD_URLS), "ref": choices.choice(_BAD_REFS)}
    return {
        "values": values,
        "parameters": {"name": text(), "repoUrl": choices.choice(_URLS),
        "dryRun": choices.random() < 0.5},
        "steps": {
            "fetch-base": {"output": {"entity": {"spec": {"host": text()}}, "account": text()}},
            "fetch": {"output": {"url": "http://x/" + text(), "code": choices.choice((200, 404)),
            "result": text()}},
        },
        "user": {"entity": {"metadata": {"name": "jane"}},
        "ref": "user:default/jane"} if choices.random() < 0.7 else {},
    }  # fmt: skip
