"""
Check who can change what is delivered: owners, pushes, approvals and signatures.

Nothing is written.
"""

from __future__ import annotations

from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, annotations_of, labels_of
from orderkit.core.order import ledger
from orderkit.core.order.approval import BYPASSED
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit.core.plan.plan_markdown import plain_line
from orderkit.flows.argocd.commit_pinning import following_orders, undelivered_orders
from orderkit.flows.forge_protection import (
    described,
    foreign_access,
    squashing_orders,
    unprotected_orders,
)
from orderkit.flows.install.findings import DoctorFinding
from orderkit.flows.order.agreements import approver_problems
from orderkit.flows.order.commit_judging import published_keys
from orderkit.flows.order.cost_limit import team_excess
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import team_of

_NAMED = 5


def ownership(platform: Platform) -> DoctorFinding:
    """Report who besides our account has a way into the platform's organisations."""
    files = ledger_snapshot(platform)
    places = (platform.pack_repo, platform.ledger)
    targets: list[str | RepoId] = [*dict.fromkeys(repo.owner for repo in places), *places]
    grants = [grant for target in targets for grant in foreign_access(platform, target)]
    teams = tuple(ledger.teams(files.blobs))
    for team in teams:
        file = team_of(platform, team, files)
        grants += foreign_access(platform, team, adopted=file.adopted, writers=file.members)
    if grants:
        places_of = [f"{grant.target}: {described([grant])}" for grant in grants]
        return DoctorFinding(
            "ownership",
            "fail",
            "; ".join(places_of),
            "remove them on the forge, or accept them: spec.forge.adopted in platform.yaml, or"
            " 'orderkit team change TEAM --adopt NAME'",
        )
    return DoctorFinding(
        "ownership", "ok", f"nobody else owns the platform or a team ({len(teams)})"
    )


def approvers(platform: Platform) -> DoctorFinding:
    """Report whom kits ask to agree and who is nobody on the forge."""
    problems = list(approver_problems(platform, published_pack(platform).kits()))
    if problems:
        texts, advice = zip(*problems, strict=True)
        return DoctorFinding("approvers", "warn", "; ".join(texts), "; ".join(advice))
    return DoctorFinding("approvers", "ok", "everybody whom kits ask is known to the forge")


def protection(platform: Platform) -> DoctorFinding:
    """Report orders of which a push decides what is delivered although their kit wants reviews."""
    files = ledger_snapshot(platform)
    if entries := following_orders(platform, files):
        return DoctorFinding(
            "protection",
            "fail",
            f"a tag called main is delivered now and then in {len(entries)} orders, first"
            f" {entries[0].repository}",
            "'orderkit bootstrap' or 'orderkit platform upgrade' makes Argo CD deliver commits",
        )
    if entries := unprotected_orders(platform, files):
        return DoctorFinding(
            "protection",
            "fail",
            f"a push can bypass the kit's rules in {len(entries)} orders, first"
            f" {entries[0].repository}",
            f"'orderkit team add {entries[0].team}' protects main of its orders",
        )
    if entries := squashing_orders(platform.forge, files):
        return DoctorFinding(
            "protection",
            "warn",
            f"the forge may squash pull requests of {len(entries)} orders, first"
            f" {entries[0].repository}: that loses the proof of who asked",
            f"'orderkit team add {entries[0].team}' forbids it; our account has to administer them",
        )
    return DoctorFinding("protection", "ok", "main is protected where a kit wants reviews")


def undelivered(platform: Platform) -> DoctorFinding:
    """Report orders that deliver a commit while ``main`` is at another one."""
    if entries := undelivered_orders(platform, ledger_snapshot(platform)):
        return DoctorFinding(
            "undelivered",
            "warn",
            f"main of {len(entries)} orders holds what nobody delivered, first"
            f" {entries[0].repository}",
            f"orderkit status {entries[0].order}",
        )
    return DoctorFinding("undelivered", "ok", "what is on a protected main is delivered")


def approvals(platform: Platform) -> DoctorFinding:
    """Report what is delivered although somebody who has to agree did not."""
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    notes = [
        f"{labels_of(application).get(ORDER_LABEL)}: {plain_line(note)}"
        for application in applications
        if (note := annotations_of(application).get(BYPASSED))
    ]
    if not notes:
        return DoctorFinding("approvals", "ok", "nothing is delivered without those it needs")
    return DoctorFinding(
        "approvals",
        "warn",
        f"{len(notes)} orders are delivered without approval; {'; '.join(notes[:_NAMED])}",
        "see 'orderkit history ORDER'; take it back: 'orderkit revert', then 'orderkit register'",
    )


def limits(platform: Platform) -> DoctorFinding:
    """Report teams whose orders cost more than they may, which a push past Orderkit can do."""
    files = ledger_snapshot(platform)
    teams = [team_of(platform, team, files) for team in ledger.teams(files.blobs)]
    limited_teams = [file for file in teams if file.limits.cost and file.limits.over == "refuse"]
    excesses = list(
        filter(None, (team_excess(platform, file, files.blobs) for file in limited_teams))
    )
    if not excesses:
        return DoctorFinding(
            "limits", "ok", f"every team with a cost limit ({len(limited_teams)}) keeps it"
        )
    return DoctorFinding(
        "limits",
        "warn",
        "; ".join(map(plain_line, excesses[:_NAMED])),
        "orderkit list --team TEAM --sort=-cost; what was pushed by hand is in 'orderkit history"
        " ORDER', and 'orderkit revert' takes it back",
    )


def signatures(platform: Platform) -> DoctorFinding:
    """Report whether commits of this machine are signed, and whose signatures count."""
    key, published = platform.signatures.public_key, published_keys(platform)
    if key is not None and key.id not in published:
        return DoctorFinding(
            "signatures",
            "fail",
            f"{platform.ledger} lacks this machine's public key {key.id}: its signatures prove"
            " nothing",
            "publish it: orderkit bootstrap",
        )
    if not published:
        return DoctorFinding(
            "signatures",
            "warn",
            "no commit is signed: whoever can push can write any requester into a commit",
            "give the service a signing key (docs/signatures.md)",
        )
    writes = "signed" if platform.signatures.can_sign else "not signed, so shown as made by hand"
    keys = f"{len(published)} key{'s' if len(published) > 1 else ''} in {platform.ledger}"
    return DoctorFinding("signatures", "ok", f"{keys}; commits of this machine are {writes}")
