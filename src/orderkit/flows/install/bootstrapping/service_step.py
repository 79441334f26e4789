"""The installed service has its Secret before Argo CD starts its Pods."""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.install.service_secret import KEY, ensure_service_secret, secret_differs


@dataclass(frozen=True, slots=True)
class ServiceSecretStep:
    """The files that platform.yaml names are in the Secret of the service."""

    site: BootstrapContext
    name: str = "service secret"

    def look(self) -> Look:
        differs = secret_differs(self.site.platform, self.site.wanted.service_files)
        verdict = {None: StepVerdict.CREATE, True: StepVerdict.CHANGE}.get(differs)
        names = ", ".join(sorted(self.site.wanted.service_files))
        return Look(verdict or StepVerdict.DONE, f"{KEY}: {names}")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        ensure_service_secret(self.site.platform, self.site.wanted.service_files)
        return before
