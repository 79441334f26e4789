"""The station `cluster`: from intent over the builders of a cloud to composed objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orderkit.stations import (
    Parts,
    Ready,
    SettingError,
    Settings,
    StationRequest,
    StationResponse,
    layered_settings,
)

from .add_ons import add_ons, provider_configs
from .clouds import Cloud, cloud_of
from .order import Order, Pool
from .part import Part, compose
from .upgrading import Versions, minor, versions

_UPGRADED = "Upgraded"


def station(request: StationRequest) -> StationResponse:
    """Want a cluster as ordered; refuse what its cloud or the layers do not allow."""
    response = StationResponse.to(request)
    settings = layered_settings(request, response)
    if settings is None:
        return response
    cloud = cloud_of(request.xr["spec"]["cloud"])
    try:
        order = _order(Parts(request, response), settings)
        refusal = _refusal(order, cloud)
        if cloud is None or refusal:
            response.fatal(refusal, reason="NotPossible")
            return response
        _want_all(order, cloud, response)
    except SettingError as error:
        response.fatal(str(error), reason="LayersBroken")
    return response


def _want_all(order: Order, cloud: Cloud, response: StationResponse) -> None:
    facts = cloud.facts(order)
    pools = {pool.name: cloud.pool_version(order, pool) for pool in order.pools}
    steps = versions(order.version, facts, pools)
    lacking: set[str] = set()

    def want(parts: Iterable[Part]) -> None:
        for part in parts:
            compose(order, part, lacking)

    if order.is_new:
        want(cloud.network(order))
    want(cloud.cluster(order, steps.control_plane))
    for pool in order.pools:
        want(cloud.pool(order, pool, steps.pools[pool.name]))
    if order.has_public_zone:
        want(cloud.zones(order))
    if order.needs_dns_rights:
        want(cloud.dns_rights(order))
    want(provider_configs(order, cloud))
    want(add_ons(order, cloud, response))
    _report(order, cloud, response, steps, lacking)


def _order(parts: Parts, settings: Settings) -> Order:
    spec: dict[str, Any] = parts.request.xr["spec"]
    existing: dict[str, Any] = spec.get("existing") or {}
    mode = existing.get("mode", "none")
    return Order(
        name=spec["clusterName"],
        cloud=spec["cloud"],
        location=settings.get("locations", dict).get(spec["location"], ""),
        private=spec.get("private", True),
        version=spec["version"],
        domain=spec.get("domain", ""),
        wants_zones=spec.get("createDnsZones", True),
        add_ons=() if mode == "observe" else tuple(spec.get("addOns") or ()),
        pools=_pools(spec, settings, mode, existing.get("pools") or ()),
        mode=mode,
        existing_name=existing.get("name", ""),
        settings=settings,
        parts=parts,
    )


def _pools(
    spec: dict[str, Any], settings: Settings, mode: str, existing: Iterable[str]
) -> tuple[Pool, ...]:
    """Return the pools; the layers' default pool for a new cluster that names none."""
    if mode == "observe":
        return ()
    pools: list[dict[str, Any]] = spec.get("pools") or []
    if not pools and mode == "none":
        pools = [{"name": "default", **settings.get("defaultPool", dict)}]
    machines = settings.get("machines", dict)
    return tuple(
        Pool(
            pool["name"],
            machines[pool["size"]],
            pool["minNodes"],
            pool["maxNodes"],
            exists=pool["name"] in existing,
        )
        for pool in pools
    )


def _refusal(order: Order, cloud: Cloud | None) -> str:
    """Return why there cannot be such a cluster; empty: there can."""
    if cloud is None:
        return f"spec.cloud: {order.cloud}: there are no builders for it in stations/cluster/clouds"
    locations = order.settings.get("locations", dict)
    if not order.location:
        return (
            f"spec.location: {order.parts.request.xr['spec']['location']} has no region in the "
            f"layer for {order.cloud}: choose one of {', '.join(locations)}"
        )
    supported = order.settings.get("kubernetesVersions", list)
    if order.version not in supported and not order.parts.exists("cluster"):
        return (
            f"spec.version: {order.version} is not a version of the layer for {order.cloud}: "
            f"choose one of {', '.join(map(str, supported))}"
        )
    return _held_pool(order) or cloud.refusal(order)


def _held_pool(order: Order) -> str:
    """Return why a pool cannot be taken out: charts hold the one they were installed with."""
    kept = {pool.name for pool in order.pools}
    for part in order.parts.request.observed.resources:
        pool, by, _ = part.removeprefix("usage-pool-").partition("-by-release-")
        if by and part.startswith("usage-pool-") and pool not in kept:
            return (
                f"spec.pools: {pool} holds the add-ons and cannot be taken out while there are "
                "any: take out the add-ons first, or another pool"
            )
    return ""


def _report(
    order: Order, cloud: Cloud, response: StationResponse, steps: Versions, lacking: set[str]
) -> None:
    """Write the status, and keep the order unready while something is still to be created."""
    waiting = sorted({*order.parts.waiting, *lacking})
    if waiting or steps.upgrade:
        response.desired.composite.ready = Ready.FALSE
    phase = order.parts.phase()
    if phase != "Failed" and (steps.upgrade or lacking):
        phase_text = "Upgrading" if steps.upgrade else "Provisioning"
    else:
        phase_text = phase
    facts = cloud.facts(order)
    cloud_values = {
        "clusterEndpoint": facts.endpoint,
        "clusterCA": facts.ca,
        "version": minor(facts.version),
        "nameServers": " ".join(cloud.name_servers(order)) if order.has_public_zone else "",
    }
    response.merge_status(
        {
            **{key: value for key, value in cloud_values.items() if value},
            "phase": phase_text,
            "kubeconfigSecret": order.kubeconfig_secret,
            "providerConfig": order.parts.name("helm"),
            "pools": [_pool_status(order, cloud, pool) for pool in order.pools],
            "waitsFor": ", ".join(waiting),
            "layers": sorted(set(order.settings.layers.values())),
        }
    )
    if steps.upgrade:
        response.add_condition(_UPGRADED, "False", "Upgrading", steps.upgrade)
    else:
        response.add_condition(_UPGRADED, "True", "UpToDate", "")


def _pool_status(order: Order, cloud: Cloud, pool: Pool) -> dict[str, str]:
    version = minor(cloud.pool_version(order, pool)[0])
    return {
        "name": pool.name,
        "machine": pool.machine,
        **({"version": version} if version else {}),
    }
