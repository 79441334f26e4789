"""
Compose a workspace on AWS, what is referred to before what refers to it.

AWS assigns most names, so an instance is created once its security group is ready, and its state
and address once the instance is. function-auto-ready judges all of them.
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
    response, image = workspace.parts.response, workspace.spec["image"]
    if image not in workspace.images and not workspace.parts.exists(workspace.instance_part):
        images = ", ".join(sorted(workspace.images)) or "another region"
        message = f"image {image} is not offered in {workspace.region}: choose one of {images}"
        response.fatal(message, reason="ImageNotOffered")
        return response
    want_network(workspace)
    want_machine(workspace, str(workspace.images.get(image, "")))
    report(workspace)
    return response
