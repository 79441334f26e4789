"""
What the pipeline of an XR is made of: revisions of Compositions, and Functions.

A CompositionRevision is a numbered, immutable copy of a Composition for each of its contents. The
name ends in a hash of labels, annotations and spec, so going back to an old content finds the old
revision, which then gets a new number. Like Crossplane, this does not check that the functions of
the pipeline exist: ValidPipeline is always True here, because every function that runs in process
can compose. Hashes need not equal a real Crossplane's byte for byte.

Function objects report which of them this process can run. No package is ever pulled. A Function
whose program was added on this machine is run by it. Else the embedded platform has a runner for
what its package is (the last part of the path, whatever registry and release), or one of the
Function's own name. Any other one has the reason ``NotRunHere``: a pipeline step that names it
fails, and with it only the orders of that kit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import yaml

from compositions.composition_choice import HASH_LABEL, NAME_LABEL, latest_revision, number_of
from compositions.function_twins.choice import package_name
from compositions.python_functions import NAMES, NOT_RUN_HERE, PROGRAM, not_run
from compositions.station import Station
from ground.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    FUNCTION,
    RECONCILE_SUCCESS,
    Condition,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    dig,
    labels_of,
    metadata,
)
from orderkit.adapters.functions.local_functions import ProgramFunction
from orderkit_standins.crossplane.reconciler_context import OWNER, ReconcilerContext, is_deleting

INSTALLED = Condition("Installed", "True", "ActivePackageRevision")
HEALTHY = Condition("Healthy", "True", "HealthyPackageRevision")


def not_run_condition(function: Manifest) -> Condition:
    """Return the condition of a Function that does not run here."""
    # True: Argo CD would hold back all that it delivers after an unhealthy Function
    return Condition("Healthy", "True", NOT_RUN_HERE, not_run(_package(function)))


@dataclass(frozen=True, slots=True)
class InstalledFunctions:
    """The Functions of a cluster, by name."""

    running: Mapping[str, Station]
    foreign: Mapping[str, str]
    """Why it does not run here."""
    programs: Collection[str]
    """Those of `running` that are programs of their own."""


class FunctionReconciler:
    """Keep the conditions of Function objects."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set Installed and Healthy, and for which package. Idempotent."""
        function = self._site.cluster.get(key)
        if function is not None and not is_deleting(function):
            health = (
                not_run_condition(function) if runner(function, self._site) is None else HEALTHY
            )
            status = {"currentIdentifier": dig(function, "spec", "package")}
            self._site.write_status(function, INSTALLED, health, status=status)
        return None


def runner(function: Manifest, site: ReconcilerContext) -> Station | None:
    """Return what runs a Function here, if anything does: its own program before a twin."""
    program = site.program_of(annotations_of(function).get(PROGRAM, ""))
    if program is not None:
        return program
    package, stations = package_name(_package(function)), site.functions
    name = metadata(function)["name"]
    if package in stations or name in NAMES:
        return stations.get(package)
    return stations.get(name)


def installed(site: ReconcilerContext) -> InstalledFunctions:
    """Return what runs the Functions of the cluster here."""
    running, foreign, programs = dict[str, Station](), dict[str, str](), set[str]()
    for function in site.cluster.list(FUNCTION).items:
        name, station = metadata(function)["name"], runner(function, site)
        if station is None:
            foreign[name] = not_run(_package(function))
        else:
            running[name] = station
            if isinstance(station, ProgramFunction):
                programs.add(name)
    return InstalledFunctions(running, foreign, programs)


def _package(function: Manifest) -> str:
    return str(dig(function, "spec", "package", default=""))


VALID_PIPELINE = Condition("ValidPipeline", "True", "ValidPipeline")
_LABEL_MAX = 63
_NAME_HASH = 7
"""Crossplane's digits of the content's hash in a revision's name; its label has 63."""


def content_hash(composition: Manifest) -> str:
    """Return what identifies a Composition's content: labels, annotations and spec."""
    parts = (labels_of(composition), annotations_of(composition), composition.get("spec") or {})
    text = "".join(yaml.safe_dump(section, width=2**16, allow_unicode=True) for section in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def revision_of(composition: Manifest, number: int) -> Manifest:
    """Return the revision object for a Composition's present content."""
    digest, meta = content_hash(composition), metadata(composition)
    name = meta["name"]
    labels = {NAME_LABEL: name, HASH_LABEL: digest[:_LABEL_MAX], **labels_of(composition)}
    revision: Manifest = {
        "apiVersion": COMPOSITION_REVISION.api_version,
        "kind": COMPOSITION_REVISION.kind,
        "metadata": {
            "name": f"{name}-{digest[:_NAME_HASH]}",
            "labels": labels,
            "ownerReferences": [_owner(composition)],
        },
        "spec": {**(composition.get("spec") or {}), "revision": number},
    }
    if annotations_of(composition):
        revision["metadata"]["annotations"] = dict(annotations_of(composition))
    return revision


def _owner(composition: Manifest) -> dict[str, object]:
    return {
        "apiVersion": COMPOSITION.api_version,
        "kind": COMPOSITION.kind,
        "name": metadata(composition)["name"],
        "uid": metadata(composition)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class CompositionReconciler:
    """Keep the newest revision of every Composition equal to its content."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Make sure the present content has the highest revision number. Idempotent."""
        composition = self._site.cluster.get(key)
        if composition is None or is_deleting(composition):
            return None
        labels = {NAME_LABEL: key.name}
        listed_revisions = self._site.cluster.list(COMPOSITION_REVISION, labels=labels).items
        revisions = tuple(self._owned(composition, revision) for revision in listed_revisions)
        newest = latest_revision(composition, revisions)
        top = number_of(newest) if newest else 0
        digest = content_hash(composition)[:_LABEL_MAX]
        ours = [r for r in revisions if labels_of(r).get(HASH_LABEL) == digest]
        if not ours:
            self._site.cluster.create(revision_of(composition, top + 1), owner=OWNER)
            self._site.recorder.normal(composition, "CreateRevision", "Created new revision")
        elif number_of(ours[0]) != top:
            renumbered = {**ours[0], "spec": {**ours[0]["spec"], "revision": top + 1}}
            self._site.cluster.replace(renumbered, owner=OWNER)
        return None

    def _owned(self, composition: Manifest, revision: Manifest) -> Manifest:
        """Take back a revision that lost its owner, for example in a restored backup."""
        if (controller(revision) or {}).get("uid") == metadata(composition)["uid"]:
            return revision
        other_owners = [
            o for o in metadata(revision).get("ownerReferences") or () if not o.get("controller")
        ]
        meta = {**metadata(revision), "ownerReferences": [*other_owners, _owner(composition)]}
        return self._site.cluster.replace({**revision, "metadata": meta}, owner=OWNER)


class RevisionReconciler:
    """Say of every revision that its pipeline can be used."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set the revision's conditions. Idempotent."""
        revision = self._site.cluster.get(key)
        if revision is not None and not is_deleting(revision):
            self._site.write_status(revision, RECONCILE_SUCCESS, VALID_PIPELINE)
        return None
