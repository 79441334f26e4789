"""
Keep a task's secrets out of its logs, events, outputs and errors.

As in Backstage, every input that contains a secret is masked as a whole, so
``Bearer ${{ secrets.token }}`` becomes ``***`` and not ``Bearer ***``. Encoded, escaped and cut
forms of a secret are masked too. Secrets shorter than four characters are refused, because masking
them would mask ordinary words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ground import secrets as registry
from ground.errors import InvalidInputError, OrderkitError

MASK = registry.MASK
_DERIVED_SHORTEST = 8
"""Shorter texts made with a secret may be plain words ("true"): masked, but not refused."""


class Masker:
    """The texts to hide in one task. Grows while steps are rendered."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._hidden: set[str] = set()
        self._leaks: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            registry.register(secret)
            self._add(secret, leak=True)

    def learn(self, rendered: Any, without: Any) -> None:
        """Hide the texts of `rendered` that differ when rendered without secrets."""
        if not self._hidden:
            return
        if isinstance(rendered, str):
            if rendered != without and len(rendered) >= registry.SHORTEST:
                self._add(rendered, leak=len(rendered) >= _DERIVED_SHORTEST)
        elif isinstance(rendered, dict):
            other = without if isinstance(without, dict) else {}
            for key, value in rendered.items():
                self.learn(value, other.get(key))
        elif isinstance(rendered, list):
            items = without if isinstance(without, list) else []
            for at, value in enumerate(rendered):
                self.learn(value, items[at] if at < len(items) else None)

    def text(self, text: str) -> str:
        """Return `text` with all hidden texts masked; overlapping ones become one mask."""
        if self._pattern is None:
            return text
        pieces, end = [], 0
        for start, stop in self._ranges(text):
            pieces.append(text[end:start])
            end = stop
        pieces.append(text[end:])
        return self._uncut(MASK.join(pieces))

    def value(self, value: Any) -> Any:
        """Return a copy of JSON-like data with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def error(self, error: OrderkitError) -> OrderkitError:
        """Mask an error in place, including the attributes of its class; return it."""
        error.args = tuple(self.value(argument) for argument in error.args)
        for name, value in list(vars(error).items()):
            setattr(error, name, self.value(value))
        return error

    def leak(self, value: Any, path: str) -> str | None:
        """Return the path of the first text that contains a secret, or None."""
        if isinstance(value, Mapping):
            leaks = (self.leak([key, item], f"{path}.{key}") for key, item in value.items())
            return next((self.text(leak_path) for leak_path in leaks if leak_path), None)
        if isinstance(value, list):
            leaks = (self.leak(item, path) for item in value)
            return next((leak_path for leak_path in leaks if leak_path), None)
        text = value if isinstance(value, str) else str(value)
        return path if any(hidden in text for hidden in self._leaks) else None

    def _add(self, hidden: str, *, leak: bool) -> None:
        forms = {form for plain in (hidden, hidden.strip()) for form in _forms(plain)}
        self._hidden |= {form for form in forms if len(form) >= registry.SHORTEST}
        if leak:
            self._leaks |= {form for form in forms if len(form) >= registry.SHORTEST}
        longest_first = sorted(self._hidden, key=lambda form: (-len(form), form))
        self._pattern = re.compile(f"(?=({'|'.join(map(re.escape, longest_first))}))")

    def _ranges(self, text: str) -> Iterator[tuple[int, int]]:
        assert self._pattern is not None  # noqa: S101 - the caller looked
        begin, end = -1, -1
        for match in self._pattern.finditer(text):
            start, stop = match.span(1)
            if start < end:
                end = max(end, stop)
                continue
            if begin >= 0:
                yield begin, end
            begin, end = start, stop
        if begin >= 0:
            yield begin, end

    def _uncut(self, text: str) -> str:
        """Mask the beginning of a secret that a message cut off with an ellipsis."""
        if "…" not in text:
            return text
        for form in self._hidden:
            for size in range(len(form) - 1, registry.SHORTEST - 1, -1):
                if f"{form[:size]}…" in text:
                    text = text.replace(f"{form[:size]}…", f"{MASK}…")
                    break
        return text


def _forms(plain: str) -> set[str]:
    """Return a text as messages may contain it: encoded, escaped, in one line."""
    forms = registry.forms_of(plain) | {plain, " ".join(plain.split())}
    for form in list(forms):
        escaped = json.dumps(form, ensure_ascii=False)[1:-1]
        forms |= {escaped, json.dumps(form)[1:-1], repr(form)[1:-1], repr(repr(form))[2:-2]}
    return forms


def check_maskable(secrets: Mapping[str, str]) -> None:
    """
    Refuse secrets that cannot be masked.

    Raises:
        InvalidInputError: One has fewer than four characters, or half a character in it.
    """
    for name, value in secrets.items():
        if len(" ".join(value.split())) < registry.SHORTEST:
            raise InvalidInputError(
                f"secrets.{name}",
                MASK,
                f"has fewer than {registry.SHORTEST} characters",
                hint="so short a text cannot be masked in logs without eating ordinary words",
            )
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidInputError(f"secrets.{name}", MASK, "holds half a character")
