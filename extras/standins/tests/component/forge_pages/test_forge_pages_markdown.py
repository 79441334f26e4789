"""Markdown on the forge's pages: what it looks like, and what strangers cannot do with it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from forgedesk import Desk

from orderkit_standins.markdown_html import PAGE_MAX_CHARS, in_html

BASE = "/o/r/src/branch/main"
SIZE = 200_000


@dataclass(frozen=True)
class Case:
    """A text, what its HTML has, and what it has not."""

    reason: str
    text: str
    has: str
    lacks: str = "<never>"


SHOWN = [
    Case("a heading stays below those of the page", "# A\n\n# B", "<h3>B</h3>", "<h1>"),
    Case("no level of headings is left out", "# A\n\n###### B", "<h4>B</h4>"),
    Case("emphasis", "**a** _b_ ~~c~~", "<strong>a</strong> <em>b</em> <s>c</s>"),
    Case("a table", "|a|\n|-:|\n|b|", '<th scope="col">a</th>', "style"),
    Case("code", "```yaml\na: <b>\n```", "<pre><code>a: &lt;b&gt;\n</code></pre>"),
    Case("a list that begins at 3", "3. a", '<ol start="3">'),
    Case("a link to a file", "[a](docs/a.md)", f'<a href="{BASE}/docs/a.md" '),
    Case("a link elsewhere", "[a](https://b.c)", 'rel="external nofollow noreferrer"'),
    Case("a mail address", "<a@b.c>", 'href="mailto:a@b.c"'),
    Case("a picture is a link", "![a](p.png)", f'href="{BASE}/p.png"', "<img"),
    Case("a comment for programs", "a<!-- b -->c<!-- d", "<p>ac</p>", "b"),
    Case(
        "a collapsed section of a plan",
        "<details><summary><code>a &lt;b</code></summary>\n\n- c\n\n</details>\n\nd",
        "<details><summary><code>a &lt;b</code></summary>\n<ul>\n<li>c</li>\n</ul>\n</details>\n",
    ),
]
HOSTILE = [
    Case("HTML", "<script>x</script><img onerror=x>", "&lt;script&gt;", "<script"),
    Case("HTML in a table", "|<b onclick=x>|\n|-|\n", "&lt;b onclick=x&gt;", "<b"),
    Case("a script's address", "[a](javascript:x)", "[a](javascript:x)", "href"),
    Case("the same in capitals", "[a](JaVaScRiPt:x)", "", "href"),
    Case("the same as entities", "[a](&#106;avascript:x)", "", "href"),
    Case("the same with a tab", "[a](java&Tab;script:x)", f'href="{BASE}/java%09script:x"'),
    Case("the same by reference", "[a][b]\n\n[b]: javascript:x", "", "href"),
    Case("the same in brackets", "<javascript:x>", "&lt;javascript:x&gt;", "href"),
    Case("the same as a picture", "![a](javascript:x)", "", "href"),
    Case("a data address", "[a](data:text/html,x)", "", "href"),
    Case("a picture as data", "![a](data:image/png;base64,eA==)", "", "href"),
    Case("another scheme", "[a](ftp://b)", "", "href"),
    Case("an address without a scheme", "[a](//evil.example)", "", "href"),
    Case("the same with a backslash", "[a](/\\\\evil.example)", "", 'href="/\\'),
    Case("an anchor that may be the page's", "[a](#content)", "", "href"),
    Case("a quote in an address", '[a](b"onclick="x)', "%22onclick=%22x", 'onclick="'),
    Case("a quote in a title", '[a](b "\\" onclick=x")', f'href="{BASE}/b"', "onclick"),
    Case("a language of code", '```"onload=x\na\n```', "<pre><code>a", "onload"),
    Case("a summary", "<details><summary><a href=x><img src=y></summary>", "<summary></", "<a"),
    Case("sections in sections", "<details><summary>a</summary>\n\n" * 50, "<details>", "</p><det"),
    Case("ends without sections", "</details>\n\n</div>\n\na", "<p>a</p>", "</details>"),
    Case("reordered text", "a\u202eb `c\u202ed` &#x202e;", ">U+202E<", "\u202e"),
    Case("a reordering address", "[a](b\u202ec)", "b%E2%80%AEc", "\u202e"),
]


@pytest.mark.parametrize("case", [*SHOWN, *HOSTILE], ids=lambda case: case.reason)
def test_markdown_is_shown_and_harmless(case: Case) -> None:
    (html,) = in_html([case.text], BASE)

    assert case.has in html
    assert case.lacks not in html


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    [
        *("[", "![", "[a](", "[a]", "<", "<a ", "<!--", "**a", "*a_b ", "a**b", "~~a", "`", "\\"),
        *(
            ">",
            "> - ",
            "- ",
            "1) ",
            "  - a\n",
            "# a\n",
            "a\n",
            "|\n",
            "|a",
            "|a|b\n|-|-\n",
            "```\n",
        ),
        *("[a]: b\n", "&#x202e;", "<a@b.c>", "<details><summary>a</summary>\n\n", "\x00", "\u202e"),
    ],
)
def test_hostile_markdown_is_answered_in_bounded_time(unit: str) -> None:
    """A page is parsed up to a bound in all; what would be slow below it is shown as text."""
    text = unit * (SIZE // len(unit))

    html = list(in_html([text, text, text], BASE))

    assert all(each.startswith(("<div", "<pre")) for each in html)
    assert html[2].startswith('<pre class="prose">') or unit == "<!--"
    assert all("more characters.</p>" in each for each in html)


def test_wide_rows_and_nested_brackets_are_text() -> None:
    table = "|a" * 1000 + "\n" + "|-" * 1000 + "\n" + "|\n" * 100
    for text in (table, "[" * 5000):
        assert next(in_html([text], BASE)).startswith('<pre class="prose">')


def test_what_a_page_has_no_room_for_is_text() -> None:
    short = "*a*"
    texts = [short, *["*b* " * 15_000] * (PAGE_MAX_CHARS // 60_000), "*b* " * 15_000, short]

    html = list(in_html(texts, BASE))

    assert html[0] == '<div class="markdown"><p><em>a</em></p>\n</div>'
    assert html[-1] == '<pre class="prose">*a*</pre>'


def test_a_readme_shows_its_links_and_follows_them(desk: Desk) -> None:
    repo = desk.repo()
    text = "# Hello\n\nSee [more](more.md), [up](../a.txt) and <https://example.org>.\n"
    desk.write(repo, {"dir/README.md": text, "dir/more.md": "more", "a.txt": "a"})

    shown = desk.page(f"/{repo}/src/branch/main/dir")

    assert (3, "Hello") in shown.headings
    assert "See more , up and" in shown.text.replace("more,", "more ,")
    assert "https://example.org" in shown.links
    (more,) = [link for link in shown.links if link.endswith("dir/more.md") and "main" in link][:1]
    assert desk.page(more).h1 == "more.md"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README", "# Hello", "# Hello"),
        ("README.md", "# Hello\n<script>x</script>", "<script>x</script>"),
        ("README.md", "a\n" * 5_000_000, "README.md"),
        ("README.md", "\x00binary", "README.md"),
    ],
)
@pytest.mark.timeout(120)
def test_other_readmes_are_text_or_left_out(
    desk: Desk, name: str, text: str, expected: str
) -> None:
    repo = desk.repo()
    desk.write(repo, {name: text})

    assert expected in desk.page(f"/{repo}").text


def test_a_message_of_a_commit_is_text_as_in_gitea(desk: Desk) -> None:
    repo = desk.repo()
    commit = desk.write(repo, {"a": "1"}, "Say **so**\n\n- <b>one</b>")

    shown = desk.page(f"/{repo}/commit/{commit}")

    assert "Say **so**" in shown.text
    assert "- <b>one</b>" in shown.text
