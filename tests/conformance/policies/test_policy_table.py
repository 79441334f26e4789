"""The generated policies of kits, on an API server: what it admits, and how it refuses."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests
import yaml
from tests.conformance.policies.apiserver import ApiServer, Object, eventually
from tests.conformance.policies.policycases import CASES, ORDER, TRACKED, Case
from tests.conformance.policies.policykits import KITS, VALUES

from kubeschema.xrd import crd_for
from orderkit.core.order.ledger import KIT_LABEL, ORDER_LABEL
from orderkit.core.platform.baking import bake
from orderkit_standins.argocd import argocd_crds
from orderkit_workshop.generate.admission_policy import policy

NAMESPACE, ARGOCD = "orders", "argocd"
DENIED = "ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: "
HOLD = "policies.orderkit.dev/hold"
_BY_TEAM = " belongs to team "
"""What only the policy about the Application says."""


def test_there_are_enough_cases_of_both_kinds() -> None:
    refused = sum(bool(case.told) for case in CASES)

    assert refused >= 30
    assert len(CASES) - refused >= 30
    assert len({(case.kit, case.reason) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kit}: {case.reason}")
def test_the_server_judges_a_write_as_the_kit_says(installed: ApiServer, case: Case) -> None:
    if case.old is not None and not case.predates:
        made = installed.create(xr(case, old=True))
        assert made.ok, made.text

    answer = write(installed, case)

    assert verdict(answer) == filled(expected(case), number(case)), answer.text


def expected(case: Case) -> tuple[int, str]:
    if not case.told:
        return 200, ""
    owner = "team." if _BY_TEAM in case.told else ""
    words = DENIED.format(policy=f"{owner}{case.kit}.orderkit.dev") + case.told
    tried = KITS[case.kit]
    resource = f"{tried.plural}.{tried.kit.kind.group}"
    return 422, f'{resource} "{xr(case)["metadata"]["name"]}" is forbidden: {words}'


def verdict(answer: requests.Response) -> tuple[int, str]:
    if answer.ok:
        return 200, ""
    return answer.status_code, str(answer.json()["message"])


# -- the objects of a case


def number(case: Case) -> str:
    """Return the case's own name."""
    return f"c{CASES.index(case):03}"


def filled(value: Any, name: str) -> Any:
    """Put the case's name where ``{n}`` stands."""
    if isinstance(value, str):
        return value.replace("{n}", name)
    if isinstance(value, Mapping):
        return {filled(key, name): filled(child, name) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(child, name) for child in value)
    return value


def identity(case: Case) -> tuple[str, str]:
    """Return the order's id and its XR's name."""
    found: tuple[str, str] = KITS[case.kit].identity(filled(case.old or case.new, number(case)))
    return found


def xr(case: Case, *, old: bool = False) -> Object:
    """Return the XR that is written, or the one before."""
    kit, name = KITS[case.kit].kit, number(case)
    order, own_name = identity(case)
    tracker = case.old_tracker if old else case.tracker
    meta: Object = {"name": filled(case.name, name) or own_name}
    annotations = filled(dict(case.annotations), name) if not old else {}
    if tracker:
        app = order if tracker == ORDER else filled(tracker, name)
        where = NAMESPACE if kit.namespaced else "default"
        kind = f"{kit.kind.group}/{kit.kind.kind}"
        annotations[TRACKED] = f"{app}:{kind}:{where}/{meta['name']}"
    if annotations:
        meta["annotations"] = annotations
    if kit.namespaced:
        meta["namespace"] = NAMESPACE
    if not old:
        meta |= _extras(case, name)
    elif case.via == "dying":
        meta["finalizers"] = [HOLD]
    spec = filled(dict((old and case.old) or case.new), name)
    return {
        "apiVersion": kit.kind.api_version,
        "kind": kit.kind.kind,
        "metadata": meta,
        "spec": spec,
    }


def _extras(case: Case, name: str) -> Object:
    found: Object = {}
    if case.labels:
        found["labels"] = filled(dict(case.labels), name)
    if case.owners:
        found["ownerReferences"] = [dict(owner) for owner in case.owners]
    if case.finalizers:
        found["finalizers"] = list(case.finalizers)
    return found


def write(server: ApiServer, case: Case) -> requests.Response:
    """Try the case's write."""
    new = xr(case)
    if case.old is None:
        return server.create(new, dry_run=True, account=case.writer)
    if case.via == "delete":
        return server.delete(new, dry_run=True)
    live = server.call("GET", server.path(new, new["metadata"]["name"])).json()
    if case.via == "dying":
        assert server.delete(new).ok
        live = server.call("GET", server.path(new, new["metadata"]["name"])).json()
        assert live["metadata"]["deletionTimestamp"]
    new["metadata"] |= {"resourceVersion": live["metadata"]["resourceVersion"]}
    if case.via == "status":
        new["status"] = {"conditions": []}
        return server.put(new, subresource="status", dry_run=True, account=case.writer)
    return server.put(new, dry_run=True, account=case.writer)


# -- the server with everything in place


@pytest.fixture(scope="module")
def installed(server: ApiServer) -> Iterator[ApiServer]:
    """Kinds, what was there before the policies, Applications, policies; all in force."""
    for name in (NAMESPACE, ARGOCD):
        server.must({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for definition in [*argocd_crds(), *(crd_for(tried.kit.xrd) for tried in KITS.values())]:
        made = copy.deepcopy(definition)
        made["metadata"].pop("ownerReferences", None)
        server.define(made)
    for case in CASES:
        if case.predates:
            assert server.create(xr(case, old=True)).ok
    for case in CASES:
        server.must(application(case))
    policies = [manifest for name in KITS for manifest in baked(name)]
    for manifest in policies:
        server.must(manifest)
    for name in KITS:
        eventually(functools.partial(refuses, server, name), f"the policies of {name} are in force")
    yield server
    for manifest in policies:
        server.delete(manifest)


def application(case: Case) -> Object:
    """Return the order's Application, as the ledger has it."""
    order, _ = identity(case)
    spec = filled(case.old or case.new, number(case))
    project = case.project or KITS[case.kit].team(spec)
    labels = {ORDER_LABEL: order, KIT_LABEL: case.registered_as or case.kit}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": order, "namespace": ARGOCD, "labels": labels},
        "spec": {
            "project": project,
            "source": {"repoURL": "http://forge.example.org/a/b.git", "path": "manifests"},
            "destination": {"server": "https://kubernetes.default.svc"},
        },
    }


def baked(kit: str) -> list[Object]:
    """Return the kit's policies as a platform has them."""
    files = bake(policy(KITS[kit].kit), VALUES)
    return [manifest for data in files.values() for manifest in yaml.safe_load_all(data)]


def refuses(server: ApiServer, kit: str) -> bool:
    """Say whether every policy of the kit refuses what it should: a real server needs a while."""
    plain = next(case for case in CASES if case.kit == kit)
    untracked = xr(plain)
    untracked["metadata"].pop("annotations")
    if server.create(untracked, dry_run=True).ok:
        return False
    forged = [case for case in CASES if case.kit == kit and _BY_TEAM in case.told]
    return all(_BY_TEAM in write(server, case).text for case in forged)
