"""A browser without JavaScript for the console: keeps cookies, fills in forms, reads pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import requests
from pagereader import Page, read_page

from orderkit.ports.requesters import Requester
from orderkit.web.console.sessions import link_token


@dataclass
class Form:
    """One form as it stands on a page, with what it would send untouched."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    choices: dict[str, list[str]] = field(default_factory=dict)
    """What each select and each group of radios offers."""


@dataclass
class Answer:
    """A page, or another answer."""

    status: int
    url: str
    text: str
    headers: Mapping[str, str]

    @property
    def page(self) -> Page:
        return read_page(self.text)

    @property
    def forms(self) -> list[Form]:
        reader = _Forms()
        reader.feed(self.text)
        return reader.forms

    def form(self, action: str) -> Form:
        found = [form for form in self.forms if form.action == action]
        assert len(found) == 1, f"{[f.action for f in self.forms]} on {self.url}, not {action}"
        return found[0]


class Browser:
    """One person's browser."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def sign_in(self, secret: str, requester: Requester, onward: str = "/") -> Answer:
        query = urlencode({"token": link_token(secret, requester), "onward": onward})
        return self.get(f"/sign-in/link?{query}")

    def get(self, path: str, **more: Any) -> Answer:
        return self.send("GET", path, **more)

    def submit(self, form: Form, button: str = "", /, **entered: str | list[str]) -> Answer:
        """Send a form as it stands, but with these entries, pressing a button by its value."""
        pairs = [(name, value) for name, value in form.fields if name not in entered]
        for name, value in entered.items():
            pairs += [(name, text) for text in ([value] if isinstance(value, str) else value)]
        pairs += [pair for pair in form.buttons if button and pair[1] == button]
        if form.method == "get":
            return self.get(f"{form.action}?{urlencode(pairs)}")
        return self.send("POST", form.action, data=pairs)

    def send(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        own = {"Accept": "text/html", **({"Origin": self.url} if method == "POST" else {})}
        url = path if path.startswith("http") else f"{self.url}{path}"
        with self._session.request(
            method, url, headers={**own, **(headers or {})}, timeout=100, **more
        ) as answer:
            return Answer(answer.status_code, answer.url, answer.text, answer.headers)

    @property
    def cookies(self) -> dict[str, str]:
        return {str(cookie.name): str(cookie.value) for cookie in self._session.cookies}

    def take_cookies(self, cookies: Mapping[str, str]) -> None:
        self._session.cookies.update(dict(cookies))


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self._select = self._area = ""
        self._options: list[tuple[str, bool]] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.forms.append(Form(has.get("method", "get").lower(), has.get("action", "")))
        if not self.forms:
            return
        form, name = self.forms[-1], has.get("name", "")
        if tag == "input" and name:
            self._input(form, name, has)
        elif tag == "button" and name:
            form.buttons.append((name, has.get("value", "")))
        elif tag == "select":
            self._select, self._options = name, []
        elif tag == "option" and self._select:
            self._options.append((has.get("value", ""), "selected" in has))
        elif tag == "textarea":
            self._area, self._text = name, ""

    def _input(self, form: Form, name: str, has: dict[str, str]) -> None:
        kind = has.get("type", "text")
        if kind in ("checkbox", "radio"):
            form.choices.setdefault(name, []).append(has.get("value", "on"))
            if "checked" not in has:
                return
        form.fields.append((name, has.get("value", "on" if kind == "checkbox" else "")))

    def handle_data(self, data: str) -> None:
        if self._area:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            self.forms[-1].fields.append((self._area, self._text.removeprefix("\n")))
            self._area = ""
        if tag == "select" and self._select:
            values = [value for value, _ in self._options]
            self.forms[-1].choices[self._select] = values
            chosen = [value for value, is_chosen in self._options if is_chosen] or values[:1]
            self.forms[-1].fields += [(self._select, value) for value in chosen[:1]]
            self._select = ""
