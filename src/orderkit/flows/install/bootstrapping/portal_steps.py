"""
The portal lists the pack's templates: one catalog location for each.

If a plugin of the portal reads orders from the service, locations of earlier orders are removed.
Where no portal can be asked that is said, and nothing fails: the platform works without one. On
CNOE's reference implementation the templates are entered into the repository that its Backstage
reads its templates from (`idpbuilder`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.names import MAIN
from ground.objects.kube_objects import dig
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import ledger
from orderkit.core.portal.profile import is_form_of_change
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.platform import snapshot
from yamlfiles import yaml12
from yamlfiles.documents import Files


def template_paths(files: Files) -> Sequence[PurePosixPath]:
    """
    Return the files of the pack that a portal shall register: of kits, of changes, of ends.

    Raises:
        InvalidInputError: The pack is broken.
    """
    kits = [PurePosixPath("templates", k, "template.yaml") for k in read_pack(files).kit_names]
    forms = [path for path in sorted(files) if is_form_of_change(path)]
    return [path for path in (*kits, *forms) if path in files and _is_template(files[path], path)]


def _is_template(data: bytes, path: PurePosixPath) -> bool:
    return bool(dig(yaml12.load(data, name=str(path)), "kind") == "Template")


def template_urls(site: BootstrapContext) -> Sequence[str]:
    """Return where a portal reads them, as its locations name them."""
    forge = site.platform.forge
    base = forge.capabilities.pages.folder(f"{forge.base_url}/{site.platform.pack_repo}", MAIN)
    return [f"{base}{path}" for path in template_paths(site.files)]


@dataclass(frozen=True, slots=True)
class PortalStep:
    """Every template is registered in the portal's catalog."""

    site: BootstrapContext
    name: str = "portal"

    def look(self) -> Look:
        if self.site.wanted.portal_problem:
            return Look(
                StepVerdict.SKIP,
                f"templates are not registered: {self.site.wanted.portal_problem}",
                "register them when the portal runs: repeat this command",
            )
        missing, superseded = self._missing(), self._superseded()
        if missing:
            return Look(StepVerdict.CREATE, f"{len(missing)} locations, first {missing[0]}")
        if superseded:
            note = f"{len(superseded)} locations of orders, which the portal's plugin reads"
            return Look(StepVerdict.CHANGE, f"{note}; removes {superseded[0]}")
        return Look(StepVerdict.DONE, f"{len(template_urls(self.site))} templates are registered")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict in (StepVerdict.CREATE, StepVerdict.CHANGE):
            for url in self._missing():
                self.site.platform.catalog.register(url)
            for url in self._superseded():
                self.site.platform.catalog.unregister(url)
        return before

    def _missing(self) -> Sequence[str]:
        registered = {location.target for location in self.site.platform.catalog.locations()}
        return [url for url in template_urls(self.site) if url not in registered]

    def _superseded(self) -> Sequence[str]:
        platform = self.site.platform
        ledger_files = snapshot(platform, platform.ledger)
        if not platform.portal_reads_orders or ledger_files is None:
            return []
        orders = [entry.repository for entry in ledger.entries(ledger_files.blobs)]
        prefixes = tuple(f"{platform.forge.base_url}/{repository}/" for repository in orders)
        targets = [location.target for location in platform.catalog.locations()]
        return [target for target in targets if target.startswith(prefixes)]
