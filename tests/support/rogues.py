"""
What people push who pass the forms by, and the words in which each of it is refused.

One table for every platform: the embedded one and the real one must refuse alike. The pack has
the reference kit (cluster-scoped, one order a team), ``locker`` (cluster-scoped, named by the
form) and ``drawer`` (namespaced); a locker's ``serial`` never changes once it is set.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from ground.names import OrderId, TeamName
from ground.objects.kube_objects import Kind, Manifest
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.folders.skeletons import render_skeleton
from orderkit_workshop.generate.kit_draft import Draft, FieldDraft
from orderkit_workshop.stories.generate_kits import apply_generation, plan_generation
from orderkit_workshop.stories.start_kit import new_kit
from yamlfiles import yaml11

GROUP = "rogues.example.org"
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
SECOND = PurePosixPath("manifests", "second.yaml")
_IMMUTABLE = {"rule": "self == oldSelf", "message": "serial is for ever"}


def rogue_pack(target: Path) -> Path:
    """Copy the reference pack to `target` and add the two kits."""
    source = reference_pack()
    target.mkdir()
    shutil.copy(source / "pack.yaml", target)
    for part in ("templates", "stations", "gitops", "day2"):
        shutil.copytree(source / part, target / part)
    serial = FieldDraft("serial", "string", optional=True)
    pack = LocalPack(target)
    new_kit(pack, Draft(name="locker", group=GROUP, fields=[serial]), render_skeleton)
    drawer = Draft(name="drawer", group=GROUP, namespaced=True, fields=[serial])
    new_kit(pack, drawer, render_skeleton)
    definition = target / "gitops" / "apis" / "locker" / "definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["serial"]["x-kubernetes-validations"] = [_IMMUTABLE]
    definition.write_text(yaml.safe_dump(xrd, sort_keys=False))
    apply_generation(pack, plan_generation(pack, ["locker"]))
    return target


@dataclass(frozen=True)
class Pair:
    """The team that pushes, and one whose orders it is after."""

    us: str
    them: str


Edit = Callable[[Manifest, Pair], Mapping[PurePosixPath | None, Manifest]]
"""From the order's XR and the teams: what stands where; None is the XR's own file."""


@dataclass(frozen=True)
class Rogue:
    """One attempt from the repository of an order of `kit`."""

    reason: str
    kit: str
    edit: Edit
    says: str
    """What the deliverer's own message holds; ``{us}``, ``{them}``, ``{order}`` are replaced."""
    tells: tuple[str, ...]
    """What people must read in the order's status, in whatever words."""

    def said(self, pair: Pair, order: str) -> str:
        return self.says.format(us=pair.us, them=pair.them, order=order)

    def told(self, pair: Pair, order: str) -> list[str]:
        return [each.format(us=pair.us, them=pair.them, order=order) for each in self.tells]


def _spec(**fields: str) -> Edit:
    def edit(xr: Manifest, pair: Pair) -> Mapping[PurePosixPath | None, Manifest]:
        told = {name: value.format(them=pair.them) for name, value in fields.items()}
        return {None: {**xr, "spec": {**xr["spec"], **told}}}

    return edit


def _placed_with_them(xr: Manifest, pair: Pair) -> Mapping[PurePosixPath | None, Manifest]:
    return {None: {**xr, "metadata": {**xr["metadata"], "namespace": f"team-{pair.them}"}}}


def _their_order(xr: Manifest, pair: Pair) -> Mapping[PurePosixPath | None, Manifest]:
    return {SECOND: {**xr, "metadata": {"name": f"garage-{pair.them}"}}}


def _their_order_with_a_forged_mark(
    xr: Manifest, pair: Pair
) -> Mapping[PurePosixPath | None, Manifest]:
    name = f"garage-{pair.them}"
    tracking = f"{name}:{XGARAGE.group}/{XGARAGE.kind}:/{name}"
    marks = {"argocd.argoproj.io/tracking-id": tracking}
    spec = {**xr["spec"], "teamName": pair.them}
    return {SECOND: {**xr, "metadata": {"name": name, "annotations": marks}, "spec": spec}}


def _machinery(**fields: object) -> Edit:
    return lambda xr, _pair: {None: {**xr, "spec": {**xr["spec"], "crossplane": fields}}}


def _composed_by_nobody(xr: Manifest, pair: Pair) -> Mapping[PurePosixPath | None, Manifest]:
    controller = {
        "apiVersion": XGARAGE.api_version,
        "kind": XGARAGE.kind,
        "name": f"garage-{pair.them}",
        "uid": "6d6f5d0e-0000-4000-8000-000000000000",
        "controller": True,
    }
    made = {"name": f"locker-{pair.them}", "ownerReferences": [controller]}
    return {SECOND: {**xr, "metadata": made}}  # of the own team: one policy alone refuses it


def object_of(api: str, kind: str, name: str, namespace: str = "", **rest: object) -> Edit:
    """Return an edit that adds an object of another kind to the order's own."""

    def edit(_xr: Manifest, pair: Pair) -> Mapping[PurePosixPath | None, Manifest]:
        meta = {"name": name, **({"namespace": namespace.format(us=pair.us)} if namespace else {})}
        return {SECOND: {"apiVersion": api, "kind": kind, "metadata": meta, **rest}}

    return edit


_PROJECT = {"destinations": [{"server": "*", "namespace": "*"}], "sourceRepos": ["*"]}
_APPLICATION = {
    "project": "default",
    "source": {"repoURL": "http://127.0.0.1:9/rogue/own.git", "path": "."},
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "argocd"},
}
_RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]

ROGUES: tuple[Rogue, ...] = (
    Rogue(
        "another team's namespace",
        "drawer",
        _placed_with_them,
        "namespace team-{them} is not permitted in project '{us}'",
        ("namespace", "team-{them}", "{us}"),
    ),
    Rogue(
        "a ClusterRole",
        "locker",
        object_of("rbac.authorization.k8s.io/v1", "ClusterRole", "rogue", rules=_RULES),
        "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project {us}",
        ("ClusterRole", "nothing else"),
    ),
    Rogue(
        "an Application of the platform's project",
        "locker",
        object_of("argoproj.io/v1alpha1", "Application", "rogue", "argocd", spec=_APPLICATION),
        "resource argoproj.io:Application is not permitted in project {us}",
        ("Application rogue", "nothing else"),
    ),
    Rogue(
        "a project of its own",
        "drawer",
        object_of("argoproj.io/v1alpha1", "AppProject", "rogue", "argocd", spec=_PROJECT),
        "resource argoproj.io:AppProject is not permitted in project {us}",
        ("AppProject rogue", "nothing else"),
    ),
    Rogue(
        "a ConfigMap in Argo CD's namespace",
        "drawer",
        object_of("v1", "ConfigMap", "argocd-cm", "argocd", data={"rogue": "yes"}),
        "resource :ConfigMap is not permitted in project {us}",
        ("ConfigMap argocd-cm", "nothing else"),
    ),
    Rogue(
        "a Secret in place of the one with the password",
        "drawer",
        object_of("v1", "Secret", "drawer-own-password", "team-{us}", data={"password": "eA=="}),
        "resource :Secret is not permitted in project {us}",
        ("Secret drawer-own-password", "nothing else"),
    ),
    Rogue(
        "an XR with another team's field",
        "garage",
        _spec(teamName="{them}"),
        'spec.teamName: changes from "{us}" to "{them}", but it names the order\'s team',
        ("spec.teamName", "{us}", "{them}", "is refused"),
    ),
    Rogue(
        "another order's name",
        "garage",
        _their_order,
        'spec.teamName "{us}" makes it "{order}"',
        ("{order}", "garage-{them}", "nothing else"),
    ),
    Rogue(
        "another order's name with a forged tracking mark",
        "garage",
        _their_order_with_a_forged_mark,
        'Application "{order}" delivers XGarage "garage-{them}"',
        ("{order}", "garage-{them}"),
    ),
    Rogue(
        "another order's name with a made-up controller",
        "locker",
        _composed_by_nobody,
        'Application "{order}" delivers XLocker "locker-{them}"',
        ("{order}", "locker-{them}"),
    ),
    Rogue(
        "another Composition",
        "locker",
        _machinery(compositionRef={"name": "other"}),
        "spec.crossplane.compositionRef: only Crossplane sets it",
        ("spec.crossplane.compositionRef", "only Crossplane"),
    ),
    Rogue(
        "a revision of another Composition",
        "locker",
        _machinery(compositionUpdatePolicy="Manual", compositionRevisionRef={"name": "other-1"}),
        "spec.crossplane.compositionRevisionRef: only Crossplane sets it",
        ("spec.crossplane.compositionRevisionRef", "only Crossplane"),
    ),
    Rogue(
        "composed resources that are not its own",
        "locker",
        _machinery(resourceRefs=[{"apiVersion": "v1", "kind": "Namespace", "name": "argocd"}]),
        "spec.crossplane.resourceRefs: only Crossplane sets it",
        ("spec.crossplane.resourceRefs", "only Crossplane"),
    ),
    Rogue(
        "a field that is for ever, changed by hand",
        "locker",
        _spec(serial="forged"),
        "serial is for ever",
        ("serial is for ever",),
    ),
)


def by_hand(team: str) -> Manifest:
    """An XR that somebody applies with kubectl, past every repository."""
    return {
        "apiVersion": XGARAGE.api_version,
        "kind": XGARAGE.kind,
        "metadata": {"name": f"garage-{team}"},
        "spec": {"teamName": team, "stage": "stage1"},
    }


def stolen(forge_url: str, pair: Pair) -> str:
    """An Application of one team that delivers from another team's repository."""
    entry = OrderEntry(TeamName(pair.us), OrderId("locker-stolen"))
    made = order_application(entry, kit="locker", forge_url=forge_url)
    made["spec"]["source"]["repoURL"] = f"{forge_url}/{pair.them}/locker-own.git"
    return yaml11.dump(made)
