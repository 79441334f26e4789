"""
Typed fields of a JSON body, refused with 422 as Gitea's binding does.

Called by the endpoint modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.adapters.embedded.forge.api.calls import ApiError


def text(body: Mapping[str, Any], key: str) -> str:
    """
    Return a text, empty if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    return optional_text(body, key) or ""


def optional_text(body: Mapping[str, Any], key: str) -> str | None:
    """
    Return a text, or None if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise _mismatch(key, "string")
    return value


def required_text(body: Mapping[str, Any], key: str, name: str) -> str:
    """
    Return a text that is not empty; `name` is what the refusal calls it.

    Raises:
        ApiError: 422, absent, empty or something else.
    """
    found = text(body, key)
    if not found:
        raise ApiError(422, f"[{name}]: Required")
    return found


def optional_flag(body: Mapping[str, Any], key: str) -> bool | None:
    """
    Return a boolean, or None if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise _mismatch(key, "bool")
    return value


def texts(body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """
    Return a list of texts, empty if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    value = body.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _mismatch(key, "[]string")
    return tuple(value)


def numbers(body: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """
    Return a list of whole numbers, empty if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    found = body.get(key) or []
    if not isinstance(found, list) or any(type(each) is not int for each in found):
        raise _mismatch(key, "int64")
    return tuple(found)


def mapping(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """
    Return an object, empty if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _mismatch(key, "object")
    return value


def text_mapping(body: Mapping[str, Any], key: str) -> dict[str, str]:
    """
    Return an object whose values are texts, empty if absent.

    Raises:
        ApiError: 422, something else is there.
    """
    found = mapping(body, key)
    if not all(isinstance(each, str) for each in found.values()):
        raise _mismatch(key, "map[string]string")
    return found


def _mismatch(key: str, wanted: str) -> ApiError:
    return ApiError(422, f"[]: json: cannot unmarshal into field {key} of type {wanted}")
