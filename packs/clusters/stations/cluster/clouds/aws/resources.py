"""What all of AWS's managed resources have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ...order import Order
from ...part import Part, PartOptions, managed_part

_GLOBAL = {"iam", "route53"}
"""Groups whose resources have no region."""


def resource(
    order: Order,
    part: str,
    kind: str,
    for_provider: dict[str, Any],
    **options: Unpack[PartOptions],
) -> Part:
    """Return a part in the order's region; `kind` is ``Kind.group``, as ``VPC.ec2``."""
    name, _, group = kind.partition(".")
    region = {} if group in _GLOBAL else {"region": order.location}
    api_version = f"{group}.aws.m.upbound.io/v1beta1"
    return managed_part(order, part, api_version, name, {**region, **for_provider}, **options)


def role(order: Order, part: str, service: str, *actions: str) -> Part:
    """Return a role that a service of AWS may assume."""
    trust = policy((["sts:AssumeRole", *actions], {"Principal": {"Service": service}}))
    return resource(
        order,
        part,
        "Role.iam",
        {"assumeRolePolicy": trust},
        external_name=order.name_in_cloud(part, f"-{part.removeprefix('role-')}", longest=64),
    )


def policy(*rules: tuple[Sequence[str], Mapping[str, Any]]) -> str:
    """Return a policy as the text that AWS wants; a rule is its actions and the rest of it."""
    statements = [
        {"Effect": "Allow", "Action": list(actions), **fields} for actions, fields in rules
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, sort_keys=True)


def attachments(order: Order, role_part: str, *policies: str) -> list[Part]:
    """Return the managed policies of a role, one part each."""
    return [
        resource(
            order,
            f"{role_part}-{name.lower().replace('_', '-')}",
            "RolePolicyAttachment.iam",
            {
                "roleRef": order.parts.reference(role_part),
                "policyArn": f"arn:aws:iam::aws:policy/{name}",
            },
            after=[role_part],
        )
        for name in policies
    ]
