"""
Numbers of the live XR below which a change may not set its field: ``atLeast`` in kit.yaml.

A budget below what is spent already, for example, would pause an agent at once. Where the cluster
has no such number, nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ground.errors import RefusedError, every
from ground.objects.kube_objects import Manifest, ObjectKey, dig
from orderkit.core.kit.kit_file import AtLeast
from orderkit.core.order.change import FieldDifference
from orderkit.flows.order.live_order import LiveOrder, delivered_xr
from orderkit.flows.platform import Platform, get_object


def least_value(
    platform: Platform, live: LiveOrder, xr: Manifest, at_least: AtLeast
) -> int | float | None:
    """
    Return the number in the status of the order's XR; None if there is none.

    Raises:
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    living_xr = get_object(platform, ObjectKey.of(delivered_xr(live, xr)))
    value = dig(living_xr or {}, "status", *at_least.path.split("."))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def check_least_values(
    platform: Platform, live: LiveOrder, xr: Manifest, edits: Iterable[FieldDifference]
) -> None:
    """
    Check that no edit sets a field below its least value.

    Raises:
        RefusedError: One does. SeveralProblemsError: Several do.
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    by_path = {change.fields[0]: change.at_least for change in live.kit.changes if change.at_least}

    def check(edit: FieldDifference) -> None:
        at_least = by_path[edit.path]
        least = least_value(platform, live, xr, at_least)
        if least is not None and isinstance(edit.new, int | float) and edit.new < least:
            raise RefusedError(
                f"{edit} is refused: it may not be less than {least}; {at_least.why}",
                hint=f"set at least {least}",
            )

    every(partial(check, edit) for edit in edits if edit.path in by_path)
