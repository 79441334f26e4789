"""
Render a pack for one platform: what publishing puts into the platform's own pack repository.

The delivery tree is fitted to the installation, the portal's profile is applied to the templates,
then the platform's values are baked; a sentinel that would be left is refused. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import MAIN, RepoId
from ground.objects.kube_objects import metadata
from ground.regular_expressions import compile_pattern
from kubeschema import xrd
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.form_fields import guard_pattern
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import service_rules
from orderkit.core.kit.pack import Files, read_pack
from orderkit.core.kit.xrd_fields import fields_of
from orderkit.core.platform.baking import VERSION, bake
from orderkit.core.platform.delivery_tree import fitted
from orderkit.core.platform.forge_kinds import GITEA, ForgePages
from orderkit.core.platform.installation import Installation
from orderkit.core.platform.service_objects import APPLICATION_FILE, layer_files, service_parts
from orderkit.core.platform.settings import CLUSTER_NAME, LEDGER, PACK, PlatformSettings
from orderkit.core.portal.profile import Profile, apply_profile
from orderkit.flows.template.actions import ACTIONS

SERVICE_URL = PORTAL_URL = "http://127.0.0.1:7399"
"""Where ``orderkit up`` serves at first."""


@dataclass(frozen=True, slots=True)
class PlatformValues:
    """The values of a platform that are written into its pack."""

    forge_url: str
    pack_commit: str
    registry: str
    profile: Profile = Profile.SERVICE
    pack_values: Mapping[str, str] = field(default_factory=dict)
    """``spec.values`` of platform.yaml."""
    service_url: str = SERVICE_URL
    """The service as a browser reaches it: where links to forms of changes lead."""
    portal_url: str = PORTAL_URL
    cluster_name: str = CLUSTER_NAME
    """What the portal calls the cluster (profile ``job``)."""
    installation: Installation = field(default_factory=Installation)
    """What the delivery tree is fitted to."""
    forge_pages: ForgePages = GITEA.pages
    """Where the forge shows files; packs name Gitea's pages."""
    pack_repo: RepoId = PACK
    ledger: RepoId = LEDGER
    service: PlatformSettings | None = None
    """The settings with which the service is installed; None: it is not."""

    def baked(self, versions: Mapping[str, str]) -> Mapping[str, str]:
        """Return the value of every sentinel a pack with these versions may use."""
        crossplane = self.installation.crossplane
        pinned = {**versions, **({"crossplane": crossplane.version} if crossplane.version else {})}
        charts = crossplane.chart_repository
        return {
            **{f"{VERSION}{name.upper().replace('-', '_')}": pin for name, pin in pinned.items()},
            **({"CROSSPLANE_CHARTS": charts} if charts else {}),
            "PACK_REPOSITORY": str(self.pack_repo),
            "LEDGER_REPOSITORY": str(self.ledger),
            **self.pack_values,
            "FORGE_URL": self.forge_url,
            "FORGE_HOST": self.forge_url.partition("://")[2],
            "PACK_COMMIT": self.pack_commit,
            "REGISTRY": self.registry,
            "SERVICE_URL": self.service_url,
            "PORTAL_URL": self.portal_url,
            "CLUSTER_NAME": self.cluster_name,
            "CROSSPLANE_ACCOUNT": crossplane.account,
            "ARGOCD_ACCOUNT": self.installation.argocd.account,
        }


def values_of(
    settings: PlatformSettings, pack_commit: str, *, profile: Profile | None = None
) -> PlatformValues:
    """Return what platform.yaml says; `profile` None: the platform's own."""
    return PlatformValues(
        settings.forge.address,
        pack_commit,
        settings.registry,
        profile or settings.portal.profile,
        settings.values,
        settings.service_address or settings.forge.url,  # a link then leads to the forge
        settings.portal.url or settings.forge.url,
        settings.portal.cluster_name,
        settings,
        settings.forge.pages,
        settings.pack,
        settings.ledger,
        settings if settings.service.install else None,
    )


def render_pack(files: Files, values: PlatformValues) -> dict[PurePosixPath, bytes]:
    """
    Return the files that are published. Deterministic.

    Raises:
        InvalidInputError: The pack is broken, a template cannot run in the service (its step
            is named), or a sentinel has no value (file and line are named).
    """
    pack = read_pack(files)
    baked = values.baked(pack.versions)
    kits = checked_kits(pack)
    for kit in kits:  # a broken kit stops here, before any write
        for problem in xrd.problems(kit.xrd):
            path = f"gitops/apis/{kit.name}/definition.yaml"
            raise InvalidInputError(path, metadata(kit.xrd).get("name"), f"is refused: {problem}")
        _check_values(kit, baked)
    delivered = {**files, **_service_layer(files, values, kits)}
    fit = fitted(delivered, values.installation, pack.providers)
    teams = {kit.name: kit.team_parameter for kit in kits}
    copied = apply_profile(fit, values.profile, actions=ACTIONS, team_parameters=teams)
    rendered = bake(copied, baked)
    return _with_pages(rendered, values)


def _service_layer(files: Files, values: PlatformValues, kits: Sequence[Kit]) -> Files:
    """
    Return the layer that installs the service, if platform.yaml wants one.

    Raises:
        InvalidInputError: The pack has a layer of this name.
    """
    parts = service_parts(values.service, service_rules(kits)) if values.service else None
    if parts is None:
        return {}
    layer = layer_files(parts)
    for path in sorted({APPLICATION_FILE, *layer}.intersection(files)):
        raise InvalidInputError(
            "spec.service.install",
            str(path),
            "is a file of the pack, and the layer that is generated has it too",
            hint="remove the file from the pack, or leave out spec.service.install",
        )
    return layer


def _with_pages(
    files: Mapping[PurePosixPath, bytes], values: PlatformValues
) -> dict[PurePosixPath, bytes]:
    """Turn links to files of the pack from Gitea's form into the form of this forge."""
    repository = f"{values.forge_url}/{values.pack_repo}"
    link = GITEA.pages.folder(repository, MAIN).encode()
    right = values.forge_pages.folder(repository, MAIN).encode()
    return {
        path: data if link == right else data.replace(link, right) for path, data in files.items()
    }


def _check_values(kit: Kit, baked: Mapping[str, str]) -> None:
    """Refuse a value that the kit's form would always refuse."""
    for path, hidden in kit.hidden.items():
        if hidden.value not in baked:
            raise InvalidInputError(
                f"spec.values.{hidden.value}",
                None,
                f"is missing: kit '{kit.name}' needs it for '{path}'",
                hint="give it in platform.yaml, or to 'orderkit up' as"
                f" --value {hidden.value}=TEXT",
            )
        field = fields_of(kit).find(path)
        pattern = guard_pattern(hidden, field) if field else ""
        if not compile_pattern(pattern).search(baked[hidden.value]):
            raise InvalidInputError(
                f"spec.values.{hidden.value}",
                baked[hidden.value],
                f"does not match {pattern}, the guard of '{path}' in kit '{kit.name}'",
            )
