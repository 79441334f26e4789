r"""
Filters that make text: case, space, HTML, numbers and URLs.

Regular expressions are Nunjucks' own, translated to Python: ``\s`` spelt out, ``\w`` ASCII.
"""

from __future__ import annotations

import math
import re
from urllib.parse import quote

from ground.regular_expressions import compile_linear
from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import UNDEFINED, Safe, Undefined, Value
from softwaretemplates.render.numbers import parse_float, parse_int, rounded
from softwaretemplates.render.operands import (
    limited,
    must_be_text,
    plain_text,
    size,
    used,
    whole_number,
)
from softwaretemplates.render.refusals import LimitFault, OperationFault, UnsupportedFault

_SPACES = f"[{re.escape(js.SPACE)}]+"
_TAG = r"</?[A-Za-z][A-Za-z0-9]*\b[^>]*>|<!--(?s:.)*?-->"
_EDGES = re.compile("(?<![^\n\r\u2028\u2029]) +| +(?![^\n\r\u2028\u2029])")
_ENTITIES = str.maketrans(
    {"&": "&amp;", '"': "&quot;", "'": "&#39;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"}
)
_COLUMNS_MAX = 100_000


# --- case and space


def upper(value: Value) -> Value:
    """Convert to upper case."""
    return plain_text(value, "upper").upper()


def lower(value: Value) -> Value:
    """Convert to lower case."""
    return plain_text(value, "lower").lower()


def capitalize(value: Value) -> Value:
    """Convert the first character to upper case, the rest to lower case."""
    lowered = plain_text(value, "capitalize").lower()
    first = lowered[:1]
    return (first if first > "\uffff" else first.upper()) + lowered[1:]


def title(value: Value) -> Value:
    """Capitalize every word between blanks."""
    return " ".join(capitalize(word) for word in plain_text(value, "title").split(" "))


def trim(value: Value) -> Value:
    """Remove white space at both ends."""
    return must_be_text(value, "trim").strip(js.SPACE)


def string(value: Value) -> Value:
    """Convert a value to text."""
    if value is None or isinstance(value, Undefined):
        used(value)
        raise OperationFault(
            "filter 'string' needs a value", hint='write `x | default("", true) | string`'
        )
    return js.text(value)


def indent(value: Value, width: Value = 4, first: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    """Indent all lines but the first by `width` blanks, including blank lines."""
    text = plain_text(value, "indent")
    columns = whole_number(width, "indent") if js.truthy(width) else 4
    if not 0 <= columns <= 1000:  # noqa: PLR2004
        raise OperationFault("filter 'indent' takes 0 to 1000 columns")
    if text == "" and not isinstance(value, js.Safe):
        return ""
    pad = " " * columns
    lines = text.split("\n")
    if len(text) + columns * len(lines) > js.TEXT_MAX:
        raise LimitFault(f"`indent` builds a text of more than {js.TEXT_MAX} characters")
    return "\n".join(
        line if at == 0 and not js.truthy(first) else pad + line for at, line in enumerate(lines)
    )


def center(value: Value, width: Value = 80) -> Value:
    """Pad with blanks at both sides up to `width`."""
    columns = whole_number(width, "center") if js.truthy(width) else 80
    if columns > _COLUMNS_MAX:
        raise LimitFault(f"filter 'center' takes at most {_COLUMNS_MAX} columns")
    if value is None or value is False or isinstance(value, Undefined):
        value = plain_text(value, "center")
    spaces = columns - _length(value, "center")
    if spaces <= 0:
        return value
    text = js.text(value)
    if not isinstance(value, str | list):
        return text
    return " " * max(0, math.ceil(spaces / 2 - spaces % 2)) + text + " " * math.ceil(spaces / 2)


def _length(value: Value, name: str) -> int:
    """Return ``value.length`` if the value has one, otherwise 0."""
    if isinstance(value, str):
        return js.utf16_length(value)
    if isinstance(value, dict) and "length" in value:
        raise UnsupportedFault.of(refusals.ARGUMENTS, name)
    return len(value) if isinstance(value, list) else 0


def replace(value: Value, old: Value, new: Value, count: Value = -1) -> Value:
    """Replace a text, at most `count` times."""
    used(value)
    if js.is_number(old):
        old = js.text(old)
    if not isinstance(old, str):
        return value
    if js.is_number(value):
        value = js.text(value)
    if not isinstance(value, str):
        return value
    if isinstance(new, Undefined) and old == "":
        raise UnsupportedFault.of(refusals.ARGUMENTS, "replace")
    count = -1 if isinstance(count, Undefined) else whole_number(count, "replace")
    replacement = js.text(new)
    if len(replacement) * (value.count(old) if old else len(value) + 1) > js.TEXT_MAX:
        raise LimitFault(f"`replace` builds a text of more than {js.TEXT_MAX} characters")
    if old == "":
        return replacement + replacement.join(js.whole(value)) + replacement
    return value if count < -1 else value.replace(old, replacement, count)


def truncate(
    value: Value,
    length: Value = 255,
    whole_words: Value = False,  # noqa: FBT002 - the template's own order
    end: Value = UNDEFINED,
) -> Value:
    """Cut to `length` characters, at a blank unless the third argument is true."""
    length_max = size(length, "truncate") if js.truthy(length) else 255
    if isinstance(value, list) and len(value) <= length_max:
        return value
    text = plain_text(value, "truncate")
    if js.utf16_length(text) <= length_max:
        return text
    js.whole(text)
    cut = length_max if js.truthy(whole_words) else text.rfind(" ", 0, length_max + 1)
    tail = "..." if end is None or isinstance(end, Undefined) else js.text(end)
    return text[: length_max if cut < 0 else cut] + tail


def wordcount(value: Value) -> Value:
    """Count words; null if there are none."""
    if value == 0 and js.is_number(value):
        return None
    words = re.findall(r"[A-Za-z0-9_]+", plain_text(value, "wordcount"))
    return len(words) or None


# --- HTML and URLs


def escape(value: Value) -> Value:
    """Escape HTML once."""
    return value if isinstance(value, Safe) else forceescape(value)


def forceescape(value: Value) -> Value:
    """Escape HTML again."""
    text = js.printed(value)
    if "\\" in text:
        raise UnsupportedFault.of(refusals.ESCAPED_BACKSLASH)
    return Safe(limited(text.translate(_ENTITIES), "escape"))


def safe(value: Value) -> Value:
    """Mark text as HTML that is safe."""
    return value if isinstance(value, Safe) else Safe(js.printed(value))


def nl2br(value: Value) -> Value:
    """Put ``<br />`` before line ends."""
    if value is None or isinstance(value, Undefined):
        return plain_text(value, "nl2br")
    return limited(re.sub(r"\r\n|\n", "<br />\n", must_be_text(value, "nl2br")), "nl2br")


def striptags(value: Value, preserve: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    """Remove HTML tags; collapse white space unless `preserve`."""
    tag = compile_linear(_TAG)
    text = tag.removed_from(plain_text(value, "striptags"))
    if tag.search(text):
        raise UnsupportedFault.of(refusals.NESTED_TAGS)
    text = text.strip(js.SPACE)
    if not js.truthy(preserve):
        return re.sub(_SPACES, " ", text)
    squashed = re.sub(" +", " ", _EDGES.sub("", text))
    return re.sub(r"\n\n\n+", "\n\n", squashed.replace("\r\n", "\n"))


def urlencode(value: Value) -> Value:
    """Escape text, or join pairs, for a URL."""
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "'urlencode'")
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, dict):
        return "&".join(f"{_encoded(k)}={_encoded(js.text(v))}" for k, v in js.ordered(value))
    if isinstance(used(value), list):
        pairs = [_pair(item) for item in value]
        return "&".join(f"{_encoded(js.text(k))}={_encoded(js.text(v))}" for k, v in pairs)
    return ""


def _pair(item: Value) -> tuple[Value, Value]:
    if item is None or isinstance(item, Undefined):
        raise OperationFault("filter 'urlencode' on a list with null in it")
    return js.member(item, 0), js.member(item, 1)


def _encoded(text: str) -> str:
    try:
        return quote(text, safe="-_.!~*'()")
    except UnicodeEncodeError as error:
        raise OperationFault("filter 'urlencode' on half a character") from error


_PUNCTUATED = re.compile(r"(?:\(|<|&lt;)?(.*?)(?:\.|,|\)|\n|&gt;)?\Z", re.DOTALL)
_EMAIL = re.compile(
    r"[\w.!#$%&'*+\-/=?^`{|}~]+@[a-z\d\-]+(?:\.[a-z\d\-]+)+\Z", re.IGNORECASE | re.ASCII
)
_DOMAIN = re.compile(r"\.(?:org|net|com)(?::|/|\Z)")


def urlize(value: Value, length: Value = UNDEFINED, nofollow: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    """Turn addresses in text into links."""
    text = must_be_text(value, "urlize")
    length_max = len(text) if isinstance(length, Undefined) else size(length, "urlize")
    attribute = ' rel="nofollow"' if nofollow is True else ""
    words = (word for word in re.split(f"({_SPACES})", text) if word)
    return limited("".join(_linked(word, length_max, attribute) for word in words), "urlize")


def _linked(word: str, length_max: int, attribute: str) -> str:
    match = _PUNCTUATED.match(word)
    address = match[1] if match else word
    short = (address if address.isascii() else js.whole(address))[:length_max]
    if address.startswith(("http://", "https://")):
        return f'<a href="{address}"{attribute}>{short}</a>'
    if address.startswith("www."):
        return f'<a href="http://{address}"{attribute}>{short}</a>'
    if _EMAIL.match(address):
        return f'<a href="mailto:{address}">{address}</a>'
    if _DOMAIN.search(address):
        return f'<a href="http://{address}"{attribute}>{short}</a>'
    return word


# --- numbers


def absolute(value: Value) -> Value:
    """Return the absolute value of a number."""
    return js.normal(abs(js.number(value)))


def to_float(value: Value, fallback: Value = UNDEFINED) -> Value:
    """Read the number at the start of a text; the argument if there is none."""
    number = parse_float(js.text(value))
    return fallback if math.isnan(number) else js.normal(number)


def to_int(value: Value, default: Value = UNDEFINED, base: Value = UNDEFINED) -> Value:
    """Read the integer at the start of a text; the first argument if there is none."""
    radix = 10 if isinstance(base, Undefined) else whole_number(base, "int")
    number = parse_int(js.text(value), radix)
    return default if math.isnan(number) else number


def to_round(value: Value, precision: Value = 0, method: Value = UNDEFINED) -> Value:
    """Round half up, or as 'ceil' or 'floor', to so many decimal places."""
    places = whole_number(precision, "round") if js.truthy(precision) else 0
    if not -20 <= places <= 20:  # noqa: PLR2004 - beyond, powers of ten are no exact doubles
        raise UnsupportedFault.of(refusals.ARGUMENTS, "round")
    factor = 10.0**places
    return js.normal(rounded(float(js.number(value)) * factor, method) / factor)
