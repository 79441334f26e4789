"""What all of Google Cloud's managed resources have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orderkit.stations import MANAGE, ManagementAction, managed

from ...order import Order
from ...part import Part


def resource(
    order: Order,
    part: str,
    kind: str,
    for_provider: dict[str, Any],
    *,
    uses: Sequence[str] = (),
    after: Sequence[str] = (),
    external_name: str = "",
    connection_secret: str = "",
    policies: Sequence[ManagementAction] = MANAGE,
) -> Part:
    """Return a part of the project; `kind` is ``Kind.group`` without what all groups end with."""
    name, _, group = kind.partition(".")
    manifest = managed(
        f"{group}.gcp.m.upbound.io/v1beta1",
        name,
        for_provider,
        provider_config=order.settings.get("providerConfig", str),
        external_name=external_name,
        connection_secret=connection_secret,
        policies=policies,
    )
    return Part(part, manifest, tuple(uses), tuple(after))


def account_email(order: Order, account: str) -> str:
    """Return the address of one of the cluster's service accounts."""
    return f"{account}@{order.project}.iam.gserviceaccount.com"
