"""
Refuse YAML that would crash or stall whoever loads it, before it is loaded.

Loading recurses in C: a hundred thousand brackets overflow the stack and end the process. Aliases
can stand for more nodes than fit into memory, or for the node that they are in. Parser events show
both without building anything. ``manifests`` has limits of its own.
"""

from __future__ import annotations

import yaml

from ground.errors import InvalidInputError

DEPTH_MAX, NODES_MAX = 64, 200_000


def check_bounds(text: str | bytes, *, name: str) -> None:
    """
    Check nesting and size of all documents of a YAML text, aliases written out.

    Args:
        name: What messages call the text.

    Raises:
        InvalidInputError: It exceeds a limit, or an alias stands inside its own node.
        yaml.YAMLError: It is not YAML.
    """
    sizes, anchors = [0], dict[str, int]()
    open_anchors: list[str | None] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            sizes.append(1)
            open_anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = sizes.pop(), open_anchors.pop()
            sizes[-1] += size
            anchors.update({anchor: size} if anchor else {})
        elif isinstance(event, yaml.ScalarEvent):
            sizes[-1] += 1
            anchors.update({event.anchor: 1} if event.anchor else {})
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in open_anchors:
                raise InvalidInputError(name, f"*{event.anchor}", "stands inside its own node")
            sizes[-1] += anchors.get(event.anchor or "", 1)
        if len(sizes) > DEPTH_MAX:
            raise InvalidInputError(name, "", f"is nested deeper than {DEPTH_MAX} levels")
        if sizes[-1] > NODES_MAX:
            raise InvalidInputError(name, "", f"has more than {NODES_MAX} values")
