"""
The seed that generated passwords follow from (docs/adr/0026): drawn once, and never written over.

It exists in the cluster only: it is not in Git, in no message and in no plan.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass

from compositions.generated_passwords import (
    SEED_KEY,
    SEED_MIN_BYTES,
    SEED_NAME,
    SEED_NAMESPACE,
    is_seed,
    seed_secret,
)
from ground.errors import ConflictError, RefusedError
from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.core.kit.pack import read_pack
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.platform import get_object
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
        secret = get_object(self.site.platform, _SECRET)
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
