"""
Check a platform from outside: what is missing or unreachable, and what to do about it.

Every check runs, whatever the others found, unless it needs a system that cannot be used.
Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ground.argocd.delivery_obstacles import Obstacle
from ground.errors import AccessError, OrderkitError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    COMPOSITION,
    XRD,
    Manifest,
    dig,
    labels_of,
    metadata,
)
from kubeschema.admission import BINDING
from orderkit.core.kit.checked_kits import refusals
from orderkit.core.kit.pack import Pack
from orderkit.core.order import ledger
from orderkit.core.order.ledger import KIT_LABEL, ORDER_LABEL, TEAM_LABEL, kit_of
from orderkit.core.platform.delivery_tree import ORDERS_POLICY, layers_of
from orderkit.core.platform.installation import Installation
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.flows.argocd.commit_pinning import unpinned_applications, unsafe_applications
from orderkit.flows.argocd.refreshing import obstacle
from orderkit.flows.install import doctor_access_checks
from orderkit.flows.install.delivery_hold import is_held
from orderkit.flows.install.findings import DoctorFinding, check_releases
from orderkit.flows.notify.notified_events import given_up
from orderkit.flows.order.order_damage import damaged_orders
from orderkit.flows.order.order_report import OrderReport, list_orders
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.team.connections import REPOSITORY_CREDENTIALS, SECRET, decoded, lacking
from orderkit.ports.cluster import Cluster
from orderkit.ports.requesters import Requesters
from orderkit.ports.urgency import longest_wait

_NAMED = 5
_STILL_KNOWN = {
    "forge": frozenset({"cluster", "layers", "portal", "service", "deletion"}),
    "cluster": frozenset({"portal", "service"}),
}
"""What is checked where the forge or the cluster cannot be used: the rest would say that again."""
SYSTEMS = tuple(_STILL_KNOWN)


def check(
    platform: Platform,
    installation: Installation | None = None,
    *,
    without: Collection[str] = (),
) -> Iterator[DoctorFinding]:
    """
    Yield one finding per check, in the order in which a person would look.

    Where the forge or the cluster cannot be used, one finding says so, and what needs it is left
    out.

    Args:
        installation: Of platform.yaml; None: only what the servers tell of themselves.
        without: ``portal`` or ``service``: the platform does without.
    """
    unusable: list[str] = []
    for name in CHECKS:
        if not is_known_without(name, unusable):
            continue
        if name in without:
            yield DoctorFinding(name, "ok", f"platform.yaml has no spec.{name}")
            continue
        finding = found(name, platform)
        if name in _STILL_KNOWN and finding.verdict == "fail":
            unusable.append(name)
            detail = f"{finding.detail}; what needs the {name} is not checked"
            finding = replace(finding, detail=detail)
        yield finding
    yield from check_releases(platform, installation, without=unusable)


def is_known_without(name: str, unusable: Collection[str]) -> bool:
    """Say whether a check tells something new where ``forge`` or ``cluster`` cannot be used."""
    return all(name in _STILL_KNOWN[system] for system in unusable if system != name)


def found(name: str, platform: Platform) -> DoctorFinding:
    """Run one of `CHECKS`; one that cannot look fails."""
    try:
        return CHECKS[name](platform)
    except OrderkitError as error:
        return DoctorFinding(name, "fail", str(error), error.hint)


def check_notifications(cluster: Cluster, settings: NotificationSettings) -> DoctorFinding:
    """Report which events were not delivered for a day."""
    subject = "notifications"
    if not settings.uses_anything:
        return DoctorFinding(subject, "ok", "platform.yaml has no channels")
    try:
        by_channel = given_up(cluster, settings.namespace)
    except OrderkitError as error:
        return DoctorFinding(subject, "warn", str(error), error.hint)
    lost = {channel: events for channel, events in by_channel.items() if events}
    if not lost:
        return DoctorFinding(subject, "ok", f"{len(settings.channels)} channels, nothing given up")
    details = [
        f"{channel}: {len(events)}, last '{events[-1].kind}' of {events[-1].order} at "
        f"{events[-1].when} ({events[-1].reason})"
        for channel, events in sorted(lost.items())
    ]
    return DoctorFinding(
        subject,
        "warn",
        f"not delivered for a day: {'; '.join(details)}",
        "try the channel: orderkit notify test CHANNEL; then delete the ConfigMaps "
        f"orderkit-notified-CHANNEL* in namespace {settings.namespace} to begin it anew",
    )


def check_requesters(
    requesters: Requesters | None, platform_groups: Sequence[str] = ()
) -> DoctorFinding:
    """Report how the requester of a portal's order is proved, and who acts for every team."""
    subject = "requesters"
    if requesters is None:
        return DoctorFinding(
            subject, "ok", "claims: portal.signedBy names no Backstage that proves them"
        )
    try:
        groups = ", ".join(platform_groups) or "no group"
        detail = f"{requesters.describe()}; {groups} may act for every team"
        return DoctorFinding(subject, "ok", detail)
    except OrderkitError as error:
        return DoctorFinding(subject, "fail", str(error), error.hint)


def _forge(platform: Platform) -> DoctorFinding:
    forge = platform.forge
    try:
        version, user = forge.version(), forge.user()
    except AccessError as error:
        came = f"credentials from {forge.credentials_source}"
        return DoctorFinding("forge", "fail", str(error), error.hint, came)
    detail = f"{forge.base_url}, version {version}, as {user}"
    return DoctorFinding("forge", "ok", detail, source=forge.credentials_source)


def _capabilities(platform: Platform) -> DoctorFinding:
    return DoctorFinding("capabilities", "ok", platform.forge.capabilities.report)


def _rights(platform: Platform) -> DoctorFinding:
    missing = platform.forge.missing_rights(platform.ledger)
    if missing:
        return DoctorFinding(
            "rights",
            "fail",
            f"missing: {', '.join(missing)}",
            "create a token with these scopes for a user who may write there (docs/forge.md)",
            f"credentials from {platform.forge.credentials_source}",
        )
    return DoctorFinding("rights", "ok", f"may write to {platform.ledger}")


def _speed(platform: Platform) -> DoctorFinding:
    title, wait = platform.forge.capabilities.title, longest_wait()
    if wait is None:
        return DoctorFinding("speed", "ok", f"nothing waits for {title}'s limits of speed")
    detail = f"a request waits {wait.left_s:.0f} s more for {wait.system}'s limit of speed"
    return DoctorFinding("speed", "warn", detail, "it goes on by itself; people go first")


def _pack(platform: Platform) -> DoctorFinding:
    pack = published_pack(platform)
    kits = ", ".join(kit.name for kit in pack.kits())
    for name in pack.kit_names:
        for refusal in refusals(name, pack.files):
            return DoctorFinding(
                "pack",
                "warn",
                f"kit '{name}' would be refused when the pack is published again: {refusal}",
                refusal.hint,
            )
    return DoctorFinding("pack", "ok", f"{platform.pack_repo} offers {kits}")


def _ledger(platform: Platform) -> DoctorFinding:
    files = ledger_snapshot(platform)
    counts = Counter(entry.order for entry in ledger.entries(files.blobs))
    twice = [order for order, count in counts.items() if count > 1]
    if twice:
        return DoctorFinding(
            "ledger",
            "fail",
            f"several teams have the same order: {', '.join(twice)}",
            "repeat 'orderkit order' for the team that came second: that takes its entry back",
        )
    return DoctorFinding("ledger", "ok", f"{platform.ledger} at {files.commit[:8]}")


def _cluster(platform: Platform) -> DoctorFinding:
    missing = [k for k in (APPLICATION, XRD, COMPOSITION) if not platform.cluster.serves(k)]
    if missing:
        names = ", ".join(str(kind) for kind in missing)
        return DoctorFinding(
            "cluster", "fail", f"serves no {names}", "install Argo CD and Crossplane"
        )
    return DoctorFinding("cluster", "ok", "serves Argo CD's and Crossplane's kinds")


def _policies(platform: Platform) -> DoctorFinding:
    """Report what older releases left open: policies that a pushed kit switches off."""
    bindings = platform.cluster.list(BINDING).items
    selected = sorted(
        str(metadata(binding)["name"])
        for binding in bindings
        if KIT_LABEL in dig(binding, "spec", "paramRef", "selector", "matchLabels", default={})
    )
    if selected:
        return DoctorFinding(
            "policies",
            "fail",
            f"{', '.join(selected)}: a push can switch it off with another kit in its record",
            "run 'orderkit kit generate' in the pack and publish it: orderkit platform upgrade",
        )
    pack = published_pack(platform)
    names = {metadata(policy_binding)["name"] for policy_binding in bindings}
    if pack.kit_names and ORDERS_POLICY not in names:
        return DoctorFinding(
            "policies",
            "fail",
            f"there is no {ORDERS_POLICY}: a hook of Argo CD that somebody pushes may run",
            "run 'orderkit kit generate' in the pack and publish it: orderkit platform upgrade",
        )
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    if taken := _taken_for_orders(pack, applications):
        return DoctorFinding(
            "policies",
            "warn",
            f"{ORDERS_POLICY} takes {', '.join(taken)} for orders: the name begins with a kit's",
            "give these Applications other names, or they may deliver objects of that kit only",
        )
    misnamed = sorted(
        f"{order} (kit '{kit_of(application)}')"
        for application in applications
        if (order := labels_of(application).get(ORDER_LABEL))
        and not order.startswith(f"{kit_of(application)}-")
    )
    if misnamed:
        return DoctorFinding(
            "policies",
            "fail",
            f"registered under a kit that the id does not name: {', '.join(misnamed)}",
            "look at the history of its record, correct its Application in the ledger",
        )
    return DoctorFinding("policies", "ok", f"{len(bindings)} bindings")


def _taken_for_orders(pack: Pack, applications: Sequence[Manifest]) -> list[str]:
    """Return the Applications of others that a policy cannot tell from orders."""
    own = {layer.name for layer in layers_of(pack.files)}
    names = {
        str(metadata(application)["name"])
        for application in applications
        if ORDER_LABEL not in labels_of(application) and TEAM_LABEL not in labels_of(application)
    }
    return sorted(name for name in names - own if ledger.named_kit(name, pack.kit_names))


def _layers(platform: Platform) -> DoctorFinding:
    """Judge the Applications that are not orders: the platform's layers and the teams."""
    if is_held(platform.cluster):
        held = "Argo CD delivers nothing: a restore holds it until its report is accepted"
        return DoctorFinding("layers", "fail", held, "orderkit restore DIR (docs/disaster.md)")
    manifests = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    applications = {str(metadata(application)["name"]): application for application in manifests}
    bad = {
        name: why
        for name, layer in sorted(applications.items())
        if ORDER_LABEL not in labels_of(layer)
        if (why := _unhealthy(platform.cluster, layer, applications))
    }
    if not bad:
        return DoctorFinding("layers", "ok", f"{len(applications)} Applications")
    first, why = next(
        ((name, why) for name, why in bad.items() if why.failing), next(iter(bad.items()))
    )
    rest_note = f"; also unhealthy: {', '.join(name for name in bad if name != first)}"
    return DoctorFinding(
        "layers",
        "fail",
        f"{first}: {why.reason}" + (rest_note if len(bad) > 1 else ""),
        why.advice or f"kubectl -n {ARGOCD_NAMESPACE} describe application {first}",
    )


def _unhealthy(
    cluster: Cluster, application: Manifest, applications: Mapping[str, Manifest]
) -> Obstacle | None:
    """
    Say what is wrong with a layer: it is not delivered, or what it delivers is not healthy.

    Not of one that delivers an unhealthy Application: that is judged itself, as layer or order.
    """
    found = obstacle(cluster, application)
    if found:
        return found
    health = dig(application, "status", "health", default={})
    delivered = dig(application, "status", "resources", default=()) or ()
    names = (str(child.get("name")) for child in delivered if child.get("kind") == APPLICATION.kind)
    children = map(applications.get, names)
    if health.get("status") == "Healthy" or any(
        child and dig(child, "status", "health", "status") != "Healthy" for child in children
    ):
        return None
    message = health.get("message") or "what it delivers is not healthy"
    return Obstacle(f"{health.get('status', 'Unknown')}: {message}")


def _portal(platform: Platform) -> DoctorFinding:
    return DoctorFinding(
        "portal", "ok", f"{len(platform.catalog.locations())} locations registered"
    )


def _service(platform: Platform) -> DoctorFinding:
    answer = platform.portal.request("GET", "/proxy/orderkit/healthz", headers={}, body=None)
    if answer.code != 200:  # noqa: PLR2004 - HTTP's own number
        return DoctorFinding(
            "service", "fail", f"answered {answer.code}", "check service.url in platform.yaml"
        )
    return DoctorFinding("service", "ok", "answers")


def _orders(platform: Platform) -> DoctorFinding:
    """Report every order that fails or was damaged; orders with the same reason together."""
    reports = list(damaged_orders(platform, list_orders(platform)))
    failing = [report for report in reports if report.state.phase == "Failing"]
    remarked = [report for report in reports if report.state.ready and report.state.reason]
    if not failing and not remarked:
        return DoctorFinding("orders", "ok", f"{len(reports)}, none failing")
    texts = [f"{len(failing)} of {len(reports)} failing", *_folded(failing), *_folded(remarked)]
    advice = dict.fromkeys(
        report.state.advice or f"orderkit trace {report.entry.order}"
        for report in (*failing, *remarked)
    )
    return DoctorFinding("orders", "warn", "; ".join(texts), "; ".join(advice))


def _folded(reports: Sequence[OrderReport]) -> list[str]:
    """Return each reason once, with the orders that it holds for."""
    orders_by_reason: dict[str, list[str]] = {}
    for report in reports:
        orders_by_reason.setdefault(report.state.reason, []).append(report.entry.order)
    return [f"{', '.join(orders)}: {reason}" for reason, orders in orders_by_reason.items()]


def _reconciling(platform: Platform) -> DoctorFinding:
    """Report orders that Crossplane looks at rarely or not at all, Ready ones included."""
    reports = list_orders(platform)
    named = [report for report in reports if report.state.throttled] or [
        report for report in reports if report.state.paused
    ]
    if not named:
        return DoctorFinding("crossplane", "ok", "reconciles every order")
    state = named[0].state
    word = "throttled" if state.throttled else "paused"
    names = ", ".join(report.entry.order for report in named[:_NAMED])
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    detail = f"{len(named)} of {len(reports)} orders {word} ({names}{more}): {state.reason}"
    return DoctorFinding("crossplane", "warn", detail, state.advice)


def _sources(platform: Platform) -> DoctorFinding:
    """Report Applications for which a pushed file chooses the tool that Argo CD runs."""
    teams = list(ledger.teams(ledger_snapshot(platform).blobs))
    names = [str(metadata(app)["name"]) for app in unpinned_applications(platform, teams)]
    if not names:
        return DoctorFinding("sources", "ok", "Applications deliver plain manifests only")
    return DoctorFinding(
        "sources",
        "fail",
        f"{len(names)} Applications run any tool that a pushed file asks for, first {names[0]}",
        "'orderkit bootstrap' or 'orderkit platform upgrade' pins those that Orderkit wrote; "
        "give others spec.source.directory.include: '*.{yaml,yml,json}'",
    )


def _deletion(platform: Platform) -> DoctorFinding:
    """Report Applications that delete an order when a push renames its XR or a file is lost."""
    names = [str(metadata(app)["name"]) for app in unsafe_applications(platform.cluster)]
    if not names:
        return DoctorFinding("deletion", "ok", "only 'orderkit destroy' deletes an order")
    return DoctorFinding(
        "deletion",
        "fail",
        f"a push, or a file that the ledger loses, can delete what {len(names)} Applications"
        f" delivered, first {names[0]}",
        "'orderkit bootstrap' or 'orderkit platform upgrade' writes them again",
    )


def _credentials(platform: Platform) -> DoctorFinding:
    """Report credentials of Argo CD that read more than one organisation, and missing ones."""
    secrets = platform.cluster.list(
        SECRET, namespace=ARGOCD_NAMESPACE, labels=REPOSITORY_CREDENTIALS
    ).items
    forge_url = f"{platform.forge.base_url}/"
    too_wide = [
        f"Secret {metadata(secret)['name']}"
        for secret in secrets
        if forge_url.startswith(decoded(secret, "url").rstrip("/"))
    ]
    missing = lacking(platform, list(ledger.teams(ledger_snapshot(platform).blobs)))
    if not too_wide and not missing:
        return DoctorFinding("credentials", "ok", "none of Argo CD's reads the whole forge")
    detail = [f"for the whole forge, hence every team: {', '.join(too_wide)}"] if too_wide else []
    detail += [f"missing for teams: {', '.join(missing)}"] if missing else []
    return DoctorFinding(
        "credentials",
        "fail",
        "; ".join(detail),
        "'orderkit bootstrap' gives each team its own; then delete what is for the whole forge",
    )


CHECKS: Mapping[str, Callable[[Platform], DoctorFinding]] = {
    "forge": _forge,
    "capabilities": _capabilities,
    "rights": _rights,
    "speed": _speed,
    "cluster": _cluster,
    "ownership": doctor_access_checks.ownership,
    "protection": doctor_access_checks.protection,
    "undelivered": doctor_access_checks.undelivered,
    "approvers": doctor_access_checks.approvers,
    "approvals": doctor_access_checks.approvals,
    "limits": doctor_access_checks.limits,
    "pack": _pack,
    "ledger": _ledger,
    "signatures": doctor_access_checks.signatures,
    "layers": _layers,
    "portal": _portal,
    "service": _service,
    "orders": _orders,
    "crossplane": _reconciling,
    "sources": _sources,
    "deletion": _deletion,
    "credentials": _credentials,
    "policies": _policies,
}
"""In the order in which a person would look."""
