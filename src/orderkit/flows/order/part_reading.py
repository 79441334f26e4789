"""Read one object of an order as people may see it: without what Secrets hold."""

from __future__ import annotations

import copy
from collections.abc import Callable

from ground.errors import NotFoundError
from ground.objects.kube_objects import Manifest, ObjectKey
from ground.secrets import MASK
from orderkit.core.kit.model import Kit
from orderkit.core.plan.snapshot import cleaned
from orderkit.flows.order import tracing
from orderkit.flows.platform import Platform, get_object


def read_part(
    platform: Platform, order: str, is_asked: Callable[[ObjectKey], bool]
) -> tuple[ObjectKey, Manifest]:
    """
    Return an order's Application, XR or composed object, masked and without the server's fields.

    Args:
        platform: The platform.
        order: The order's id.
        is_asked: Chooses among the order's own objects; nothing else can be read.

    Raises:
        NotFoundError: No such order, or it has no such object now.
    """
    trace = tracing.trace(platform, order)
    own = (trace.root.key, *trace.parts())
    key = next((key for key in own if is_asked(key)), None)
    manifest = get_object(platform, key) if key else None
    if key is None or manifest is None:
        raise NotFoundError(
            f"{order} has no such part now", hint="it may have been replaced: look at all parts"
        )
    kit = trace.report.declared if key == trace.report.xr else None
    shown = cleaned(manifest, tracing.secrets_of(platform, trace.report))
    return key, without_secret_outputs(shown, kit) if kit else shown


def without_secret_outputs(xr: Manifest, kit: Kit) -> Manifest:
    """Return a copy of the XR in which what the kit calls a secret output is masked."""
    shown = copy.deepcopy(xr)
    for output in kit.outputs:
        *parents, last = ("status", *output.path.split("."))
        place = shown
        for step in parents:
            inner = place.get(step)
            place = inner if isinstance(inner, dict) else {}
        if output.is_secret and output.path and last in place:
            place[last] = MASK
    return shown
