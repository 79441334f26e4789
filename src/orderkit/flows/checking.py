"""
Check a platform from outside: what is missing or unreachable, and what to do about it.

Called by ``orderkit doctor``. Every check runs, whatever the others found; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from orderkit.core.applicationstate import Hindrance
from orderkit.core.errors import AccessError, OrderkitError
from orderkit.core.ledger import ORDER_LABEL
from orderkit.core.objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    COMPOSITION,
    XRD,
    Manifest,
    dig,
    labels_of,
    metadata,
)
from orderkit.flows.obstacles import obstacle
from orderkit.flows.orders import list_orders
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.ports.requesters import Requesters

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing; `advice` is empty when it is well."""

    what: str
    verdict: Verdict
    detail: str
    advice: str = ""


def check(platform: Platform) -> Iterator[Finding]:
    """Yield one finding per check, in the order in which a person would look."""
    checks: dict[str, Callable[[Platform], Finding]] = {
        "forge": _forge,
        "behaviour": _behaviour,
        "rights": _rights,
        "pack": _pack,
        "ledger": _ledger,
        "cluster": _cluster,
        "layers": _layers,
        "portal": _portal,
        "service": _service,
        "orders": _orders,
    }
    for what, run in checks.items():
        try:
            yield run(platform)
        except OrderkitError as error:
            yield Finding(what, "fail", str(error), error.hint)


def check_requesters(requesters: Requesters | None) -> Finding:
    """Say what the requester of a portal's order is worth."""
    what = "requesters"
    if requesters is None:
        return Finding(what, "ok", "claims: portal.signedBy names no Backstage that proves them")
    try:
        return Finding(what, "ok", requesters.describe())
    except OrderkitError as error:
        return Finding(what, "fail", str(error), error.hint)


def _forge(platform: Platform) -> Finding:
    forge = platform.forge
    try:
        version, user = forge.version(), forge.user()
    except AccessError as error:
        came = f"credentials from {forge.credentials_source}"
        return Finding("forge", "fail", f"{error} ({came})", error.hint)
    detail = f"{forge.base_url}, version {version}, as {user} ({forge.credentials_source})"
    return Finding("forge", "ok", detail)


def _behaviour(platform: Platform) -> Finding:
    known = platform.forge.evidence()
    if known.basis == "too old":
        return Finding("behaviour", "warn", known.detail, "upgrade the forge: Gitea 1.26 or newer")
    if known.basis == "unknown":
        return Finding(
            "behaviour",
            "warn",
            f"version {known.version}: {known.detail}",
            "run the contract suite against such a server first (docs/forge.md)",
        )
    return Finding("behaviour", "ok", f"{known.basis}: {known.detail}")


def _rights(platform: Platform) -> Finding:
    missing = platform.forge.missing_rights(platform.ledger)
    if missing:
        return Finding(
            "rights",
            "fail",
            f"missing: {', '.join(missing)} (credentials from {platform.forge.credentials_source})",
            "make a token with these scopes, of a user who may write there (docs/forge.md)",
        )
    return Finding("rights", "ok", f"may write to {platform.ledger}")


def _pack(platform: Platform) -> Finding:
    pack = published_pack(platform)
    kits = ", ".join(kit.name for kit in pack.kits())
    return Finding("pack", "ok", f"{platform.pack_repo} offers {kits}")


def _ledger(platform: Platform) -> Finding:
    seen = ledger_snapshot(platform)
    return Finding("ledger", "ok", f"{platform.ledger} at {seen.commit[:8]}")


def _cluster(platform: Platform) -> Finding:
    missing = [k for k in (APPLICATION, XRD, COMPOSITION) if not platform.cluster.serves(k)]
    if missing:
        names = ", ".join(str(kind) for kind in missing)
        return Finding("cluster", "fail", f"serves no {names}", "install Argo CD and Crossplane")
    return Finding("cluster", "ok", "serves Argo CD's and Crossplane's kinds")


def _layers(platform: Platform) -> Finding:
    """Judge the Applications that are no orders: the platform's layers and the teams."""
    found = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    layers = {
        str(metadata(application)["name"]): application
        for application in found
        if ORDER_LABEL not in labels_of(application)
    }
    bad = {name: why for name, each in sorted(layers.items()) if (why := _unwell(platform, each))}
    if not bad:
        return Finding("layers", "ok", f"{len(found)} Applications")
    first, why = next(
        ((name, why) for name, why in bad.items() if why.failing), next(iter(bad.items()))
    )
    others = f"; also not well: {', '.join(name for name in bad if name != first)}"
    return Finding(
        "layers",
        "fail",
        f"{first}: {why.reason}" + (others if len(bad) > 1 else ""),
        why.advice or f"kubectl -n {ARGOCD_NAMESPACE} describe application {first}",
    )


def _unwell(platform: Platform, application: Manifest) -> Hindrance | None:
    """Say what is wrong with a layer: it is not delivered, or what it delivers is not healthy."""
    found = obstacle(platform, application)
    if found:
        return found
    health = dig(application, "status", "health", default={})
    if health.get("status") == "Healthy":
        return None
    told = health.get("message") or "what it delivers is not healthy"
    return Hindrance(f"{health.get('status', 'Unknown')}: {told}")


def _portal(platform: Platform) -> Finding:
    return Finding("portal", "ok", f"{len(platform.catalog.locations())} locations registered")


def _service(platform: Platform) -> Finding:
    answer = platform.portal.request("GET", "/proxy/orderkit/healthz", headers={}, body=None)
    if answer.code != 200:  # noqa: PLR2004 - HTTP's own number
        return Finding(
            "service", "fail", f"answered {answer.code}", "check service.url in platform.yaml"
        )
    return Finding("service", "ok", "answers")


def _orders(platform: Platform) -> Finding:
    reports = list_orders(platform)
    failing = [report for report in reports if report.state.phase == "Failing"]
    if failing:
        first = failing[0]
        return Finding(
            "orders",
            "warn",
            f"{len(failing)} of {len(reports)} failing, first {first.entry.order}: "
            f"{first.state.reason}",
            f"orderkit trace {first.entry.order}; {first.state.advice}".rstrip("; "),
        )
    return Finding("orders", "ok", f"{len(reports)}, none failing")
