"""
Writes of XRs, and what the API server says of each: admitted, or refused in our words.

``{n}`` is the case's own name, so that no two cases share an object. An update starts from
``old``, which is created before; names and trackers are those of the first of old and new, as
an order's repository and its Application have them, unless the case says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ORDER = "{order}"
NOBODY = ""
_OTHER_PLACE = "or end this order and place another"


@dataclass(frozen=True)
class Case:
    """One write. `told` is what the server answers; empty: it admits the write."""

    reason: str
    kit: str
    new: Mapping[str, Any]
    told: str = ""
    old: Mapping[str, Any] | None = None
    name: str = ""
    """The XR's name, where it is not the order's own."""
    tracker: str = ORDER
    """Which Application delivers it."""
    old_tracker: str = ORDER
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Mapping[str, Any], ...] = ()
    finalizers: tuple[str, ...] = ()
    project: str = ""
    """The AppProject of the order's Application, where it is not the team of the spec."""
    via: Literal["object", "status", "delete", "dying"] = "object"
    writer: str = ""
    """The account that writes; empty: an administrator."""
    registered_as: str = ""
    """The kit in the label of the order's Application, where it is another one."""
    predates: bool = False
    """The old object was there before the policies."""


CROSSPLANE = "system:serviceaccount:crossplane-system:crossplane"
ARGOCD = "system:serviceaccount:argocd:argocd-application-controller"
NEIGHBOUR = "system:serviceaccount:crossplane-system:provider-kubernetes-1"
TRACKED = "argocd.argoproj.io/tracking-id"
INSTANCE = "app.kubernetes.io/instance"
BAY = {"teamName": "{n}", "stage": "stage1"}
MACHINERY = {
    "crossplane": {
        "compositionRef": {"name": "c"},
        "resourceRefs": [{"apiVersion": "v1", "kind": "Namespace", "name": "x"}],
    }
}


def owner(*, controller: bool, api: str = "policies.orderkit.dev/v1") -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": "XBare",
        "name": "outer",
        "uid": "6d6f5d0e-0000-4000-8000-000000000000",
        "controller": controller,
    }


CHOICES: Mapping[str, Any] = {
    "compositionRef": {"name": "other"},
    "compositionSelector": {"matchLabels": {"channel": "other"}},
    "compositionRevisionRef": {"name": "other-1"},
    "compositionRevisionSelector": {"matchLabels": {"channel": "old"}},
    "compositionUpdatePolicy": "Manual",
    "resourceRefs": [{"apiVersion": "v1", "kind": "Namespace", "name": "x"}],
}


def taken_over(field_: str) -> str:
    return f"{field_}: only Crossplane sets it, so orders get the kit's Composition; take it out"


def nobody(kind: str, kit: str, name: str) -> str:
    return (
        f'metadata: no Application delivers {kind} "{name}", but an order of kit {kit} is '
        "delivered from its own repository; place it with the portal's form or "
        f"`orderkit order {kit}`"
    )


def foreign(app: str, kind: str, name: str) -> str:
    return (
        f'metadata.name: Application "{app}" delivers {kind} "{name}", but an order delivers its '
        "own XR only; take this one out of its repository"
    )


def misnamed(name: str, field_: str, value: str, order: str) -> str:
    return (
        f'metadata.name: is "{name}", but spec.{field_} "{value}" makes it "{order}"; put back '
        "what the order was placed with, or place another"
    )


def kept(path: str, was: str, now: str, why: str) -> str:
    return (
        f"spec.{path}: changes from {was} to {now}, but it {why} and never changes; put it back, "
        f"{_OTHER_PLACE}"
    )


WHOSE, WHICH = "names the order's team", "names the order"

GARAGE = [
    Case("an order delivers its XR", "garage", BAY),
    Case(
        "a repository names another team in its XR",
        "garage",
        {**BAY, "teamName": "rx7-{n}"},
        misnamed("garage-{n}", "teamName", "rx7-{n}", "garage-rx7-{n}"),
        name="garage-{n}",
        tracker="garage-{n}",
    ),
    Case(
        "a repository delivers an XR under another order's name",
        "garage",
        BAY,
        foreign("garage-other-{n}", "XGarage", "garage-{n}"),
        tracker="garage-other-{n}",
    ),
    Case(
        "a repository takes over the living XR of another order",
        "garage",
        {**BAY, "stage": "stage3"},
        foreign("garage-other-{n}", "XGarage", "garage-{n}"),
        old=BAY,
        tracker="garage-other-{n}",
    ),
    Case(
        "the Application of another kit's order delivers it",
        "garage",
        BAY,
        foreign("vault-{n}", "XGarage", "garage-{n}"),
        tracker="vault-{n}",
    ),
    Case(
        "somebody creates an XR with kubectl",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        tracker=NOBODY,
    ),
    Case(
        "a tracking annotation that was copied from another object counts for nothing",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        tracker=NOBODY,
        annotations={TRACKED: "garage-{n}:blog.opsbogus.dev/XGarage:default/garage-else"},
    ),
    Case(
        "a tracking annotation of another kind counts for nothing",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        tracker=NOBODY,
        annotations={TRACKED: "garage-{n}:other.example/XGarage:default/garage-{n}"},
    ),
    Case("Argo CD tracks by label", "garage", BAY, tracker=NOBODY, labels={INSTANCE: "garage-{n}"}),
    Case(
        "Argo CD tracks by label, and the order is another one",
        "garage",
        BAY,
        foreign("garage-other", "XGarage", "garage-{n}"),
        tracker=NOBODY,
        labels={INSTANCE: "garage-other"},
    ),
    Case(
        "Argo CD tracks by label, and the repository makes up the annotation",
        "garage",
        BAY,
        f'metadata.labels: {INSTANCE} is "garage-other", but the tracking annotation says '
        '"garage-{n}"; take the label away',
        labels={INSTANCE: "garage-other"},
    ),
    Case(
        "Argo CD tracks by annotation and label",
        "garage",
        BAY,
        labels={INSTANCE: "garage-{n}"},
    ),
    Case(
        "the team is changed by hand",
        "garage",
        {**BAY, "teamName": "rx7"},
        kept("teamName", '"{n}"', '"rx7"', WHOSE),
        old=BAY,
    ),
    Case("a free field changes", "garage", {**BAY, "stage": "stage3"}, old=BAY),
    Case(
        "the tracking annotation is taken away",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        old=BAY,
        tracker=NOBODY,
    ),
    Case("Crossplane writes the status", "garage", BAY, old=BAY, via="status"),
    Case("an order is deleted", "garage", BAY, old=BAY, via="delete"),
    Case(
        "Crossplane adds its finalizer",
        "garage",
        BAY,
        old=BAY,
        finalizers=("composite.apiextensions.crossplane.io",),
    ),
    Case(
        "Crossplane chooses the composition",
        "garage",
        {**BAY, **MACHINERY},
        old=BAY,
        writer=CROSSPLANE,
    ),
    *(
        Case(
            f"a repository sets {field_} of {'a new' if was is None else 'an'} order",
            "garage",
            {**BAY, "crossplane": {field_: value}},
            taken_over(f"spec.crossplane.{field_}"),
            old=was,
            writer=ARGOCD,
        )
        for was in (None, BAY)
        for field_, value in CHOICES.items()
    ),
    Case(
        "a repository names another composition than Crossplane chose",
        "garage",
        {**BAY, "crossplane": {"compositionRef": {"name": "other"}}},
        taken_over("spec.crossplane.compositionRef"),
        old={**BAY, "crossplane": {"compositionRef": {"name": "chosen"}}},
        predates=True,
    ),
    Case(
        "a repository drops what Crossplane composed",
        "garage",
        {**BAY, "crossplane": {**MACHINERY["crossplane"], "resourceRefs": []}},
        taken_over("spec.crossplane.resourceRefs"),
        old={**BAY, **MACHINERY},
        predates=True,
        writer=ARGOCD,
    ),
    Case(
        "a repository leaves Crossplane's fields as they are",
        "garage",
        {**BAY, **MACHINERY, "stage": "stage3"},
        old={**BAY, **MACHINERY},
        predates=True,
        writer=ARGOCD,
    ),
    Case(
        "a repository names the kit's own composition, and updates as usual",
        "garage",
        {
            **BAY,
            "crossplane": {
                "compositionRef": {"name": "xgarage-default"},
                "compositionUpdatePolicy": "Automatic",
            },
        },
        writer=ARGOCD,
    ),
    Case(
        "an XR that is being deleted loses whatever it must",
        "garage",
        {**BAY, "teamName": "rx7"},
        old=BAY,
        tracker=NOBODY,
        via="dying",
    ),
    Case(
        "an XR is part of another XR",
        "garage",
        {**BAY, "teamName": "anybody"},
        name="outer-{n}",
        tracker=NOBODY,
        owners=(owner(controller=True),),
        writer=CROSSPLANE,
    ),
    *(
        Case(
            f"{account or 'an administrator'} makes up a controller",
            "garage",
            BAY,
            nobody("XGarage", "garage", "garage-{n}"),
            tracker=NOBODY,
            owners=(owner(controller=True),),
            writer=account,
        )
        for account in ("", ARGOCD, NEIGHBOUR, "system:serviceaccount:team-rx7:crossplane")
    ),
    Case(
        "Crossplane's account and a controller that composes nothing",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        tracker=NOBODY,
        owners=(owner(controller=True, api="v1"),),
        writer=CROSSPLANE,
    ),
    Case(
        "an order's XR loses its Application for a made-up controller",
        "garage",
        {**BAY, "stage": "stage3"},
        nobody("XGarage", "garage", "garage-{n}"),
        old=BAY,
        tracker=NOBODY,
        owners=(owner(controller=True),),
    ),
    Case(
        "an owner that is not a controller makes no part",
        "garage",
        BAY,
        nobody("XGarage", "garage", "garage-{n}"),
        tracker=NOBODY,
        owners=(owner(controller=False),),
    ),
    *(
        Case(
            f"{writer or 'an admin'} names an owner of {'a new' if was is None else 'an'} order",
            "garage",
            {**BAY, "stage": "stage3"},
            'metadata.ownerReferences: XBare "outer" would own the order, and only Crossplane '
            "makes an XR a part of another; take it out",
            old=was,
            owners=(owner(controller=False),),
            writer=writer,
        )
        for was in (None, BAY)
        for writer in ("", ARGOCD)
    ),
    Case(
        "what Argo CD delivers is not a part, whatever it says",
        "garage",
        BAY,
        foreign("garage-other", "XGarage", "garage-{n}"),
        tracker="garage-other",
        owners=(owner(controller=True),),
    ),
    Case(
        "an untracked XR of before is left to Crossplane",
        "garage",
        {**BAY, **MACHINERY},
        old=BAY,
        tracker=NOBODY,
        old_tracker=NOBODY,
        predates=True,
        writer=CROSSPLANE,
    ),
    Case(
        "a misnamed XR of before is left to Crossplane",
        "garage",
        {**BAY, **MACHINERY},
        old=BAY,
        name="old-{n}",
        predates=True,
        writer=CROSSPLANE,
    ),
    Case(
        "an untracked XR of before is adopted by its order",
        "garage",
        BAY,
        old=BAY,
        old_tracker=NOBODY,
        predates=True,
    ),
    Case(
        "an untracked XR of before is taken by another order",
        "garage",
        BAY,
        foreign("garage-other", "XGarage", "garage-{n}"),
        old=BAY,
        tracker="garage-other",
        old_tracker=NOBODY,
        predates=True,
    ),
]

AGENT = {"agentName": "{n}", "teamName": "fd3s", "endpoint": "forge.example.org"}


def agent(reason: str, was: dict[str, Any], now: dict[str, Any], told: str = "") -> Case:
    """A change of one field."""
    if told:
        (path,) = {*was, *now}
        told = f"spec.{path}: {told}, {_OTHER_PLACE}"
    return Case(reason, "agent", {**AGENT, **now}, told, old={**AGENT, **was})


GROW = "but it may only grow; put back what it was, or more"
ORDERED = "but it goes one step at a time{}; take the steps one by one, each in a commit of its own"
STEP, SIZES = ORDERED.format(""), ORDERED.format(" (small, medium, large)")
NEVER = "but it never changes; put it back"

AGENTS = [
    Case("an order whose XR has a name of its own", "agent", AGENT),
    Case(
        "the XR's name is not its field's value",
        "agent",
        AGENT,
        'metadata.name: is "other-{n}", but the name is the value of spec.agentName, and that is '
        '"{n}"; make them equal',
        name="other-{n}",
    ),
    Case(
        "another order of the kit delivers it",
        "agent",
        AGENT,
        foreign("agent-other-{n}", "XAgent", "{n}"),
        tracker="agent-other-{n}",
    ),
    Case(
        "the naming field changes",
        "agent",
        {**AGENT, "agentName": "x"},
        kept("agentName", '"{n}"', '"x"', WHICH),
        old=AGENT,
    ),
    Case(
        "the team changes",
        "agent",
        {**AGENT, "teamName": "rx7"},
        kept("teamName", '"fd3s"', '"rx7"', WHOSE),
        old=AGENT,
    ),
    Case(
        "the order's Application belongs to another team",
        "agent",
        AGENT,
        'spec.teamName: is "fd3s", but order agent-{n} belongs to team "rx7"; put that team there, '
        "or order again as the other one",
        project="rx7",
    ),
    Case(
        "the order's Application belongs to another team, and calls itself one of another kit",
        "agent",
        AGENT,
        'spec.teamName: is "fd3s", but order agent-{n} belongs to team "rx7"; put that team there, '
        "or order again as the other one",
        project="rx7",
        registered_as="vault",
    ),
    Case(
        "the team is written as the catalog refers to it",
        "agent",
        {**AGENT, "teamName": "group:default/fd3s"},
        project="fd3s",
    ),
    Case(
        "a baked value is another",
        "agent",
        {**AGENT, "endpoint": "evil.example"},
        'spec.endpoint: is "evil.example", but the platform gives this value: forge.example.org; '
        "put it back",
    ),
    Case(
        "a baked value is missing",
        "agent",
        {"agentName": "{n}", "teamName": "fd3s"},
        "spec.endpoint: is nothing, but the platform gives this value: forge.example.org; "
        "put it back",
    ),
    Case(
        "a baked value is changed",
        "agent",
        {**AGENT, "endpoint": "evil.example"},
        'spec.endpoint: is "evil.example", but the platform gives this value: forge.example.org; '
        "put it back",
        old=AGENT,
    ),
    Case(
        "a value that was baked otherwise once stays",
        "agent",
        {**AGENT, "endpoint": "old.example.org", "note": "x"},
        old={**AGENT, "endpoint": "old.example.org"},
        predates=True,
    ),
    Case(
        "a value that was baked otherwise once is renewed",
        "agent",
        AGENT,
        old={**AGENT, "endpoint": "old.example.org"},
        predates=True,
    ),
    agent("a number grows", {"budget": 10}, {"budget": 20}),
    agent("a number shrinks", {"budget": 20}, {"budget": 10}, f"changes from 20 to 10, {GROW}"),
    agent("a number goes away", {"budget": 20}, {}, f"changes from 20 to nothing, {GROW}"),
    agent("a number is given later", {}, {"budget": 1}),
    agent("a list gains", {"zones": ["a"]}, {"zones": ["b", "a"]}),
    agent("a list loses", {"zones": ["a", "b"]}, {"zones": ["b", "c"]}, f"changes, {GROW}"),
    agent("a list is put in order", {"zones": ["a", "b"]}, {"zones": ["b", "a"]}),
    agent("a quantity grows", {"capacity": "900Mi"}, {"capacity": "1Gi"}),
    agent(
        "a quantity shrinks",
        {"capacity": "1Gi"},
        {"capacity": "1000Mi"},
        f'changes from "1Gi" to "1000Mi", {GROW}',
    ),
    agent(
        "a text that is not a quantity does not grow",
        {"capacity": "much"},
        {"capacity": "2Gi"},
        f'changes from "much" to "2Gi", {GROW}',
    ),
    agent("an integer or text grows", {"memory": 512}, {"memory": "1Gi"}),
    agent(
        "an integer or text shrinks",
        {"memory": "1Gi"},
        {"memory": 512},
        f"changes from 1Gi to 512, {GROW}",
    ),
    agent("a map gains", {"limits": {"a": 1}}, {"limits": {"a": 2, "b": 1}}),
    agent(
        "a map loses a key", {"limits": {"a": 1, "b": 1}}, {"limits": {"a": 1}}, f"changes, {GROW}"
    ),
    agent("a map's value shrinks", {"limits": {"a": 2}}, {"limits": {"a": 1}}, f"changes, {GROW}"),
    agent(
        "an element of a keyed list grows",
        {"disks": [{"name": "x", "sizeGb": 1}]},
        {"disks": [{"name": "y", "sizeGb": 1}, {"name": "x", "sizeGb": 2}]},
    ),
    agent(
        "an element of a keyed list shrinks",
        {"disks": [{"name": "x", "sizeGb": 2}]},
        {"disks": [{"name": "x", "sizeGb": 1}]},
        f"changes, {GROW}",
    ),
    agent(
        "an element of a keyed list goes away",
        {"disks": [{"name": "x", "sizeGb": 2}, {"name": "y"}]},
        {"disks": [{"name": "y", "sizeGb": 3}]},
        f"changes, {GROW}",
    ),
    agent("a switch is turned on", {"backup": False}, {"backup": True}),
    agent(
        "a switch is turned off",
        {"backup": True},
        {"backup": False},
        f"changes from true to false, {GROW}",
    ),
    agent("an enum goes a step", {"size": "small"}, {"size": "medium"}),
    agent("an enum goes a step back", {"size": "large"}, {"size": "medium"}),
    agent(
        "an enum goes two steps",
        {"size": "small"},
        {"size": "large"},
        f'changes from "small" to "large", {SIZES}',
    ),
    agent("an enum goes away", {"size": "small"}, {}, f'changes from "small" to nothing, {SIZES}'),
    agent("a numeric enum goes a step", {"tier": 20}, {"tier": 40}),
    agent(
        "a numeric enum goes two steps",
        {"tier": 10},
        {"tier": 40},
        f"changes from 10 to 40, {ORDERED.format(' (10, 20, 40)')}",
    ),
    agent("an integer goes a step", {"replicas": 2}, {"replicas": 1}),
    agent(
        "an integer goes two steps",
        {"replicas": 1},
        {"replicas": 3},
        f"changes from 1 to 3, {STEP}",
    ),
    agent("a number goes a step of its own", {"ratio": 1.25}, {"ratio": 1.5}),
    agent(
        "a number goes two steps of its own",
        {"ratio": 1.25},
        {"ratio": 1.75},
        f"changes from 1.25 to 1.75, {STEP}",
    ),
    agent(
        "a list has no steps",
        {"labels": ["a"]},
        {"labels": ["a", "b"]},
        f"changes, {STEP}",
    ),
    agent(
        "a fixed field changes",
        {"region": "eu"},
        {"region": "us"},
        f'changes from "eu" to "us", {NEVER}',
    ),
    agent(
        "a fixed field goes away", {"region": "eu"}, {}, f'changes from "eu" to nothing, {NEVER}'
    ),
    agent(
        "a fixed field is given later",
        {},
        {"region": "eu"},
        f'changes from nothing to "eu", {NEVER}',
    ),
    agent("a free field changes", {"note": "a"}, {"note": "b"}),
    Case(
        "Crossplane writes its fields",
        "agent",
        {**AGENT, "budget": 2, "region": "eu", **MACHINERY},
        old={**AGENT, "budget": 2, "region": "eu"},
        writer=CROSSPLANE,
    ),
]

VAULT = {"owner": "fd3s", "vaultName": "{n}"}


def vault(reason: str, was: dict[str, Any], now: dict[str, Any], told: str = "") -> Case:
    return Case(reason, "vault", {**VAULT, **now}, told, old={**VAULT, **was})


OTHERS = [
    Case("two fields name an order", "vault", VAULT),
    Case(
        "two fields name another order",
        "vault",
        {**VAULT, "vaultName": "x"},
        'metadata.name: is "vault-fd3s-{n}", but spec.owner "fd3s" and spec.vaultName "x" makes it '
        '"vault-fd3s-x"; put back what the order was placed with, or place another',
        name="vault-fd3s-{n}",
        tracker="vault-fd3s-{n}",
    ),
    Case(
        "the same id made of another team",
        "vault",
        {"owner": "fd3s-{n}", "vaultName": "x"},
        'spec.owner: is "fd3s-{n}", but order vault-fd3s-{n}-x belongs to team "fd3s"; put that '
        "team there, or order again as the other one",
        project="fd3s",
    ),
    vault("a part of an object grows", {"storage": {"sizeGb": 1}}, {"storage": {"sizeGb": 2}}),
    vault(
        "a part of an object shrinks",
        {"storage": {"sizeGb": 2}},
        {"storage": {"sizeGb": 1}},
        f"spec.storage.sizeGb: changes from 2 to 1, {GROW}, {_OTHER_PLACE}",
    ),
    vault(
        "the object goes away with its part",
        {"storage": {"sizeGb": 2}},
        {},
        f"spec.storage.sizeGb: changes from 2 to nothing, {GROW}, {_OTHER_PLACE}",
    ),
    vault("a freer part changes", {"storage": {"kind": "a"}}, {"storage": {"kind": "b"}}),
    vault(
        "what the XRD calls immutable is taken away",
        {"class": "gold"},
        {},
        'spec.class: is taken away, it was "gold", but the kit\'s definition calls it immutable; '
        f"put it back, {_OTHER_PLACE}",
    ),
    vault("what the XRD calls immutable is given later", {}, {"class": "gold"}),
    vault(
        "a field with a dash in its name is fixed",
        {"x-mode": "a"},
        {"x-mode": "b"},
        f'spec.x-mode: changes from "a" to "b", {NEVER}, {_OTHER_PLACE}',
    ),
    Case("a kit without kit.yaml", "bare", {"title": "{n}"}),
    Case(
        "a kit without kit.yaml, delivered by another kit's order",
        "bare",
        {"title": "x"},
        foreign("vault-{n}", "XBare", "vault-{n}"),
        name="vault-{n}",
        tracker="vault-{n}",
    ),
    Case("a kit without kit.yaml changes freely", "bare", {"title": "b"}, old={"title": "{n}"}),
    Case("an order chooses its XR's name", "own", {"slug": "{n}"}),
    Case(
        "an order of another kit chooses the name",
        "own",
        {"slug": "{n}"},
        foreign("bare-{n}", "XOwn", "{n}"),
        tracker="bare-{n}",
    ),
    Case(
        "another order of the kit takes the name over",
        "own",
        {"slug": "{n}"},
        foreign("own-thief", "XOwn", "{n}"),
        old={"slug": "{n}"},
        tracker="own-thief",
    ),
    Case("a legacy XR", "legacy", {"title": "{n}", "size": 2}),
    Case(
        "Crossplane writes a legacy XR's fields, which are in spec itself",
        "legacy",
        {"title": "{n}", "size": 2, "compositionRef": {"name": "c"}, "resourceRefs": []},
        old={"title": "{n}", "size": 2},
        writer=CROSSPLANE,
    ),
    *(
        Case(
            f"a repository sets {field_} of a legacy XR",
            "legacy",
            {"title": "{n}", "size": 2, field_: value},
            taken_over(f"spec.{field_}"),
            writer=ARGOCD,
        )
        for field_, value in {
            **CHOICES,
            "claimRef": {"apiVersion": "a/v1", "kind": "C", "namespace": "x", "name": "y"},
            "writeConnectionSecretToRef": {"namespace": "argocd", "name": "argocd-secret"},
        }.items()
    ),
    Case(
        "a legacy XR shrinks",
        "legacy",
        {"title": "{n}", "size": 1},
        f"spec.size: changes from 2 to 1, {GROW}, {_OTHER_PLACE}",
        old={"title": "{n}", "size": 2},
    ),
]

CASES = [*GARAGE, *AGENTS, *OTHERS]
