"""
What ``idpbuilder create`` takes of a platform: a folder with one package and Argo CD's settings.

idpbuilder's rules, read from its source (release 0.10 and the head of December 2025): of a package
folder only top-level YAML files count, of each only the first document, and only an Application or
ApplicationSet. ``cnoe://DIR`` in its sources is pushed to a repository of its own on the cluster's
Gitea and replaced by that repository's address; Applications *inside* a pushed folder are not
rewritten. So the package is the root Application with ``cnoe://pack``, and the layers in the pack
name the address that idpbuilder will give that repository, which follows from names. ``-c
argocd:FILE`` replaces whole objects that have no namespace, and renders Go templates in them: so
the settings carry no namespace and every entry that idpbuilder ships.

Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ground.errors import InvalidInputError
from ground.names import Files, RepoId
from ground.objects.kube_objects import CONFIG_MAP, CRD, Kind, Manifest, metadata
from orderkit.core.platform.neighbours import ARGO_CD, judge_release
from yamlfiles import yaml11
from yamlfiles.edit import Edit, edit
from yamlfiles.manifests import ManifestLimits, parse_manifests

ADMIN = "giteaAdmin"
"""The user whose repositories idpbuilder pushes packages to."""
NAME = "localdev"
"""What idpbuilder calls a cluster unless told otherwise."""
PACKAGES, SETTINGS = PurePosixPath("packages"), PurePosixPath("argocd-cm.yaml")
_PACK = "pack"
_ROOT = PurePosixPath("gitops", "root.yaml")
_ARGOCD = PurePosixPath("gitops", "argocd")
_GO_TEMPLATE = "{{"
_ARGOCD_IMAGE = re.compile(r"image: \S*\bargocd:(v?[0-9][^@\s]*)")
_RELEASE_LIMITS = ManifestLimits(size_bytes=8_000_000, events=1_000_000)
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
_KEPT_BY_IDPBUILDER = {
    ("ConfigMap", "argocd-cm"),
    ("ConfigMap", "argocd-rbac-cm"),
    ("ConfigMap", "argocd-tls-certs-cm"),
}
_SWITCHED_OFF = ("argocd-dex-server", "argocd-notifications-controller")


def _jq(*paths: str) -> str:
    return json.dumps({"jqPathExpressions": list(paths)})


def _annotations(group: str, *names: str) -> str:
    return _jq(*(f'.metadata.annotations."{group}/{name}"' for name in names))


_IGNORE = "resource.customizations.ignoreResourceUpdates."
SHIPPED: Mapping[str, str] = {
    "accounts.developer": "apiKey, login",
    "application.resourceTrackingMethod": "annotation",
    "timeout.reconciliation": "60s",
    "resource.exclusions": json.dumps([{"kinds": ["ProviderConfigUsage"], "apiGroups": ["*"]}]),
    f"{_IGNORE}all": json.dumps({"jsonPointers": ["/status"]}),
    f"{_IGNORE}ConfigMap": _jq(
        '.metadata.annotations."cluster-autoscaler.kubernetes.io/last-updated"',
        '.metadata.annotations."control-plane.alpha.kubernetes.io/leader"',
    ),
    f"{_IGNORE}Endpoints": json.dumps({"jsonPointers": ["/metadata", "/subsets"]}),
    f"{_IGNORE}apps_ReplicaSet": _jq(
        '.metadata.annotations."deployment.kubernetes.io/desired-replicas"',
        '.metadata.annotations."deployment.kubernetes.io/max-replicas"',
        '.metadata.annotations."rollout.argoproj.io/desired-replicas"',
    ),
    f"{_IGNORE}argoproj.io_Application": _jq(
        '.metadata.annotations."notified.notifications.argoproj.io"',
        '.metadata.annotations."argocd.argoproj.io/refresh"',
        '.metadata.annotations."argocd.argoproj.io/hydrate"',
        ".operation",
    ),
    f"{_IGNORE}argoproj.io_Rollout": _jq(
        '.metadata.annotations."notified.notifications.argoproj.io"'
    ),
    f"{_IGNORE}autoscaling_HorizontalPodAutoscaler": _annotations(
        "autoscaling.alpha.kubernetes.io", "behavior", "conditions", "metrics", "current-metrics"
    ),
    f"{_IGNORE}discovery.k8s.io_EndpointSlice": json.dumps(
        {"jsonPointers": ["/metadata", "/endpoints", "/ports"]}
    ),
}
"""The entries of ``argocd-cm`` that idpbuilder installs: replacing the object loses the others."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where an idpbuilder cluster's Gitea is, as its forge's URL tells."""

    host: str
    port: str
    protocol: str
    path_routing: bool

    @property
    def gitea(self) -> str:
        """The base URL of its Gitea."""
        if self.path_routing:
            return f"{self.protocol}://{self.host}:{self.port}/gitea"
        return f"{self.protocol}://gitea.{self.host}:{self.port}"

    @property
    def flags(self) -> str:
        """What ``idpbuilder create`` must be told for these addresses."""
        flag_text = f"--protocol {self.protocol} --host {self.host} --port {self.port}"
        return f"{flag_text} --use-path-routing" if self.path_routing else flag_text


def addresses(forge_url: str) -> Addresses:
    """
    Read the addresses of an idpbuilder cluster from its forge's URL.

    Raises:
        InvalidInputError: It is neither ``…://HOST:PORT/gitea`` nor ``…://gitea.HOST:PORT``.
    """
    parts = urlsplit(forge_url)
    host, port, path = parts.hostname or "", parts.port, parts.path.rstrip("/")
    by_path, by_name = path == "/gitea", path == "" and host.startswith("gitea.")
    if port is None or not (by_path or by_name):
        raise InvalidInputError(
            "spec.forge.url",
            forge_url,
            "is not an address of idpbuilder's Gitea",
            hint="with path routing https://cnoe.localtest.me:8443/gitea, "
            "else https://gitea.cnoe.localtest.me:8443",
        )
    plain = host if by_path else host.removeprefix("gitea.")
    return Addresses(plain, str(port), parts.scheme, by_path)


def repository(application: str, folder: str, *, cluster: str = NAME) -> RepoId:
    """Return the repository that idpbuilder pushes a folder of a package to."""
    return RepoId(ADMIN, f"idpbuilder-{cluster}-{application}-{folder}")


def core_repository(package: str, *, cluster: str = NAME) -> RepoId:
    """Return the repository of one of idpbuilder's own packages."""
    return RepoId(ADMIN, f"idpbuilder-{cluster}-{package}")


def pack_repository(cluster: str = NAME) -> RepoId:
    """Return where the pack of our package comes to lie; platform.yaml names it so."""
    return repository("root", _PACK, cluster=cluster)


def cluster_name(pack: RepoId) -> str:
    """
    Return the cluster's name from the pack's repository.

    Raises:
        InvalidInputError: It is not what idpbuilder will push the package to.
    """
    name = pack.name.removeprefix("idpbuilder-").removesuffix(f"-root-{_PACK}")
    if pack != pack_repository(name):
        raise InvalidInputError(
            "spec.packRepository",
            str(pack),
            "is not the repository that idpbuilder pushes the package to",
            hint=f"for a cluster of the usual name write {pack_repository()}",
        )
    return name


def package(
    rendered: Files, *, forge_url: str, pack: RepoId, argocd_release: bytes = b""
) -> dict[PurePosixPath, bytes]:
    """
    Return the folder for ``idpbuilder create``: ``packages``, ``argocd-cm.yaml``, README.md.

    Args:
        rendered: The pack as rendered for this platform.
        forge_url: The forge's URL of platform.yaml.
        pack: Its pack repository.
        argocd_release: The manifests of the Argo CD that idpbuilder shall install instead of its
            own; empty: its own.

    Raises:
        InvalidInputError: Addresses or names are not idpbuilder's, the pack has no root, or the
            manifests are not those of a supported Argo CD.
    """
    platform_addresses, name = addresses(forge_url), cluster_name(pack)
    files = {PACKAGES / _PACK / path: data for path, data in rendered.items()}
    files[PACKAGES / "root.yaml"] = _root(rendered)
    files[SETTINGS] = settings_file(rendered)
    if argocd_release:
        files[SETTINGS] += raised_argocd(
            argocd_release, path_routing=platform_addresses.path_routing
        )
    files[PurePosixPath("README.md")] = _readme(platform_addresses, name).encode()
    return files


def _root(rendered: Files) -> bytes:
    if _ROOT not in rendered:
        raise InvalidInputError(str(_ROOT), None, "is missing in the pack")
    wish = Edit(("spec", "source", "repoURL"), value=f"cnoe://{_PACK}")
    return edit(rendered[_ROOT], [wish], name=str(_ROOT))


def settings(rendered: Files) -> dict[str, str]:
    """
    Return every entry of ``argocd-cm``: what idpbuilder ships, and over it what the pack asks for.

    Raises:
        InvalidInputError: The pack asks for another object, or for text that idpbuilder would
            take for a Go template.
    """
    values = dict(SHIPPED)
    for path in sorted(rendered):
        if path.parent != _ARGOCD or path.suffix not in {".yaml", ".yml"}:
            continue
        for manifest in parse_manifests(str(path), rendered[path]):
            if (Kind.of(manifest), metadata(manifest).get("name")) != (CONFIG_MAP, "argocd-cm"):
                object_name = f"{manifest.get('kind')} {metadata(manifest).get('name')}"
                raise InvalidInputError(str(path), object_name, "cannot be given to idpbuilder")
            values |= manifest.get("data") or {}
    for key, value in values.items():
        if _GO_TEMPLATE in value:
            raise InvalidInputError(key, value, "holds '{{', a Go template for idpbuilder")
    return values


def settings_file(rendered: Files) -> bytes:
    """
    Return the file for ``-c argocd:FILE``.

    Raises:
        InvalidInputError: As `settings` says.
    """
    head = "# For `idpbuilder create -c argocd:FILE`. Written by `orderkit platform render`.\n"
    manifest: dict[str, Any] = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": "argocd-cm",
            "labels": {
                "app.kubernetes.io/name": "argocd-cm",
                "app.kubernetes.io/part-of": "argocd",
            },
        },
        "data": settings(rendered),
    }
    return (head + yaml11.dump(manifest)).encode()


def raised_argocd(release: bytes, *, path_routing: bool) -> bytes:
    """
    Return the manifests of an Argo CD release as idpbuilder takes them with ``-c argocd:FILE``.

    idpbuilder replaces its objects of the same name and adds the others. Its own settings stay:
    certificates, accounts, no Dex and no notifications, and its address. Not run: it needs Docker.

    Args:
        release: The ``manifests/install.yaml`` of the release.

    Raises:
        InvalidInputError: They name no Argo CD, one that is not supported, or namespaces.
        ManifestError: They are not manifests.
    """
    name = "install.yaml"
    manifests = parse_manifests(name, release, limits=_RELEASE_LIMITS)
    versions = sorted(set(_ARGOCD_IMAGE.findall(release.decode())))
    version = versions[0] if versions else ""
    verdict = judge_release(ARGO_CD, version)
    if verdict.basis not in {"supported", "observed"}:
        rule = f"is no release of Argo CD to install: {verdict.detail}"
        raise InvalidInputError(name, version, rule, hint=verdict.hint)
    kept = [
        _as_idpbuilder_has_it(dict(manifest), path_routing=path_routing)
        for manifest in manifests
        if (manifest["kind"], metadata(manifest).get("name")) not in _KEPT_BY_IDPBUILDER
    ]
    for manifest in kept:
        if "namespace" in metadata(manifest):
            raise InvalidInputError(
                name,
                f"{manifest['kind']} {metadata(manifest).get('name')}",
                "has a namespace, so idpbuilder would add it beside its own",
                hint="take manifests/install.yaml of Argo CD's release",
            )
    return yaml11.dump_all(kept).replace(_GO_TEMPLATE, "{{`{{`}}").encode()


def _as_idpbuilder_has_it(manifest: Manifest, *, path_routing: bool) -> Manifest:
    """Return an object of Argo CD with what idpbuilder changes in its own release."""
    kind, name = manifest["kind"], metadata(manifest).get("name")
    if kind == CRD.kind:  # larger than what client-side apply keeps in an annotation
        fields = metadata(manifest)
        annotations = {**fields.get("annotations", {}), _SYNC_OPTIONS: "ServerSideApply=true"}
        return {**manifest, "metadata": {**fields, "annotations": annotations}}
    if kind != "Deployment":
        return manifest
    spec = manifest["spec"]
    if name in _SWITCHED_OFF:
        return {**manifest, "spec": {**spec, "replicas": 0}}
    if name == "argocd-server" and path_routing:
        container = spec["template"]["spec"]["containers"][0]
        container["args"] = [*container["args"], "--insecure", "--basehref", "/argocd"]
    return manifest


def _readme(platform_addresses: Addresses, name: str) -> str:
    name_flag = "" if name == NAME else f" --name {name}"
    return f"""# For idpbuilder

Written by `orderkit platform render`; write it again rather than edit it. In this folder:

```sh
idpbuilder create{name_flag} {platform_addresses.flags} \\
  -p packages -c argocd:{SETTINGS}
```

Then, from where platform.yaml lies: `orderkit bootstrap --platform platform.yaml`.

idpbuilder overwrites what lies in the pack's repository with this folder each time it runs with
`-p packages`: write the folder again first, or leave `-p` out.
"""
