"""
Report what has drifted on a platform since it was bootstrapped. Only reads.

Every step of a bootstrap but the probe is looked at, with its verdict turned into a finding; then
the teams' AppProjects as the ledger has them, the XRDs of the pack, and who takes Argo CD's
settings back. Not looked at: webhooks (Orderkit tells Argo CD of its own writes and needs none),
and single orders (``orderkit list`` does).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    APP_PROJECT,
    CRD,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    metadata,
)
from kubeschema.xrd import XRD_KIND
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import ledger
from orderkit.flows.install.bootstrapping import (
    REACH,
    BootstrapRequest,
    StepDone,
    StepVerdict,
    plan,
)
from orderkit.flows.install.bootstrapping.argocd_steps import reverted_by
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, holds
from orderkit.flows.install.findings import DoctorFinding
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, read_text
from orderkit.ports.cluster import Cluster
from yamlfiles.manifests import parse_manifests

_AGAIN = "'orderkit bootstrap' repairs it ('--plan' shows how)"


def check(platform: Platform, request: BootstrapRequest) -> Iterator[DoctorFinding]:
    """
    Yield a finding per checked thing, in the order of a bootstrap.

    Raises:
        InvalidInputError: The pack is broken.
    """
    site = BootstrapContext(platform, replace(request, probe=None))
    is_reachable = True
    for step in plan(platform, site.wanted):
        yield _finding(site, step)
        is_reachable &= step.step not in REACH or step.verdict is not StepVerdict.FAIL
    if not is_reachable:
        return
    for subject, look in (("projects", _projects), ("kinds", _kinds)):
        try:
            yield from look(site)
        except OrderkitError as error:
            yield DoctorFinding(subject, "fail", str(error), error.hint)


def _finding(site: BootstrapContext, step: StepDone) -> DoctorFinding:
    match step.verdict:
        case StepVerdict.DONE:
            return DoctorFinding(step.step, "ok", step.detail)
        case StepVerdict.SKIP:
            return DoctorFinding(step.step, "warn", step.detail, step.advice)
        case StepVerdict.FAIL:
            return DoctorFinding(step.step, "fail", step.detail, step.advice)
        case StepVerdict.CREATE:
            return DoctorFinding(
                step.step, "fail", f"is missing: {step.detail}", step.advice or _AGAIN
            )
        case _:
            advice = reverted_by(site) if step.step == "settings" else step.advice or _AGAIN
            return DoctorFinding(step.step, "fail", f"has drifted: {step.detail}", advice)


def _projects(site: BootstrapContext) -> Iterator[DoctorFinding]:
    """Compare each team's AppProject with the ledger's file: it is what holds a team in bounds."""
    platform, bad = site.platform, []
    teams = list(ledger.teams(ledger_snapshot(platform).blobs))
    for team in teams:
        path = ledger.team_path(team)
        text = read_text(platform.forge, platform.ledger, path, "main") or ""
        bad += [
            metadata(project)["name"]
            for project in parse_manifests(str(path), text.encode())
            if Kind.of(project) == APP_PROJECT and not _is_so(platform.cluster, project)
        ]
    if bad:
        message = f"differ from the ledger: {', '.join(bad)}"
        yield DoctorFinding(
            "projects",
            "fail",
            message,
            "look at them with 'kubectl -n argocd get appproject', and find who edits them",
        )
    else:
        yield DoctorFinding("projects", "ok", f"{len(teams)} teams, as in the ledger")


def _is_so(cluster: Cluster, manifest: Manifest) -> bool:
    live = get_object(cluster, ObjectKey.of(manifest))
    return live is not None and holds(live.get("spec"), manifest.get("spec"))


def _kinds(site: BootstrapContext) -> Iterator[DoctorFinding]:
    """Ask whether each kit's kind is offered and served."""
    bad, kits = [], read_pack(site.files).kits()
    for kit in kits:
        name = metadata(kit.xrd)["name"]
        live = get_object(site.platform.cluster, ObjectKey(XRD_KIND, name))
        if live is None:
            bad.append(f"{kit.name}: no XRD {name}")
        elif (condition(live, "Established") or {}).get("status") != "True":
            bad.append(f"{kit.name}: XRD {name} is not established")
        elif get_object(site.platform.cluster, ObjectKey(CRD, name)) is None:
            bad.append(f"{kit.name}: no CRD {name}")
        elif not site.platform.cluster.serves(kit.kind):
            bad.append(f"{kit.name}: {kit.kind.api_version} is not served")
    if bad:
        yield DoctorFinding("kinds", "fail", "; ".join(bad), _AGAIN)
    else:
        yield DoctorFinding("kinds", "ok", f"{len(kits)} kits' kinds are served")
