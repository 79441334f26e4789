"""
What tokens cost: a price table from a ConfigMap, by model, in US dollars per million tokens.

Amounts are decimal, never binary. A model without a price is an error that names the model: an
agent of unknown price must not look free.

Pure; called by ``metering``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, InvalidOperation
from typing import Any

from orderkit.controllers import InvalidInputError, NotFoundError, load_yaml
from whisperops.counting import TokenKind

KEY = "prices.yaml"
"""The key of the ConfigMap that has the table."""
CENT = Decimal("0.01")
PRICE_MAX = Decimal(1_000_000)
_MILLION = Decimal(1_000_000)
_FIELDS: Mapping[str, TokenKind] = {
    "input_per_million": "input",
    "output_per_million": "output",
    "cached_input_per_million": "cached_input",
}
_AMOUNT = {"type": ["string", "number"]}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["models"],
    "properties": {
        "models": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": list(_FIELDS),
                "properties": dict.fromkeys(_FIELDS, _AMOUNT),
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table. `name` says where it was read, for messages."""

    name: str
    models: Mapping[str, Mapping[TokenKind, Decimal]]

    def cost(self, tokens: Mapping[tuple[str, TokenKind], float]) -> Decimal:
        """
        Return what tokens cost in whole cents, rounded down so that no agent is paused early.

        Raises:
            NotFoundError: A model has no price; the message names it.
        """
        total = Decimal(0)
        for (model, kind), count in tokens.items():
            if model not in self.models:
                raise NotFoundError(
                    f"{self.name} has no price for model '{model}'",
                    hint=f"add it under models in {KEY}",
                )
            total += Decimal(count) * self.models[model][kind] / _MILLION
        return total.quantize(CENT, rounding=ROUND_DOWN)


def read_prices(data: Mapping[str, str], *, name: str) -> Prices:
    """
    Read the data of a ConfigMap.

    Raises:
        InvalidInputError: It has no table, or a price is not an amount.
    """
    text = data.get(KEY)
    if text is None:
        raise InvalidInputError(name, sorted(data), f"has no key {KEY}")
    table = load_yaml(text, name=f"{name} {KEY}", schema=_SCHEMA)
    models = {
        str(model): {
            kind: _amount(f"{name} models.{model}.{field}", prices[field])
            for field, kind in _FIELDS.items()
        }
        for model, prices in table["models"].items()
    }
    return Prices(name, models)


def _amount(field: str, value: object) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise InvalidInputError(field, value, "is not an amount") from error
    if not amount.is_finite() or not 0 <= amount <= PRICE_MAX:
        raise InvalidInputError(field, value, f"is not a price between 0 and {PRICE_MAX} dollars")
    return amount
