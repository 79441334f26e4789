"""
The story of a bootstrap: which steps there are, and how they are looked at and carried out.

`PasswordSeedStep` draws the seed that generated passwords follow from (docs/adr/0026) once, and
never writes over it. The seed exists in the cluster only: it is not in Git, in no message and in no
plan.

`ServiceSecretStep` gives the installed service its Secret before Argo CD starts its Pods.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from compositions.resource_builders import (
    SEED_KEY,
    SEED_MIN_BYTES,
    SEED_NAME,
    SEED_NAMESPACE,
    is_seed,
    seed_secret,
)
from ground.errors import ConflictError, OrderkitError, RefusedError
from ground.names import CommitSha
from ground.objects.kube_objects import Kind, ObjectKey, metadata
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.installation import PlatformTarget
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.forge_protection import ForeignAccessError
from orderkit.flows.install.bootstrapping import idpbuilder_steps
from orderkit.flows.install.bootstrapping.argocd_steps import (
    InForceStep,
    LayerStep,
    RootStep,
    SettingsStep,
    layers,
)
from orderkit.flows.install.bootstrapping.platform_repositories import (
    AccessStep,
    LedgerStep,
    PackStep,
)
from orderkit.flows.install.bootstrapping.probe_order import ProbeStep
from orderkit.flows.install.bootstrapping.reach_steps import (
    ArgoCdStep,
    ClusterStep,
    CrossplaneStep,
    ForgeStep,
)
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    BootstrapRequest,
    BootstrapStep,
    Look,
    Say,
    StepDone,
    StepVerdict,
)
from orderkit.flows.install.bootstrapping.team_steps import (
    PinStep,
    PortalStep,
    TeamStep,
    WebhookStep,
)
from orderkit.flows.install.service_secret import KEY, ensure_service_secret, secret_differs
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import NoSuchNamespaceError

_SECRET = ObjectKey(Kind("", "v1", "Secret"), SEED_NAME, SEED_NAMESPACE)


def may_need_seed(site: BootstrapContext) -> bool:
    """Say whether a kit composes Secrets: only such a kit can keep a generated password."""
    kits = read_pack(site.files).kits()
    return any(
        (kind.api_version, kind.kind) == ("v1", "Secret") for k in kits for kind in k.composes
    )


@dataclass(frozen=True, slots=True)
class PasswordSeedStep:
    """There is a seed that passwords can be generated from."""

    site: BootstrapContext
    name: str = "passwords"

    def look(self) -> Look:
        """
        Return whether there is a seed.

        Raises:
            RefusedError: Its Secret is there without a usable seed.
        """
        secret = get_object(self.site.platform.cluster, _SECRET)
        place = f"Secret {SEED_NAMESPACE}/{SEED_NAME}"
        if secret is None:
            return Look(StepVerdict.CREATE, f"{place} with a seed for generated passwords")
        if not is_seed(secret):
            raise RefusedError(
                f"{place} has no {SEED_KEY} of at least {SEED_MIN_BYTES} bytes",
                hint="restore it from a backup; without one, delete it and repeat: passwords that "
                "orders have stay as they are",
            )
        return Look(StepVerdict.DONE, f"{place} has a seed")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict is StepVerdict.DONE:
            return before
        try:
            with suppress(ConflictError):  # somebody else made it meanwhile: it is looked at below
                self.site.platform.cluster.create(seed_secret(secrets.token_hex(32)), owner=OWNER)
        except NoSuchNamespaceError as error:
            raise RefusedError(
                f"namespace {SEED_NAMESPACE}, where the seed of passwords is read, is missing",
                hint=f"kubectl create namespace {SEED_NAMESPACE}, and repeat",
            ) from error
        return Look(before.verdict, self.look().detail)


@dataclass(frozen=True, slots=True)
class ServiceSecretStep:
    """The files that platform.yaml names are in the Secret of the service."""

    site: BootstrapContext
    name: str = "service secret"

    def look(self) -> Look:
        differs = secret_differs(self.site.platform.cluster, self.site.wanted.service_files)
        verdict = {None: StepVerdict.CREATE, True: StepVerdict.CHANGE}.get(differs)
        names = ", ".join(sorted(self.site.wanted.service_files))
        return Look(verdict or StepVerdict.DONE, f"{KEY}: {names}")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        ensure_service_secret(self.site.platform.cluster, self.site.wanted.service_files)
        return before


REACH = ("forge", "cluster")
"""The steps without which nothing is known of the others."""
OnStep = Callable[[str, str], None]
OnDone = Callable[[StepDone], None]


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """`layers` are the Applications of the app-of-apps, in the order of their waves."""

    pack_commit: CommitSha
    layers: tuple[str, ...]
    steps: tuple[StepDone, ...] = ()

    @property
    def held_back(self) -> tuple[StepDone, ...]:
        """The steps that were left out as unsafe."""
        return tuple(step for step in self.steps if step.verdict is StepVerdict.FAIL)


def steps_of(platform: Platform, request: BootstrapRequest) -> Sequence[BootstrapStep]:
    """
    Return the steps for this target in their order. Nothing is asked of the platform.

    Raises:
        InvalidInputError: The pack is broken.
    """
    return _steps(BootstrapContext(platform, request))


def _steps(site: BootstrapContext) -> Sequence[BootstrapStep]:
    on_idpbuilder = site.wanted.installation.target is PlatformTarget.IDPBUILDER
    return [
        ForgeStep(site),
        ClusterStep(site),
        ArgoCdStep(site),
        CrossplaneStep(site),
        *([idpbuilder_steps.AddressesStep(site)] if on_idpbuilder else []),
        idpbuilder_steps.IdpbuilderSettingsStep(site) if on_idpbuilder else SettingsStep(site),
        AccessStep(site),
        LedgerStep(site),  # before the pack, which says where the ledger is
        PackStep(site),
        *([ServiceSecretStep(site)] if site.wanted.service_files else []),
        RootStep(site),
        *(LayerStep(site, layer) for layer in layers(site)),
        InForceStep(site),
        *([PasswordSeedStep(site)] if may_need_seed(site) else []),  # a layer may bring Crossplane
        *(TeamStep(site, team) for team in site.platform.teams),
        WebhookStep(site),
        PinStep(site),
        idpbuilder_steps.TemplatesStep(site) if on_idpbuilder else PortalStep(site),
        *([ProbeStep(site)] if site.wanted.probe else []),
    ]


def plan(platform: Platform, request: BootstrapRequest) -> Iterator[StepDone]:
    """
    Look at every step and yield what would be done. Changes nothing.

    A step that fails is yielded as such and the next one is looked at all the same. Where the forge
    or the cluster cannot be used, no further step is looked at: nothing true could be said of it.

    Raises:
        InvalidInputError: The pack is broken.
    """
    is_reachable = True
    for step in steps_of(platform, request):
        if not (is_reachable or step.name in REACH):
            return
        began_s = time.monotonic()
        try:
            look = step.look()
        except OrderkitError as error:
            is_reachable &= step.name not in REACH
            note = "" if is_reachable else "; what needs it is not looked at"
            look = Look(StepVerdict.FAIL, f"{error}{note}", error.hint)
        yield _step_done(step, look, began_s)


def bootstrap(
    platform: Platform,
    request: BootstrapRequest,
    *,
    on_step: OnStep,
    on_done: OnDone = lambda _: None,
) -> Bootstrapped:
    """
    Make sure the platform serves this pack. Idempotent, resumable.

    Args:
        on_step: Told each finished step, and what a step waits for: its name and a sentence.
        on_done: Told each finished step as a value, also the one that fails.

    Raises:
        InvalidInputError: The pack is broken or lacks ``gitops/root.yaml``.
        AccessError, UnreachableError: Forge or cluster does not let us, or does not answer.
        RefusedError: Argo CD is missing or too old, or the pack's repository is another's.
        IncompleteError: A layer does not become healthy in time, or the probe failed; the
            message says why.
    """
    site = BootstrapContext(platform, request)
    done_steps: list[StepDone] = []
    for step in _steps(site):
        began_s = time.monotonic()
        try:
            look = _ensure(step, on_step)
        except OrderkitError as error:
            failed = _step_done(step, Look(StepVerdict.FAIL, str(error), error.hint), began_s)
            on_done(failed)
            if request.holds_back and isinstance(error, ForeignAccessError):
                done_steps.append(failed)
                continue
            error.args = (f"{step.name}: {error}",)
            raise
        done_steps.append(_step_done(step, look, began_s))
        on_done(done_steps[-1])
        on_step(step.name, look.detail)
    head = platform.forge.head(platform.pack_repo) or CommitSha("")
    names = tuple(str(metadata(layer)["name"]) for layer in layers(site))
    return Bootstrapped(head, names, tuple(done_steps))


def _ensure(step: BootstrapStep, on_step: OnStep) -> Look:
    return step.ensure(lambda progress: on_step(step.name, f"… {progress}"))


def _step_done(step: BootstrapStep, look: Look, began_s: float) -> StepDone:
    seconds = round(time.monotonic() - began_s, 3)
    return StepDone(step.name, look.verdict, look.detail, seconds, look.advice)
