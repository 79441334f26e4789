"""
Kubernetes quantities as the approximate float that a convert transform makes of them.

In Kubernetes the number of digits decides which arithmetic is used. Values that its exact slow path
would round (below a billionth) or cap are refused by name.
"""

from __future__ import annotations

import re

from compositions.station import OpaqueError
from ground.objects.quantities import NoQuantity, Unsure, parse

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([A-Za-z]*(?:[+-]?[0-9]+)?)\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def as_float(text: str) -> float:
    """
    Return the number, computed as Kubernetes computes it.

    Raises:
        ValueError: It is not a quantity; the message is Kubernetes'.
        OpaqueError: Kubernetes would round or cap it.
    """
    try:
        parse(text)
    except Unsure as error:
        raise OpaqueError(f"quantity {text!r}: {error}") from error
    except NoQuantity as error:
        raise ValueError(str(error)) from error
    match = _SHAPE.match(text)
    if match is None:
        raise OpaqueError(f"quantity {text!r} is written unusually")
    sign, integer, fraction, suffix = match.groups(default="")
    value, exponent = int((integer or "0") + fraction), -len(fraction)
    if suffix in _BINARY:
        value <<= _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent += _DECIMAL[suffix]
    else:
        exponent += int(suffix[1:])
    base = float(-value if sign == "-" else value)
    return base * float(f"1e{exponent}") if exponent else base
