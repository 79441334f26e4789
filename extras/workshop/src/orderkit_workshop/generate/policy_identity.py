"""Policy rules on identity: an order's Application delivers its own XR only, and fields match."""

from __future__ import annotations

from collections.abc import Iterator

from orderkit.core.kit.form_shapes import FieldPath
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.cel_text import Expression, concatenated, either, literal
from orderkit_workshop.generate.policy_parts import (
    AGAIN,
    INSTANCE_LABEL,
    PolicyRule,
    Variables,
    changes,
    quoted,
    shown,
)


def same_tracker() -> str:
    """Return the condition that the same Application delivers the object as before."""
    return "variables.tracked_by == variables.tracked_by_before"


def identity(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """Yield the rules; the one to report first comes first."""
    yield _is_delivered(kit)
    yield _trackers_agree()
    for path, role in _naming(kit):
        yield _never_changes(kit, variables, path, f"names the order{role}")
    has_order_id = _define_order(kit, variables)
    if kit.xr_name != "order":
        yield _named_by_field(kit, variables)
    elif has_order_id:
        yield _named_by_id(kit, variables)
    if kit.namespace_parts:
        yield _in_its_namespace(kit, variables)
    yield _delivers_its_own(kit, has_order_id=has_order_id)


def _is_delivered(kit: Kit) -> PolicyRule:
    order = f"an order of kit {kit.name} is delivered from its own repository"
    return PolicyRule(
        either("variables.tracked_by != ''", f"oldObject != null && {same_tracker()}"),
        (
            f"metadata: no Application delivers {kit.kind.kind} ",
            *quoted("object.metadata.name"),
            f", but {order}; place it with the portal's form or `orderkit order {kit.name}`",
        ),
        f"metadata: {order}",
    )


def _trackers_agree() -> PolicyRule:
    """
    Require that Argo CD's annotation and label agree.

    Argo CD writes only one of the two; the other may be forged.
    """
    return PolicyRule(
        either(
            "variables.labelled == ''",
            "variables.labelled == variables.tracked_by",
            f"oldObject != null && {same_tracker()} &&\n"
            "variables.labelled == variables.labelled_before",
        ),
        (
            f"metadata.labels: {INSTANCE_LABEL} is ",
            *quoted("variables.labelled"),
            ", but the tracking annotation says ",
            *quoted("variables.tracked_by"),
            "; take the label away",
        ),
        f"metadata.labels: {INSTANCE_LABEL} and the tracking annotation differ",
    )


def _naming(kit: Kit) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields that identify the order and its team."""
    roles = dict.fromkeys(kit.name_from, "")
    if kit.xr_name != "order":
        roles.setdefault(kit.xr_name, "'s XR")
    if kit.team_from:
        roles[kit.team_from] = "'s team"
    yield from roles.items()


def _never_changes(kit: Kit, variables: Variables, path: FieldPath, why: str) -> PolicyRule:
    now, was = variables.field(path)
    return PolicyRule(
        either(f"{was} == null", f"{now} == {was}"),
        (
            *changes(kit, path, variables),
            f", but it {why} and never changes; put it back, {AGAIN}",
        ),
        f"spec.{path} {why} and never changes",
    )


def _define_order(kit: Kit, variables: Variables) -> bool:
    """Define the order's id from its fields; return False if the fields do not contain it."""
    if not kit.name_from:
        return False
    for suffix, index in (("", 0), ("_before", 1)):
        parts = [literal(f"{kit.name}-")]
        for path in kit.name_from:
            value = variables.field(path)[index]
            parts += [f"({value} == null ? '' : string({value}))", literal("-")]
        variables.expressions[f"order{suffix}"] = concatenated(parts[:-1])
    return True


def _named_by_id(kit: Kit, variables: Variables) -> PolicyRule:
    fields: list[str | Expression] = []
    for path in kit.name_from:
        fields += [
            " and " if fields else "",
            f"spec.{path} ",
            shown(kit, path, variables.field(path)[0]),
        ]
    return PolicyRule(
        either(
            "object.metadata.name == variables.order",
            "oldObject != null && variables.order == variables.order_before",
        ),
        (
            "metadata.name: is ",
            *quoted("object.metadata.name"),
            ", but ",
            *fields,
            " makes it ",
            *quoted("variables.order"),
            "; put back what the order was placed with, or place another",
        ),
        "metadata.name is not the order's id as its fields make it",
    )


def _named_by_field(kit: Kit, variables: Variables) -> PolicyRule:
    now, was = variables.field(kit.xr_name)
    return PolicyRule(
        either(
            f"{now} != null && object.metadata.name == string({now})",
            f"oldObject != null && {now} == {was}",
        ),
        (
            "metadata.name: is ",
            *quoted("object.metadata.name"),
            f", but the name is the value of spec.{kit.xr_name}, and that is ",
            shown(kit, kit.xr_name, now),
            "; make them equal",
        ),
        f"metadata.name is not the value of spec.{kit.xr_name}",
    )


def _in_its_namespace(kit: Kit, variables: Variables) -> PolicyRule:
    parts = []
    for text, path in kit.namespace_parts:
        parts += [literal(text)] if text else []
        parts += [f"string({variables.field(path)[0]})"] if path else []
    home = concatenated(parts)
    fields = [variables.field(path)[0] for _, path in kit.namespace_parts if path]
    fields_are_set = " && ".join([*(f"{field} != null" for field in fields), "true"])
    return PolicyRule(
        either(f"{fields_are_set} && object.metadata.namespace == {home}", "oldObject != null"),
        (
            "metadata.namespace: is ",
            *quoted("object.metadata.namespace"),
            ", but the order's fields make it ",
            *quoted(f"({fields_are_set} ? {home} : 'nothing')"),
            "; put it there",
        ),
        "metadata.namespace is not the one that the order's fields make",
    )


def _delivers_its_own(kit: Kit, *, has_order_id: bool) -> PolicyRule:
    """
    Require that the Application that delivers the XR is the order's own.

    Args:
        has_order_id: The order's id can be derived from its fields.
    """
    prefix = literal(f"{kit.name}-")
    # An object that broke the rule before the policy existed is accepted until these fields change.
    settled = f"oldObject != null && {same_tracker()}"
    if has_order_id:
        right = "variables.tracked_by == variables.order"
        settled += " &&\nvariables.order == variables.order_before"
    elif kit.xr_name == "order":
        right = (
            "variables.tracked_by == object.metadata.name &&\n"
            f"object.metadata.name.startsWith({prefix})"
        )
    else:
        right = (
            f"variables.tracked_by.startsWith({prefix}) &&\n"
            f"!variables.tracked_by_before.startsWith({prefix})"
        )
    return PolicyRule(
        either("variables.tracked_by == ''", right, settled),
        (
            "metadata.name: Application ",
            *quoted("variables.tracked_by"),
            f" delivers {kit.kind.kind} ",
            *quoted("object.metadata.name"),
            ", but an order delivers its own XR only; take this one out of its repository",
        ),
        "metadata.name: an order delivers its own XR only",
    )
