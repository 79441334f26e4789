"""
What is special on a cluster that idpbuilder made.

Its addresses are checked against what it noted in the cluster. Its Argo CD delivers ``argocd-cm``
from a repository on the cluster's Gitea and reverts every live edit, so settings that ``-c
argocd:FILE`` did not bring are written there. CNOE's reference implementation reads its templates
from another such repository; ours are entered as targets of its Location.

Read from idpbuilder's source and tried against repositories of that shape; idpbuilder itself
needs Docker and was not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, Kind, dig, metadata
from orderkit.core.platform import idpbuilder
from orderkit.flows.argocd.commit_pinning import refuse_lost_tools
from orderkit.flows.argocd.refreshing import application_key, refresh
from orderkit.flows.install.bootstrapping.argocd_steps import (
    ARGOCD_CM,
    unforced,
    wanted_settings,
)
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.install.bootstrapping.team_steps import PortalStep, template_urls
from orderkit.flows.platform import get_object, snapshot
from orderkit.flows.repeating import until
from orderkit.ports.cluster import NoSuchKindError
from orderkit.ports.forge import FileChange, FileRevision, Operation
from yamlfiles import yaml12
from yamlfiles.edit import Edit, Op, edit
from yamlfiles.manifests import parse_documents

LOCALBUILD = Kind("idpbuilder.cnoe.io", "v1alpha1", "Localbuild")
_ARGOCD = "argocd"
_TEMPLATES = "backstage-templates-entities"
_LOCATIONS = PurePosixPath("catalog-info.yaml")


@dataclass(frozen=True, slots=True)
class AddressesStep:
    """platform.yaml names the addresses that idpbuilder gave this cluster."""

    site: BootstrapContext
    name: str = "idpbuilder"

    def look(self) -> Look:
        platform = self.site.platform
        addresses = idpbuilder.addresses(platform.forge.base_url)
        try:
            builds = platform.cluster.list(LOCALBUILD).items
        except NoSuchKindError as error:
            raise RefusedError(
                "idpbuilder did not make this cluster: it serves no Localbuild",
                hint="check cluster.context in platform.yaml, or let spec.target be 'cluster'",
            ) from error
        if not builds:
            raise NotFoundError(
                "the cluster has no Localbuild of idpbuilder",
                hint="run 'idpbuilder create' to its end first",
            )
        noted_url = str(dig(builds[0], "status", "gitea", "externalURL", default="")).rstrip("/")
        if noted_url and noted_url != platform.forge.base_url:
            raise InvalidInputError(
                "spec.forge.url",
                platform.forge.base_url,
                f"is not the address of idpbuilder's Gitea, which is {noted_url}",
                hint="set that address, then render and create again",
            )
        routing = "paths" if addresses.path_routing else "subdomains"
        return Look(
            StepVerdict.DONE, f"{metadata(builds[0]).get('name')}, {addresses.gitea}, by {routing}"
        )

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        return self.look()


@dataclass(frozen=True, slots=True)
class IdpbuilderSettingsStep:
    """Argo CD's settings stand in what idpbuilder's Argo CD is delivered from."""

    site: BootstrapContext
    name: str = "settings"

    def look(self) -> Look:
        settings = wanted_settings(self.site)
        keys = unforced(self.site.platform.cluster, settings)
        if not keys:
            return Look(StepVerdict.DONE, "tracking and health checks are in force")
        live = get_object(self.site.platform.cluster, ARGOCD_CM) or {}
        refuse_lost_tools(self.site.platform.cluster, settings, dig(live, "data", default={}) or {})
        return Look(StepVerdict.CHANGE, f"{self._repo()}: {', '.join(keys)}")

    def ensure(self, say: Say) -> Look:
        before, platform = self.look(), self.site.platform
        if before.verdict is StepVerdict.DONE:
            return before
        settings = wanted_settings(self.site)
        self._write(settings)
        refresh(platform.cluster, _ARGOCD)
        say(f"Application '{_ARGOCD}' delivering {self._repo()}")
        until(
            platform.clock,
            lambda: unforced(platform.cluster, settings),
            lambda keys: not keys,
            timeout_s=self.site.wanted.timeout_s,
            goal="idpbuilder's Argo CD applying its settings",
            why_not=", ".join,
        )
        return before

    def _repo(self) -> RepoId:
        return idpbuilder.core_repository(_ARGOCD, cluster=_cluster(self.site))

    def _write(self, settings: dict[str, str]) -> None:
        repo, forge = self._repo(), self.site.platform.forge
        for revision in _yaml_files(self.site, repo):
            data = with_settings(revision.data, settings)
            if data is not None:
                change = FileChange(revision.path, data, revision.sha)
                forge.write(repo, [change], _operation(self.site, f"settings-{revision.sha[:12]}"))
                return
        raise NotFoundError(
            f"{repo}: no ConfigMap argocd-cm in it",
            hint="create the cluster with -c argocd:argocd-cm.yaml (docs/bootstrap.md)",
        )


@dataclass(frozen=True, slots=True)
class TemplatesStep:
    """CNOE's Backstage lists our templates; without that Backstage, the portal there is."""

    site: BootstrapContext
    name: str = "portal"

    def look(self) -> Look:
        revision = self._locations_file()
        if revision is None:
            return PortalStep(self.site).look()
        missing = [url for url in template_urls(self.site) if url not in _targets(revision.data)]
        if not missing:
            return Look(StepVerdict.DONE, f"templates are targets in {self._repo()}")
        return Look(
            StepVerdict.CHANGE, f"{self._repo()}: {len(missing)} targets, first {missing[0]}"
        )

    def ensure(self, say: Say) -> Look:
        revision = self._locations_file()
        if revision is None:
            return PortalStep(self.site).ensure(say)
        before = self.look()
        if before.verdict is not StepVerdict.DONE:
            data = with_targets(revision.data, template_urls(self.site))
            change = FileChange(revision.path, data, revision.sha)
            why = _operation(self.site, f"templates-{revision.sha[:12]}")
            self.site.platform.forge.write(self._repo(), [change], why)
        return before

    def _repo(self) -> RepoId:
        folder = _TEMPLATES.removeprefix("backstage-templates-")
        return idpbuilder.repository("backstage-templates", folder, cluster=_cluster(self.site))

    def _locations_file(self) -> FileRevision | None:
        forge = self.site.platform.forge
        return forge.read(self._repo(), _LOCATIONS, "main") if forge.head(self._repo()) else None


def with_settings(data: bytes, settings: dict[str, str]) -> bytes | None:
    """
    Return a file of manifests with these entries in its ``argocd-cm``; None if it has none.

    The file is that of a whole installation: only the one document is looked at and edited.

    Raises:
        EditRefusedError: The entries cannot be written with proof.
    """
    documents = data.decode().split("\n---\n")
    for number, text in enumerate(documents):
        if "name: argocd-cm\n" not in f"{text}\n":
            continue
        config_map = yaml12.load(text.encode(), name="argocd-cm")
        if (Kind.of(config_map), metadata(config_map).get("name")) != (CONFIG_MAP, "argocd-cm"):
            continue
        live = config_map.get("data") or {}
        edits = [
            Edit(("data", key), value=value)
            for key, value in settings.items()
            if str(live.get(key, "")).strip() != value.strip()
        ]
        documents[number] = edit(f"{text}\n".encode(), edits, name="argocd-cm").decode()[:-1]
        return "\n---\n".join(documents).encode()
    return None


def with_targets(data: bytes, urls: Sequence[str]) -> bytes:
    """
    Return a file of catalog Locations with these targets in its first one.

    Raises:
        InvalidInputError: It has no Location with targets.
        EditRefusedError: They cannot be added with proof.
    """
    for number, document in enumerate(_documents(data)):
        targets = dig(document, "spec", "targets")
        if dig(document, "kind") == "Location" and isinstance(targets, list):
            edits = [
                Edit(("spec", "targets"), Op.ADD, url, document=number)
                for url in urls
                if url not in targets
            ]
            return edit(data, edits, name=str(_LOCATIONS))
    raise InvalidInputError(
        str(_LOCATIONS), None, "has no Location with targets", hint="add one by hand, then repeat"
    )


def _documents(data: bytes) -> Sequence[object]:
    return [document for document, _ in parse_documents(str(_LOCATIONS), data)]


def _targets(data: bytes) -> Sequence[str]:
    return [
        str(target)
        for document in _documents(data)
        for target in dig(document, "spec", "targets", default=()) or ()
    ]


def _cluster(site: BootstrapContext) -> str:
    """Return idpbuilder's name for the cluster: from the pack's repository, else the usual one."""
    try:
        return idpbuilder.cluster_name(site.platform.pack_repo)
    except InvalidInputError:
        return idpbuilder.NAME


def _yaml_files(site: BootstrapContext, repo: RepoId) -> Iterator[FileRevision]:
    platform = site.platform
    files = snapshot(platform.forge, repo)
    if files is None or get_object(platform.cluster, application_key(_ARGOCD)) is None:
        raise NotFoundError(
            f"{repo} is missing: idpbuilder's Argo CD is not delivered from there",
            hint="run 'idpbuilder create' to its end first",
        )
    for path in sorted(files.blobs):
        revision = platform.forge.read(repo, path, files.commit) if path.suffix == ".yaml" else None
        if revision is not None:
            yield revision


def _operation(site: BootstrapContext, subject: str) -> Operation:
    return Operation(f"idpbuilder-{subject}", site.wanted.requester, "what Orderkit's pack needs")
