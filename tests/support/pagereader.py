"""
Read a page as a strict person would: what it says, where it leads, and whether it is accessible.

`read_page` fails on what no page may have: markup that does not nest, a script, an event
handler, an inline style, something from elsewhere (a link may lead there if its ``rel`` says
so), no title or language, headings out of order, a table without a caption (but in Markdown, which
has none), a control without a label, two elements with one id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "img", "input", "br", "hr", "wbr"}
_FORBIDDEN = {"script", "style", "iframe", "object", "embed", "base"}
_INLINE = {"a", "b", "strong", "span", "bdi", "time", "code", "img"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


@dataclass
class Form:
    """A form that posts: where to, its hidden fields, and the values of its buttons by name."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, str] = field(default_factory=dict)
    """Name of the field by the button's value."""


@dataclass
class Page:
    """What was found on a page."""

    title: str = ""
    text: str = ""
    """All text of the body, as it is read: one space between pieces."""
    links: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    hidden_chars: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> list[str]:
        """The values of all buttons that post something."""
        return [button for form in self.forms for button in form.buttons]

    @property
    def h1(self) -> str:
        return next(text for level, text in self.headings if level == 1)


def read_page(html: str) -> Page:
    """Return a page; fails on any fault."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    page = reader.page
    page.faults += _faults(reader)
    assert not page.faults, f"{page.faults} in {page.title!r}"
    return page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.labels: set[str] = set()
        self.controls: list[str] = []
        self.captions = self.markdown_tables = self.in_markdown = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.tags.append((tag, found))
        self.page.tags.append(tag)
        self._note_form(tag, found)
        self._judge(tag, found)
        self._space(tag)
        if "id" in found:
            self.page.ids.append(found["id"])
        if tag == "a" and "href" in found:
            self.page.links.append(found["href"])
        if tag in _HEADINGS:
            self.page.headings.append((_HEADINGS[tag], ""))
        if tag == "label":
            self.labels.add(found.get("for", ""))
        if tag in ("select", "textarea") or (tag == "input" and found.get("type") != "hidden"):
            self.controls.append(found.get("id", ""))
        self.markdown_tables += tag == "table" and self.in_markdown > 0
        if tag not in _VOID:
            self.open.append(tag)
            if found.get("class") == "markdown":
                self.in_markdown = len(self.open)

    def _note_form(self, tag: str, found: dict[str, str]) -> None:
        if tag == "form" and found.get("method") == "post":
            self.page.forms.append(Form(found["action"]))
        if tag == "input" and found.get("type") == "hidden":
            self.page.forms[-1].fields[found["name"]] = found["value"]
        if tag == "button" and "name" in found:
            self.page.forms[-1].buttons[found["value"]] = found["name"]

    def _judge(self, tag: str, found: dict[str, str]) -> None:
        is_own = tag == "script" and found.get("src", "").startswith("/static/")
        if tag in _FORBIDDEN and not is_own:
            self.page.faults.append(f"<{tag}>")
        self.page.faults += [f"{key}=" for key in found if key.startswith("on") or key == "style"]
        for key in ("href", "src", "action"):
            value = found.get(key, "")
            if "external" in found.get("rel", "") and value.startswith(("http://", "https://")):
                continue
            if ":" in value.split("/")[0] or value.startswith("//"):
                self.page.faults.append(f"leads elsewhere: {value}")
        if tag == "img" and "alt" not in found:
            self.page.faults.append("picture without a text")
        if tag == "th" and found.get("scope") not in ("row", "col"):
            self.page.faults.append("th without a scope")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.page.faults.append(f"</{tag}> does not nest")
        if len(self.open) < self.in_markdown:
            self.in_markdown = 0

        self._space(tag)

    def _space(self, tag: str) -> None:
        if tag not in _INLINE:
            self.page.text += " "

    def handle_data(self, data: str) -> None:
        if "title" in self.open:
            self.page.title += data
        elif "body" in self.open:
            self.page.text += data
        for tag in reversed(self.open):
            if tag in _HEADINGS:
                level, text = self.page.headings[-1]
                self.page.headings[-1] = (level, text + data)
        if self.open and self.open[-1] == "caption":
            self.captions += 1
        if self.tags and self.tags[-1][1].get("class") == "hidden-char" and self.open[-1] == "span":
            self.page.hidden_chars.append(data)


def _faults(reader: _Reader) -> list[str]:
    page, tags = reader.page, [tag for tag, _ in reader.tags]
    found = [f"<{tag}> stays open" for tag in reader.open]
    levels = [level for level, _ in page.headings]
    if levels.count(1) != 1:
        found.append(f"{levels.count(1)} main headings")
    found += [
        f"h{after} follows h{before}"
        for before, after in zip([0, *levels], levels, strict=False)
        if after > before + 1
    ]
    if len(set(page.ids)) != len(page.ids):
        found.append("an id twice")
    if not page.title.strip() or not any(each.get("lang") for _, each in reader.tags):
        found.append("no title or language")
    if [tags.count(tag) for tag in ("main", "header", "footer")] != [1, 1, 1]:
        found.append("landmarks are missing")
    if reader.captions < tags.count("table") - reader.markdown_tables:
        found.append("a table without a caption")
    found += [f"no label for {each}" for each in reader.controls if each not in reader.labels]
    own = [link[1:] for link in page.links if link.startswith("#")]
    found += [f"#{each} leads nowhere" for each in own if each not in page.ids]
    page.text = " ".join(page.text.split())
    return found
