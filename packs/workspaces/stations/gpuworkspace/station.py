"""
Compose a workspace on AWS, what is referred to before what refers to it.

AWS assigns most names, so an instance is wanted once its security group exists, and its state and
address once the instance does. function-auto-ready judges all of them.
"""

from __future__ import annotations

from orderkit.stations import StationRequest, StationResponse

from .machine import want_machine
from .network import want_network
from .reporting import report
from .workspace import Workspace


def station(request: StationRequest) -> StationResponse:
    """Want network and machine and report what they do, or refuse an image that is not offered."""
    workspace = Workspace.of(request)
    images = workspace.region_settings.get("images") or {}
    image = workspace.spec["image"]
    exists = request.observed_resource(workspace.instance_part) is not None
    if image not in images and not exists:
        workspace.response.fatal(
            f"image {image} is not offered in {workspace.region}: choose one of "
            + (", ".join(sorted(images)) or "another region"),
            reason="ImageNotOffered",
        )
        return workspace.response
    want_network(workspace)
    want_machine(workspace, str(images.get(image, "")))
    report(workspace)
    return workspace.response
