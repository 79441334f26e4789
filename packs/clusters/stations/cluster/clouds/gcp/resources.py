"""What all of Google Cloud's managed resources have in common."""

from __future__ import annotations

from typing import Any, Unpack

from ...order import Order
from ...part import Part, PartOptions, managed_part

ACCOUNT_ID_MAX = 30
"""Characters that Google allows in the id of a service account."""


def resource(
    order: Order,
    part: str,
    kind: str,
    for_provider: dict[str, Any],
    **options: Unpack[PartOptions],
) -> Part:
    """Return a part of the project; `kind` is ``Kind.group`` without what all groups end with."""
    name, _, group = kind.partition(".")
    api_version = f"{group}.gcp.m.upbound.io/v1beta1"
    return managed_part(order, part, api_version, name, for_provider, **options)


def account_email(order: Order, account: str) -> str:
    """Return the address of one of the cluster's service accounts."""
    return f"{account}@{order.project}.iam.gserviceaccount.com"
