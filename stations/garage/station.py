"""
Assemble a garage: the team's Namespace and, once that exists, its ConfigMap ``spec-sheet``.

The ConfigMap waits until the Namespace is observed, because Crossplane applies in random order and
gives up the whole round at the first missing namespace. function-auto-ready can judge both kinds,
so this station sets no readiness.
"""

from __future__ import annotations

from orderkit.stations import Parts, StationRequest, StationResponse, manifest


def station(request: StationRequest) -> StationResponse:
    """Want the bay always, and the spec sheet as soon as the bay exists."""
    response = StationResponse.to(request)
    spec = request.xr["spec"]
    team, stage = str(spec["teamName"]), str(spec["stage"])
    bay = f"garage-{team}"
    response.want("namespace", manifest("v1", "Namespace", bay))
    inside = Parts(request, response, namespace=bay, after=("namespace",))
    inside.want("spec-sheet", manifest("v1", "ConfigMap", data={"stage": stage, "team": team}))
    response.merge_status({"namespace": bay, "stage": stage})
    return response
